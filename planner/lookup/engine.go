package lookup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	frames := &frameReader{ctx: ctx, rows: rows}
	in, err := ipc.NewReader(frames)
	if errors.Is(err, io.EOF) && frames.err == nil {
		return nil // a result without rows may have no bytes
	}
	if err != nil {
		return errors.Join(frames.err, err)
	}
	defer in.Release()
	for in.Next() {
		if err := found(in.RecordBatch()); err != nil {
			return err
		}
	}
	return errors.Join(frames.err, in.Err())
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
			return nil, fmt.Errorf("key column %q is not column %d: %w", name, i, duckdb.ErrPlan)
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

// frameReader reads the bytes of an answer's frames.
type frameReader struct {
	ctx  context.Context // of one Find
	rows planner.Rows
	left []byte
	err  error // what ended it, but for io.EOF
}

// Read implements io.Reader.
func (f *frameReader) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		frame, err := f.rows.Next(f.ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				f.err = err
			}
			return 0, err
		}
		f.left = frame.Data
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}
