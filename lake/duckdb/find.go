package duckdb

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/pgwire/quote"
)

const keysName = "_skippr_keys"

// FindPlan is the plan of the rows of r, whose first columns are its key's, that have one
// of keys, as Arrow. Bounds of an integer key are named, so that the engine passes over
// what cannot hold one.
func FindPlan(r *Relation, keys arrow.RecordBatch) (*Plan, error) {
	named := Relation{Name: keysName}
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = "r." + quote.Name(c.Name)
	}
	on := make([]string, len(r.Key))
	for i, name := range r.Key {
		if r.Columns[i].Name != name {
			return nil, fmt.Errorf("key column %q is not column %d: %w", name, i, ErrPlan)
		}
		named.Columns = append(named.Columns, r.Columns[i])
		on[i] = "r." + quote.Name(name) + " = k." + quote.Name(name)
	}
	var err error
	if named.Inline, err = InlineRows(keys); err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	where := ""
	if least, most, ok := KeyBounds(keys); ok {
		where = fmt.Sprintf(" WHERE r.%s BETWEEN %d AND %d", quote.Name(r.Key[0]), least, most)
	}
	return &Plan{
		SQL: "SELECT " + strings.Join(names, ", ") + " FROM " + quote.Name(r.Name) + " AS r SEMI JOIN " + quote.Name(keysName) +
			" AS k ON " + strings.Join(on, " AND ") + where,
		Relations: []Relation{*r, named},
		Output:    Output{Kind: OutputArrow},
	}, nil
}

// InlineRows are rows as Relation.Inline has them.
func InlineRows(rows ...arrow.RecordBatch) ([]byte, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rows[0].Schema()))
	var err error
	for _, r := range rows {
		err = errors.Join(err, w.Write(r))
	}
	err = errors.Join(err, w.Close())
	return buf.Bytes(), err
}

// KeyBounds are the least and the greatest of keys of one integer.
func KeyBounds(keys arrow.RecordBatch) (least, most int64, ok bool) {
	if keys.NumCols() != 1 || keys.NumRows() == 0 {
		return 0, 0, false
	}
	var value func(int) int64
	switch a := keys.Column(0).(type) {
	case *array.Int64:
		value = a.Value
	case *array.Int32:
		value = func(i int) int64 { return int64(a.Value(i)) }
	default:
		return 0, 0, false
	}
	least, most = value(0), value(0)
	for i := 1; i < int(keys.NumRows()); i++ {
		least, most = min(least, value(i)), max(most, value(i))
	}
	return least, most, true
}
