package query

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/lake/duckdb"
)

// Find answers a look for rows by key as the engine does, in records of one row. It
// implements lookup.Finder.
func (e *Executor) Find(ctx context.Context, r *duckdb.Relation, keys arrow.RecordBatch, found func(arrow.RecordBatch) error,
) error {
	live, err := e.live(ctx, r)
	if err != nil {
		return err
	}
	f := &finder{executor: e, relation: r, wanted: keySetOf(e, keys), found: found}
	if err := e.lake(r, live, f); err != nil {
		return err
	}
	live.rows(r, f)
	return f.err
}

// finder passes on rows whose key is wanted.
type finder struct {
	executor *Executor
	relation *duckdb.Relation
	wanted   map[string]bool
	found    func(arrow.RecordBatch) error
	err      error
}

func (f *finder) add(arrays []arrow.Array, columns []appender, row int) {
	if f.err != nil || !f.wanted[string(f.executor.keyOf(keyAppenders(f.relation, columns), row))] {
		return
	}
	fields := make([]arrow.Field, len(arrays))
	one := make([]arrow.Array, len(arrays))
	for i, a := range arrays {
		if a == nil {
			one[i] = array.NewNull(1)
		} else {
			one[i] = array.NewSlice(a, int64(row), int64(row)+1)
		}
		fields[i] = arrow.Field{Name: f.relation.Columns[i].Name, Type: one[i].DataType(), Nullable: true}
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), one, 1)
	f.err = f.found(rec)
	rec.Release()
	for _, a := range one {
		a.Release()
	}
}

// keySetOf renders the keys of a record.
func keySetOf(e *Executor, b arrow.RecordBatch) map[string]bool {
	columns := make([]appender, b.NumCols())
	for i := range columns {
		columns[i] = column(b.Column(i))
	}
	out := map[string]bool{}
	for i := range int(b.NumRows()) {
		out[string(e.keyOf(columns, i))] = true
	}
	return out
}
