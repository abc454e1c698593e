package lookup

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Finder finds rows of a relation by key. Calls do not overlap.
type Finder interface {
	// Find calls found with rows whose key is among keys, which has the columns of r.Key in
	// order, each key once. A record has the columns of r in order; it lives during the
	// call. It wraps duckdb.ErrSliceLost when a slice is gone; rows may have been found
	// before that.
	Find(ctx context.Context, r *duckdb.Relation, keys arrow.RecordBatch, found func(arrow.RecordBatch) error) error
}

// Lookup is a fill.Lookup on the catalog, the logs and the lake. Safe for concurrent use
// as far as its Finder is.
type Lookup struct {
	Pinner *planner.Pinner
	Finder Finder
}

var _ fill.Lookup = (*Lookup)(nil)

// relationName is that of the relation that is looked in.
const relationName = "_skippr_rows"

// Visible implements fill.Lookup.
func (l *Lookup) Visible(ctx context.Context, q *fill.Query, found fill.Found) error {
	take := func() (*catalog.Snapshot, func()) {
		snap := l.Pinner.Catalog.Snapshot()
		return snap, snap.Close
	}
	var ids []int32
	return planner.RunPinned(false, take, func(snap *catalog.Snapshot) (*planner.TablesPin, error) {
		t, err := snap.TableByID(q.Table)
		if err != nil {
			return nil, err
		}
		use, fields := useOf(t.Current, q)
		ids = fields
		use.Min, use.Max, use.Bounded = duckdb.KeyBounds(q.Keys)
		return l.Pinner.PlanTable(ctx, snap, use)
	}, func(pin *planner.TablesPin) error {
		defer pin.Release()
		if mutant.On(mutant.FillPastLog) {
			pin.Relations[0].Live = nil
		}
		return l.find(ctx, &pin.Relations[0], ids, q, found)
	})
}

// Pending implements fill.Lookup.
func (l *Lookup) Pending(ctx context.Context, q *fill.Query, found fill.Found) error {
	use, ids := useOf(q.Schema, q)
	snap := l.Pinner.Catalog.Snapshot()
	r, err := l.Pinner.PlanPending(snap, use, append(slices.Clip(q.Versions), q.Schema))
	snap.Close()
	if err != nil || r == nil {
		return err
	}
	return l.find(ctx, r, ids, q, found)
}

func (l *Lookup) find(ctx context.Context, r *duckdb.Relation, ids []int32, q *fill.Query, found fill.Found) error {
	names := make([]arrow.Field, len(ids))
	return l.Finder.Find(ctx, r, q.Keys, func(rec arrow.RecordBatch) error {
		if int(rec.NumCols()) != len(ids) {
			return fmt.Errorf("rows of table %d have %d columns, not %d", q.Table, rec.NumCols(), len(ids))
		}
		for i, id := range ids {
			names[i] = arrow.Field{Name: fill.FieldName(id), Type: rec.Column(i).DataType(), Nullable: true}
		}
		named := array.NewRecordBatch(arrow.NewSchema(names, nil), rec.Columns(), rec.NumRows())
		defer named.Release()
		return found(named)
	})
}

// useOf reads the key and the wanted fields that a version has, which ids are.
func useOf(s *schema.Table, q *fill.Query) (use *planner.TableUse, ids []int32) {
	use = &planner.TableUse{Table: q.Table, Name: relationName}
	add := func(f schema.Field) {
		use.Columns = append(use.Columns, duckdb.Column{
			Name: f.Name, FieldID: f.ID, EngineType: schema.EngineType(f.Type), Initial: initial(f),
		})
		ids = append(ids, f.ID)
	}
	for _, f := range s.KeyFields() {
		add(f)
		use.Key = append(use.Key, f.Name)
	}
	for _, id := range q.Fields {
		if f, ok := s.Field(id); ok && !slices.Contains(s.Key, id) {
			add(f)
		}
	}
	return use, ids
}

func initial(f schema.Field) string {
	if f.Initial == nil {
		return ""
	}
	return schema.EngineInitial(f)
}
