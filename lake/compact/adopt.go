package compact

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// adopt makes known what is in the lake and the catalog has not heard of: commits of
// another process, or of this one whose mark was lost. Without it their slices would go
// in twice (N1). head is the newest snapshot. It returns how many slices the lake had.
func (s *Service) adopt(ctx context.Context, tbl lake.Table, head *lake.Snapshot, j *job) (slices int, err error) {
	all, err := tbl.Commits(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.unsurpassed(ctx, tbl, j); err != nil {
		return 0, err
	}
	if tbl.Head().ID != head.ID {
		return 0, fmt.Errorf("adopt snapshot %d: the lake has a newer one: %w", head.ID, lake.ErrConflict)
	}
	found := lake.RecoveredOf(lake.Lost{Generation: j.table.Generation}, head, all)
	err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		t, err := txn.TableByID(j.table.ID)
		if err != nil || t.Generation != j.table.Generation {
			return err // reset meanwhile: its next compaction replaces all
		}
		slices, err = txn.AdoptCompactions(t.ID, lakeState(head, txn.Now()), committed(found.Commits))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("adopt snapshot %d: %w", head.ID, err)
	}
	j.lake = lakeState(head, s.deps.Clock.Now())
	if slices > 0 {
		s.log.Warn("compactions of another writer adopted", env.KeyTable, j.table.Schema+"."+j.table.Name,
			env.KeySnapshot, head.ID, "slices", slices)
	}
	return slices, nil
}

func committed(all []lake.Committed) []catalog.Committed {
	out := make([]catalog.Committed, len(all))
	for i, c := range all {
		out[i] = catalog.Committed{ID: c.CompactionID, Slices: c.Slices}
	}
	return out
}

// FenceTables keeps those who compact for an older epoch out of all lake tables of a
// pipeline (F1). A table without lake side gets an empty one, for the fence to be on.
func FenceTables(
	ctx context.Context, cat *catalog.Catalog, w lake.Warehouse, pipeline change.PipelineID, epoch segment.Epoch,
) error {
	snap := cat.Snapshot()
	tables := snap.EveryTableOf(pipeline)
	snap.Close()
	for _, t := range tables {
		if t.Current == nil {
			continue // never had rows
		}
		ident := lake.Ident{Namespace: t.Schema, Name: t.Name}
		tbl, err := w.Table(ctx, lake.Spec{Ident: ident, Table: t.ID, Schema: t.Current})
		if err == nil {
			err = tbl.Fence(ctx, epoch)
		}
		if err != nil {
			return fmt.Errorf("fence pipeline %d: %w", pipeline, err)
		}
	}
	return nil
}

// epoch is that of the log whose slices a job moves; see lake.Fencer.
func (s *Service) epoch(j *job) segment.Epoch {
	if s.deps.Epoch == nil {
		return 0
	}
	return s.deps.Epoch(j.pipeline.ID)
}
