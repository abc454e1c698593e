package planner_test

import (
	"testing"

	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// A chunk of the initial copy that was read before a TRUNCATE and appended after it is
// older than the TRUNCATE all the same.
func TestTruncateWinsOverLateCopy(t *testing.T) {
	w := newWorld(t)
	seq, end, err := w.cat.Published(t.Context(), w.table.Pipeline)
	if err != nil {
		t.Fatal(err)
	}
	at := max(end, 128)
	put := func(s wal.Slice) {
		s.Ref = segment.SliceRef{Seq: seq + 1, Start: at}
		s.Length, s.Table, s.SchemaVersion = 64, w.table.ID, w.table.Current.Version
		at += 64
		g := wal.CommittedGroup{Seq: seq + 1, End: at, Slices: []wal.Slice{s}}
		if err := w.cat.Publish(t.Context(), w.table.Pipeline, []wal.CommittedGroup{g}); err != nil {
			t.Fatal(err)
		}
	}
	put(wal.Slice{Rows: 1, Backfill: true})
	put(wal.Slice{Truncate: true})
	put(wal.Slice{Rows: 2, Backfill: true})
	put(wal.Slice{Rows: 3})
	p := &planner.Pinner{Catalog: w.cat, LogDir: func(change.PipelineID) string { return "logs" }}
	snap := w.cat.Snapshot()
	defer snap.Close()
	pin, err := p.Plan(t.Context(), snap, []planner.TableUse{planner.WholeTable(w.table)})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	live := pin.Relations[0].Live.Slices
	if len(live) != 2 || !live[0].Truncate || live[1].Rows != 3 {
		t.Errorf("pinned %+v", live)
	}
}
