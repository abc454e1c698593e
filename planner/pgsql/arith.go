package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// arithmetic analyses + - * / % ^.
func (a *analyzer) arithmetic(op string, l, r expr, loc int32) (expr, error) {
	if l.undecided() && r.undecided() {
		return l, a.errAt(loc, pgerr.New(codes.AmbiguousFunction, "operator is not unique: unknown %s unknown", op).
			WithHint("Could not choose a best candidate operator. You might need to add explicit type casts."))
	}
	l, r, err := a.arithmeticOperands(op, l, r)
	if err != nil {
		return l, err
	}
	if numericRank(l.typ.OID) > 0 && numericRank(r.typ.OID) > 0 {
		return a.numbers(op, l, r, loc)
	}
	if out, ok, err := a.times(op, l, r); ok || err != nil {
		out.loc, out.scale = loc, -1
		return out, err
	}
	return l, a.noOperator(op, &l, r, loc)
}

func (a *analyzer) arithmeticOperands(op string, l, r expr) (expr, expr, error) {
	side := func(e, other expr) (expr, error) {
		to := plain(other.typ.OID)
		switch {
		case (isDateLike(to.OID) || to.OID == OIDTime) && op == "+":
			to = plain(OIDInterval)
		case to.OID == OIDInterval && (op == "*" || op == "/"):
			to = plain(OIDFloat8)
		}
		return a.coerce(e, to, implicit)
	}
	var err error
	if l.undecided() {
		l, err = side(l, r)
	} else if r.undecided() {
		r, err = side(r, l)
	}
	return l, r, err
}

// numbers analyses arithmetic on numbers.
func (a *analyzer) numbers(op string, l, r expr, loc int32) (expr, error) {
	out := expr{loc: loc, scale: -1, con: l.con && r.con}
	to := plain(l.typ.OID)
	if numericRank(r.typ.OID) > numericRank(to.OID) {
		to = plain(r.typ.OID)
	}
	if isFloat(l.typ.OID) != isFloat(r.typ.OID) || op == "^" && to.OID != OIDNumeric {
		to = plain(OIDFloat8)
	}
	out.typ = to
	if to.OID == OIDNumeric {
		return a.decimals(op, l, r, out)
	}
	lc, err := a.coerce(l, to, assignment)
	if err != nil {
		return out, err
	}
	rc, err := a.coerce(r, to, assignment)
	if err != nil {
		return out, err
	}
	if isInt(to.OID) {
		lc, rc = l, r // the engine promotes integers alike
		lc.sql, rc.sql = widen(l, to), widen(r, to)
	}
	divisor := rc.sql
	if (op == "/" || op == "%") && (r.num == nil || *r.num == 0) {
		divisor = "skippr_nonzero(" + rc.sql + ")"
	}
	switch {
	case op == "/" && isInt(to.OID):
		out.sql = "(" + lc.sql + " // " + divisor + ")"
	case op == "^":
		out.sql = "power(" + lc.sql + ", " + rc.sql + ")"
	case op == "%" && isFloat(to.OID):
		return out, a.noOperator(op, &l, r, loc)
	default:
		out.sql = "(" + lc.sql + " " + op + " " + divisor + ")"
	}
	return out, nil
}

func widen(e expr, to Type) string {
	if e.typ.OID == to.OID {
		return e.sql
	}
	return "CAST(" + e.sql + " AS " + to.engineType() + ")"
}

// decimals analyses arithmetic on numerics.
func (a *analyzer) decimals(op string, l, r, out expr) (expr, error) {
	l, err := a.coerce(l, plain(OIDNumeric), implicit)
	if err != nil {
		return out, err
	}
	if r, err = a.coerce(r, plain(OIDNumeric), implicit); err != nil {
		return out, err
	}
	ls, rs := decimalSQL(l), decimalSQL(r)
	lscale, rscale := fractionDigits(l), fractionDigits(r)
	switch {
	case l.dyn || r.dyn || l.trim == trim16 || r.trim == trim16:
		out.trim = trim16
	case l.text || r.text || l.trim != trimNone || r.trim != trimNone:
		out.trim = trimAll
	}
	switch op {
	case "+", "-":
		out.sql, out.scale = "("+ls+" "+op+" "+rs+")", max(lscale, rscale)
	case "*":
		out.sql, out.scale = "("+ls+" * "+rs+")", lscale+rscale
		if out.scale > productDigits {
			// Two quotients: their product has more digits than the engine's decimals.
			out.sql = "skippr_float_numeric(CAST(" + ls + " AS DOUBLE) * CAST(" + rs + " AS DOUBLE))"
			out.text, out.trim, out.scale = true, trimNone, -1
		}
	case "%":
		out.sql, out.scale = "("+ls+" % skippr_nonzero("+rs+"))", max(lscale, rscale)
	case "/":
		return quotient(ls, lscale, rs, rscale, out), nil
	case "^":
		out.trim = trimNone
		out.sql = "skippr_float_numeric(power(CAST(" + ls + " AS DOUBLE), CAST(" + rs + " AS DOUBLE)))"
		out.text = true
	}
	return out, nil
}

// fractionDigits is the scale of a numeric as the engine has it.
func fractionDigits(e expr) int {
	switch {
	case e.text:
		return 12
	case e.dyn:
		return 20
	case e.scale >= 0:
		return e.scale
	}
	return 20
}

// quotient renders a division of decimals with known scales: both become integers.
func quotient(ls string, lscale int, rs string, rscale int, out expr) expr {
	const digits = 21
	grow := digits + rscale - lscale
	if grow > maxGrow {
		// The exact way would overflow the engine's integers; a divisor with so many
		// fraction digits is a quotient itself.
		out.sql = "skippr_float_numeric(CAST(" + ls + " AS DOUBLE) / skippr_nonzero(CAST(" + rs + " AS DOUBLE)))"
		out.text = true
		return out
	}
	n, d := unscaled(ls, lscale), unscaled(rs, rscale)
	if grow < 0 {
		d = fmt.Sprintf("(%s * CAST(1%s AS HUGEINT))", d, strings.Repeat("0", -grow))
		grow = 0
	}
	a, b := "CAST("+ls+" AS DOUBLE)", "CAST("+rs+" AS DOUBLE)"
	out.sql = fmt.Sprintf("skippr_quotient(%s, %s, '1%s', %s, %s)", n, d, strings.Repeat("0", grow), a, b)
	out.shown = fmt.Sprintf("skippr_cut(%s, skippr_rscale(%s, %s))", out.sql, a, b)
	out.dyn, out.scale, out.trim = true, 20, trimNone
	return out
}

// productDigits bounds the fraction digits of a product.
const productDigits = 30

// maxGrow bounds the power of ten by which a dividend grows.
const maxGrow = 30

func unscaled(sql string, scale int) string {
	if scale == 0 {
		return sql
	}
	return fmt.Sprintf("CAST(%s * CAST('1%s' AS DECIMAL(%d,0)) AS HUGEINT)", sql, strings.Repeat("0", scale), scale+1)
}

// times analyses arithmetic on dates, times and intervals.
func (a *analyzer) times(op string, l, r expr) (expr, bool, error) {
	lt, rt := l.typ.OID, r.typ.OID
	ls, rs := native(l), native(r)
	sql := "(" + ls + " " + op + " " + rs + ")"
	result := func(oid uint32) (expr, bool, error) { return expr{sql: sql, typ: plain(oid)}, true, nil }
	switch {
	case op == "+" && lt == OIDDate && isInt(rt), op == "+" && isInt(lt) && rt == OIDDate, op == "-" && lt == OIDDate &&
		isInt(rt):
		return result(OIDDate)
	case op == "-" && lt == OIDDate && rt == OIDDate:
		sql = "CAST(" + sql + " AS INTEGER)"
		return result(OIDInt4)
	case op == "-" && isDateLike(lt) && isDateLike(rt):
		c1, c2, _, err := a.comparableDates(l, r)
		if err != nil {
			return expr{}, false, err
		}
		sql = "(" + c1 + " - " + c2 + ")"
		return result(OIDInterval)
	case (op == "+" || op == "-") && rt == OIDInterval && (isDateLike(lt) || lt == OIDTime || lt == OIDTimetz):
		return result(max(lt, dateToTimestamp(lt)))
	case op == "+" && lt == OIDInterval && (isDateLike(rt) || rt == OIDTime):
		sql = "(" + rs + " + " + ls + ")"
		return result(max(rt, dateToTimestamp(rt)))
	case op == "+" && lt == OIDDate && rt == OIDTime:
		return result(OIDTimestamp)
	case op == "+" && lt == OIDTime && rt == OIDDate:
		sql = "(" + rs + " + " + ls + ")"
		return result(OIDTimestamp)
	case op == "-" && lt == OIDTime && rt == OIDTime:
		sql = "((DATE '2000-01-01' + " + ls + ") - (DATE '2000-01-01' + " + rs + "))"
		return result(OIDInterval)
	case (op == "+" || op == "-") && lt == OIDInterval && rt == OIDInterval:
		return result(OIDInterval)
	case op == "*" && numericRank(lt) > 0 && rt == OIDInterval:
		sql = "(" + rs + " * CAST(" + decimalOr(l) + " AS DOUBLE))"
		return result(OIDInterval)
	case op == "*" && lt == OIDInterval && numericRank(rt) > 0:
		sql = "(" + ls + " * CAST(" + decimalOr(r) + " AS DOUBLE))"
		return result(OIDInterval)
	case op == "/" && lt == OIDInterval && numericRank(rt) > 0:
		sql = "(" + ls + " * (1::DOUBLE / skippr_nonzero(CAST(" + decimalOr(r) + " AS DOUBLE))))"
		return result(OIDInterval)
	}
	return expr{}, false, nil
}

func dateToTimestamp(oid uint32) uint32 {
	if oid == OIDDate {
		return OIDTimestamp
	}
	return oid
}

func (a *analyzer) bitwise(op string, l, r expr, loc int32) (expr, error) {
	l, r, err := a.pair(l, r)
	if err != nil {
		return l, err
	}
	shift := op == "<<" || op == ">>"
	if !isInt(l.typ.OID) || !isInt(r.typ.OID) {
		return l, a.noOperator(op, &l, r, loc)
	}
	to := l.typ
	if !shift && numericRank(r.typ.OID) > numericRank(to.OID) {
		to = r.typ
	}
	to.Mod = -1
	out := expr{typ: to, loc: loc, scale: -1, con: l.con && r.con}
	ls, rs := widen(l, to), widen(r, to)
	switch op {
	case "#":
		out.sql = "xor(" + ls + ", " + rs + ")"
	default:
		out.sql = "(" + ls + " " + op + " " + rs + ")"
	}
	return out, nil
}

// concat analyses ||.
func (a *analyzer) concat(l, r expr, loc int32) (expr, error) {
	if l.typ.isArray() || r.typ.isArray() {
		return a.concatArrays(l, r, loc)
	}
	for _, e := range []expr{l, r} {
		if e.typ.OID == OIDJSONB {
			return l, unsupported("jsonb concatenation is not supported")
		}
	}
	if !l.undecided() && !r.undecided() && !isString(l.typ.OID) && !isString(r.typ.OID) {
		if l.typ.OID == OIDBytea && r.typ.OID == OIDBytea {
			return expr{sql: "(" + l.sql + " || " + r.sql + ")", typ: plain(OIDBytea), loc: loc, scale: -1}, nil
		}
		return l, a.noOperator("||", &l, r, loc)
	}
	out := expr{typ: plain(OIDText), loc: loc, scale: -1, con: l.con && r.con}
	var parts [2]string
	for i, e := range []expr{l, r} {
		c, err := a.coerce(e, plain(OIDText), explicit)
		if err != nil {
			return c, err
		}
		parts[i] = c.sql
	}
	out.sql = "(" + parts[0] + " || " + parts[1] + ")"
	return out, nil
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
		out.typ, out.sql = plain(l.typ.OID), "list_append("+list(l)+", "+r.sql+")"
	default:
		if l, err = a.coerce(l, plain(ElemOf(r.typ.OID)), implicit); err != nil {
			return l, a.noOperator("||", &l, r, loc)
		}
		out.typ, out.sql = plain(r.typ.OID), "list_prepend("+l.sql+", "+list(r)+")"
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
	switch op {
	case "@>":
		out.sql = "list_has_all(" + l.sql + ", " + r.sql + ")"
	case "<@":
		out.sql = "list_has_all(" + r.sql + ", " + l.sql + ")"
	default:
		out.sql = "list_has_any(" + l.sql + ", " + r.sql + ")"
	}
	return out, nil
}
