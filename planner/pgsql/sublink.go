package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// subLink analyses EXISTS, scalar, ARRAY and quantified subqueries.
func (a *analyzer) subLink(n *pg.SubLink, s *scope) (expr, error) {
	q, err := a.query(n.Subselect.GetSelectStmt(), s)
	if err != nil {
		return expr{}, err
	}
	out := expr{loc: n.Location, scale: -1}
	switch n.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		if err := a.settle(q); err != nil {
			return out, err
		}
		out.typ, out.sql = plain(OIDBool), "EXISTS ("+q.print(false)+")"
		return out, nil
	case pg.SubLinkType_EXPR_SUBLINK, pg.SubLinkType_ARRAY_SUBLINK:
		return a.scalarSubquery(n, q, out)
	case pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
		return a.quantifiedSubquery(n, q, s, out)
	}
	return out, unsupported("this kind of subquery is not supported")
}

func (a *analyzer) scalarSubquery(n *pg.SubLink, q *query, out expr) (expr, error) {
	if len(q.targets) != 1 {
		return out, a.errAt(n.Location, pgerr.New(codes.Syntax, "subquery must return only one column"))
	}
	if err := a.settle(q); err != nil {
		return out, err
	}
	t := q.targets[0].expr
	if n.SubLinkType == pg.SubLinkType_ARRAY_SUBLINK {
		if elem := a.env.enumOf([]expr{t}); elem != nil && t.typ.User.Elem == nil {
			out.name = "array"
			out.sql = "ARRAY(" + q.print(false) + ")"
			return a.labelArray(out, elem)
		}
		arr := ArrayOf(t.typ.OID)
		if err := arrayable(t.typ.OID); err != nil {
			return out, a.errAt(n.Location, err)
		}
		switch {
		case t.typ.OID == OIDNumeric:
			q.targets[0].expr.setText(numericText(t))
		case t.text:
			q.targets[0].expr.sql = native(t)
		}
		out.typ, out.name, out.fields, out.coll = plain(arr), "array", t.fields, derived{oid: t.coll.oid}
		out.sql = "ARRAY(" + q.print(false) + ")"
		return out, nil
	}
	out.typ, out.text, out.scale, out.prec, out.name = t.typ, t.text, t.scale, t.prec, q.targets[0].name
	out.fields, out.whole, out.coll = t.fields, t.whole, derived{oid: t.coll.oid}
	out.sql = "(" + q.print(false) + ")"
	return out, nil
}

// rowSubquery analyses (a, b) op (SELECT x, y …).
func (a *analyzer) rowSubquery(op string, left expr, n *pg.SubLink, s *scope) (expr, error) {
	out := expr{loc: n.Location, scale: -1, typ: plain(OIDBool)}
	q, err := a.query(n.Subselect.GetSelectStmt(), s)
	if err != nil {
		return out, err
	}
	if len(q.targets) != len(left.row) {
		word := "few"
		if len(q.targets) > len(left.row) {
			word = "many"
		}
		return out, a.errAt(n.Location, pgerr.New(codes.Syntax, "subquery has too %s columns", word))
	}
	if err := a.settle(q); err != nil {
		return out, err
	}
	alias := a.alias("q")
	right := expr{typ: plain(OIDRecord), loc: n.Location, scale: -1}
	scratch := &scope{aggDepth: 1}
	for _, c := range targetColumns(q.targets, alias, &item{}) {
		right.row = append(right.row, a.reference(c, n.Location, scratch))
	}
	e, err := a.binary(op, left, right, n.Location)
	if err != nil {
		return e, err
	}
	out.sql = "(SELECT " + e.sql + " FROM (" + q.print(false) + ") AS " + alias + ")"
	return out, nil
}

// quantifiedSubquery analyses x IN (SELECT …) and x op ANY/ALL (SELECT …).
func (a *analyzer) quantifiedSubquery(n *pg.SubLink, q *query, s *scope, out expr) (expr, error) {
	op, err := "=", error(nil)
	if len(n.OperName) > 0 {
		if op, err = operatorName(n.OperName); err != nil {
			return out, err
		}
	}
	cmp, ok := comparisons[op]
	if !ok {
		return out, unsupported("operator %s with a subquery is not supported", op)
	}
	l, err := a.expr(n.Testexpr, s)
	if err != nil {
		return l, err
	}
	left := []expr{l}
	if l.row != nil && !l.whole {
		left = l.row
	}
	if len(left) != len(q.targets) {
		word := "few"
		if len(q.targets) > len(left) {
			word = "many"
		}
		return out, a.errAt(n.Location, pgerr.New(codes.Syntax, "subquery has too %s columns", word))
	}
	if err = a.settle(q); err != nil {
		return out, err
	}
	var lsql, asked []string
	for i := range left {
		lc, rc, err := a.pair(left[i], q.targets[i].expr)
		if err != nil {
			return out, err
		}
		ls, rs, ok, err := a.comparable(lc, rc, op)
		if err != nil {
			return out, a.errAt(n.Location, err)
		}
		if !ok {
			return out, a.noOperator(op, &lc, rc, n.Location)
		}
		lsql, asked = append(lsql, ls), append(asked, lc.sql)
		if q.body == "" || rs != q.targets[i].expr.sql {
			q.targets[i].expr.sql = rs
		}
	}
	test := lsql[0]
	if len(lsql) > 1 {
		test = "(" + strings.Join(lsql, ", ") + ")"
	}
	word := "ANY"
	if n.SubLinkType == pg.SubLinkType_ALL_SUBLINK {
		word = "ALL"
	}
	out.typ = plain(OIDBool)
	if cmp == "=" && word == "ANY" {
		out.sql = fmt.Sprintf("(%s IN (%s))", test, q.print(false))
		if len(lsql) > 1 && !a.truths[n] {
			out.sql = a.rowAmong(out.sql, asked, lsql, q)
		}
		return out, nil
	}
	if len(lsql) > 1 {
		return out, unsupported("row comparisons with a subquery other than IN are not supported")
	}
	out.sql = fmt.Sprintf("(%s %s %s (%s))", test, cmp, word, q.print(false))
	return out, nil
}

// rowAmong is (a, b) IN (SELECT x, y …) where it matters whether it is false or unknown, of what is true
// if it is: the engine does not know a row with a null for another which differs in the rest. Rows
// without nulls are passed over by the search, on both sides.
func (a *analyzer) rowAmong(among string, left, compared []string, q *query) string {
	alias, rows := a.alias("q"), q.print(false)
	var here, there, same []string
	for i, l := range compared {
		r := fmt.Sprintf("%s.c%d", alias, i+1)
		here, there = append(here, left[i]+" IS NULL"), append(there, r+" IS NULL")
		same = append(same, fmt.Sprintf("(%s = %s) IS DISTINCT FROM false", l, r))
	}
	open := func(null []string) string {
		return fmt.Sprintf("EXISTS (SELECT 1 FROM (%s) AS %s WHERE (%s) AND %s)", rows, alias, strings.Join(null, " OR "), strings.Join(same, " AND "))
	}
	return fmt.Sprintf("CASE WHEN %s THEN true WHEN %s OR %s THEN NULL ELSE false END", among, open(there), open(here))
}

// onlyTruth remembers the subqueries of a condition of which nobody asks more than whether they are true.
func (a *analyzer) onlyTruth(n *pg.Node) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop != pg.BoolExprType_NOT_EXPR {
		for _, arg := range b.Args {
			a.onlyTruth(arg)
		}
	}
	if l := n.GetSubLink(); l != nil {
		if a.truths == nil {
			a.truths = map[*pg.SubLink]bool{}
		}
		a.truths[l] = true
	}
}

// arrayExpr analyses ARRAY[…]; want is the array type of a cast around it.
func (a *analyzer) arrayExpr(n *pg.A_ArrayExpr, s *scope, want *Type) (expr, error) {
	out := expr{loc: n.Location, name: "array", scale: -1}
	var list []expr
	nested := false
	for _, node := range n.Elements {
		var e expr
		var err error
		if sub := node.GetAArrayExpr(); sub != nil {
			e, err = a.arrayExpr(sub, s, want)
		} else {
			e, err = a.expr(node, s)
		}
		if err != nil {
			return out, err
		}
		list = append(list, e)
		nested = nested || e.typ.isArray() && !isVector(e.typ)
	}
	if nested {
		out, err := a.nestedArray(list, out)
		return out, a.errAt(n.Location, err)
	}
	var err error
	if len(list) == 0 && want == nil {
		return out, a.errAt(n.Location, pgerr.New(codes.IndeterminateDatatype, "cannot determine type of empty array").
			WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."))
	}
	var elem Type
	if want != nil {
		elem = Type{OID: ElemOf(want.OID), Mod: want.Mod}
		for i := range list {
			if list[i], err = a.coerce(list[i], elem, explicit); err != nil {
				return out, err
			}
		}
	} else {
		t, err := a.unify(pointers(list), "ARRAY")
		if err != nil {
			return out, err
		}
		elem, out.fields = t.typ, t.fields
	}
	if label := a.env.enumOf([]expr{{typ: elem}}); label != nil && label.OID == elem.OID {
		out.sql = "CAST([" + strings.Join(sqlOf(list), ", ") + "] AS VARCHAR[])"
		return a.labelArray(out, label)
	}
	arr := ArrayOf(elem.OID)
	if arr == 0 {
		return out, a.errAt(n.Location, pgerr.New(codes.UndefinedObject, "could not find array type for data type %s",
			elem.Name()))
	}
	out.typ = Type{OID: arr, Mod: elem.Mod}
	if elem.OID == OIDNumeric {
		out.typ.Mod = -1
	}
	if want != nil {
		out.typ = *want
	}
	for i := range list {
		list[i].sql = elementSQL(list[i])
	}
	out.sql = "[" + strings.Join(sqlOf(list), ", ") + "]"
	if eng := out.typ.engineType(); eng != "" && elem.OID != OIDRecord {
		out.sql = "CAST(" + out.sql + " AS " + eng + ")"
	}
	return out, nil
}

// indirection analyses a[1], a[1:2] and (row).field.
func (a *analyzer) indirection(n *pg.A_Indirection, s *scope) (expr, error) {
	e, err := a.expr(n.Arg, s)
	if err != nil {
		return e, err
	}
	for i := 0; i < len(n.Indirection); i++ {
		ind := n.Indirection[i]
		idx := ind.GetAIndices()
		if name := ind.GetString_(); name != nil && e.row != nil {
			if e, err = a.rowField(e, name.Sval); err != nil {
				return e, err
			}
			continue
		}
		if name := ind.GetString_(); name != nil && e.fields != nil {
			if e, err = a.fieldOf(e, name.Sval); err != nil {
				return e, err
			}
			continue
		}
		if idx == nil {
			return e, a.errAt(e.loc, unsupported("selection of a field from a composite value is not supported"))
		}
		if e.typ.OID == OIDJSONB && !idx.IsSlice {
			if e, err = a.jsonbSubscript(e, idx, s); err != nil {
				return e, err
			}
			continue
		}
		run, slice := subscriptRun(n.Indirection[i:])
		if out, ok, err := a.labelSubscripts(e, run, slice, s); ok || err != nil {
			if err != nil {
				return e, err
			}
			e = out
			i += len(run) - 1
			continue
		}
		if !e.typ.isArray() && e.typ.OID != OIDName {
			return e, a.errAt(e.loc, pgerr.New(codes.DatatypeMismatch,
				"cannot subscript type %s because it does not support subscripting", e.typ.Name()))
		}
		if e.typ.isArray() && !isVector(e.typ) && (shaped(e) || len(run) > 1) {
			e, err = a.subscripts(e, run, slice, s)
			i += len(run) - 1
		} else {
			e, err = a.subscript(e, idx, s)
		}
		if err != nil {
			return e, err
		}
	}
	e.col = nil
	return e, nil
}

// rowField selects a field of a row.
func (a *analyzer) rowField(e expr, name string) (expr, error) {
	for _, f := range e.row {
		if f.name == name {
			return f, nil
		}
	}
	return e, a.errAt(e.loc, pgerr.New(codes.UndefinedColumn, "column \"%s\" not found in data type %s", name, e.typ.Name()))
}

// fieldOf selects a field of a composite value.
func (a *analyzer) fieldOf(e expr, name string) (expr, error) {
	for i, f := range e.fields {
		if f.name == name {
			return fieldAt(e, i), nil
		}
	}
	return e, a.errAt(e.loc, pgerr.New(codes.UndefinedColumn, "column \"%s\" not found in data type record", name))
}

// infoCalls are functions of information_schema of arrays and rows.
var infoCalls = []string{"_pg_expandarray", "_pg_truetypid", "_pg_truetypmod"}

func (a *analyzer) infoCall(name string, n *pg.FuncCall, s *scope) (expr, error) {
	if name == "_pg_expandarray" {
		return a.expandArray(n, s)
	}
	return a.trueType(name, n, s)
}

// expandArray analyses information_schema._pg_expandarray(vector): a set of (x, n).
func (a *analyzer) expandArray(n *pg.FuncCall, s *scope) (expr, error) {
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return expr{}, err
	}
	if len(args) != 1 || !args[0].typ.isArray() {
		return expr{}, a.errAt(n.Location, noFunction("information_schema._pg_expandarray", args, false))
	}
	list := args[0].sql
	return expr{
		sql: "unnest(list_zip(" + list + ", generate_series(1, len(" + list + "))))", typ: plain(OIDRecord), set: true,
		scale: -1, loc: n.Location, name: "_pg_expandarray",
		fields: []field{{name: "x", typ: plain(ElemOf(args[0].typ.OID))}, {name: "n", typ: plain(OIDInt4)}},
	}, nil
}

// trueType analyses information_schema._pg_truetypid and _pg_truetypmod of a row of
// pg_attribute and one of pg_type: the type of a column, which for a domain is its base.
func (a *analyzer) trueType(name string, n *pg.FuncCall, s *scope) (expr, error) {
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return expr{}, err
	}
	none := a.errAt(n.Location, noFunction("information_schema."+name, args, false))
	if len(args) != 2 {
		return expr{}, none
	}
	own, base, typ := "atttypid", "typbasetype", plain(OIDOid)
	if name == "_pg_truetypmod" {
		own, base, typ = "atttypmod", "typtypmod", plain(OIDInt4)
	}
	column, err := a.rowField(args[0], own)
	if err != nil {
		return expr{}, none
	}
	domain, err := a.rowField(args[1], base)
	if err != nil {
		return expr{}, none
	}
	kind, err := a.rowField(args[1], "typtype")
	if err != nil {
		return expr{}, none
	}
	return expr{
		sql: "CASE WHEN " + kind.sql + " = 'd' THEN " + domain.sql + " ELSE " + column.sql + " END", typ: typ, scale: -1, loc: n.Location, name: name,
	}, nil
}

func (a *analyzer) subscript(e expr, idx *pg.A_Indices, s *scope) (expr, error) {
	bound := func(n *pg.Node) (string, error) {
		if n == nil {
			return "", nil
		}
		b, err := a.expr(n, s)
		if err != nil {
			return "", err
		}
		b, err = a.coerce(b, plain(OIDInt4), assignment)
		return b.sql, err
	}
	lo, err := bound(idx.Lidx)
	if err != nil {
		return e, err
	}
	hi, err := bound(idx.Uidx)
	if err != nil {
		return e, err
	}
	out := e
	out.col = nil
	vector := e.typ.OID == OIDInt2Vector || e.typ.OID == OIDOidVector // these count from 0
	if e.typ.OID == OIDName && idx.IsSlice {
		return e, unsupported("slices of fixed-length arrays not implemented")
	}
	if e.typ.OID == OIDName {
		out.typ, out.sql = plain(OIDChar), byteOfName(e.sql, hi)
		return out, nil
	}
	if idx.IsSlice {
		if vector {
			return e, unsupported("slices of %s are not supported", e.typ.Name())
		}
		if lo == "" {
			lo = "1"
		}
		if hi == "" {
			hi = "len(" + e.sql + ")"
		}
		out.sql = fmt.Sprintf("CASE WHEN %s IS NULL THEN NULL WHEN %s < %s THEN [] ELSE list_slice(%s, greatest(%s, 1), %s) END", e.sql, hi, lo, e.sql, lo,
			hi)
		return out, nil
	}
	if vector {
		hi = "(" + hi + " + 1)"
	}
	return elementOf(e, out, fmt.Sprintf("CASE WHEN %s < 1 THEN NULL ELSE list_extract(%s, %s) END", hi, e.sql, hi)), nil
}
