package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// query analyses a SELECT, VALUES or set operation inside outer.
func (a *analyzer) query(sel *pg.SelectStmt, outer *scope) (*query, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	if sel == nil {
		return nil, unsupported("only SELECT is supported in a subquery")
	}
	defer a.lockingOf(sel)()
	defer func(n int, names map[string]bool) { a.nullable, a.rowNames = n, names }(a.nullable, a.rowNames)
	a.nullable, a.rowNames = 0, nil
	if err := lockable(sel, a.locking.clauses); err != nil {
		return nil, err
	}
	switch {
	case sel.IntoClause != nil:
		return nil, unsupported("SELECT INTO is not supported")
	case sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES && (sel.Op != pg.SetOperation_SETOP_NONE || len(sel.ValuesLists) > 0 || len(sel.DistinctClause) > 0):
		if len(sel.SortClause) == 0 {
			return nil, errTiesUnordered
		}
		outside, err := a.tiesOutside(sel)
		if err != nil {
			return nil, err
		}
		return a.query(outside, outer)
	}
	s := &scope{parent: outer}
	with, err := a.with(sel.WithClause, s)
	if err != nil {
		return nil, err
	}
	var q *query
	switch {
	case sel.Op != pg.SetOperation_SETOP_NONE && sel.Op != pg.SetOperation_SET_OPERATION_UNDEFINED:
		q, err = a.setOperation(sel, s)
	case len(sel.ValuesLists) > 0:
		q, err = a.values(sel, s)
	default:
		q, err = a.plainSelect(sel, s)
	}
	if err != nil {
		return nil, err
	}
	q.with = with
	return q, nil
}

// plainSelect analyses SELECT … FROM … . s holds the CTEs already.
func (a *analyzer) plainSelect(sel *pg.SelectStmt, s *scope) (*query, error) {
	if slices.ContainsFunc(sel.FromClause, func(n *pg.Node) bool { return n.GetJoinExpr() != nil }) {
		a.rowNames = rowNames(sel)
	}
	fromSQL, err := a.from(sel.FromClause, s)
	if err != nil {
		return nil, err
	}
	var tail strings.Builder
	mine, err := a.lockedRows()
	if err != nil {
		return nil, err
	}
	if sel.WhereClause != nil {
		s.noAgg = "WHERE"
		e, err := a.condition(sel.WhereClause, s, "WHERE")
		if err != nil {
			return nil, err
		}
		tail.WriteString(" WHERE " + e.sql + mine)
		a.restrict(sel.WhereClause, s)
		s.noAgg = ""
	} else if mine != "" {
		tail.WriteString(" WHERE true" + mine)
	}
	s.refs = nil
	s.windows = namedWindows(sel.WindowClause)
	group, err := a.groupBy(sel, s)
	if err != nil {
		return nil, err
	}
	if sets := s.setsSQL(); sets != "" && fromSQL != "" {
		fromSQL += ", " + sets
	} else {
		fromSQL += sets
	}
	if fromSQL != "" {
		fromSQL = " FROM " + fromSQL
	}
	where := tail.String()
	tail.Reset()
	tail.WriteString(fromSQL + where + group)
	s.refs = nil
	q := &query{head: "SELECT "}
	if q.targets, err = a.selected(sel, s); err != nil {
		return nil, err
	}
	if sel.HavingClause != nil {
		s.hasAgg, s.noSets = true, "HAVING"
		e, err := a.condition(sel.HavingClause, s, "HAVING")
		s.noSets = ""
		if err != nil {
			return nil, err
		}
		tail.WriteString(" HAVING " + e.sql)
	}
	if err := a.finishSelect(sel, s, q, &tail); err != nil {
		return nil, err
	}
	if s.hasAgg && len(a.locking.clauses) > 0 {
		return nil, unsupported("%s is not allowed with aggregate functions", lockWords[a.locking.clauses[0].Strength])
	}
	q.tail = tail.String()
	return q, nil
}

func (a *analyzer) finishSelect(sel *pg.SelectStmt, s *scope, q *query, tail *strings.Builder) error {
	if len(sel.DistinctClause) > 0 {
		q.head = "SELECT DISTINCT "
		var on []string
		for _, d := range sel.DistinctClause {
			if d == nil || d.Node == nil {
				continue
			}
			key, _, err := a.sortItem(d, s, q.targets, "DISTINCT ON")
			if err != nil {
				return err
			}
			on = append(on, key)
		}
		if len(on) == 0 {
			var err error
			if on, err = a.distinctKeys(q.targets); err != nil {
				return err
			}
		}
		if len(on) > 0 {
			q.head = "SELECT DISTINCT ON (" + strings.Join(on, ", ") + ") "
		}
	}
	order, err := a.orderBy(sel.SortClause, s, q.targets, true)
	if err != nil {
		return err
	}
	if len(sel.DistinctClause) > 0 {
		if err := a.distinctOrder(sel, s, q.targets); err != nil {
			return err
		}
	}
	if sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		return a.withTies(sel, s, order, tail)
	}
	tail.WriteString(order)
	if err := a.checkGrouping(s); err != nil {
		return err
	}
	limit, err := a.limit(sel, s)
	tail.WriteString(limit)
	return err
}

// distinctKeys are what tells rows apart, nil when their values do.
func (a *analyzer) distinctKeys(targets []target) ([]string, error) {
	var keys []string
	differ := false
	for _, t := range targets {
		key := t.expr.sql
		if !t.expr.undecided() {
			key = equalKey(t.expr)
			if err := a.equatable(t.expr); err != nil {
				return nil, err
			}
		}
		differ = differ || keyed(t.expr) && key != t.expr.sql
		keys = append(keys, key)
	}
	if !differ {
		return nil, nil
	}
	return keys, nil
}

// condition analyses a boolean expression.
func (a *analyzer) condition(n *pg.Node, s *scope, clause string) (expr, error) {
	if clause != "CHECK" {
		a.onlyTruth(n)
	}
	e, err := a.expr(n, s)
	if err != nil {
		return e, err
	}
	return a.boolean(e, clause)
}

func (a *analyzer) boolean(e expr, clause string) (expr, error) {
	if e.undecided() {
		return a.coerce(e, plain(OIDBool), implicit)
	}
	if e.typ.OID != OIDBool {
		return e, a.errAt(e.loc, pgerr.New(codes.DatatypeMismatch,
			"argument of %s must be type boolean, not type %s", clause, e.typ.Name()))
	}
	return e, nil
}

// targets analyses the select list, expanding stars.
func (a *analyzer) targets(list []*pg.Node, s *scope) ([]target, error) {
	var out []target
	for _, n := range list {
		rt := n.GetResTarget()
		if cr := rt.Val.GetColumnRef(); cr != nil {
			if names, star := fieldNames(cr.Fields); star {
				cols, err := a.star(names, cr.Location, s)
				if err != nil {
					return nil, err
				}
				out = append(out, cols...)
				if a.record != nil {
					a.record.star(rt, cols)
				}
				continue
			}
		}
		if fields, ok, err := a.fieldStar(rt.Val, s); ok || err != nil {
			if err != nil {
				return nil, err
			}
			out = append(out, fields...)
			continue
		}
		e, err := a.expr(rt.Val, s)
		if err != nil {
			return nil, err
		}
		name := rt.Name
		if name == "" {
			name = outputName(rt.Val)
		}
		e.name = name
		out = append(out, target{name: name, expr: e})
		if len(out) > maxColumns {
			return nil, pgerr.New(codes.TooManyColumns, "target lists can have at most %d entries", maxColumns)
		}
	}
	return out, nil
}

// maxColumns is PostgreSQL's limit of a target list.
const maxColumns = 1664

func (a *analyzer) star(names []string, loc int32, s *scope) ([]target, error) {
	var out []target
	if len(names) == 0 {
		if len(s.columns) == 0 && len(s.items) == 0 {
			return nil, a.errAt(loc, pgerr.New(codes.Syntax, "SELECT * with no tables specified is not valid"))
		}
		for _, c := range s.columns {
			if !c.hidden {
				out = append(out, target{name: c.name, expr: a.reference(c, loc, s)})
			}
		}
		return out, nil
	}
	schema, table := "", names[len(names)-1]
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	for at := s; at != nil; at = at.parent {
		it, err := a.findItem(at, schema, table, loc)
		if err != nil {
			return nil, err
		}
		if it == nil {
			continue
		}
		for _, c := range it.columns {
			if !c.secret {
				out = append(out, target{name: c.name, expr: a.reference(c, loc, at)})
			}
		}
		return out, nil
	}
	return nil, a.errAt(loc, pgerr.New(codes.UndefinedTable, "missing FROM-clause entry for table \"%s\"", table))
}

// limit prints LIMIT and OFFSET.
func (a *analyzer) limit(sel *pg.SelectStmt, s *scope) (string, error) {
	var out string
	for _, l := range []struct {
		word string
		n    *pg.Node
		code codes.Code
	}{{"LIMIT", sel.LimitCount, codes.InvalidRowCountInLimitClause}, {
		"OFFSET", sel.LimitOffset,
		codes.InvalidRowCountInResultOffsetClause,
	}} {
		if l.n == nil || l.n.GetAConst().GetIsnull() {
			continue
		}
		inner := &scope{parent: s.parent, ctes: s.ctes, noAgg: l.word}
		e, err := a.expr(l.n, inner)
		if err != nil {
			return "", err
		}
		if e.num != nil && *e.num < 0 {
			return "", pgerr.New(l.code, "%s must not be negative", l.word)
		}
		if e, err = a.coerce(e, plain(OIDInt8), assignment); err != nil {
			return "", err
		}
		out += " " + l.word + " " + e.sql
	}
	return out, nil
}

// orderBy prints ORDER BY. inputs says that items may be expressions over the
// FROM's columns too.
func (a *analyzer) orderBy(list []*pg.Node, s *scope, targets []target, inputs bool) (string, error) {
	var parts []string
	for _, n := range list {
		sb := n.GetSortBy()
		if err := a.checkUsing(sb); err != nil {
			return "", err
		}
		if !inputs {
			if err := outputOnly(sb.Node, targets); err != nil {
				return "", err
			}
		}
		key, con, err := a.sortItem(sb.Node, s, targets, "ORDER BY")
		if err != nil {
			return "", err
		}
		if !con {
			parts = append(parts, key+sortDirection(sb))
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	return " ORDER BY " + strings.Join(parts, ", "), nil
}

func sortDirection(sb *pg.SortBy) string {
	desc := sb.SortbyDir == pg.SortByDir_SORTBY_DESC
	if sb.SortbyDir == pg.SortByDir_SORTBY_USING {
		desc = sb.UseOp[len(sb.UseOp)-1].GetString_().GetSval() == ">"
	}
	first := desc
	switch sb.SortbyNulls {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		first = true
	case pg.SortByNulls_SORTBY_NULLS_LAST:
		first = false
	}
	out := " ASC"
	if desc {
		out = " DESC"
	}
	if first {
		return out + " NULLS FIRST"
	}
	return out + " NULLS LAST"
}

func outputOnly(n *pg.Node, targets []target) error {
	if cr := n.GetColumnRef(); cr != nil && len(cr.Fields) == 1 {
		return nil
	}
	if n.GetAConst().GetIval() != nil {
		return nil
	}
	return unsupported("invalid UNION/INTERSECT/EXCEPT ORDER BY clause").
		WithDetail("Only result column names can be used, not expressions or functions.").
		WithHint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
}

// sortItem resolves an item of ORDER BY, GROUP BY or DISTINCT ON: an ordinal, an
// output name, or an expression. con says that it is a constant, which sorts
// nothing.
func (a *analyzer) sortItem(n *pg.Node, s *scope, targets []target, clause string) (key string, con bool, err error) {
	e, err := a.itemExpr(n, s, targets, clause)
	if err != nil {
		return "", false, err
	}
	if e, err = a.settledRow(e); err != nil {
		return "", false, err
	}
	if clause == "ORDER BY" {
		return sortKey(e), e.con, a.sortable(e)
	}
	return equalKey(e), e.con, a.equatable(e)
}

func (a *analyzer) itemExpr(n *pg.Node, s *scope, targets []target, clause string) (expr, error) {
	if c := n.GetAConst(); c != nil {
		iv, ok := c.Val.(*pg.A_Const_Ival)
		if !ok {
			return expr{}, a.errAt(c.Location, pgerr.New(codes.Syntax, "non-integer constant in %s", clause))
		}
		i := int(iv.Ival.Ival)
		if i < 1 || i > len(targets) {
			return expr{}, a.errAt(c.Location, pgerr.New(codes.InvalidColumnReference, "%s position %d is not in select list",
				clause, i))
		}
		return targets[i-1].expr, nil
	}
	if cr := n.GetColumnRef(); cr != nil && len(cr.Fields) == 1 && cr.Fields[0].GetString_() != nil {
		name := cr.Fields[0].GetString_().Sval
		input := clause == "GROUP BY" && slices.ContainsFunc(s.columns, func(c *column) bool {
			return c.name == name &&
				!c.hidden
		})
		if !input {
			e, ok, err := a.namedTarget(name, targets, cr.Location, clause)
			if ok || err != nil {
				return e, err
			}
		}
	}
	return a.expr(n, s)
}

func (a *analyzer) namedTarget(name string, targets []target, loc int32, clause string) (expr, bool, error) {
	var found *target
	for i := range targets {
		t := &targets[i]
		if t.name != name {
			continue
		}
		if found != nil && found.expr.sql != t.expr.sql {
			return expr{}, false, a.errAt(loc, pgerr.New(codes.AmbiguousColumn, "%s \"%s\" is ambiguous", clause, name))
		}
		found = t
	}
	if found == nil {
		return expr{}, false, nil
	}
	return found.expr, true, nil
}

func (a *analyzer) groupExpr(n *pg.Node, sel *pg.SelectStmt, s *scope) (string, error) {
	node := n
	if i := n.GetAConst().GetIval(); i != nil || n.GetColumnRef() != nil {
		var err error
		if node, err = a.groupTarget(n, sel, s); err != nil {
			return "", err
		}
	}
	e, err := a.expr(node, s)
	if err != nil {
		return "", err
	}
	if e, err = a.settledRow(e); err != nil {
		return "", err
	}
	if hasQuery(node) {
		s.groupQueries = append(s.groupQueries, groupedQuery{node: placeless(node), value: e})
	}
	if e.row != nil {
		var parts []string
		if e.there != "" {
			s.groupSQL[e.there] = true
			parts = append(parts, e.there)
		}
		for _, f := range e.row {
			part, err := a.groupKey(f, s)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ", "), nil
	}
	return a.groupKey(e, s)
}

// groupKey prints a value that is grouped by.
func (a *analyzer) groupKey(e expr, s *scope) (string, error) {
	s.groupSQL[e.sql] = true
	if err := a.equatable(e); err != nil {
		return "", err
	}
	if key := equalKey(e); keyed(e) && key != e.sql && !e.con {
		s.groupKeys[e.sql] = key
		return key, nil
	}
	if e.con {
		return "(" + e.sql + " IS NULL)", nil // a constant groups nothing
	}
	return e.sql, nil
}

// groupTarget finds the select list entry that an ordinal or an output name means.
func (a *analyzer) groupTarget(n *pg.Node, sel *pg.SelectStmt, s *scope) (*pg.Node, error) {
	if c := n.GetAConst(); c != nil {
		i := int(c.GetIval().Ival)
		if i < 1 || i > len(sel.TargetList) || hasStar(sel.TargetList[:i]) {
			return nil, a.errAt(c.Location, pgerr.New(codes.InvalidColumnReference,
				"GROUP BY position %d is not in select list", i))
		}
		return sel.TargetList[i-1].GetResTarget().Val, nil
	}
	names, star := fieldNames(n.GetColumnRef().Fields)
	if star || len(names) != 1 {
		return n, nil
	}
	for _, c := range s.columns {
		if c.name == names[0] && !c.hidden {
			return n, nil
		}
	}
	for _, t := range sel.TargetList {
		if rt := t.GetResTarget(); rt.Name == names[0] {
			return rt.Val, nil
		}
	}
	return n, nil
}

func hasStar(list []*pg.Node) bool {
	for _, n := range list {
		if cr := n.GetResTarget().GetVal().GetColumnRef(); cr != nil {
			if _, star := fieldNames(cr.Fields); star {
				return true
			}
		}
	}
	return false
}

func namedWindows(list []*pg.Node) map[string]*pg.WindowDef {
	out := map[string]*pg.WindowDef{}
	for _, n := range list {
		if w := n.GetWindowDef(); w != nil {
			out[w.Name] = w
		}
	}
	return out
}
