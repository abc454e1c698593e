package ingest

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/catalog"
)

// described is how the source has the pipeline's tables now, by their OIDs.
func (s *session) described(ctx context.Context) (map[uint32]SourceTable, error) {
	found, err := s.source.Discover(ctx, s.pipeline.Selection)
	if err != nil {
		return nil, sourceError("discover tables", err)
	}
	out := make(map[uint32]SourceTable, len(found))
	for _, t := range found {
		if t.OID != 0 && t.Unsupported == "" {
			out[t.OID] = t
		}
	}
	return out, nil
}

// redescribe gives a table whose copy begins from its start the columns that it has at the
// source. What was assigned to a column before the copy's moment, or before the stream's
// start, comes with the copy or not at all.
func redescribe(t *catalog.Table, fresh SourceTable) error {
	current := t.Current
	next, err := nextSchema(current, fresh)
	if err != nil {
		return fmt.Errorf("describe table %s.%s anew: %w", t.Schema, t.Name, err)
	}
	if next != current {
		next.Version = max(next.Version, t.VoidVersion+1)
	}
	t.Current = next
	return nil
}

// beginsAnew says whether the copy of a table that is to be copied begins again from its
// start: the source made it void, or rows that it has could not be told from those that
// the stream has brought since.
func beginsAnew(t *catalog.Table) bool {
	return t.Backfill.Anew || !t.Current.HasKey() && !t.Backfill.StartedAt.IsZero()
}

// redescribed are the tables that a copy must describe anew, after its moment is fixed:
// those without a key, of which the stream brings nothing from before that moment.
func (s *session) redescribed(ctx context.Context) (map[uint32]SourceTable, error) {
	for _, t := range s.uncopied() {
		if !t.Current.HasKey() && (t.Backfill.StartedAt.IsZero() || beginsAnew(t)) {
			return s.described(ctx)
		}
	}
	return nil, nil
}
