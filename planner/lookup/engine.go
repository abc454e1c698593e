package lookup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
)

// Engine is the Finder that runs in the engine's workers.
type Engine struct{ Runner planner.Runner }

var _ Finder = Engine{}

const keysName = "_skippr_keys"

// Find implements Finder.
func (e Engine) Find(ctx context.Context, r *duckdb.Relation, keys arrow.RecordBatch, found func(arrow.RecordBatch) error) error {
	plan, err := planOf(r, keys)
	if err != nil {
		return err
	}
	rows, err := e.Runner.Query(ctx, plan)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rec, err := range duckdb.Records(ctx, rows) {
		if err != nil {
			return err
		}
		if err := found(rec); err != nil {
			return err
		}
	}
	return nil
}

// planOf joins the relation with the keys. Bounds of an integer key are named, so that
// the engine passes over what cannot hold one.
func planOf(r *duckdb.Relation, keys arrow.RecordBatch) (*duckdb.Plan, error) {
	named := duckdb.Relation{Name: keysName}
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = "r." + quote.Name(c.Name)
	}
	on := make([]string, len(r.Key))
	for i, name := range r.Key {
		if r.Columns[i].Name != name {
			return nil, fmt.Errorf("key column %s is not column %d: %w", quote.Name(name), i, duckdb.ErrPlan)
		}
		named.Columns = append(named.Columns, r.Columns[i])
		on[i] = "r." + quote.Name(name) + " = k." + quote.Name(name)
	}
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(keys.Schema()))
	if err := errors.Join(w.Write(keys), w.Close()); err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	named.Inline = buf.Bytes()
	where := ""
	if least, most, ok := bounds(keys); ok {
		where = fmt.Sprintf(" WHERE r.%s BETWEEN %d AND %d", quote.Name(r.Key[0]), least, most)
	}
	return &duckdb.Plan{
		SQL: "SELECT " + strings.Join(names, ", ") + " FROM " + quote.Name(r.Name) + " AS r SEMI JOIN " + quote.Name(keysName) +
			" AS k ON " + strings.Join(on, " AND ") + where,
		Relations: []duckdb.Relation{*r, named},
		Output:    duckdb.Output{Kind: duckdb.OutputArrow},
	}, nil
}
