package compact_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
)

// TestOneTableHangs: a lake commit that does not come back keeps no other table out of the
// lake; it is begun once, and waited for at the end.
func TestOneTableHangs(t *testing.T) {
	w := newWorld(t)
	w.cfg.Parallel = 1
	stuck, going := make(chan struct{}), make(chan struct{})
	var hung atomic.Bool
	w.open()
	first := w.table
	w.update(func(txn *catalog.Txn) error {
		w.table = &catalog.Table{Pipeline: w.pid, Schema: "public", Name: "places", State: catalog.TableReady, Current: people(t), Generation: 1}
		return txn.CreateTable(w.table)
	})
	second := w.table
	w.table = first
	w.append("", "+1 ana")
	w.table = second
	w.append("", "+2 bo")
	w.onRead = func() { // of the first table, which is the first to be looked at
		if hung.CompareAndSwap(false, true) {
			close(stuck)
			<-going
		}
	}
	w.clock.Advance(time.Minute)
	step := func() <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := w.svc.Step(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		return done
	}
	lake := func(table *catalog.Table) bool {
		snap := w.cat.Snapshot()
		defer snap.Close()
		return snap.LakeState(table.ID).Snapshot != 0
	}
	ended := step()
	<-stuck
	if err := w.clock.AwaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Minute)
	<-ended
	if lake(first) || !lake(second) {
		t.Fatalf("in the lake: the table that hangs %t, the other %t", lake(first), lake(second))
	}
	<-step() // leaves the first alone, without waiting
	ctx, stop := context.WithCancel(t.Context())
	stop()
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = w.svc.Run(ctx)
	}()
	close(going)
	<-ran
	if !lake(first) {
		t.Error("what hung was not finished")
	}
}
