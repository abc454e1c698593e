package ruleutils

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// scope is what names find in a query, and in those around it.
type scope struct {
	parent  *scope
	columns []visible
	ctes    []*cte
	windows map[string]*window
	// query is the one whose FROM it is.
	query *query
}

func (s *scope) hasColumn(name string) bool {
	return slices.ContainsFunc(s.columns, func(c visible) bool { return c.name == name && !c.hidden })
}

func (r *resolver) columnRef(n *pg.ColumnRef, s *scope) (node, error) {
	var names []string
	for _, f := range n.Fields {
		v := f.GetString_()
		if v == nil {
			return nil, unknown("a row")
		}
		names = append(names, v.Sval)
	}
	name, rel, schema := names[len(names)-1], "", ""
	if len(names) > 1 {
		rel = names[len(names)-2]
	}
	if len(names) > 2 {
		schema = names[len(names)-3]
	}
	for ; s != nil; s = s.parent {
		var found node
		for _, c := range s.columns {
			if c.name != name || rel == "" && c.hidden || rel != "" && c.rel != rel || schema != "" && c.schema != schema {
				continue
			}
			if found != nil {
				return nil, unknown("column %s is ambiguous", name)
			}
			found = c.expr
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, unknown("column %s", name)
}

// query resolves a query within another, nil for none.
func (r *resolver) query(sel *pg.SelectStmt, parent *scope, leaf bool) (*query, error) {
	if sel == nil || sel.IntoClause != nil || len(sel.LockingClause) > 0 {
		return nil, unknown("a query")
	}
	q := &query{}
	s := &scope{parent: parent, query: q, windows: map[string]*window{}}
	if err := r.with(sel.WithClause, q, s); err != nil {
		return nil, err
	}
	var err error
	switch {
	case sel.Op != pg.SetOperation_SETOP_NONE && sel.Op != pg.SetOperation_SET_OPERATION_UNDEFINED:
		err = r.setOperation(sel, q, s)
	case len(sel.ValuesLists) > 0:
		err = r.valuesQuery(sel, q, s)
	default:
		err = r.plain(sel, q, s, leaf)
	}
	if err != nil {
		return nil, err
	}
	return q, r.limits(sel, q, s)
}

func (r *resolver) with(w *pg.WithClause, q *query, s *scope) error {
	if w == nil {
		return nil
	}
	q.recursive = w.Recursive
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		if c.SearchClause != nil || c.CycleClause != nil {
			return unknown("SEARCH and CYCLE")
		}
		x := &cte{name: c.Ctename}
		for _, a := range c.Aliascolnames {
			x.columns = append(x.columns, a.GetString_().GetSval())
		}
		switch c.Ctematerialized {
		case pg.CTEMaterialize_CTEMaterializeAlways:
			x.materialized = "MATERIALIZED "
		case pg.CTEMaterialize_CTEMaterializeNever:
			x.materialized = "NOT MATERIALIZED "
		}
		if w.Recursive {
			s.ctes, r.recursive = append(s.ctes, x), x
		}
		inner, err := r.query(c.Ctequery.GetSelectStmt(), s, false)
		if err != nil {
			return err
		}
		if !w.Recursive {
			s.ctes = append(s.ctes, x)
		}
		x.query, r.recursive = inner, nil
		q.ctes = append(q.ctes, x)
	}
	return nil
}

// columnsOf are the columns of a query, the first of which have other names if some are given.
func columnsOf(q *query, names []string) []column {
	out := make([]column, len(q.targets))
	for i, t := range q.targets {
		out[i] = column{name: t.name, typ: t.expr.typ(), mod: t.expr.mod()}
		if i < len(names) {
			out[i].name = names[i]
		}
	}
	return out
}

func (r *resolver) setOperation(sel *pg.SelectStmt, q *query, s *scope) error {
	q.op = map[pg.SetOperation]string{
		pg.SetOperation_SETOP_UNION: "UNION ", pg.SetOperation_SETOP_INTERSECT: "INTERSECT ", pg.SetOperation_SETOP_EXCEPT: "EXCEPT ",
	}[sel.Op]
	q.all = sel.All
	var err error
	self := r.recursive
	r.recursive = nil
	if q.left, err = r.query(sel.Larg, s, true); err != nil {
		return err
	}
	if self != nil { // what the first part gives is what the second one reads
		first := *q.left
		first.targets = slices.Clone(first.targets)
		if self.query = &first; r.settleTargets(self.query) != nil {
			return unknown("a recursive query")
		}
	}
	if q.right, err = r.query(sel.Rarg, s, true); err != nil {
		return err
	}
	if len(q.left.targets) != len(q.right.targets) {
		return unknown("numbers of columns that differ")
	}
	for i := range q.left.targets {
		l, g := &q.left.targets[i], &q.right.targets[i]
		t, err := r.common([]node{l.expr, g.expr})
		if err != nil {
			return err
		}
		for _, x := range []*target{l, g} {
			if x.expr.typ() == typUnknown {
				if x.expr, err = r.coerceType(x.expr, typed{t, -1}, implicit, formImplicit); err != nil {
					return err
				}
			}
		}
		mod := int32(-1)
		if l.expr.typ() == t && g.expr.typ() == t && l.expr.mod() == g.expr.mod() {
			mod = l.expr.mod()
		}
		q.targets = append(q.targets, target{expr: &variable{typed: typed{t, mod}, name: l.name}, name: l.name})
	}
	q.sort, err = r.sortKeys(sel.SortClause, s, q.targets)
	for _, k := range q.sort {
		if k.number == 0 {
			return unknown("an order of a set operation")
		}
	}
	return err
}

func (r *resolver) settleTargets(q *query) (err error) {
	for i := range q.targets {
		if q.targets[i].expr, err = r.settled(q.targets[i].expr); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) valuesQuery(sel *pg.SelectStmt, q *query, s *scope) error {
	if len(sel.SortClause) > 0 {
		return unknown("VALUES with an order")
	}
	var err error
	q.values, err = r.valuesLists(sel.ValuesLists, s)
	if err != nil {
		return err
	}
	for i, e := range q.values[0] {
		q.targets = append(q.targets, target{expr: &variable{typed: typed{e.typ(), -1}}, name: "column" + itoa(i+1)})
	}
	return nil
}

// valuesLists resolves the rows of VALUES, whose columns have common types.
func (r *resolver) valuesLists(lists []*pg.Node, s *scope) ([][]node, error) {
	var rows [][]node
	for _, l := range lists {
		row, err := r.exprs(l.GetList().GetItems(), s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	for i := range rows[0] {
		var all []node
		for _, row := range rows {
			if i >= len(row) {
				return nil, unknown("rows of different lengths")
			}
			all = append(all, row[i])
		}
		all, _, err := r.unify(all)
		if err != nil {
			return nil, err
		}
		for j, row := range rows {
			row[i] = all[j]
		}
	}
	return rows, nil
}

func (r *resolver) limits(sel *pg.SelectStmt, q *query, s *scope) error {
	one := func(n *pg.Node) (node, error) {
		if n == nil {
			return nil, nil
		}
		e, err := r.expr(n, s)
		if err != nil {
			return nil, err
		}
		return r.coerceType(e, typed{typInt8, -1}, assignment, formImplicit)
	}
	var err error
	if q.offset, err = one(sel.LimitOffset); err != nil {
		return err
	}
	if sel.LimitCount.GetAConst().GetIsnull() {
		q.limitAll = true
		return nil
	}
	q.ties = sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES
	q.limit, err = one(sel.LimitCount)
	return err
}

func (r *resolver) plain(sel *pg.SelectStmt, q *query, s *scope, leaf bool) error {
	for _, n := range sel.FromClause {
		j, err := r.fromItem(n, s)
		if err != nil {
			return err
		}
		q.from = append(q.from, j)
		s.columns = append(s.columns, j.columns...)
	}
	var err error
	if err = r.windowsOf(sel, q, s); err != nil {
		return err
	}
	for _, n := range sel.TargetList {
		rt := n.GetResTarget()
		e, err := r.expr(rt.Val, s)
		if err == nil && !leaf {
			e, err = r.settled(e)
		}
		if err != nil {
			return err
		}
		q.targets = append(q.targets, target{expr: e, name: cmp.Or(rt.Name, figureName(rt.Val))})
	}
	if sel.WhereClause != nil {
		if q.where, err = r.expr(sel.WhereClause, s); err == nil {
			q.where, err = r.truth(q.where)
		}
		if err != nil {
			return err
		}
	}
	return r.rest(sel, q, s)
}

func (r *resolver) windowsOf(sel *pg.SelectStmt, q *query, s *scope) error {
	for _, n := range sel.WindowClause {
		d := n.GetWindowDef()
		name := d.Name
		d.Name = ""
		w, err := r.windowOf(d, s)
		d.Name = name
		if err != nil {
			return err
		}
		w.name = name
		q.windows, s.windows[name] = append(q.windows, w), w
	}
	return nil
}

// rest resolves what follows WHERE.
func (r *resolver) rest(sel *pg.SelectStmt, q *query, s *scope) error {
	var err error
	q.distinctG = sel.GroupDistinct
	for _, n := range sel.GroupClause {
		g, err := r.groupItem(n, s, q.targets)
		if err != nil {
			return err
		}
		q.groupSets = q.groupSets || g.word != ""
		q.group = append(q.group, g)
	}
	if sel.HavingClause != nil {
		if q.having, err = r.expr(sel.HavingClause, s); err == nil {
			q.having, err = r.truth(q.having)
		}
		if err != nil {
			return err
		}
	}
	if q.sort, err = r.sortKeys(sel.SortClause, s, q.targets); err != nil {
		return err
	}
	for _, n := range sel.DistinctClause {
		q.distinct = true
		if n.GetNode() == nil {
			continue
		}
		e, _, err := r.keyOf(n, s, q.targets, false)
		if err != nil {
			return err
		}
		q.on = append(q.on, e)
	}
	return nil
}

var setWords = map[pg.GroupingSetKind]string{
	pg.GroupingSetKind_GROUPING_SET_ROLLUP: "ROLLUP", pg.GroupingSetKind_GROUPING_SET_CUBE: "CUBE", pg.GroupingSetKind_GROUPING_SET_SETS: "GROUPING SETS",
	pg.GroupingSetKind_GROUPING_SET_EMPTY: "()",
}

func (r *resolver) groupItem(n *pg.Node, s *scope, targets []target) (groupItem, error) {
	var list []*pg.Node
	out := groupItem{}
	switch {
	case n.GetGroupingSet() != nil:
		out.word, list = setWords[n.GetGroupingSet().Kind], n.GetGroupingSet().Content
	default:
		simple := []*pg.Node{n}
		if row := n.GetRowExpr(); row != nil {
			simple = row.Args
		} else if l := n.GetList(); l != nil {
			simple = l.Items
		}
		for _, x := range simple {
			e, _, err := r.keyOf(x, s, targets, true)
			if err != nil {
				return out, err
			}
			out.exprs = append(out.exprs, e)
		}
		return out, nil
	}
	for _, c := range list {
		g, err := r.groupItem(c, s, targets)
		if err != nil {
			return out, err
		}
		out.list = append(out.list, g)
	}
	return out, nil
}

// figureName is FigureColname: the name of a column that is given none.
func figureName(n *pg.Node) string {
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return v.ColumnRef.Fields[len(v.ColumnRef.Fields)-1].GetString_().GetSval()
	case *pg.Node_FuncCall:
		return v.FuncCall.Funcname[len(v.FuncCall.Funcname)-1].GetString_().GetSval()
	case *pg.Node_TypeCast:
		if name := figureName(v.TypeCast.Arg); name != "?column?" {
			return name
		}
		names := v.TypeCast.TypeName.GetNames()
		return names[len(names)-1].GetString_().GetSval()
	case *pg.Node_CollateClause:
		return figureName(v.CollateClause.Arg)
	case *pg.Node_CaseExpr:
		if v.CaseExpr.Defresult != nil {
			if name := figureName(v.CaseExpr.Defresult); name != "?column?" {
				return name
			}
		}
		return "case"
	case *pg.Node_AIndirection:
		return figureName(v.AIndirection.Arg)
	case *pg.Node_AExpr:
		if v.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif"
		}
	case *pg.Node_SubLink:
		switch v.SubLink.SubLinkType {
		case pg.SubLinkType_EXISTS_SUBLINK:
			return "exists"
		case pg.SubLinkType_ARRAY_SUBLINK:
			return "array"
		case pg.SubLinkType_EXPR_SUBLINK:
			if l := v.SubLink.Subselect.GetSelectStmt().GetTargetList(); len(l) == 1 {
				return cmp.Or(l[0].GetResTarget().GetName(), figureName(l[0].GetResTarget().GetVal()))
			}
		}
	case *pg.Node_AArrayExpr:
		return "array"
	case *pg.Node_RowExpr:
		return "row"
	case *pg.Node_CoalesceExpr:
		return "coalesce"
	case *pg.Node_MinMaxExpr:
		return strings.ToLower(strings.TrimPrefix(v.MinMaxExpr.Op.String(), "IS_"))
	case *pg.Node_GroupingFunc:
		return "grouping"
	case *pg.Node_SqlvalueFunction:
		return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(v.SqlvalueFunction.Op.String(), "SVFOP_"), "_N"))
	}
	return "?column?"
}

func (r *resolver) subLink(n *pg.SubLink, s *scope) (node, error) {
	q, err := r.query(n.Subselect.GetSelectStmt(), s, false)
	if err != nil {
		return nil, err
	}
	out := &subLink{query: q, typed: boolean}
	switch n.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		out.kind = "EXISTS"
		return out, nil
	case pg.SubLinkType_EXPR_SUBLINK, pg.SubLinkType_ARRAY_SUBLINK:
		if len(q.targets) != 1 {
			return nil, unknown("a query of several columns")
		}
		t := q.targets[0].expr
		out.kind, out.typed = "EXPR", typed{t.typ(), t.mod()}
		if n.SubLinkType == pg.SubLinkType_ARRAY_SUBLINK {
			out.kind, out.oid = "ARRAY", r.facts.arrayOf(t.typ())
		}
		return out, nil
	case pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
	default:
		return nil, unknown("a query in an expression")
	}
	left, err := r.expr(n.Testexpr, s)
	if err != nil || left.typ() == typRecord || len(q.targets) != 1 {
		return nil, unknown("a comparison of rows: %v", err)
	}
	out.kind, out.op = "ANY", "="
	if n.SubLinkType == pg.SubLinkType_ALL_SUBLINK {
		out.kind = "ALL"
	}
	if len(n.OperName) > 0 {
		out.op = n.OperName[len(n.OperName)-1].GetString_().GetSval()
	}
	t := q.targets[0].expr
	o, err := r.operate(out.op, []node{left, &word{typed: typed{t.typ(), t.mod()}}})
	if err != nil {
		return nil, err
	}
	out.op, out.left = o.name, o.args[:1]
	return out, nil
}
