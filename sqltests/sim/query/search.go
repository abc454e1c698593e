package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
)

// errSearch says that a plan is not of the form that the compactor's search has.
var errSearch = errors.New("not a search for superseded rows")

// Superseded answers the compactor's search as the engine does: the places of the lake
// rows whose key is among those given. It implements compact.Searcher.
func (e *Executor) Superseded(_ context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error] {
	return func(yield func(lake.Position, error) bool) {
		if len(plan.Relations) != 2 || !plan.Relations[0].WithPosition || plan.Relations[1].Inline == nil {
			yield(lake.Position{}, errSearch)
			return
		}
		found, err := e.search(&plan.Relations[0], &plan.Relations[1])
		if err != nil {
			yield(lake.Position{}, err)
			return
		}
		for _, p := range found {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// search finds the rows of r with one of the keys; as many of each, when rows are told apart
// by all their columns. All of r's columns are the key.
func (e *Executor) search(r, keys *duckdb.Relation) ([]lake.Position, error) {
	wanted, err := e.keySet(keys)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	gone, err := e.deleted(r)
	if err != nil {
		return nil, err
	}
	var out []lake.Position
	for _, f := range r.Files {
		batches, err := e.Files.File(f.Path)
		if err != nil {
			return nil, err
		}
		s, err := e.Files.FileSchema(f.Path)
		if err != nil {
			return nil, err
		}
		at := int64(0)
		for _, b := range batches {
			columns, _ := lakeColumns(r, b, s)
			for i := range int(b.NumRows()) {
				p := lake.Position{File: f.Path, Row: at + int64(i)}
				key := string(e.keyOf(columns, i))
				if wanted[key] == 0 || f.HasDeletes && gone[p] {
					continue
				}
				if r.WholeRow {
					wanted[key]--
				}
				out = append(out, p)
			}
			at += b.NumRows()
		}
	}
	return out, nil
}

// keySet counts the keys of a search.
func (e *Executor) keySet(r *duckdb.Relation) (map[string]int, error) {
	in, err := ipc.NewReader(bytes.NewReader(r.Inline))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer in.Release()
	out := map[string]int{}
	for in.Next() {
		b := in.RecordBatch()
		columns := make([]appender, b.NumCols())
		for i := range columns {
			columns[i] = column(b.Column(i))
		}
		for i := range int(b.NumRows()) {
			out[string(e.keyOf(columns, i))]++
		}
	}
	return out, in.Err()
}
