package compact

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
)

// EngineSearcher is the Searcher that runs plans in the engine's worker.
type EngineSearcher struct {
	Pool *duckdb.Pool
}

var _ Searcher = EngineSearcher{}

// Superseded implements Searcher.
func (e EngineSearcher) Superseded(ctx context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error] {
	return func(yield func(lake.Position, error) bool) {
		urgent := *plan
		urgent.Urgent = true // the log grows until it is compacted
		stream, err := e.Pool.Query(ctx, &urgent)
		if err != nil {
			yield(lake.Position{}, err)
			return
		}
		defer stream.Close()
		for rec, err := range duckdb.Records(ctx, stream) {
			if err != nil {
				yield(lake.Position{}, err)
				return
			}
			file, okFile := rec.Column(0).(*array.String)
			pos, okPos := rec.Column(1).(*array.Int64)
			if !okFile || !okPos {
				yield(lake.Position{}, fmt.Errorf("search result has columns %s", rec.Schema()))
				return
			}
			for i := range int(rec.NumRows()) {
				if !yield(lake.Position{File: file.Value(i), Row: pos.Value(i)}, nil) {
					return
				}
			}
		}
	}
}
