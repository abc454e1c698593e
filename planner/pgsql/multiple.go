package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// multipleSource is a sub-query whose row gives several columns their values. It is computed once for
// each row that is changed, as a struct.
type multipleSource struct {
	at      int32 // where it stands
	sql     string
	columns []*column
}

// multipleValue is the value that a column gets from such a sub-query.
type multipleValue struct {
	sub    *pg.SubLink
	number int // from 1
	of     int
}

// multiple is what a column is given: an expression, or one of several values.
func (w *writer) multiple(t *pg.ResTarget) (*pg.Node, *multipleValue, error) {
	m := t.Val.GetMultiAssignRef()
	if m == nil {
		return t.Val, nil, nil
	}
	if sub := m.Source.GetSubLink(); sub.GetSubLinkType() == pg.SubLinkType_EXPR_SUBLINK {
		return nil, &multipleValue{sub, int(m.Colno), int(m.Ncolumns)}, nil
	}
	row := m.Source.GetRowExpr()
	if row == nil {
		return nil, nil, w.errAt(t.Location, unsupported("source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"))
	}
	if int(m.Ncolumns) != len(row.Args) {
		return nil, nil, w.errAt(row.Location, errMultipleCount)
	}
	return row.Args[m.Colno-1], nil, nil
}

var errMultipleCount = pgerr.New(codes.Syntax, "number of columns does not match number of values")

// fromSubquery is the new value of a column, at a place of the table, that a sub-query gives it among
// others.
func (w *writer) fromSubquery(v *multipleValue, at int, c RelationColumn, s *scope) (string, error) {
	if c.Identity == "a" || c.Generated != "" {
		return w.assignedValue(&pg.Node{Node: &pg.Node_SubLink{SubLink: v.sub}}, at, c, s) // which says so
	}
	if w.subAlias == "" {
		w.subAlias = w.alias("w")
	}
	if n := len(w.subqueries); n == 0 || w.subqueries[n-1].at != v.sub.Location {
		made, err := w.multipleSource(v, s)
		if err != nil {
			return "", err
		}
		w.subqueries = append(w.subqueries, made)
	}
	if w.fromSub == nil {
		w.fromSub = map[int]bool{}
	}
	w.fromSub[at] = true
	from := w.subqueries[len(w.subqueries)-1]
	return w.stored(w.reference(from.columns[v.number-1], v.sub.Location, &scope{aggDepth: 1}), c)
}

func (w *writer) multipleSource(v *multipleValue, s *scope) (multipleSource, error) {
	out := multipleSource{at: v.sub.Location}
	q, err := w.query(v.sub.Subselect.GetSelectStmt(), s)
	if err != nil {
		return out, err
	}
	if len(q.targets) != v.of {
		return out, w.errAt(v.sub.Location, errMultipleCount)
	}
	if err := w.settle(q); err != nil {
		return out, err
	}
	alias := w.alias("q")
	number := w.subFirst + len(w.subqueries) + 1
	var fields []string
	for i, c := range targetColumns(q.targets, alias, &item{}) {
		name := fmt.Sprintf("c%d", i+1)
		fields = append(fields, "'"+name+"': "+c.sql())
		sql := fmt.Sprintf("%s.s%d.%s", w.subAlias, number, name)
		c.sql = func() string { return sql }
		out.columns = append(out.columns, c)
	}
	out.sql = "(SELECT {" + strings.Join(fields, ", ") + "} FROM (" + q.print(false) + ") AS " + alias + ")"
	return out, nil
}

// subColumns are the sub-queries as columns of rows.
func (w *writer) subColumns() (out []string) {
	for i, sub := range w.subqueries {
		out = append(out, fmt.Sprintf("%s AS s%d", sub.sql, w.subFirst+i+1))
	}
	return out
}
