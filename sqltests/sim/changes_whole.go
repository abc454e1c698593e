package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// wholeValues is how many rows a table with whole rows has that differ: few, so that many
// are equal.
const wholeValues = 4

// wholeValue is a column's value in the n-th of the rows that a table with whole rows has.
func wholeValue(t schema.Type, n int) any {
	n %= wholeValues
	switch {
	case n == wholeValues-1:
		return nil
	case t.Kind == schema.String:
		return []string{"", "a", "NULL"}[n]
	case t.Kind == schema.Float64:
		return []float64{0, math.Copysign(0, -1), math.NaN()}[n]
	}
	return int64(n)
}

// bag is the rows of a table with whole rows as the transaction sees them.
func (s *shadow) bag(t *source.Table) []source.Row {
	if s.bags[t] == nil && !s.gone[t] {
		s.bags[t] = slices.Clone(s.w.db.Rows(t))
	}
	return s.bags[t]
}

// wholeChange makes a change of a table with whole rows.
func (s *shadow) wholeChange(r *random, c source.Change, row source.Row) []source.Change {
	rows := s.bag(c.Table)
	switch n := len(rows); {
	case n > 0 && r.one(3):
		c.Op, c.Old = change.Delete, rows[r.n(n)]
	case n > 0 && r.one(4):
		c.Op, c.Old, c.New = change.Update, rows[r.n(n)], row
	default:
		c.Op, c.New = change.Insert, row
	}
	return s.whole(c)
}

// directedWhole makes a change of a script: the rows of two neighbouring keys stand for
// themselves, an update makes the first the second. One that finds no row is left out.
func (s *shadow) directedWhole(c source.Change, kind string, row, next source.Row) []source.Change {
	found := slices.ContainsFunc(s.bag(c.Table), func(r source.Row) bool { return source.SameRow(r, row) })
	switch {
	case kind == "insert":
		c.Op, c.Old, c.New = change.Insert, nil, row
	case !found:
		return nil
	case kind == "delete":
		c.Op, c.Old, c.New = change.Delete, row, nil
	default:
		c.Op, c.Old, c.New = change.Update, row, next
	}
	return s.whole(c)
}

// whole applies a change to the rows as the transaction sees them.
func (s *shadow) whole(c source.Change) []source.Change {
	rows := s.bag(c.Table)
	equal := 0
	for _, r := range rows {
		if c.Old != nil && source.SameRow(r, c.Old) {
			equal++
		}
	}
	if c.Old != nil {
		i := slices.IndexFunc(rows, func(r source.Row) bool { return source.SameRow(r, c.Old) })
		rows = slices.Delete(rows, i, i+1)
	}
	if c.New != nil {
		rows = append(rows, c.New)
	}
	s.bags[c.Table] = rows
	if equal > 1 {
		s.w.mark("one of equal rows")
	}
	s.w.mark(fmt.Sprintf("whole row %s", map[change.Op]string{change.Insert: "insert", change.Update: "update", change.Delete: "delete"}[c.Op]))
	return []source.Change{c}
}
