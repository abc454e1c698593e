package ruleutils

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
)

func itoa(n int) string { return strconv.Itoa(n) }

// fromItem resolves a part of FROM.
func (r *resolver) fromItem(n *pg.Node, s *scope) (*join, error) {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		return r.tableItem(v.RangeVar, s)
	case *pg.Node_RangeSubselect:
		return r.queryItem(v.RangeSubselect, s)
	case *pg.Node_RangeFunction:
		return r.functionItem(v.RangeFunction, s)
	case *pg.Node_JoinExpr:
		return r.joinItem(v.JoinExpr, s)
	}
	return nil, unknown("%T in FROM", n.GetNode())
}

// leaf is a relation as a part of FROM, with the columns that it gives.
func (s *scope) leaf(rel *relation, name string, alias *pg.Alias) *join {
	if alias != nil {
		rel.alias, name = alias.Aliasname, alias.Aliasname
		for _, c := range alias.Colnames {
			rel.aliasColumns = append(rel.aliasColumns, c.GetString_().GetSval())
		}
	}
	s.query.relations = append(s.query.relations, rel)
	rel.shown = name
	out := &join{rel: rel}
	for i, c := range rel.columns {
		if i < len(rel.aliasColumns) {
			c.name = rel.aliasColumns[i]
		}
		v := visible{name: c.name, rel: name, expr: &variable{typed: typed{c.typ, c.mod}, rel: rel, name: c.name}}
		if alias == nil {
			v.schema = rel.schema
		}
		out.columns = append(out.columns, v)
	}
	return out
}

func (r *resolver) tableItem(n *pg.RangeVar, s *scope) (*join, error) {
	if n.Schemaname == "" {
		for at := s; at != nil; at = at.parent {
			for _, c := range slices.Backward(at.ctes) {
				if c.name == n.Relname && c.query != nil {
					return s.leaf(&relation{kind: withRelation, name: n.Relname, columns: columnsOf(c.query, c.columns)}, n.Relname, n.Alias), nil
				}
			}
		}
	}
	schema, columns, ok := r.d.Names.Relation(n.Schemaname, n.Relname)
	if !ok {
		return nil, unknown("relation %s", n.Relname)
	}
	rel := &relation{kind: tableRelation, schema: schema, name: n.Relname, only: !n.Inh}
	for _, c := range columns {
		rel.columns = append(rel.columns, column{c.Name, c.Type, c.Mod})
	}
	return s.leaf(rel, n.Relname, n.Alias), nil
}

func (r *resolver) queryItem(n *pg.RangeSubselect, s *scope) (*join, error) {
	if n.Alias == nil {
		return nil, unknown("a query without a name")
	}
	inner := &scope{parent: s.parent, ctes: s.ctes}
	if n.Lateral {
		inner = s
	}
	sel := n.Subquery.GetSelectStmt()
	q, err := r.query(sel, inner, false)
	if err != nil {
		return nil, err
	}
	return s.leaf(&relation{kind: queryRelation, query: q, columns: columnsOf(q, nil), lateral: n.Lateral}, "", n.Alias), nil
}

func (r *resolver) functionItem(n *pg.RangeFunction, s *scope) (*join, error) {
	if len(n.Functions) != 1 || n.IsRowsfrom || len(n.Coldeflist) > 0 {
		return nil, unknown("ROWS FROM")
	}
	call := n.Functions[0].GetList().GetItems()[0]
	fc := call.GetFuncCall()
	if fc == nil {
		return nil, unknown("a function in FROM")
	}
	e, err := r.expr(call, s)
	if err != nil {
		return nil, err
	}
	f, ok := e.(*function)
	if !ok {
		return nil, unknown("a function in FROM")
	}
	name := f.name
	if n.Alias != nil {
		name = n.Alias.Aliasname
	}
	lateral := n.Lateral || usesAny(f, s.query.relations)
	rel := &relation{kind: callRelation, call: f, lateral: lateral, ordinality: n.Ordinality}
	types := make([]uint32, len(f.args))
	for i, a := range f.args {
		types[i] = a.typ()
	}
	best := r.facts.choose(r.facts.functions(f.name, len(f.args), f.variadic), types)
	switch {
	case best != nil && len(best.proc.outs) > 1:
		for i, o := range best.proc.outs {
			if isPolymorphic(best.proc.outTypes[i]) {
				return nil, unknown("a polymorphic column")
			}
			rel.columns = append(rel.columns, column{o, best.proc.outTypes[i], -1})
		}
	case f.oid == typRecord || r.facts.typeOf(f.oid).kind == 'c':
		return nil, unknown("rows of a function")
	case best != nil && len(best.proc.outs) == 1 && n.Alias == nil:
		rel.columns = []column{{best.proc.outs[0], f.oid, -1}}
	default:
		rel.columns = []column{{name, f.oid, -1}}
	}
	if n.Ordinality {
		rel.columns = append(rel.columns, column{"ordinality", typInt8, -1})
	}
	return s.leaf(rel, name, n.Alias), nil
}

var joinWords = map[pg.JoinType]string{
	pg.JoinType_JOIN_LEFT: " LEFT JOIN ", pg.JoinType_JOIN_RIGHT: " RIGHT JOIN ", pg.JoinType_JOIN_FULL: " FULL JOIN ",
}

func (r *resolver) joinItem(n *pg.JoinExpr, s *scope) (*join, error) {
	if n.Alias != nil || n.IsNatural || n.JoinUsingAlias != nil {
		return nil, unknown("a join with a name")
	}
	left, err := r.fromItem(n.Larg, s)
	if err != nil {
		return nil, err
	}
	// A relation at the right may be LATERAL and see the left one.
	inner := &scope{parent: s.parent, ctes: s.ctes, query: s.query, columns: append(slices.Clone(s.columns), left.columns...), windows: s.windows}
	right, err := r.fromItem(n.Rarg, inner)
	if err != nil {
		return nil, err
	}
	out := &join{left: left, right: right, word: joinWords[n.Jointype]}
	if out.word == "" {
		out.word = " JOIN "
		if n.Quals == nil && len(n.UsingClause) == 0 {
			out.word = " CROSS JOIN "
		}
	}
	if len(n.UsingClause) > 0 {
		return out, r.using(out, n)
	}
	out.columns = append(slices.Clone(left.columns), right.columns...)
	if n.Quals != nil {
		on := &scope{parent: s.parent, ctes: s.ctes, query: s.query, columns: out.columns}
		if out.on, err = r.expr(n.Quals, on); err == nil {
			out.on, err = r.truth(out.on)
		}
	}
	return out, err
}

// using merges the columns that a join is on: the left one's, or the right one's of a RIGHT JOIN.
func (r *resolver) using(j *join, n *pg.JoinExpr) error {
	left, right := slices.Clone(j.left.columns), slices.Clone(j.right.columns)
	for _, u := range n.UsingClause {
		name := u.GetString_().GetSval()
		at := func(list []visible) int {
			return slices.IndexFunc(list, func(c visible) bool { return c.name == name && !c.hidden })
		}
		l, g := at(left), at(right)
		if l < 0 || g < 0 || left[l].expr.typ() != right[g].expr.typ() {
			return unknown("USING of columns of different types")
		}
		e := left[l].expr
		switch n.Jointype {
		case pg.JoinType_JOIN_RIGHT:
			e = right[g].expr
		case pg.JoinType_JOIN_FULL:
			e = &variable{typed: typed{e.typ(), -1}, name: name}
		}
		j.using = append(j.using, name)
		j.columns = append(j.columns, visible{name: name, expr: e})
		left[l].hidden, right[g].hidden = true, true
	}
	for i := range left { // a merged column of a join below is not found by a relation's name
		if left[i].hidden && left[i].rel == "" {
			left[i].rel = "\x00"
		}
	}
	j.columns = append(append(j.columns, left...), right...)
	return nil
}
