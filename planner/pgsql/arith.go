package pgsql

import (
	"fmt"

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
		return a.numericOperator(op, l, r, out)
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
	case op == "%" && isInt(to.OID) && (r.num == nil || *r.num <= 0):
		out.sql = "CAST(skippr_mod(" + lc.sql + ", " + rc.sql + ") AS " + to.engineType() + ")"
	case op == "/" && isInt(to.OID):
		out.sql = "(" + lc.sql + " // " + divisor + ")"
	case op == "^":
		return a.callNamed("power", []expr{lc, rc}, loc)
	case op == "%" && isFloat(to.OID):
		return out, a.noOperator(op, &l, r, loc)
	case isFloat(to.OID):
		fn := map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div"}[op]
		out.sql = map[uint32]string{OIDFloat4: "skippr_f4_", OIDFloat8: "skippr_f8_"}[to.OID] + fn + "(" + lc.sql + ", " + rc.sql + ")"
	default:
		out.sql = "(" + lc.sql + " " + op + " " + divisor + ")"
	}
	if to.OID == OIDInt2 { // columns of smallint have 32 bits in the engine
		out.sql = "CAST(" + out.sql + " AS SMALLINT)"
	}
	return out, nil
}

func widen(e expr, to Type) string {
	if e.typ.OID == to.OID {
		return e.sql
	}
	return "CAST(" + e.sql + " AS " + to.engineType() + ")"
}

// times analyses arithmetic on dates, times and intervals.
func (a *analyzer) times(op string, l, r expr) (expr, bool, error) {
	lt, rt := l.typ.OID, r.typ.OID
	ls, rs := native(l), native(r)
	result := func(oid uint32, sql string) (expr, bool, error) { return expr{sql: sql, typ: plain(oid)}, true, nil }
	call := func(fn, x, y string) string { return fn + "(" + x + ", " + y + ")" }
	switch {
	case op == "+" && lt == OIDDate && isInt(rt):
		return result(OIDDate, call("skippr_d_add", ls, rs))
	case op == "+" && isInt(lt) && rt == OIDDate:
		return result(OIDDate, call("skippr_d_add", rs, ls))
	case op == "-" && lt == OIDDate && isInt(rt):
		return result(OIDDate, call("skippr_d_add", ls, "-CAST("+rs+" AS BIGINT)"))
	case op == "-" && lt == OIDDate && rt == OIDDate:
		return result(OIDInt4, call("skippr_d_sub", ls, rs))
	case op == "-" && isDateLike(lt) && isDateLike(rt):
		c1, c2, _, err := a.comparableDates(l, r)
		if err != nil {
			return expr{}, false, err
		}
		if lt == OIDTimestamptz || rt == OIDTimestamptz { // a time between two moments is no matter of zones
			c1, c2 = "timezone('UTC', "+c1+")", "timezone('UTC', "+c2+")"
		}
		return result(OIDInterval, call("skippr_ts_sub", c1, c2))
	case (op == "+" || op == "-") && rt == OIDInterval && (isDateLike(lt) || lt == OIDTime || lt == OIDTimetz):
		return result(max(lt, dateToTimestamp(lt)), moved(op, lt, ls, rs))
	case op == "+" && lt == OIDInterval && (isDateLike(rt) || rt == OIDTime):
		return result(max(rt, dateToTimestamp(rt)), moved(op, rt, rs, ls))
	case op == "+" && lt == OIDDate && rt == OIDTime:
		return result(OIDTimestamp, moved(op, OIDDate, ls, "skippr_time_iv("+rs+")"))
	case op == "+" && lt == OIDTime && rt == OIDDate:
		return result(OIDTimestamp, moved(op, OIDDate, rs, "skippr_time_iv("+ls+")"))
	case op == "-" && lt == OIDTime && rt == OIDTime:
		return result(OIDInterval, call("skippr_time_sub", ls, rs))
	}
	return a.intervals(op, l, r)
}

// moved renders a date or time that an interval is added to, or taken from.
func moved(op string, oid uint32, moment, by string) string {
	switch oid {
	case OIDTimestamptz: // its days are those of the session's zone
		if op == "-" {
			by = "skippr_iv_neg(" + by + ")"
		}
		return "skippr_tz_add(" + moment + ", " + by + ", " + sessionZone + ")"
	case OIDTimetz:
		return "(" + moment + " " + op + " " + by + ")"
	case OIDDate:
		moment = "skippr_d_ts(" + moment + ")"
	}
	if op == "-" {
		by = "skippr_iv_neg(" + by + ")"
	}
	if oid == OIDTime {
		return "skippr_time_add(" + moment + ", " + by + ")"
	}
	return "skippr_ts_add(" + moment + ", " + by + ")"
}

// intervals analyses arithmetic on intervals.
func (a *analyzer) intervals(op string, l, r expr) (expr, bool, error) {
	lt, rt := l.typ.OID, r.typ.OID
	out := expr{typ: plain(OIDInterval)}
	double := func(e expr) string { return "CAST(" + doubleText(e) + " AS DOUBLE)" }
	switch {
	case op == "+" && lt == OIDInterval && rt == OIDInterval:
		out.sql = "skippr_iv_add(" + native(l) + ", " + native(r) + ")"
	case op == "-" && lt == OIDInterval && rt == OIDInterval:
		out.sql = "skippr_iv_sub(" + native(l) + ", " + native(r) + ")"
	case op == "*" && numericRank(lt) > 0 && rt == OIDInterval:
		out.sql = "skippr_iv_mul(" + native(r) + ", " + double(l) + ")"
	case op == "*" && lt == OIDInterval && numericRank(rt) > 0:
		out.sql = "skippr_iv_mul(" + native(l) + ", " + double(r) + ")"
	case op == "/" && lt == OIDInterval && numericRank(rt) > 0:
		out.sql = "skippr_iv_div(" + native(l) + ", " + double(r) + ")"
	default:
		return out, false, nil
	}
	return out, true, nil
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
	case "<<", ">>":
		fn := map[string]string{"<<": "skippr_shl", ">>": "skippr_shr"}[op]
		bits := map[uint32]int{OIDInt2: 16, OIDInt4: 32, OIDInt8: 64}[to.OID]
		out.sql = fmt.Sprintf("CAST(%s(%s, CAST(%s AS BIGINT), %d) AS %s)", fn, ls, r.sql, bits, to.engineType())
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
	for _, pair := range [][2]*expr{{&l, &r}, {&r, &l}} {
		if pair[0].typ.OID == OIDBytea && pair[1].undecided() {
			d, err := a.coerce(*pair[1], plain(OIDBytea), implicit)
			if err != nil {
				return d, err
			}
			*pair[1] = d
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
