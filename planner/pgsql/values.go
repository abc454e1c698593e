package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// inValues is scope.noAgg of VALUES.
const inValues = "VALUES"

// values analyses VALUES lists.
func (a *analyzer) values(sel *pg.SelectStmt, s *scope) (*query, error) {
	around := s.noAgg
	s.noAgg = inValues
	defer func() { s.noAgg = around }()
	var rows [][]expr
	for _, n := range sel.ValuesLists {
		var row []expr
		for _, item := range n.GetList().GetItems() {
			e, err := a.expr(item, s)
			if err != nil {
				return nil, err
			}
			row = append(row, e)
		}
		if len(rows) > 0 && len(row) != len(rows[0]) {
			return nil, pgerr.New(codes.Syntax, "VALUES lists must all be the same length")
		}
		rows = append(rows, row)
	}
	s.noAgg = around
	q := &query{}
	for c := range rows[0] {
		col := make([]*expr, len(rows))
		for r := range rows {
			col[r] = &rows[r][c]
		}
		t, err := a.unify(col, "VALUES")
		if err != nil {
			return nil, err
		}
		out := outputOf(t, c)
		for _, e := range col {
			if out.coll, err = out.coll.with(e.coll); err != nil {
				return nil, err
			}
		}
		out.coll.explicit = false
		q.targets = append(q.targets, target{name: fmt.Sprintf("column%d", c+1), expr: out})
	}
	var b strings.Builder
	for r, row := range rows {
		if r > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(")
		for c, e := range row {
			if c > 0 {
				b.WriteString(", ")
			}
			b.WriteString(e.sql)
		}
		b.WriteString(")")
	}
	names := make([]string, len(rows[0]))
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i+1)
	}
	q.body = "SELECT * FROM (VALUES " + b.String() + ") AS v(" + strings.Join(names, ", ") + ")"
	return q, a.bodyTail(sel, s, q)
}

// outputOf is the expression that names column i of a body.
func outputOf(e expr, i int) expr {
	return expr{
		sql: fmt.Sprintf("s.c%d", i+1), typ: e.typ, text: e.text, scale: e.scale, prec: e.prec,
		fields: e.fields, whole: e.whole, loc: -1,
	}
}

// namedColumns are a body's columns by the names that they have inside of it.
func namedColumns(targets []target) []target {
	names := make([]target, len(targets))
	for i, t := range targets {
		t.expr.sql = fmt.Sprintf("c%d", i+1)
		names[i] = t
	}
	return names
}

// bodyTail adds ORDER BY and LIMIT to a body.
func (a *analyzer) bodyTail(sel *pg.SelectStmt, s *scope, q *query) error {
	order, err := a.orderBy(sel.SortClause, s, namedColumns(q.targets), false)
	if err != nil {
		return err
	}
	limit, err := a.limit(sel, s)
	q.order = order + limit
	return err
}
