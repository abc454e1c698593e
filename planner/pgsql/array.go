package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// anyArray analyses x op ANY (array) and ALL (array).
func (a *analyzer) anyArray(n *pg.A_Expr, op string, s *scope) (expr, error) {
	l, err := a.expr(n.Lexpr, s)
	if err != nil {
		return l, err
	}
	r, err := a.expr(n.Rexpr, s)
	if err != nil {
		return r, err
	}
	if out, ok, err := a.anyUser(n, op, l, r); ok || err != nil {
		return out, err
	}
	if r.undecided() {
		if l, err = a.settled(l); err != nil {
			return l, err
		}
		arr := ArrayOf(comparedAs(l.typ).OID)
		if arr == 0 {
			return l, a.noOperator(op, &l, r, n.Location)
		}
		if r, err = a.coerce(r, plain(arr), implicit); err != nil {
			return r, err
		}
	}
	r = flat(r)
	if !r.typ.isArray() {
		return r, a.errAt(n.Location, pgerr.New(codes.WrongObjectType, "op ANY/ALL (array) requires array on right side"))
	}
	all := n.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL
	if cmp := comparisons[op]; (cmp == "=" && !all || cmp == "<>" && all) && l.row == nil {
		return a.contains(l, elementOf(r, expr{scale: -1, loc: r.loc}, "x"), r.sql, op, all, n.Location)
	}
	v := a.alias("v")
	item := elementOf(r, expr{scale: -1, loc: r.loc}, v)
	cmp, err := a.binary(op, l, item, n.Location)
	if err != nil {
		return cmp, err
	}
	out := expr{typ: plain(OIDBool), loc: n.Location, scale: -1}
	out.sql = quantified(cmp.sql, v, r.sql, all)
	return out, nil
}

// contains renders l = ANY (list) and l <> ALL (list), of which item is an element. It needs no lambda, in which
// the engine finds no columns of an outer query.
func (a *analyzer) contains(l, item expr, list, op string, negated bool, loc int32) (expr, error) {
	l, item, err := a.pair(l, item)
	if err != nil {
		return l, err
	}
	ls, is, ok, err := a.comparable(l, item, op)
	if err != nil {
		return l, a.errAt(loc, err)
	}
	if !ok {
		return l, a.noOperator(op, &l, item, loc)
	}
	if eng := castTarget(is); eng != "" {
		list = "CAST(" + list + " AS " + eng + "[])"
	} else if is != "x" {
		list = "list_transform(" + list + ", lambda x: " + is + ")"
	}
	out := expr{typ: plain(OIDBool), loc: loc, scale: -1}
	out.sql = fmt.Sprintf("CASE WHEN len(%[1]s) = 0 THEN false WHEN list_contains(%[1]s, %[2]s) THEN true "+
		"WHEN %[1]s IS NULL OR %[2]s IS NULL OR len(%[1]s) > list_count(%[1]s) THEN NULL ELSE false END", list, ls)
	if negated {
		out.sql = "(NOT " + out.sql + ")"
	} else {
		out.sql = "(" + out.sql + ")"
	}
	return out, nil
}

// castTarget is the type in "CAST(x AS type)", "" when there is no cast.
func castTarget(sql string) string {
	t, ok := strings.CutPrefix(sql, "CAST(x AS ")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(t, ")")
}

// quantified renders ANY or ALL over a list with SQL's three values.
func quantified(cmp, v, list string, all bool) string {
	m := fmt.Sprintf("list_transform(%s, lambda %s: %s)", list, v, cmp)
	if all {
		return fmt.Sprintf("CASE WHEN %s IS NULL THEN NULL WHEN list_contains(%s, false) THEN false "+
			"WHEN len(list_filter(%s, lambda b: b IS NULL)) > 0 THEN NULL ELSE true END", list, m, m)
	}
	return fmt.Sprintf("CASE WHEN %s IS NULL THEN NULL WHEN list_contains(%s, true) THEN true "+
		"WHEN len(list_filter(%s, lambda b: b IS NULL)) > 0 THEN NULL ELSE false END", list, m, m)
}

func (a *analyzer) concatArrays(l, r expr, loc int32) (expr, error) {
	var err error
	switch {
	case l.undecided():
		l, err = a.coerce(l, plain(r.typ.OID), implicit)
	case r.undecided():
		r, err = a.coerce(r, plain(l.typ.OID), implicit)
	}
	if err != nil {
		return l, err
	}
	out := expr{loc: loc, scale: -1}
	list := func(e expr) string { return "coalesce(" + e.sql + ", [])" }
	switch {
	case (shaped(l) || shaped(r)) && l.typ.OID == r.typ.OID:
		return a.shapedConcat(l, r, loc)
	case shaped(l) && !r.typ.isArray():
		if r, err = a.coerce(r, plain(ElemOf(l.typ.OID)), implicit); err != nil {
			return l, a.noOperator("||", &l, r, loc)
		}
		return a.shapedAdd(l, r, false)
	case shaped(r) && !l.typ.isArray():
		if l, err = a.coerce(l, plain(ElemOf(r.typ.OID)), implicit); err != nil {
			return l, a.noOperator("||", &l, r, loc)
		}
		return a.shapedAdd(r, l, true)
	case l.typ.isArray() && r.typ.isArray():
		if l.typ.OID != r.typ.OID {
			return l, a.noOperator("||", &l, r, loc)
		}
		out.typ = plain(l.typ.OID)
		out.sql = "CASE WHEN " + l.sql + " IS NULL THEN " + r.sql + " WHEN " + r.sql + " IS NULL THEN " + l.sql +
			" ELSE list_concat(" + l.sql + ", " + r.sql + ") END"
	case l.typ.isArray():
		if r, err = a.coerce(r, plain(ElemOf(l.typ.OID)), implicit); err != nil {
			return l, a.noOperator("||", &l, r, loc)
		}
		out.typ, out.sql = plain(l.typ.OID), "list_append("+list(l)+", "+elementSQL(r)+")"
	default:
		if l, err = a.coerce(l, plain(ElemOf(r.typ.OID)), implicit); err != nil {
			return l, a.noOperator("||", &l, r, loc)
		}
		out.typ, out.sql = plain(r.typ.OID), "list_prepend("+elementSQL(l)+", "+list(r)+")"
	}
	return out, nil
}

func (a *analyzer) arrayOperator(op string, l, r expr, loc int32) (expr, error) {
	l, r, err := a.pair(l, r)
	if err != nil {
		return l, err
	}
	if l.typ.OID == OIDJSONB || r.typ.OID == OIDJSONB {
		return l, a.errAt(loc, unsupported("operator %s on jsonb is not supported", op))
	}
	if !l.typ.isArray() || l.typ.OID != r.typ.OID {
		return l, a.noOperator(op, &l, r, loc)
	}
	out := expr{typ: plain(OIDBool), loc: loc, scale: -1}
	l, r = flat(l), flat(r)
	switch op {
	case "@>":
		out.sql = "skippr_contains(" + sortKey(l) + ", " + sortKey(r) + ")"
	case "<@":
		out.sql = "skippr_contains(" + sortKey(r) + ", " + sortKey(l) + ")"
	default:
		out.sql = "list_has_any(" + sortKey(l) + ", " + sortKey(r) + ")"
	}
	return out, nil
}

// byteOfName is name[i], of type "char": a name is 64 bytes, counted from 0, and what is
// after its text is zero, which shows as nothing.
func byteOfName(name, i string) string {
	return strings.NewReplacer("$n", name, "$i", i).Replace("CASE WHEN $i NOT BETWEEN 0 AND 63 THEN NULL WHEN $i >= strlen($n) THEN '' " +
		"WHEN $i < strlen($n) THEN list_transform([CAST('0x' || substr(hex($n), 2 * $i + 1, 2) AS INTEGER)], " +
		`lambda b: CASE WHEN b < 128 THEN chr(b) ELSE '\' || (b // 64) || (b // 8 % 8) || (b % 8) END)[1] END`)
}

// fromVector casts an int2vector or oidvector to an array, which begins at 0 as they do.
func (a *analyzer) fromVector(e expr, to Type) (expr, error) {
	list := e
	list.typ = plain(ArrayOf(ElemOf(e.typ.OID)))
	out, err := a.convertArray(list, to)
	if elem := ElemOf(to.OID); err != nil || isOID(elem) && elem != OIDOid { // names are not kept as texts
		return out, err
	}
	n := "len(" + e.sql + ")"
	return a.shapedAs("CASE WHEN "+n+" > 0 THEN '[0:' || ("+n+" - 1) || ']={NULL' || repeat(',NULL', "+n+" - 1) || '}' WHEN "+n+" = 0 THEN '{}' END", out)
}

// convertArray casts the elements of an array.
func (a *analyzer) convertArray(e expr, to Type) (expr, error) {
	out := expr{typ: to, scale: -1}
	if shaped(e) {
		list, err := a.convertArray(flat(e), to)
		if err != nil {
			return e, err
		}
		return a.shapedAs(e.sql, list)
	}
	if isVector(e.typ) && !isVector(to) {
		return a.fromVector(e, to)
	}
	from, elem := lookupType(ElemOf(e.typ.OID)), lookupType(ElemOf(to.OID))
	if isInt(from.oid) && isInt(elem.oid) || from.engine == "VARCHAR" && elem.engine == "VARCHAR" && to.Mod < 0 {
		out.sql = "CAST(" + e.sql + " AS " + to.engineType() + ")"
		return out, nil
	}
	v := a.alias("v")
	item, err := a.coerce(elementOf(e, expr{scale: -1, loc: e.loc}, v), Type{OID: elem.oid, Mod: to.Mod}, explicit)
	if err != nil {
		return e, err
	}
	if elem.oid == OIDNumeric {
		item.sql = numericText(item)
	}
	out.sql = "CAST(list_transform(" + e.sql + ", lambda " + v + ": " + item.sql + ") AS " + to.engineType() + ")"
	return out, nil
}

// keyedElements has a function look for elements as their type compares them, not as the engine does:
// template is what becomes of the function's, with the parts of its arguments.
func keyedElements(c *signature, template string, args []expr, parts []string) string {
	switch c.name {
	case "array_position", "array_positions", "array_remove", "array_replace":
	default:
		return template
	}
	if shaped(args[0]) || !args[0].typ.isArray() || isVector(args[0].typ) || ElemOf(args[0].typ.OID) == OIDNumeric {
		return template
	}
	key := func(sql string) string {
		return sortKey(elementOf(args[0], expr{scale: -1, typ: plain(ElemOf(args[0].typ.OID))}, sql))
	}
	if key("x") == "x" {
		return template
	}
	parts[1] = key(parts[1])
	if c.name == "array_position" || c.name == "array_positions" {
		parts[0] = sortKey(args[0])
	}
	return strings.NewReplacer("lambda x: x IS", "lambda x: "+key("x")+" IS", "if(x IS", "if("+key("x")+" IS").Replace(template)
}
