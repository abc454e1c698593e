package lookup

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
)

// Engine is the Finder that runs in the engine's workers.
type Engine struct{ Runner planner.Runner }

var _ Finder = Engine{}

// Find implements Finder.
func (e Engine) Find(ctx context.Context, r *duckdb.Relation, keys arrow.RecordBatch, found func(arrow.RecordBatch) error) error {
	plan, err := duckdb.FindPlan(r, keys)
	if err != nil {
		return err
	}
	plan.Urgent = true // a group of changes waits
	return planner.EachRecord(ctx, e.Runner, plan, found)
}
