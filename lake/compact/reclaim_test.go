package compact_test

import (
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
