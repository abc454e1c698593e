package syscat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/syscat/ruleutils"
	"github.com/skipprd/skipprd/wal/change"
)

// definitions are queries and expressions of one state of the catalog as a session sees them:
// which names need their schemas, and the time zone, differ between sessions. Those of the last
// state that was asked for are kept.
type definitions struct {
	key      string
	deparser *ruleutils.Deparser
	users    userTypes

	once       sync.Once
	shownViews map[change.TableID]viewText

	mu struct {
		sync.Mutex
		// texts are the expressions that were asked for, by all that decides how they are shown.
		texts map[string]expressionText
	}
}

var errUnstable = errors.New("a query that is not read as it is shown")

// relationNames finds relations, types and sequences in a snapshot. Immutable.
type relationNames struct {
	c         *Catalog
	path      []string
	relations map[[2]string][]ruleutils.Column
	users     userTypes
	enums     map[[2]string]*usertype.Type
}

func newRelationNames(c *Catalog, env *planner.SystemEnv) *relationNames {
	n := &relationNames{
		c: c, path: env.SearchPath, relations: map[[2]string][]ruleutils.Column{}, users: userTypesOf(env), enums: map[[2]string]*usertype.Type{},
	}
	for _, t := range env.Snapshot.AllTables() {
		n.relations[[2]string{t.Schema, t.Name}] = tableColumns(t, n.users)
	}
	for _, v := range env.Snapshot.Views() {
		var list []ruleutils.Column
		for _, f := range v.Columns {
			list = append(list, ruleutils.Column{Name: f.Name, Type: f.OID, Mod: f.TypMod})
		}
		n.relations[[2]string{v.Schema, v.Name}] = list
	}
	for _, s := range env.Snapshot.Sequences() {
		n.relations[[2]string{s.Schema, s.Name}] = nil
	}
	for _, e := range env.Snapshot.Types() {
		if e.Kind == usertype.Enum {
			n.enums[[2]string{e.Schema, e.Name}] = e
		}
	}
	return n
}

func tableColumns(t *catalog.Table, users userTypes) []ruleutils.Column {
	var list []ruleutils.Column
	for _, f := range t.Current.Fields {
		oid, mod := users.announced(t, f)
		list = append(list, ruleutils.Column{Name: f.Name, Type: oid, Mod: mod})
	}
	return list
}

// Relation implements ruleutils.Names.
func (n *relationNames) Relation(space, name string) (string, []ruleutils.Column, bool) {
	path := n.path
	if space != "" {
		path = []string{space}
	}
	for _, s := range path {
		if list, ok := n.relations[[2]string{s, name}]; ok {
			return s, list, true
		}
		if rel, ok := n.c.Lookup(s, name); ok {
			var list []ruleutils.Column
			for _, col := range rel.Columns {
				list = append(list, ruleutils.Column{Name: col.Name, Type: col.TypeOID, Mod: col.TypMod})
			}
			return s, list, true
		}
	}
	return "", nil, false
}

// TypeName implements ruleutils.Names.
func (n *relationNames) TypeName(t *pg.TypeName) (oid uint32, mod int32, err error) {
	if len(t.Names) == 2 && len(t.ArrayBounds) == 0 {
		if e := n.enums[[2]string{t.Names[0].GetString_().GetSval(), t.Names[1].GetString_().GetSval()}]; e != nil {
			return e.OID(), -1, nil
		}
	}
	found, err := pgsql.ResolveTypeName(t)
	return found.OID, found.Mod, err
}

// EnumName implements ruleutils.Names.
func (n *relationNames) EnumName(oid uint32) string {
	e := n.users.byOID[oid]
	switch {
	case e == nil || e.Kind != usertype.Enum:
		return ""
	}
	name := quote.NameIfNeeded(e.Name)
	if !slices.Contains(n.path, e.Schema) {
		name = quote.NameIfNeeded(e.Schema) + "." + name
	}
	if oid == e.ArrayOID() {
		name += "[]"
	}
	return name
}

// definitionsOf are the definitions that a session sees.
func (c *Catalog) definitionsOf(env *planner.SystemEnv) (*definitions, error) {
	zone := zoneOf(env)
	key := strings.Join(append(slices.Clone(env.SearchPath), zone, strconv.FormatUint(env.Snapshot.Version(), 10)), "\x00")
	c.mu.Lock()
	d := c.mu.definitions
	c.mu.Unlock()
	if d != nil && d.key == key && !env.Snapshot.IsDraft() {
		return d, nil
	}
	facts, err := c.facts()
	if err != nil {
		return nil, err
	}
	names := newRelationNames(c, env)
	d = &definitions{key: key, users: names.users, deparser: &ruleutils.Deparser{
		Facts: facts, Names: names, Path: env.SearchPath, Zone: zone,
	}}
	d.mu.texts = map[string]expressionText{}
	if !env.Snapshot.IsDraft() {
		c.mu.Lock()
		c.mu.definitions = d
		c.mu.Unlock()
	}
	return d, nil
}

// readFacts are what PostgreSQL's catalog says of types, functions, operators and casts.
func (c *Catalog) readFacts() (*ruleutils.Facts, error) {
	return ruleutils.NewFacts(func(name string) (columns []string, rows [][]*string, err error) {
		for _, col := range c.shapes["pg_catalog."+name].Columns {
			columns = append(columns, col.Name)
		}
		rows, err = readTSV(name)
		return columns, rows, err
	})
}

// view is the definition of a view, without and with the flag that makes it pretty; as it was
// written where it is not known how PostgreSQL shows it.
func (d *definitions) view(v *catalog.View, env *planner.SystemEnv) (plain, pretty string) {
	written := " " + v.SQL + ";"
	var names []string
	for _, col := range v.Columns {
		names = append(names, col.Name)
	}
	if t, err := env.Snapshot.TableByFace(v.ID); err == nil && v.Materialized {
		names = nil
		for _, f := range t.Current.Fields {
			names = append(names, f.Name)
		}
	}
	plain, err := d.shown(v.SQL, names, false)
	if err != nil {
		return written, written
	}
	if pretty, err = d.shown(v.SQL, names, true); err != nil {
		return written, written
	}
	return plain, pretty
}

// shown is a query as PostgreSQL shows it, which must be read, and in the end be shown again as it
// was read: PostgreSQL writes some things otherwise when it reads what it wrote.
func (d *definitions) shown(sql string, names []string, pretty bool) (string, error) {
	first, last := "", sql
	for range 4 {
		p, err := pgsql.Parse(last)
		if err != nil {
			return "", err
		}
		text, err := d.deparser.View(unwrapped(p.Node.GetSelectStmt()), names, pretty)
		if err != nil {
			return "", err
		}
		first = cmp.Or(first, text)
		if text == last {
			return first, nil
		}
		last = text
	}
	return "", errUnstable
}

// unwrapped is the query in one that does nothing but give its columns other names: so is kept a
// view that was made with a list of names for a query with an order.
func unwrapped(sel *pg.SelectStmt) *pg.SelectStmt {
	if len(sel.GetFromClause()) != 1 {
		return sel
	}
	from := sel.FromClause[0].GetRangeSubselect()
	names := from.GetAlias().GetColnames()
	if from == nil || from.Lateral || from.Alias.GetAliasname() != "q" || len(names) != len(sel.TargetList) {
		return sel
	}
	for i, t := range sel.TargetList {
		f := t.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(f) != 2 || f[0].GetString_().GetSval() != "q" || f[1].GetString_().GetSval() != names[i].GetString_().GetSval() {
			return sel
		}
	}
	bare := proto.Clone(sel).(*pg.SelectStmt)
	bare.FromClause, bare.TargetList = nil, nil
	if !proto.Equal(bare, &pg.SelectStmt{LimitOption: sel.LimitOption, Op: sel.Op}) {
		return sel
	}
	return from.Subquery.GetSelectStmt()
}

// expression is an expression over columns, cast to a type unless that is 0; false
// and as it was written where it is not known how PostgreSQL shows it.
func (d *definitions) expression(sql string, columns []ruleutils.Column, to ruleutils.Column, pretty bool) (string, bool) {
	key := fmt.Sprintf("%t %d %d %v %s", pretty, to.Type, to.Mod, columns, sql)
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.mu.texts[key]
	if !ok {
		e = d.resolve(sql, columns, to, pretty)
		d.mu.texts[key] = e
	}
	return e.text, e.ok
}

// expressionText is an expression as it is shown; ok is false if that is as it was written.
type expressionText struct {
	text string
	ok   bool
}

func (d *definitions) resolve(sql string, columns []ruleutils.Column, to ruleutils.Column, pretty bool) expressionText {
	n, err := pgsql.ParseExpression(sql)
	if err != nil {
		return expressionText{text: sql}
	}
	text, err := d.deparser.Expression(n, columns, to, pretty)
	if err != nil {
		return expressionText{text: sql}
	}
	return expressionText{text: text, ok: true}
}

// defaultText is the default of a table's column, or what generates it, as PostgreSQL shows it.
func (d *definitions) defaultText(env *planner.SystemEnv, t *catalog.Table, f schema.Field, pretty bool) string {
	oid, mod := d.users.announced(t, f)
	if text := t.Generated[f.ID]; text != "" {
		shown, _ := d.expression(text, tableColumns(t, d.users), ruleutils.Column{Type: oid, Mod: mod}, pretty)
		return shown
	}
	text, _ := d.expression(shownDefault(env, t.Defaults[f.ID]), nil, ruleutils.Column{Type: oid, Mod: mod}, pretty)
	return text
}

// viewDefault is the default of a view's column.
func (d *definitions) viewDefault(env *planner.SystemEnv, f catalog.ViewColumn) string {
	text, _ := d.expression(shownDefault(env, f.Default), nil, ruleutils.Column{Type: f.OID, Mod: f.TypMod}, false)
	return text
}

func fillDefinitions(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for id, v := range d.views(env) {
		rows = append(rows, []any{planner.TableOID(id), v.plain, v.pretty})
	}
	return rows, nil
}

// views are the definitions of all views, by their ids, made when they are first asked for.
func (d *definitions) views(env *planner.SystemEnv) map[change.TableID]viewText {
	d.once.Do(func() {
		d.shownViews = map[change.TableID]viewText{}
		for _, v := range env.Snapshot.Queries() {
			plain, pretty := d.view(v, env)
			d.shownViews[v.ID] = viewText{plain, pretty}
		}
	})
	return d.shownViews
}

// viewText is the definition of a view, without and with the flag that makes it pretty.
type viewText struct{ plain, pretty string }

// definition is the query of a view, as SQL.
func (d *definitions) definition(env *planner.SystemEnv, id change.TableID) string {
	return d.views(env)[id].plain
}

// fillCheckDefinitions are the CHECK constraints as SQL.
func fillCheckDefinitions(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, x := range checks(env) {
		rows = append(rows, row{
			"oid": x.oid, "definition": "CHECK (" + d.check(x, false) + ")", "pretty": "CHECK (" + d.check(x, true) + ")",
		})
	}
	return c.build("pg_catalog.check_definitions()", rows)
}

// check is the condition of a CHECK.
func (d *definitions) check(x check, pretty bool) string {
	sql := strings.TrimSuffix(strings.TrimPrefix(x.sql, "("), ")")
	text, ok := d.expression(sql, tableColumns(x.table, d.users), ruleutils.Column{}, pretty)
	if !ok && !pretty {
		return "(" + sql + ")"
	}
	return text
}

// fillExpressions are the pretty texts of expressions, by the relation and the text without.
func fillExpressions(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil, err
	}
	var rows []row
	add := func(id change.TableID, plain, pretty string) {
		if plain != pretty {
			rows = append(rows, row{"relation": planner.TableOID(id), "definition": plain, "pretty": pretty})
		}
	}
	for _, t := range env.Snapshot.AllTables() {
		for _, f := range t.Current.Fields {
			if t.Defaults[f.ID]+t.Generated[f.ID] != "" {
				add(t.Face(), d.defaultText(env, t, f, false), d.defaultText(env, t, f, true))
			}
		}
	}
	for _, v := range env.Snapshot.Views() {
		for _, f := range v.Columns {
			if f.Default != "" {
				to := ruleutils.Column{Type: f.OID, Mod: f.TypMod}
				pretty, _ := d.expression(shownDefault(env, f.Default), nil, to, true)
				add(v.ID, d.viewDefault(env, f), pretty)
			}
		}
	}
	for _, x := range indexes(env) {
		plain, _ := d.indexPredicate(&x).(string)
		add(x.table.Face(), plain, d.indexWhere(&x, true))
		if list, ok := d.indexExpressions(&x).(string); ok {
			add(x.table.Face(), list, d.expressionList(&x, true))
		}
	}
	for _, x := range checks(env) {
		add(x.table.Face(), d.check(x, false), d.check(x, true))
	}
	return c.build("pg_catalog.expressions()", rows)
}

// prettyExpression is pg_get_expr with a flag.
const prettyExpression = `CASE WHEN $3 THEN coalesce((SELECT min(x.pretty) FROM {rel:pg_catalog.expressions()} x WHERE x.relation = $2 AND x.definition = CAST($1 AS VARCHAR)), $1) ELSE $1 END`

// kind is how an index is said to be kept: its access method, and of each of its columns the options of
// the order and the name of the operator class, "" for the default one.
func (x *indexInfo) kind() (method uint32, options []int64, classes []string) {
	method, options, classes = oidBtree, make([]int64, len(x.fields)), make([]string, len(x.fields))
	n, err := pgsql.ParseIndex(x.of.Definition)
	if x.of.Definition == "" || err != nil || len(n.IndexParams) != len(x.fields) {
		return method, options, classes
	}
	if m, ok := accessMethods[n.AccessMethod]; ok {
		method = m
	}
	for i, p := range n.IndexParams {
		e := p.GetIndexElem()
		if k := len(e.Opclass); k > 0 {
			classes[i] = e.Opclass[k-1].GetString_().GetSval()
		}
		const descending, nullsFirst = 1, 2
		if e.Ordering == pg.SortByDir_SORTBY_DESC {
			options[i] = descending
		}
		if e.NullsOrdering == pg.SortByNulls_SORTBY_NULLS_FIRST || options[i] != 0 && e.NullsOrdering != pg.SortByNulls_SORTBY_NULLS_LAST {
			options[i] |= nullsFirst
		}
	}
	return method, options, classes
}

// included are the columns that an index is said to have beside those that it is of.
func (x *indexInfo) included() (out []int32) {
	n, err := pgsql.ParseIndex(x.of.Definition)
	if x.of.Definition == "" || err != nil {
		return nil
	}
	for _, p := range n.IndexIncludingParams {
		if f, ok := x.table.Current.FieldByName(p.GetIndexElem().GetName()); ok {
			out = append(out, f.ID)
		}
	}
	return out
}

// indexColumns are the columns of an index, by the names that they have there, those last that it includes.
func (d *definitions) indexColumns(x *indexInfo) (out []ruleutils.Column) {
	list := x.of.Expressions
	for _, id := range append(slices.Clone(x.fields), x.included()...) {
		var col ruleutils.Column
		if f, ok := x.table.Current.Field(id); ok {
			oid, mod := d.users.announced(x.table, f)
			col = ruleutils.Column{Name: f.Name, Type: oid, Mod: mod}
		} else if len(list) > 0 {
			col, list = ruleutils.Column{Name: list[0].Name, Type: list[0].OID, Mod: list[0].TypMod}, list[1:]
		}
		base := col.Name
		for i := 1; slices.ContainsFunc(out, func(o ruleutils.Column) bool { return o.Name == col.Name }); i++ {
			col.Name = base + strconv.Itoa(i)
		}
		out = append(out, col)
	}
	return out
}

// collations are those of what an index is of, 0 for its type's.
func (x *indexInfo) collations() (out []uint32) {
	list := x.of.Expressions
	for _, id := range x.fields {
		if f, ok := x.table.Current.Field(id); ok {
			out = append(out, f.Collation)
		} else if len(list) > 0 {
			out, list = append(out, list[0].Collation), list[1:]
		}
	}
	return out
}

// indexKeys are what an index is of, as it is shown in its definition.
func (d *definitions) indexKeys(x *indexInfo, pretty bool) (out []string) {
	list := x.of.Expressions
	for _, id := range x.fields {
		if f, ok := x.table.Current.Field(id); ok {
			out = append(out, quote.NameIfNeeded(f.Name))
		} else if len(list) > 0 {
			out, list = append(out, d.indexKey(x.table, list[0].SQL, pretty)), list[1:]
		}
	}
	return out
}

// indexKey is an expression as an element of an index, in parentheses unless it is like a call.
func (d *definitions) indexKey(t *catalog.Table, sql string, pretty bool) string {
	text, _ := d.expression(sql, tableColumns(t, d.users), ruleutils.Column{}, pretty)
	n, err := pgsql.ParseExpression(sql)
	if err != nil {
		return "(" + text + ")"
	}
	switch n.Node.(type) {
	case *pg.Node_FuncCall, *pg.Node_CoalesceExpr, *pg.Node_MinMaxExpr, *pg.Node_SqlvalueFunction:
		return text
	}
	if n.GetAExpr().GetKind() == pg.A_Expr_Kind_AEXPR_NULLIF {
		return text
	}
	return "(" + text + ")"
}

// expressionList are the expressions of an index as pg_get_expr shows them, "" for none.
func (d *definitions) expressionList(x *indexInfo, pretty bool) string {
	var out []string
	for _, e := range x.of.Expressions {
		text, _ := d.expression(e.SQL, tableColumns(x.table, d.users), ruleutils.Column{}, pretty)
		out = append(out, text)
	}
	return strings.ReplaceAll(strings.Join(out, ", "), ", \n", ",\n")
}

// indexExpressions is that of pg_index, nil for none.
func (d *definitions) indexExpressions(x *indexInfo) any {
	if len(x.of.Expressions) == 0 {
		return nil
	}
	return d.expressionList(x, false)
}

// indexWhere is the condition on the rows of an index, "" for none.
func (d *definitions) indexWhere(x *indexInfo, pretty bool) string {
	switch {
	case x.of.Predicate != "":
		text, _ := d.expression(x.of.Predicate, tableColumns(x.table, d.users), ruleutils.Column{}, pretty)
		return text
	case pretty:
		return x.of.WherePretty(x.table.Current)
	}
	return x.of.WhereSQL(x.table.Current)
}

// indexPredicate is that of pg_index, nil for none.
func (d *definitions) indexPredicate(x *indexInfo) any {
	if text := d.indexWhere(x, false); text != "" {
		return text
	}
	return nil
}

// indexText is what follows USING.
func (d *definitions) indexText(x *indexInfo, pretty bool) string {
	keys := d.indexKeys(x, pretty)
	method, with, include := "btree", "", ""
	if n, err := pgsql.ParseIndex(x.of.Definition); x.of.Definition != "" && err == nil {
		if len(n.IndexParams) != len(keys) { // one of before expressions were kept
			return x.of.Definition
		}
		method = cmp.Or(n.AccessMethod, method)
		for i, p := range n.IndexParams {
			e := p.GetIndexElem()
			if f, ok := x.table.Current.Field(x.fields[i]); ok && len(e.Collation) > 0 &&
				e.Collation[len(e.Collation)-1].GetString_().GetSval() == schema.CollationName(max(f.Collation, schema.DefaultCollation)) {
				e.Collation = nil // the column's own
			}
			keys[i] += pgsql.IndexOptions(e)
		}
		with, include = pgsql.IndexStorage(n), pgsql.IndexIncluding(n)
	}
	out := method + " (" + strings.Join(keys, ", ") + ")" + include
	if x.nullsEqual {
		out += " NULLS NOT DISTINCT"
	}
	out += with
	if where := d.indexWhere(x, pretty); where != "" {
		out += " WHERE " + where
	}
	return out
}

// IndexColumns implements planner.SystemRelations.
func (c *Catalog) IndexColumns(env *planner.SystemEnv, t *catalog.Table, x catalog.Index) []string {
	d, err := c.definitionsOf(env)
	if err != nil {
		return nil
	}
	return d.indexKeys(&indexInfo{table: t, fields: x.Fields, of: x}, true)
}
