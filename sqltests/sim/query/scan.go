package query

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/wal/change"
)

// Scan returns the rows of a relation as values (nil, bool, int64, float64 or string), with
// what the reading transaction has itself changed over them. It fails as Run does.
func (e *Executor) Scan(ctx context.Context, r *duckdb.Relation) ([][]any, error) {
	own, err := e.own(r)
	if err != nil {
		return nil, err
	}
	s := &scan{executor: e, relation: r, own: own}
	if r.Own == nil || !r.Own.Truncated {
		live, err := e.live(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := e.lake(r, live, s); err != nil {
			return nil, err
		}
		live.rows(r, s)
	}
	return append(s.rows, own.rows...), nil
}

// scan keeps the rows that the transaction has not changed.
type scan struct {
	executor *Executor
	relation *duckdb.Relation
	own      *ownSide
	rows     [][]any
}

func (s *scan) add(arrays []arrow.Array, columns []appender, row int) {
	if key := s.own.keyOf(s.executor, s.relation, columns, row); key != nil && s.own.gone[string(key)] != 0 {
		if len(s.relation.Key) == 0 {
			s.own.gone[string(key)]--
		}
		return
	}
	s.rows = append(s.rows, valuesOf(arrays, row))
}

// ownSide is what the reading transaction has changed: rows that are there now, and, by key or
// by contents, those that are not what they were.
type ownSide struct {
	rows [][]any
	gone map[string]int
}

// keyOf renders what tells a row from others; nil when nothing is gone.
func (o *ownSide) keyOf(e *Executor, r *duckdb.Relation, columns []appender, row int) []byte {
	switch {
	case len(o.gone) == 0:
		return nil
	case len(r.Key) == 0: // told apart by all columns, whether or not the table's changes have deletes
		return e.keyOf(columns, row)
	}
	return e.keyOf(keyAppenders(r, columns), row)
}

func (e *Executor) own(r *duckdb.Relation) (*ownSide, error) {
	out := &ownSide{gone: map[string]int{}}
	if r.Own == nil || len(r.Own.Rows) == 0 {
		return out, nil
	}
	in, err := ipc.NewReader(bytes.NewReader(r.Own.Rows))
	if err != nil {
		return nil, fmt.Errorf("own changes: %w", err)
	}
	defer in.Release()
	for in.Next() {
		b := in.RecordBatch()
		ops, ok := b.Column(0).(*array.Uint8)
		if !ok {
			return nil, fmt.Errorf("own changes without operations: %w", duckdb.ErrPlan)
		}
		arrays := make([]arrow.Array, len(r.Columns))
		for i, c := range r.Columns {
			if at := slices.Index(r.Own.Fields, c.FieldID); at >= 0 {
				arrays[i] = b.Column(1 + at)
			}
		}
		columns, key := appendersOf(r, arrays)
		for i := range ops.Len() {
			deleted := change.Op(ops.Value(i)) == change.Delete
			switch {
			case len(r.Key) > 0:
				out.gone[string(e.keyOf(key, i))] = 1
			case deleted:
				out.gone[string(e.keyOf(columns, i))]++
			}
			if !deleted {
				out.rows = append(out.rows, valuesOf(arrays, i))
			}
		}
	}
	return out, in.Err()
}

// Values are the rows of a record as Scan returns them.
func Values(b arrow.RecordBatch) [][]any {
	out := make([][]any, b.NumRows())
	for i := range out {
		out[i] = valuesOf(b.Columns(), i)
	}
	return out
}

func valuesOf(arrays []arrow.Array, row int) []any {
	out := make([]any, len(arrays))
	for i, a := range arrays {
		if a == nil || a.IsNull(row) {
			continue
		}
		switch a := a.(type) {
		case *array.Int64:
			out[i] = a.Value(row)
		case *array.Int32:
			out[i] = int64(a.Value(row))
		case *array.Float64:
			out[i] = a.Value(row)
		case *array.Boolean:
			out[i] = a.Value(row)
		case *array.String:
			out[i] = string([]byte(a.Value(row))) // the array's memory goes with its slice
		default:
			out[i] = a.ValueStr(row)
		}
	}
	return out
}
