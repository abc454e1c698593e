package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Field is a field of the rows that a function returns.
type Field struct {
	Name string
	Type Type
}

// fieldAt selects the i-th field of a composite value.
func fieldAt(e expr, i int) expr {
	f := e.fields[i]
	sql := fmt.Sprintf("struct_extract(%s, %d)", e.sql, i+1)
	if eng := f.typ.engineType(); eng != "" && !f.text && f.fields == nil {
		sql = "CAST(" + sql + " AS " + eng + ")"
	}
	return expr{
		sql: sql, typ: f.typ, loc: e.loc, name: f.name, scale: -1, set: e.set, text: f.text, fields: f.fields, whole: f.fields != nil,
	}
}

// fieldStar expands (value).* into its fields; ok is false for another expression.
func (a *analyzer) fieldStar(n *pg.Node, s *scope) (out []target, ok bool, err error) {
	ind := n.GetAIndirection()
	if ind == nil || len(ind.Indirection) != 1 || ind.Indirection[0].GetAStar() == nil {
		return nil, false, nil
	}
	e, err := a.expr(ind.Arg, s)
	if err != nil {
		return nil, true, err
	}
	if e.row != nil {
		for _, f := range e.row {
			out = append(out, target{name: f.name, expr: f})
		}
		return out, true, nil
	}
	if e.fields == nil {
		return nil, true, a.errAt(e.loc, unsupported("selection of a field from a composite value is not supported"))
	}
	for i, f := range e.fields {
		out = append(out, target{name: f.name, expr: fieldAt(e, i)})
	}
	return out, true, nil
}

// recordSource is a function in FROM whose rows have several columns.
func (a *analyzer) recordSource(n *pg.RangeFunction, e expr) (*source, error) {
	alias := a.alias("f")
	it := &item{name: e.name}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	row := expr{sql: alias + ".c1", typ: e.typ, fields: e.fields, loc: e.loc, scale: -1}
	for i := range e.fields {
		f := fieldAt(row, i)
		it.columns = append(it.columns, &column{
			name: f.name, typ: f.typ, scale: -1, item: it, index: -1, sql: func() string { return f.sql },
		})
	}
	sql := e.sql + " AS c1"
	if n.Ordinality {
		sql += ", generate_subscripts(" + strings.TrimSuffix(strings.TrimPrefix(e.sql, "unnest("), ")") + ", 1) AS c2"
		it.columns = append(it.columns, ordinalColumn(it, alias+".c2"))
	}
	if err := a.renameColumns(it, n.Alias, -1); err != nil {
		return nil, err
	}
	return &source{sql: "LATERAL (SELECT " + sql + ") AS " + alias, items: []*item{it}, columns: it.columns}, nil
}

func ordinalColumn(it *item, sql string) *column {
	return &column{name: "ordinality", typ: plain(OIDInt8), scale: -1, item: it, index: -1, sql: func() string { return sql }}
}

// manyUnnest is unnest(a, b, …) in FROM: the arrays side by side, the shorter ones filled
// up with nulls.
func (a *analyzer) manyUnnest(n *pg.RangeFunction, call *pg.FuncCall, s *scope) (*source, bool, error) {
	if call == nil || len(call.Args) < 2 || call.Funcname[len(call.Funcname)-1].GetString_().GetSval() != "unnest" {
		return nil, false, nil
	}
	alias := a.alias("f")
	it := &item{name: "unnest"}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	var targets []target
	var parts, lengths []string
	for i, arg := range call.Args {
		list, err := a.expr(arg, s)
		if err != nil {
			return nil, true, err
		}
		e, err := a.callNamed("unnest", []expr{list}, call.Location)
		if err != nil {
			return nil, true, err
		}
		targets = append(targets, target{name: "unnest", expr: e})
		parts = append(parts, fmt.Sprintf("%s AS c%d", e.sql, i+1))
		lengths = append(lengths, "coalesce(len("+list.sql+"), 0)")
	}
	it.columns = targetColumns(targets, alias, it)
	if n.Ordinality {
		parts = append(parts, "unnest(generate_series(1, greatest("+strings.Join(lengths, ", ")+"))) AS c0")
		it.columns = append(it.columns, ordinalColumn(it, alias+".c0"))
	}
	if err := a.renameColumns(it, n.Alias, -1); err != nil {
		return nil, true, err
	}
	return &source{sql: "LATERAL (SELECT " + strings.Join(parts, ", ") + ") AS " + alias, items: []*item{it}, columns: it.columns}, true, nil
}
