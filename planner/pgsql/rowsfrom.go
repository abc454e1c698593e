package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// rowsFrom is ROWS FROM (f(…), g(…)): the rows of the functions side by side, the shorter
// ones filled up with nulls.
func (a *analyzer) rowsFrom(n *pg.RangeFunction, s *scope) (*source, error) {
	alias := a.alias("f")
	it := &item{}
	var targets []target
	var lengths []string
	for i, f := range n.Functions {
		parts := f.GetList().GetItems()
		if len(parts) > 1 && len(parts[1].GetList().GetItems()) > 0 {
			return nil, unsupported("ROWS FROM with column definitions is not supported")
		}
		e, err := a.expr(parts[0], s)
		if err == nil {
			e, err = a.settled(e)
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			it.name = e.name
		}
		list, ok := strings.CutPrefix(e.sql, "unnest(")
		switch {
		case !e.set:
			list = "[" + e.sql + "]"
			e.sql, e.set = "unnest("+list+")", true
		case !ok:
			return nil, unsupported("this function is not supported in ROWS FROM")
		default:
			list = strings.TrimSuffix(list, ")")
		}
		lengths = append(lengths, "coalesce(len("+list+"), 0)")
		if e.fields == nil {
			targets = append(targets, target{name: e.name, expr: e})
		}
		for j, f := range e.fields {
			targets = append(targets, target{name: f.name, expr: fieldAt(e, j)})
		}
	}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	it.columns = targetColumns(targets, alias, it)
	sql := printTargets(targets)
	if n.Ordinality {
		sql += ", unnest(generate_series(1, greatest(" + strings.Join(lengths, ", ") + "))) AS c0"
		it.columns = append(it.columns, ordinalColumn(it, alias+".c0"))
	}
	if err := a.renameColumns(it, n.Alias, -1); err != nil {
		return nil, err
	}
	return &source{sql: "LATERAL (SELECT " + sql + ") AS " + alias, items: []*item{it}, columns: it.columns}, nil
}

// recordFunction reports whether a call is of a function whose columns a statement defines.
func recordFunction(call *pg.FuncCall) bool {
	if call == nil {
		return false
	}
	switch call.Funcname[len(call.Funcname)-1].GetString_().GetSval() {
	case "json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset":
		return true
	}
	return false
}

// definedRecord is json_to_record or one of its kin with the columns that a statement defines.
func (a *analyzer) definedRecord(n *pg.RangeFunction, call *pg.FuncCall, s *scope) (*source, error) {
	if !recordFunction(call) {
		return nil, unsupported("column definitions of this function are not supported")
	}
	name := call.Funcname[len(call.Funcname)-1].GetString_().GetSval()
	if n.Ordinality || len(call.Args) != 1 {
		return nil, unsupported("this form of %s is not supported", name)
	}
	form, _, _ := strings.Cut(name, "_")
	oid, _ := TypeNamed(form)
	j, err := a.expr(call.Args[0], s)
	if err == nil {
		j, err = a.coerce(j, plain(oid), implicit)
	}
	if err != nil {
		return nil, err
	}
	list := "[" + j.sql + "]"
	if strings.HasSuffix(name, "set") {
		list = fmt.Sprintf("CAST(CAST(skippr_j_records(%s, '%s') AS JSON) AS VARCHAR[])", j.sql, name)
	}
	row := a.alias("r")
	var targets []target
	for _, d := range n.Coldeflist {
		def := d.GetColumnDef()
		e, err := a.definedField(row+".c1", form, def)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target{name: def.Colname, expr: e})
	}
	return a.recordRows(n, name, targets, list, row)
}

// recordRows is a part of FROM with a row of targets for each element of a list.
func (a *analyzer) recordRows(n *pg.RangeFunction, name string, targets []target, list, row string) (*source, error) {
	alias := a.alias("f")
	it := &item{name: name}
	if n.Alias != nil {
		it.name = n.Alias.Aliasname
	}
	it.columns = targetColumns(targets, alias, it)
	sql := "LATERAL (SELECT " + printTargets(targets) + " FROM (SELECT unnest(" + list + ") AS c1) AS " + row + ") AS " + alias
	src := &source{sql: sql, items: []*item{it}, columns: it.columns}
	return src, a.renameColumns(it, n.Alias, -1)
}

// definedField is the member of a JSON object that a defined column takes.
func (a *analyzer) definedField(object, form string, def *pg.ColumnDef) (expr, error) {
	to, err := a.typeName(def.TypeName)
	if err != nil {
		return expr{}, err
	}
	e, err := a.memberOf(object, form, def.Colname, to, def.Location)
	return e, err
}

// memberOf is the member of a JSON object as a value of a type.
func (a *analyzer) memberOf(object, form, name string, to Type, loc int32) (expr, error) {
	sized := to.Mod >= 0 && (to.OID == OIDVarchar || to.OID == OIDBpchar)
	if to.OID == OIDRecord || to.Mod >= 0 && to.OID != OIDNumeric && !sized {
		return expr{}, a.errAt(loc, unsupported("a column \"%s\" of type %s is not supported here", name, to.Name()).
			WithHint("Take the value as text, and cast it."))
	}
	kind := "text"
	switch {
	case to.OID == OIDJSON || to.OID == OIDJSONB:
		kind = form
	case to.isArray():
		kind = "array"
	}
	e := expr{
		sql: "skippr_j_field(" + object + ", " + quote.Text(name) + ", '" + kind + "')",
		typ: plain(OIDText), loc: loc, scale: -1,
	}
	switch {
	case to.OID == OIDJSON:
		e.typ = to
		return e, nil
	case to.OID == OIDJSONB && form == "jsonb":
		e.typ = to
		return e, nil
	case sized:
		e.typ, e.sql = to, fitted(e.sql, to)
		return e, nil
	}
	return a.coerce(e, to, explicit)
}
