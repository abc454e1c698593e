package compact_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/segment"
)

// A segment of groups without slices that could be live (parts of a transaction that was
// given up, tables that were dropped) is reclaimable without any compaction. Before the
// log deletes it the catalog must have its groups durably: after a power cut the log could
// not be opened, with segments missing that were never published.
func TestReclaimedIsPublishedDurably(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 ana")
	w.compact()
	for range 3 {
		w.roll()
		w.start += 256
		g := wal.CommittedGroup{Seq: w.seq, End: w.start, Position: "7", CommittedAt: w.clock.Now()}
		if err := w.cat.Publish(t.Context(), w.pid, []wal.CommittedGroup{g}); err != nil {
			t.Fatal(err)
		}
	}
	w.onReclaim = func(seqs []segment.Seq) {
		store, ok := w.store.(*memkv.Store)
		if !ok {
			t.Fatal("the store cannot crash")
		}
		left, err := catalog.Open(t.Context(), store.Crash(), catalog.Deps{Clock: w.clock, IDs: w.clock, Key: make([]byte, 32)})
		if err != nil {
			t.Fatal(err)
		}
		at, _, err := left.Published(t.Context(), w.pid)
		if last := seqs[len(seqs)-1]; err != nil || at < last {
			t.Errorf("segment %d is deleted, after a power cut the catalog has groups up to segment %d, %v", last, at, err)
		}
	}
	for range 2 {
		w.clock.Advance(time.Minute)
		if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.reclaimed) != 3 {
		t.Errorf("reclaimed %v", w.reclaimed)
	}
}

// A log that goes no further is asked again after the delay, not at each step: each time
// costs a sync and an image of the catalog.
func TestHeldLogIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	const segments = 100
	for i := range int64(segments) {
		w.append("", fmt.Sprintf("+%d a", i))
		w.roll()
	}
	w.append("", "+1000 b")
	w.compact()
	asked := 0
	w.onReclaim = func([]segment.Seq) { asked++ }
	steps := func(n int, every time.Duration) {
		for range n {
			w.clock.Advance(every)
			if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.heldFrom = 1
	steps(2, 11*time.Second) // seen to be idle, then due
	steps(9, time.Second)
	if asked != 1 {
		t.Errorf("asked %d times within the delay", asked)
	}
	steps(10, time.Second)
	if asked != 2 {
		t.Errorf("asked %d times within twice the delay", asked)
	}
	w.heldFrom = 0
	steps(1, 21*time.Second)
	steps(segments/32, time.Millisecond)
	if len(w.reclaimed) != segments {
		t.Errorf("%d segments are reclaimed", len(w.reclaimed))
	}
}
