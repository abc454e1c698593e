package pgsql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// source is an analysed part of FROM.
type source struct {
	sql     string
	items   []*item
	columns []*column
	// constants are columns that stand for themselves; see [constants].
	constants map[int]string
}

// from analyses a FROM list into the scope and prints it.
func (a *analyzer) from(list []*pg.Node, s *scope) (string, error) {
	var parts []string
	for _, n := range list {
		src, err := a.fromNode(n, s)
		if err != nil {
			return "", err
		}
		if err := a.addItems(s, src.items); err != nil {
			return "", err
		}
		for i, sql := range src.constants {
			src.columns[i].sql = func() string { return sql }
		}
		s.columns = append(s.columns, src.columns...)
		parts = append(parts, src.sql)
	}
	return strings.Join(parts, ", "), nil
}

func (a *analyzer) addItems(s *scope, items []*item) error {
	for _, it := range items {
		for _, have := range s.items {
			if it.name != "" && have.name == it.name && (have.schema == it.schema || have.schema == "" || it.schema == "") {
				return pgerr.New(codes.DuplicateAlias, "table name \"%s\" specified more than once", it.name)
			}
		}
		s.items = append(s.items, it)
	}
	return nil
}

func (a *analyzer) fromNode(n *pg.Node, s *scope) (*source, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	src, err := a.fromItem(n, s)
	if err == nil {
		a.mark(src)
	}
	return src, err
}

func (a *analyzer) fromItem(n *pg.Node, s *scope) (*source, error) {
	switch v := n.Node.(type) {
	case *pg.Node_RangeVar:
		return a.rangeVar(v.RangeVar, s)
	case *pg.Node_RangeSubselect:
		return a.subselect(v.RangeSubselect, s)
	case *pg.Node_RangeFunction:
		return a.rangeFunction(v.RangeFunction, s)
	case *pg.Node_JoinExpr:
		return a.join(v.JoinExpr, s)
	case *pg.Node_RangeTableSample:
		return a.tableSample(v.RangeTableSample, s)
	}
	return nil, unsupported("this kind of FROM item is not supported")
}

func (a *analyzer) rangeVar(n *pg.RangeVar, s *scope) (*source, error) {
	if n.Schemaname == "" {
		if c := s.findCTE(n.Relname); c != nil {
			if err := a.lockItem(itemName(n), nil, "WITH query"); err != nil {
				return nil, err
			}
			return a.cteSource(c, n)
		}
	}
	if n.Catalogname != "" && n.Catalogname != a.env.Database {
		return nil, a.errAt(n.Location, unsupported("cross-database references are not implemented: \"%s.%s.%s\"",
			n.Catalogname, n.Schemaname, n.Relname))
	}
	rel, err := a.relation(n.Schemaname, n.Relname, n.Location)
	if err != nil {
		return nil, err
	}
	if a.record != nil {
		a.record.relations[n] = rel
	}
	if err := a.lockItem(itemName(n), rel, ""); err != nil {
		return nil, err
	}
	if rel.View != "" {
		return a.viewSource(rel, n)
	}
	return a.relationSource(rel, n)
}

// itemName is the name of a relation in FROM.
func itemName(n *pg.RangeVar) string {
	if n.Alias != nil {
		return n.Alias.Aliasname
	}
	return n.Relname
}

// relation finds a table by name, along the search path when it has no schema.
func (a *analyzer) relation(schema, name string, loc int32) (*Relation, error) {
	if schema == "pg_temp" && a.env.TempSchema != "" {
		schema = a.env.TempSchema
	}
	if schema != "" {
		if rel, ok := a.env.Resolver.Relation(schema, name); ok {
			return rel, nil
		}
		return nil, a.errAt(loc, pgerr.New(codes.UndefinedTable, "relation \"%s.%s\" does not exist", schema, name))
	}
	for _, p := range a.env.SearchPath {
		if rel, ok := a.env.Resolver.Relation(p, name); ok {
			return rel, nil
		}
	}
	return nil, a.errAt(loc, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", name))
}

// use registers one use of a relation.
func (a *analyzer) use(rel *Relation) *Use {
	u := &Use{
		Relation: rel, Name: fmt.Sprintf("skippr_rel_%d", len(a.uses)+1),
		names: map[int]int{}, seen: map[string]int{}, Via: a.via,
	}
	a.uses = append(a.uses, u)
	return u
}

func (a *analyzer) relationSource(rel *Relation, n *pg.RangeVar) (*source, error) {
	u := a.use(rel)
	alias := a.alias("t")
	it := &item{name: n.Relname, schema: rel.Schema, use: u}
	if n.Alias != nil {
		it.name, it.schema = n.Alias.Aliasname, ""
	}
	for i, rc := range rel.Columns {
		c := &column{
			name: rc.Name, typ: rc.Type, scale: -1, tableOID: rel.OID, attNum: rc.AttNum, stored: true, item: it, index: i, coll: rc.Collation,
			sql: func() string { return alias + "." + quote.Name(u.column(i)) },
		}
		if eng := strings.ToUpper(rc.Engine); eng == "VARCHAR" && lookupType(rc.Type.OID).engine != "VARCHAR" {
			c.text = true
		}
		if rc.Type.OID == OIDNumeric && !c.text {
			if p, s, ok := engineDecimal(rc.Engine); ok {
				c.prec, c.scale = p, s
			}
		}
		it.columns = append(it.columns, c)
	}
	if a.record != nil && !rel.System {
		a.record.items[n] = it
	}
	if err := a.renameColumns(it, n.Alias, n.Location); err != nil {
		return nil, err
	}
	return &source{sql: quote.Name(u.Name) + " AS " + alias, items: []*item{it}, columns: it.columns}, nil
}

func (a *analyzer) renameColumns(it *item, alias *pg.Alias, loc int32) error {
	if alias == nil {
		return nil
	}
	if len(alias.Colnames) > len(it.columns) {
		return a.errAt(loc, pgerr.New(codes.InvalidColumnReference,
			"table \"%s\" has %d columns available but %d columns specified", it.name, len(it.columns), len(alias.Colnames)))
	}
	for i, n := range alias.Colnames {
		it.columns[i].name = n.GetString_().GetSval()
	}
	return nil
}

func (a *analyzer) cteSource(c *cte, n *pg.RangeVar) (*source, error) {
	if c.silent {
		return nil, a.silentCTE(c, n.Location)
	}
	it := &item{name: n.Relname}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	alias := a.alias("t")
	it.columns = targetColumns(c.columns, alias, it)
	if err := a.renameColumns(it, n.Alias, n.Location); err != nil {
		return nil, err
	}
	return &source{sql: c.alias + " AS " + alias, items: []*item{it}, columns: it.columns}, nil
}

// targetColumns are the columns of a subquery with the given targets, which it
// prints as c1, c2, ….
func targetColumns(targets []target, alias string, it *item) []*column {
	var out []*column
	for i, t := range targets {
		sql := fmt.Sprintf("%s.c%d", alias, i+1)
		c := &column{
			name: t.name, typ: t.expr.typ, text: t.expr.text, scale: t.expr.scale, prec: t.expr.prec,
			fields: t.expr.fields, whole: t.expr.whole, item: it, index: -1, hidden: t.secret, secret: t.secret, coll: t.expr.coll.carried(),
			sql: func() string { return sql },
		}
		if src := t.expr.col; src != nil {
			c.tableOID, c.attNum, c.stored = src.tableOID, src.attNum, src.stored
		}
		out = append(out, c)
	}
	return out
}

func (a *analyzer) subselect(n *pg.RangeSubselect, s *scope) (*source, error) {
	outer := &scope{parent: s.parent, ctes: s.ctes}
	if n.Lateral {
		outer = s
	}
	a.passLocks(n.Alias.GetAliasname())
	q, err := a.query(n.Subquery.GetSelectStmt(), outer)
	if err != nil {
		return nil, err
	}
	if err := a.settle(q); err != nil {
		return nil, err
	}
	it := &item{}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	alias := a.alias("q")
	it.columns = targetColumns(q.targets, alias, it)
	if err := a.renameColumns(it, n.Alias, -1); err != nil {
		return nil, err
	}
	sql := "(" + q.print(false) + ") AS " + alias
	if n.Lateral {
		sql = "LATERAL " + sql
	}
	src := &source{sql: sql, items: []*item{it}, columns: it.columns}
	if oneRow(n.Subquery.GetSelectStmt()) {
		src.constants = constants(q.targets)
	}
	return src, nil
}

// oneRow says that a query has a row whatever there is.
func oneRow(n *pg.SelectStmt) bool {
	return len(n.TargetList) > 0 && proto.Equal(n, &pg.SelectStmt{TargetList: n.TargetList, LimitOption: n.LimitOption, Op: n.Op})
}

// constants are the columns of a query of one row that are documents of json which its
// statement gives. They stand for themselves in what reads the row: so what is made of one is
// no join with it, and its rows keep the order that they have in the document.
func constants(targets []target) map[int]string {
	out := map[int]string{}
	for i, t := range targets {
		if e := t.expr; e.typ.OID == OIDJSON && !e.set && (e.con || parameter.MatchString(e.sql)) {
			out[i] = e.sql
		}
	}
	return out
}

var parameter = regexp.MustCompile(`^(\$[0-9]+|CAST\(\$[0-9]+ AS [A-Z]+\))$`)

// rangeFunction analyses a set-returning function in FROM, which becomes a
// subquery with an unnest.
func (a *analyzer) rangeFunction(n *pg.RangeFunction, s *scope) (*source, error) {
	defer func(around string) { s.noAgg = around }(s.noAgg)
	s.noAgg = inFrom
	if len(n.Functions) != 1 {
		return a.rowsFrom(n, s)
	}
	call := n.Functions[0].GetList().GetItems()[0]
	if len(n.Coldeflist) > 0 {
		return a.definedRecord(n, call.GetFuncCall(), s)
	}
	if recordFunction(call.GetFuncCall()) {
		return nil, a.errAt(call.GetFuncCall().Location, pgerr.New(codes.Syntax,
			"a column definition list is required for functions returning \"record\""))
	}
	if name, ok := systemCall(call.GetFuncCall()); ok && slices.Contains(populates, name) && !n.Ordinality {
		return a.populatedSource(n, name, call.GetFuncCall(), s)
	}
	if src, ok, err := a.relationFunction(n, call.GetFuncCall()); ok || err != nil {
		return src, err
	}
	if src, ok, err := a.manyUnnest(n, call.GetFuncCall(), s); ok || err != nil {
		return src, err
	}
	e, err := a.expr(call, s)
	if err != nil {
		return nil, err
	}
	if e.set && e.fields != nil {
		return a.recordSource(n, e)
	}
	it := &item{name: e.name}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	e, err = a.settled(e)
	if err != nil {
		return nil, err
	}
	alias := a.alias("f")
	first := target{name: e.name, expr: e}
	if strings.HasPrefix(e.name, "json") && strings.Contains(e.name, "_array_elements") {
		first.name = "value" // the name of its result
	}
	if e.name == "pg_partition_ancestors" {
		first.name = "relid"
	}
	if n.Alias != nil {
		first.name = n.Alias.Aliasname
	}
	targets := []target{first}
	sql := e.sql + " AS c1"
	if n.Ordinality {
		if !e.set {
			return nil, unsupported("WITH ORDINALITY is supported for set-returning functions only")
		}
		targets = append(targets, target{name: "ordinality", expr: expr{typ: plain(OIDInt8), scale: -1}})
		sql += ", generate_subscripts(" + strings.TrimSuffix(strings.TrimPrefix(e.sql, "unnest("), ")") + ", 1) AS c2"
	}
	if series, ok := seriesScan(e.sql, call.GetFuncCall()); ok && !n.Ordinality {
		sql = series
	}
	it.columns = targetColumns(targets, alias, it)
	if err := a.renameColumns(it, n.Alias, -1); err != nil {
		return nil, err
	}
	return &source{sql: "LATERAL (SELECT " + sql + ") AS " + alias, items: []*item{it}, columns: it.columns}, nil
}

// seriesScan turns generate_series over integer constants into the engine's table
// function, which makes rows as they are asked for; the list that unnest takes would
// be made whole first, out of reach of cancellation.
func seriesScan(sql string, call *pg.FuncCall) (string, bool) {
	for _, arg := range call.GetArgs() {
		if c := arg.GetAConst(); c == nil || c.GetIval() == nil && c.GetFval() == nil {
			return "", false
		}
	}
	if rest, ok := strings.CutPrefix(sql, "unnest(CAST(generate_series("); ok {
		if args, ok := strings.CutSuffix(rest, ") AS INTEGER[]))"); ok {
			return "CAST(generate_series AS INTEGER) AS c1 FROM generate_series(" + args + ")", true
		}
	}
	if rest, ok := strings.CutPrefix(sql, "unnest(generate_series("); ok {
		return "generate_series AS c1 FROM generate_series(" + strings.TrimSuffix(rest, ")"), true
	}
	return "", false
}

// relationFunction is a call without arguments of a function that a system relation
// stands for, whose name ends with parentheses: pg_get_keywords(), pg_show_all_settings().
func (a *analyzer) relationFunction(n *pg.RangeFunction, call *pg.FuncCall) (*source, bool, error) {
	if call == nil || len(call.Args) > 0 || n.Ordinality {
		return nil, false, nil
	}
	schema, name := "pg_catalog", ""
	for _, p := range call.Funcname {
		if name != "" {
			schema = name
		}
		name = p.GetString_().GetSval()
	}
	rel, ok := a.env.Resolver.Relation(schema, name+"()")
	if !ok || !rel.System {
		return nil, false, nil
	}
	src, err := a.relationSource(rel, &pg.RangeVar{Relname: name, Alias: n.Alias, Location: call.Location})
	return src, true, err
}

var joinWords = map[pg.JoinType]string{
	pg.JoinType_JOIN_INNER: "JOIN", pg.JoinType_JOIN_LEFT: "LEFT JOIN",
	pg.JoinType_JOIN_RIGHT: "RIGHT JOIN", pg.JoinType_JOIN_FULL: "FULL JOIN",
}

func (a *analyzer) join(n *pg.JoinExpr, s *scope) (*source, error) {
	left, err := a.nullableSide(n.Larg, s, n.Jointype == pg.JoinType_JOIN_RIGHT || n.Jointype == pg.JoinType_JOIN_FULL)
	if err != nil {
		return nil, err
	}
	// A lateral right side sees the left one.
	inner := &scope{
		parent: s.parent, ctes: s.ctes, items: append(s.items[:len(s.items):len(s.items)], left.items...),
		columns: append(s.columns[:len(s.columns):len(s.columns)], left.columns...), noAgg: "JOIN conditions",
	}
	right, err := a.nullableSide(n.Rarg, inner, n.Jointype == pg.JoinType_JOIN_LEFT || n.Jointype == pg.JoinType_JOIN_FULL)
	if err != nil {
		return nil, err
	}
	on := &scope{parent: s.parent, ctes: s.ctes, noAgg: "JOIN conditions"}
	for _, part := range []*source{left, right} {
		if err := a.addItems(on, part.items); err != nil {
			return nil, err
		}
		on.columns = append(on.columns, part.columns...)
	}
	out := &source{items: on.items, columns: on.columns}
	cond, err := a.joinCondition(n, left, right, on, out)
	if err != nil {
		return nil, err
	}
	if sql, ok := lateralJoin(n, cond, left, right); ok {
		out.sql = sql
		return out, a.joinAlias(n, out)
	}
	switch word := joinWords[n.Jointype]; {
	case cond == "" && n.Jointype == pg.JoinType_JOIN_INNER:
		out.sql = "(" + left.sql + " CROSS JOIN " + right.sql + ")"
	case word == "":
		return nil, unsupported("this kind of join is not supported")
	default:
		out.sql = "(" + left.sql + " " + word + " " + right.sql + " ON " + cond + ")"
	}
	return out, a.joinAlias(n, out)
}

func (a *analyzer) joinAlias(n *pg.JoinExpr, out *source) error {
	if n.Alias == nil {
		return nil
	}
	it := &item{name: n.Alias.Aliasname}
	for _, c := range out.columns {
		if !c.hidden {
			cc := *c
			it.columns = append(it.columns, &cc)
		}
	}
	out.items, out.columns = []*item{it}, it.columns
	return a.renameColumns(it, n.Alias, -1)
}

func (a *analyzer) joinCondition(n *pg.JoinExpr, left, right *source, on *scope, out *source) (string, error) {
	names := []string{}
	for _, u := range n.UsingClause {
		names = append(names, u.GetString_().GetSval())
	}
	if n.IsNatural {
		for _, c := range left.columns {
			if !c.hidden && len(visible(right.columns, c.name)) > 0 {
				names = append(names, c.name)
			}
		}
		if a.record != nil {
			a.record.natural[n] = names
		}
	}
	switch {
	case len(names) > 0:
		return a.using(n, names, left, right, out)
	case n.IsNatural || n.Quals == nil:
		if n.Jointype == pg.JoinType_JOIN_INNER {
			return "", nil
		}
		return "true", nil
	}
	e, err := a.condition(n.Quals, on, "JOIN/ON")
	if err != nil {
		return "", err
	}
	if n.Jointype == pg.JoinType_JOIN_INNER {
		a.restrict(n.Quals, on)
	}
	return e.sql, nil
}

func visible(columns []*column, name string) []*column {
	var out []*column
	for _, c := range columns {
		if c.name == name && !c.hidden {
			out = append(out, c)
		}
	}
	return out
}

// using joins on equal names and merges those columns into one.
func (a *analyzer) using(n *pg.JoinExpr, names []string, left, right *source, out *source) (string, error) {
	var conds []string
	var merged []*column
	drop := map[*column]bool{}
	for _, name := range names {
		l, r := visible(left.columns, name), visible(right.columns, name)
		for i, cs := range [][]*column{l, r} {
			side := [...]string{"left", "right"}[i]
			if len(cs) == 0 {
				return "", pgerr.New(codes.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table",
					name, side)
			}
			if len(cs) > 1 {
				return "", pgerr.New(codes.AmbiguousColumn, "common column name \"%s\" appears more than once in %s table", name,
					side)
			}
		}
		scratch := &scope{aggDepth: 1}
		le, re := a.reference(l[0], -1, scratch), a.reference(r[0], -1, scratch)
		lc, rc := le, re
		common, err := a.unify([]*expr{&lc, &rc}, "JOIN/USING")
		if err != nil {
			return "", err
		}
		eq, err := a.compare("=", le, re, -1)
		if err != nil {
			return "", err
		}
		conds = append(conds, eq.sql)
		drop[l[0]], drop[r[0]] = true, true
		m := mergedColumn(n.Jointype, l[0], r[0])
		if !alike(le, re) && lc.fields == nil {
			m = mergedTypes(n.Jointype, l[0], r[0], lc, rc, common)
		}
		merged = append(merged, m)
	}
	var rest []*column
	for _, c := range out.columns {
		if drop[c] {
			h := *c
			h.hidden = true
			c = &h
		}
		rest = append(rest, c)
	}
	out.columns = append(merged, rest...)
	return strings.Join(conds, " AND "), nil
}

// alike says whether values have one form, so that one can stand for the other.
func alike(l, r expr) bool {
	return l.typ.OID == r.typ.OID && l.typ.Mod == r.typ.Mod && l.text == r.text && l.scale == r.scale && l.prec == r.prec
}

// mergedTypes merges columns of different types, which lc and rc are in their common type. As in
// PostgreSQL, that of the common type is taken where either does.
func mergedTypes(kind pg.JoinType, l, r *column, lc, rc, common expr) *column {
	e := lc
	switch {
	case kind == pg.JoinType_JOIN_INNER && l.typ.OID == common.typ.OID && l.typ.Mod == common.typ.Mod:
		return mergedColumn(kind, l, r)
	case kind == pg.JoinType_JOIN_RIGHT, kind == pg.JoinType_JOIN_INNER && r.typ.OID == common.typ.OID && r.typ.Mod == common.typ.Mod:
		e = rc
	case kind == pg.JoinType_JOIN_FULL:
		e = common
		e.sql = "coalesce(" + lc.sql + ", " + rc.sql + ")"
	}
	return &column{
		name: l.name, sql: func() string { return e.sql }, typ: e.typ, text: e.text, scale: e.scale, prec: e.prec, merged: true, coll: e.coll.carried(),
	}
}

func mergedColumn(kind pg.JoinType, l, r *column) *column {
	m := *l
	switch kind {
	case pg.JoinType_JOIN_RIGHT:
		m = *r
		m.name = l.name
	case pg.JoinType_JOIN_FULL:
		m.sql = func() string { return "coalesce(" + l.sql() + ", " + r.sql() + ")" }
		m.item, m.tableOID, m.attNum = nil, 0, 0
	}
	m.merged = true
	return &m
}
