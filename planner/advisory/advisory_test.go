package advisory_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/advisory"
)

// Requests are served in turn: one that could be had waits behind one that waits, unless
// its owner has some of the key already.
func TestTurns(t *testing.T) {
	locks := advisory.New(5, &circle.Graph{})
	a, b, c := locks.Owner(1), locks.Owner(2), locks.Owner(3)
	key := advisory.Big(1)
	must := func(ok bool, err error) {
		t.Helper()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	must(a.Try(key, advisory.Share, false))
	done := make(chan error, 1)
	go func() { done <- b.Lock(context.Background(), key, advisory.Exclusive, false) }()
	for waits := 0; waits == 0; runtime.Gosched() {
		waits = 0
		for _, l := range locks.List() {
			if !l.Granted {
				waits++
			}
		}
	}
	if ok, err := c.Try(key, advisory.Share, false); ok || err != nil {
		t.Errorf("passed one that waits: %v, %v", ok, err)
	}
	must(a.Try(key, advisory.Share, true))
	a.Release(0)
	if !a.Unlock(key, advisory.Share) || a.Unlock(key, advisory.Share) {
		t.Error("unlocked another number of times")
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.Close()
	if left := locks.List(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A wait that is given up leaves nothing behind, and lets those behind it pass.
func TestGiveUp(t *testing.T) {
	locks := advisory.New(5, &circle.Graph{})
	a, b := locks.Owner(1), locks.Owner(2)
	key := advisory.Pair(-1, 2)
	if ok, err := a.Try(key, advisory.Exclusive, true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	cause := errors.New("test: canceled")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if err := b.Lock(ctx, key, advisory.Share, false); !errors.Is(err, cause) {
		t.Errorf("gave up with %v", err)
	}
	if list := locks.List(); len(list) != 1 || list[0].PID != 1 {
		t.Errorf("left: %v", list)
	}
	a.Close()
	if list := locks.List(); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

// Many sessions take locks in any order: each gets its locks or learns of a circle, and no
// two have one at a time.
func TestMany(t *testing.T) {
	locks := advisory.New(5, &circle.Graph{})
	var all sync.WaitGroup
	var held [3]struct {
		sync.Mutex
		n int
	}
	for pid := range uint32(8) {
		all.Go(func() {
			o := locks.Owner(pid)
			defer o.Close()
			for i := range 200 {
				var got []int
				for _, k := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}[(int(pid)+i)%3] {
					err := o.Lock(context.Background(), advisory.Big(int64(k)), advisory.Exclusive, true)
					if e, ok := pgerr.As(err); ok && e.Code == "40P01" {
						break
					} else if err != nil {
						t.Error(err)
						return
					}
					if !held[k].TryLock() {
						t.Errorf("two have %d", k)
						return
					}
					got = append(got, k)
				}
				for _, k := range got {
					held[k].Unlock()
				}
				o.Release(0)
			}
		})
	}
	all.Wait()
	if left := locks.List(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
