package pgsql

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// trail is what SEARCH and CYCLE add to a recursive query: columns with the rows on the way to a
// row. The recursive term does not see them, but for what is added to it.
type trail struct {
	c *pg.CommonTableExpr
	// search and cycle are the places of the columns that the clauses name.
	search, cycle []int
	// value and other are what the mark of a cycle is, and of none.
	value, other expr
	// entry is the query in force; user counts its own columns.
	entry *cte
	user  int
}

// newTrail reads the clauses of a query; nil when there are none.
func (a *analyzer) newTrail(c *pg.CommonTableExpr, sel *pg.SelectStmt, entry *cte, s *scope) (*trail, error) {
	if c.SearchClause == nil && c.CycleClause == nil {
		return nil, nil
	}
	for side, arg := range map[string]*pg.SelectStmt{"left": sel.Larg, "right": sel.Rarg} {
		if arg.Op > pg.SetOperation_SETOP_NONE {
			return nil, unsupported("with a SEARCH or CYCLE clause, the %s side of the UNION must be a SELECT", side)
		}
	}
	if a.record != nil {
		return nil, unsupported("SEARCH and CYCLE in a view are not supported")
	}
	t := &trail{c: c, entry: entry, user: len(entry.columns)}
	var err error
	if sc := c.SearchClause; sc != nil {
		if t.search, err = t.places("search", sc.SearchColList, sc.SearchSeqColumn); err != nil {
			return nil, a.errAt(sc.Location, err)
		}
	}
	cc := c.CycleClause
	if cc == nil {
		return t, nil
	}
	if t.cycle, err = t.places("cycle", cc.CycleColList, cc.CycleMarkColumn, cc.CyclePathColumn); err != nil {
		return nil, a.errAt(cc.Location, err)
	}
	if t.value, err = a.expr(cc.CycleMarkValue, s); err != nil {
		return nil, err
	}
	if t.other, err = a.expr(cc.CycleMarkDefault, s); err != nil {
		return nil, err
	}
	_, err = a.unify([]*expr{&t.value, &t.other}, "CYCLE")
	return t, err
}

// places finds the columns that a clause names, and checks the names of those that it adds.
func (t *trail) places(word string, names []*pg.Node, added ...string) (out []int, err error) {
	at := func(name string) int {
		return slices.IndexFunc(t.entry.columns, func(c target) bool { return c.name == name })
	}
	for _, n := range names {
		name := n.GetString_().GetSval()
		i := at(name)
		switch {
		case i < 0:
			return nil, pgerr.New(codes.Syntax, "%s column \"%s\" not in WITH query column list", word, name)
		case slices.Contains(out, i):
			return nil, pgerr.New(codes.DuplicateColumn, "%s column \"%s\" specified more than once", word, name)
		}
		out = append(out, i)
	}
	for i, name := range added {
		if at(name) >= 0 {
			kind := [...]string{"mark", "path"}[i]
			if word == "search" {
				kind = "sequence"
			}
			return nil, pgerr.New(codes.Syntax, "%s %s column name \"%s\" already used in WITH query column list", word, kind, name)
		}
	}
	return out, nil
}

// row is the row of some columns, as a struct.
func (a *analyzer) trailRow(targets []target, places []int, before ...expr) (expr, error) {
	row := expr{typ: plain(OIDRecord), scale: -1, loc: -1, row: before}
	for _, i := range places {
		row.row = append(row.row, targets[i].expr)
	}
	for _, f := range row.row[len(before):] {
		if err := a.equatable(f); err != nil {
			return row, err
		}
	}
	return a.boxed(row)
}

// listOf is an array of rows.
func listOf(row expr, sql string) expr {
	return expr{typ: plain(ArrayOf(OIDRecord)), scale: -1, loc: -1, fields: row.fields, sql: sql}
}

// begin adds the columns to the term that does not recur.
func (t *trail) begin(a *analyzer, left *query) error {
	if sc := t.c.SearchClause; sc != nil {
		depth := expr{typ: plain(OIDInt8), scale: -1, loc: -1, sql: "CAST(0 AS BIGINT)"}
		var before []expr
		if sc.SearchBreadthFirst {
			before = []expr{depth}
		}
		row, err := a.trailRow(left.targets, t.search, before...)
		if err != nil {
			return err
		}
		if !sc.SearchBreadthFirst {
			row = listOf(row, "["+row.sql+"]")
		}
		left.targets = append(left.targets, target{name: sc.SearchSeqColumn, expr: row})
	}
	if cc := t.c.CycleClause; cc != nil {
		row, err := a.trailRow(left.targets, t.cycle)
		if err != nil {
			return err
		}
		mark := t.other
		mark.con = false
		left.targets = append(left.targets, target{name: cc.CycleMarkColumn, expr: mark},
			target{name: cc.CyclePathColumn, expr: listOf(row, "["+row.sql+"]")})
	}
	t.entry.columns = slices.Clone(t.entry.columns)
	for _, c := range left.targets[t.user:] {
		c.secret = true
		t.entry.columns = append(t.entry.columns, c)
	}
	return nil
}

// asked is the recursive term, which also gives the columns of the row that it comes from, and goes
// on from no row that ends a cycle.
func (t *trail) asked(rarg *pg.SelectStmt) (*pg.SelectStmt, error) {
	out := proto.Clone(rarg).(*pg.SelectStmt)
	name := ""
	var find func(n *pg.Node)
	find = func(n *pg.Node) {
		if j := n.GetJoinExpr(); j != nil {
			find(j.Larg)
			find(j.Rarg)
		}
		if rv := n.GetRangeVar(); rv != nil && rv.Relname == t.c.Ctename && rv.Schemaname == "" {
			name = itemName(rv)
		}
	}
	for _, n := range out.FromClause {
		find(n)
	}
	if name == "" {
		return nil, unsupported("with a SEARCH or CYCLE clause, the recursive reference to WITH query \"%s\" must be at the top level of its right-hand SELECT",
			t.c.Ctename)
	}
	column := func(of string) *pg.Node {
		return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(name), pg.MakeStrNode(of)}, -1)
	}
	if sc := t.c.SearchClause; sc != nil {
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithVal(column(sc.SearchSeqColumn), -1))
	}
	if cc := t.c.CycleClause; cc != nil {
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithVal(column(cc.CyclePathColumn), -1))
		open := pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("<>")}, column(cc.CycleMarkColumn), cc.CycleMarkValue, -1)
		if out.WhereClause != nil {
			open = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, []*pg.Node{open, out.WhereClause}, -1)
		}
		out.WhereClause = open
	}
	return out, nil
}

// follow makes the columns of the recursive term of those of the row that it comes from. Its own
// columns are of the types of the other term.
func (t *trail) follow(a *analyzer, left, right *query, given []target) error {
	same := func(e expr) error {
		if l := left.targets[len(right.targets)].expr; !sameFields(l.fields, e.fields) {
			return unsupported("SEARCH and CYCLE of columns of such types are not supported")
		}
		return nil
	}
	if sc := t.c.SearchClause; sc != nil {
		from := given[0].expr
		given = given[1:]
		var before []expr
		if sc.SearchBreadthFirst {
			depth := fieldAt(from, 0)
			depth.sql, depth.name = "("+depth.sql+" + 1)", ""
			before = []expr{depth}
		}
		row, err := a.trailRow(right.targets, t.search, before...)
		if err != nil {
			return err
		}
		if !sc.SearchBreadthFirst {
			row = listOf(row, "list_append("+from.sql+", "+row.sql+")")
		}
		if err := same(row); err != nil {
			return err
		}
		right.targets = append(right.targets, target{name: sc.SearchSeqColumn, expr: row})
	}
	if t.c.CycleClause == nil {
		return nil
	}
	path := given[0].expr
	row, err := a.trailRow(right.targets, t.cycle)
	if err != nil {
		return err
	}
	known := recordKey(elementOf(path, expr{scale: -1, loc: -1}, "w"), equalKey)
	mark := t.value
	mark.con = false
	mark.sql = "CASE WHEN list_contains(list_transform(" + path.sql + ", lambda w: " + known + "), " + recordKey(row, equalKey) + ") THEN " +
		t.value.sql + " ELSE " + t.other.sql + " END"
	right.targets = append(right.targets, target{expr: mark})
	list := listOf(row, "list_append("+path.sql+", "+row.sql+")")
	if err := same(list); err != nil {
		return err
	}
	right.targets = append(right.targets, target{expr: list})
	return nil
}
