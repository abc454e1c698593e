package ingest

import (
	"cmp"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal/change"
)

// horizonOnly is a copy that has begun.
type horizonOnly struct{ Backfill }

func (horizonOnly) Horizon() change.Position { return "1" }

// TestReworkedCount: what is counted of a table's rewrites at the source goes on over its copies. A
// copy is none of the rewrites before it, whatever looks say that began before; and one that is
// counted anew from the beginning hides none.
func TestReworkedCount(t *testing.T) {
	s, _, _ := aloneWorld(t, func(tbl *catalog.Table) {
		tbl.Files, tbl.Compared = &catalog.SourceFiles{Newest: 1, Files: []uint32{5}, Reworked: 2}, 1
		tbl.State = catalog.TableReady
		if tbl.Name == "b" {
			tbl.State = catalog.TablePending
		}
	})
	s.backfill, s.progress = horizonOnly{}, newProgress(cmp.Compare[change.Position], "", nil)
	s.start.Files = map[uint32]watch.Files{11: {Newest: 1, Files: []uint32{6}}}
	k := &keeper{session: s}
	look := func(reworked uint32) (a, b bool) {
		t.Helper()
		snap := s.deps.Catalog.Snapshot()
		tables := snap.Tables(s.pipeline.ID)
		snap.Close()
		f := watch.Files{Newest: 1, Files: []uint32{6}, Reworked: reworked}
		if err := k.noteSeen(t.Context(), tables, Look{Files: map[uint32]watch.Files{10: f, 11: f}}); err != nil {
			t.Fatal(err)
		}
		snap = s.deps.Catalog.Snapshot()
		defer snap.Close()
		tables = snap.Tables(s.pipeline.ID)
		return tables[0].Reworked(), tables[1].Reworked()
	}
	err := s.deps.Catalog.Update(t.Context(), func(txn *catalog.Txn) error {
		_, err := s.recordHorizon(txn, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		reworked uint32
		a, b     bool // of which 1 is compared, and 2 were before the copy
	}{{2, true, false}, {3, true, true}, {1, false, true}, {0, true, true}} {
		if a, b := look(step.reworked); a != step.a || b != step.b {
			t.Errorf("%d counted: %t, %t", step.reworked, a, b)
		}
	}
}
