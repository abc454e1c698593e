package pgsql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// expr is an analysed expression: its text in the engine's dialect and its type.
type expr struct {
	sql string
	typ Type
	// lit is the text of a literal whose type is not decided yet (typ unknown);
	// null is an undecided NULL; param is the number of an undecided parameter.
	lit   *string
	node  *pg.String // the literal in the statement
	null  bool
	param int
	// text says that sql yields the exact text of a type whose engine type is another
	// (a numeric without a modifier, an interval of a source column).
	text bool
	// scale is the number of fraction digits of a numeric that is a decimal, -1 unknown;
	// prec is how many digits it has in all. alt is a decimal that is equal to a numeric in
	// text, dscale SQL for how many digits after the point that shows ("": by its text).
	scale, prec int
	alt         *decimalForm
	dscale      string
	loc         int32
	// name is the output name PostgreSQL would give, "" for ?column?.
	name string
	coll derived // its collation
	col  *column // a plain column reference
	con  bool    // a constant
	row  []expr  // a row's fields
	// whole says that a row is a value, not written out as a row constructor; there is SQL for
	// whether it is there, "" when it is always.
	whole bool
	there string
	// fields are the fields of a composite value, which the engine has as a struct.
	fields []field
	set    bool // a set-returning call
	// num is the value of an integer constant.
	num *int64
}

// field is a field of a composite value, by its place in the engine's struct.
type field struct {
	name string
	typ  Type
	// text is as in expr; fields are those of a row.
	text   bool
	fields []field
}

func (e *expr) undecided() bool { return e.typ.OID == OIDUnknown }

// coercion is how eager a cast is.
type coercion uint8

const (
	implicit coercion = iota
	assignment
	explicit
)

// numericRank orders the number types by implicit promotion.
func numericRank(oid uint32) int {
	switch oid {
	case OIDInt2:
		return 1
	case OIDInt4:
		return 2
	case OIDInt8:
		return 3
	case OIDNumeric:
		return 4
	case OIDFloat4:
		return 5
	case OIDFloat8:
		return 6
	}
	return 0
}

func isInt(oid uint32) bool   { return oid == OIDInt2 || oid == OIDInt4 || oid == OIDInt8 }
func isFloat(oid uint32) bool { return oid == OIDFloat4 || oid == OIDFloat8 }

// isOID reports whether values are object ids: oid and its aliases.
func isOID(oid uint32) bool {
	switch oid {
	case OIDOid, OIDXid, 29:
		return true
	}
	return regCatalog[oid].relation != ""
}

func isString(oid uint32) bool {
	return oid == OIDText || oid == OIDVarchar || oid == OIDBpchar || oid == OIDName
}

// Assigns says whether values of a type are cast to another by an assignment.
func Assigns(from, to Type) bool { return becomes(from, to, assignment) }

// becomes is canCoerce, which knows types by their numbers only.
func becomes(from, to Type, c coercion) bool {
	switch {
	case to.User != nil && to.User.Elem != nil && isString(ElemOf(from.OID)) && c == explicit:
		return true
	case from.User != nil && from.User.Elem != nil && from.User.Elem.Kind == Enumerated && isString(ElemOf(to.OID)):
		return c >= assignment
	case from.folded() && to.folded(), from.folded() && isString(to.OID), to.folded() && isString(from.OID) && c >= assignment:
		return true
	}
	return canCoerce(from.OID, to.OID, c)
}

// canCoerce reports whether PostgreSQL has a cast from one type to another at the
// given eagerness.
func canCoerce(from, to uint32, c coercion) bool {
	if from == to || from == OIDUnknown || to == OIDAny {
		return true
	}
	if fr, tr := numericRank(from), numericRank(to); fr > 0 && tr > 0 {
		return fr < tr || c >= assignment
	}
	fe, te := ElemOf(from), ElemOf(to)
	switch {
	case to == OIDAnyArray:
		return fe != 0
	case to == OIDInt2Vector || to == OIDOidVector:
		return fe != 0 && c == explicit
	case to == OIDAnyElement:
		return true
	case fe != 0 && te != 0:
		return canCoerce(fe, te, c)
	case isInt(from) && isOID(to):
		return true
	case isOID(from) && (to == OIDOid || isOID(to) && (c == explicit || from == OIDOid)):
		return true
	case isOID(from) && (to == OIDInt8 || to == OIDInt4):
		return c >= assignment
	case isString(from) && isString(to):
		return true
	case from == OIDChar && isString(to):
		return true
	case convertsTyped(from, to):
		return c >= typedCast(from, to)
	case isString(from) && (to == OIDChar || to == OIDRegclass):
		return to == OIDRegclass || c >= assignment
	}
	return canCoerceTime(from, to, c) || c >= assignment && isString(to) && from != OIDRecord && from != OIDVoid ||
		c == explicit && canConvert(from, to)
}

func canCoerceTime(from, to uint32, c coercion) bool {
	switch from {
	case OIDDate:
		return to == OIDTimestamp || to == OIDTimestamptz
	case OIDTimestamp:
		return to == OIDTimestamptz || c >= assignment && (to == OIDDate || to == OIDTime)
	case OIDTimestamptz:
		return c >= assignment && (to == OIDDate || to == OIDTime || to == OIDTimestamp || to == OIDTimetz)
	case OIDTime:
		return to == OIDInterval || to == OIDTimetz
	case OIDInterval:
		return c >= assignment && to == OIDTime
	}
	return false
}

// canConvert holds the casts that must be written out.
func canConvert(from, to uint32) bool {
	switch {
	case isString(from) && to != OIDRecord && to != OIDVoid:
		return true
	case from == OIDChar && to == OIDInt4, from == OIDInt4 && to == OIDChar:
		return true
	case from == OIDBool && to == OIDInt4, from == OIDInt4 && to == OIDBool:
		return true
	case (from == OIDJSON || from == OIDJSONB) && (to == OIDJSON || to == OIDJSONB):
		return true
	case from == OIDJSONB && (numericRank(to) > 0 || to == OIDBool):
		return true
	}
	return false
}

func cannotCast(from, to Type) *pgerr.Error {
	return pgerr.New(codes.CannotCoerce, "cannot cast type %s to %s", from.Name(), to.Name())
}

// coerce casts e to a type, deciding undecided literals and parameters.
func (a *analyzer) coerce(e expr, to Type, c coercion) (expr, error) {
	if e.undecided() && e.lit != nil && (to.OID == OIDRegtype || to.OID == 2202 || to.OID == 2204) {
		if out, err := a.castReg(e, to); err != errNotReg {
			return out, a.errAt(e.loc, err)
		}
	}
	if e.undecided() {
		return a.decide(e, to)
	}
	if e.row != nil && isString(to.OID) && c == explicit {
		sql, err := a.recordText(e)
		return expr{sql: sql, typ: plain(to.OID), scale: -1, loc: e.loc, name: e.name}, err
	}
	if e.row != nil && to.OID == OIDRecord {
		return a.boxed(e)
	}
	if e.row != nil {
		return e, a.errAt(e.loc, unsupported("casts of row expressions are not supported"))
	}
	if !becomes(e.typ, to, c) {
		return e, a.errAt(e.loc, cannotCast(e.typ, to))
	}
	if e.typ.OID == to.OID {
		return a.applyMod(e, to), nil
	}
	out, err := a.castReg(e, to)
	if err == errNotReg {
		out, err = a.convert(e, to)
	}
	if err != nil {
		return e, a.errAt(e.loc, err)
	}
	out.loc, out.name, out.con, out.col = e.loc, e.name, e.con, nil
	return out, nil
}

// decide gives an undecided literal, NULL or parameter its type.
func (a *analyzer) decide(e expr, to Type) (expr, error) {
	if to.OID == OIDUnknown || to.OID == OIDAny || to.OID == OIDAnyElement {
		to = plain(OIDText)
	}
	out := expr{typ: to, loc: e.loc, con: true, name: e.name, scale: -1}
	if p, s, ok := to.decimal(); ok {
		out.scale, out.prec = s, p
	}
	eng := to.engineType()
	switch {
	case e.null:
		if eng == "" && to.OID == OIDNumeric {
			eng = "DECIMAL(1,0)"
			out.scale, out.prec, out.null = 0, 1, true
		}
		out.sql = "CAST(NULL AS " + eng + ")"
		return out, nil
	case e.param > 0:
		return a.decideParam(e, to, out)
	}
	if a.fold {
		if err := a.settleLiteral(e, to); err != nil {
			return out, a.errAt(e.loc, err)
		}
	}
	return a.literal(*e.lit, to, out)
}

func (a *analyzer) decideParam(e expr, to Type, out expr) (expr, error) {
	n := e.param
	if a.params[n-1] == 0 {
		a.params[n-1] = to.OID
	}
	have := a.env.TypeOf(a.params[n-1], -1)
	given, err := a.typed(fmt.Sprintf("$%d", n), have)
	if err == nil && have.User != nil && have.User.Elem != nil {
		if given.sql, err = a.userList(given); err == nil {
			given.sql, err = a.userArray(given.sql, have.User)
		}
	}
	if err != nil {
		return out, a.errAt(e.loc, err)
	}
	if missing, reg := regMissing[have.OID]; reg {
		if given, err = a.regParam(fmt.Sprintf("CAST($%d AS VARCHAR)", n), have, missing); err != nil {
			return out, err
		}
	}
	given.loc, given.con, given.name = out.loc, true, out.name
	out = given
	if have.OID != to.OID || to.Mod >= 0 {
		return a.coerce(out, to, explicit)
	}
	return out, nil
}

// typed is a value of a type that comes as text, in the form that parameters have.
func (a *analyzer) typed(sql string, t Type) (expr, error) {
	oid := t.OID
	out := expr{typ: bare(t), loc: -1, scale: -1}
	if t.User != nil {
		if t.User.Elem != nil && t.User.Elem.Kind == Enumerated {
			return a.convertUser(expr{sql: "CAST(" + sql + " AS VARCHAR)", typ: plain(OIDText), loc: -1, scale: -1}, out.typ)
		}
		var err error
		out.sql, err = a.env.read(t.User, "CAST("+sql+" AS VARCHAR)")
		return out, err
	}
	if oid == OIDNumeric {
		out.setText("CAST(" + sql + " AS VARCHAR)")
		return out, nil
	}
	out.sql = "CAST(" + sql + " AS " + out.typ.engineType() + ")"
	if oid == OIDJSONB {
		out.sql = jsonFromText(out.sql, oid)
	}
	if _, multi, _ := span.KindOf(oid); multi {
		out.sql = fmt.Sprintf("skippr_span_in(%d, %s)", oid, out.sql)
	}
	return out, nil
}

// literal makes the typed constant of a literal's text.
func (a *analyzer) literal(text string, to Type, out expr) (expr, error) {
	if to.User != nil {
		if err := to.User.unread(); err != nil {
			return out, a.errAt(out.loc, err)
		}
		if to.User.Elem != nil {
			text, err := a.env.userArrayLiteral(text, to.User)
			out.sql = quote.Text(text)
			return out, a.errAt(out.loc, err)
		}
		if to.User.Kind == Enumerated && !slices.Contains(to.User.Labels, text) {
			return out, a.errAt(out.loc, a.env.invalidLabel(to.User, text))
		}
		out.sql = quote.Text(text)
		return out, nil
	}
	if isOID(to.OID) && to.OID != OIDOid {
		if v, done, err := a.regLiteral(text, to); done || err != nil {
			if err != nil {
				return out, a.errAt(out.loc, err)
			}
			out.sql = fmt.Sprintf("CAST(%d AS BIGINT)", v)
			return out, nil
		}
	}
	if elem := ElemOf(to.OID); elem != 0 && elem != OIDOid && isOID(elem) {
		return a.regArray(text, elem, out)
	}
	if moment, ok := a.relativeMoment(text, to); ok {
		out.sql, out.con = moment, false
		return a.applyMod(out, to), nil
	}
	if e, ok, err := a.shapedLiteral(text, to, out); ok || err != nil {
		return e, err
	}
	var conv string
	var err error
	if _, _, ok := span.KindOf(to.OID); ok {
		conv, err = a.spanText(to.OID, text)
	} else {
		conv, err = engineText(a.literals(), to, text)
	}
	if err != nil {
		return out, a.errAt(out.loc, err)
	}
	eng := to.engineType()
	switch {
	case to.OID == OIDNumeric:
		return a.decimalLiteral(conv, to, out)
	case eng == "VARCHAR":
		out.sql = quote.Text(conv)
	default:
		out.sql = "CAST(" + quote.Text(conv) + " AS " + eng + ")"
	}
	if ElemOf(to.OID) == OIDJSONB {
		out.sql = "list_transform(" + out.sql + ", lambda v: skippr_j_norm(v))"
	}
	switch to.OID {
	case OIDBit, OIDVarbit, OIDTime, OIDTimetz, OIDTimestamp, OIDTimestamptz, OIDInterval:
		out.typ.Mod = -1
		return a.applyMod(out, to), nil
	}
	if elem := ElemOf(to.OID); elem != 0 && elem != OIDNumeric {
		out.typ.Mod = -1
		return a.applyMod(out, to), nil
	}
	return out, nil
}

// regArray makes the constant of an array of names of objects.
func (a *analyzer) regArray(text string, elem uint32, out expr) (expr, error) {
	items, err := parseArray(text)
	if err != nil {
		return out, a.errAt(out.loc, err)
	}
	var parts []string
	for _, it := range items {
		if it == nil {
			parts = append(parts, "NULL")
			continue
		}
		e, err := a.castReg(expr{lit: it, typ: plain(OIDUnknown), loc: out.loc, scale: -1}, plain(elem))
		if errors.Is(err, errNotReg) {
			e, err = a.literal(*it, plain(elem), expr{typ: plain(elem), loc: out.loc, scale: -1})
		}
		if err != nil {
			return out, err
		}
		parts = append(parts, e.sql)
	}
	out.sql = "CAST([" + strings.Join(parts, ", ") + "] AS BIGINT[])"
	return out, nil
}

// decimalLiteral makes a decimal constant with exactly the digits it is written
// with.
func (a *analyzer) decimalLiteral(text string, to Type, out expr) (expr, error) {
	digits, scale, ok := plainDecimal(text)
	width := len(strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(digits, "+-"), ".", ""), "0"))
	width = max(width, scale, 1)
	if !ok || width > maxDigits {
		exact, err := EngineText(plain(OIDNumeric), text)
		if err != nil {
			return out, a.errAt(out.loc, err)
		}
		out.setText(quote.Text(exact))
	} else {
		out.setDecimal(fmt.Sprintf("CAST('%s' AS DECIMAL(%d,%d))", digits, width, scale), width, scale)
	}
	con := a.constrain(out, to)
	con.con = true
	return con, nil
}

// plainDecimal expands an exponent: "1.5e3" becomes "1500", scale 0.
func plainDecimal(s string) (digits string, scale int, ok bool) {
	mant, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if _, err := fmt.Sscanf(s[i+1:], "%d", &exp); err != nil || exp > 100 || exp < -100 {
			return "", 0, false
		}
		mant = s[:i]
	}
	sign := ""
	if mant != "" && (mant[0] == '-' || mant[0] == '+') {
		sign, mant = strings.TrimPrefix(mant[:1], "+"), mant[1:]
	}
	whole, frac, _ := strings.Cut(mant, ".")
	if strings.Trim(whole+frac, "0123456789") != "" {
		return "", 0, false
	}
	for ; exp > 0; exp-- {
		if frac == "" {
			whole += "0"
			continue
		}
		whole, frac = whole+frac[:1], frac[1:]
	}
	for ; exp < 0; exp++ {
		if whole == "" {
			whole = "0"
		}
		whole, frac = whole[:len(whole)-1], whole[len(whole)-1:]+frac
	}
	if whole == "" {
		whole = "0"
	}
	if frac == "" {
		return sign + whole, 0, true
	}
	return sign + whole + "." + frac, len(frac), true
}

// applyMod applies a type modifier to a value that already has the type.
func (a *analyzer) applyMod(e expr, to Type) expr {
	if to.Mod < 0 || to.Mod == e.typ.Mod {
		return e
	}
	out := e
	out.typ, out.col = to, nil
	n := to.Mod - 4
	switch to.OID {
	case OIDNumeric:
		return a.constrain(e, to)
	case OIDVarchar:
		out.sql = fmt.Sprintf("left(%s, %d)", e.sql, n)
	case OIDBpchar:
		out.sql = fmt.Sprintf("rpad(left(%s, %d), %d, ' ')", e.sql, n, n)
	case OIDTimestamp:
		out.sql = fmt.Sprintf("skippr_ts_round(%s, %d)", e.sql, to.Mod)
	case OIDTimestamptz:
		out.sql = fmt.Sprintf("timezone('UTC', skippr_ts_round(timezone('UTC', %s), %d))", e.sql, to.Mod)
	case OIDTime:
		out.sql = fmt.Sprintf("skippr_t_round(%s, %d)", e.sql, to.Mod)
	case OIDTimetz:
		out.sql = fmt.Sprintf("skippr_timetz_round(%s, %d)", e.sql, to.Mod)
	case OIDBit:
		out.sql = fmt.Sprintf("skippr_bit_fit(%s, %d)", e.sql, to.Mod)
	case OIDVarbit:
		out.sql = fmt.Sprintf("left(%s, %d)", e.sql, to.Mod)
	case OIDInterval:
		out.sql, out.text = fmt.Sprintf("skippr_iv_mod(%s, %d)", native(e), to.Mod), false
	default:
		if elem := ElemOf(to.OID); elem != 0 && !shaped(e) {
			v := a.alias("v")
			item := a.applyMod(elementOf(e, expr{scale: -1, loc: e.loc, typ: plain(elem)}, v), Type{OID: elem, Mod: to.Mod})
			out.sql = "list_transform(" + e.sql + ", lambda " + v + ": " + elementSQL(item) + ")"
		}
	}
	return out
}

// convert renders the cast of a decided expression to another type.
func (a *analyzer) convert(e expr, to Type) (expr, error) {
	out := expr{typ: to, scale: -1}
	if isString(to.OID) {
		out.typ = plain(to.OID) // until the length is applied
	}
	from := e.typ.OID
	switch {
	case to.User != nil:
		return a.convertUser(e, to)
	case from == OIDChar && to.OID == OIDInt4, from == OIDInt4 && to.OID == OIDChar:
		return e, unsupported("casts between \"char\" and integer are not supported").WithHint("Use ascii() and chr().")
	case e.typ.isArray() && to.isArray():
		return a.convertArray(e, to)
	case to.isArray() && e.typ.User != nil && e.typ.User.Elem != nil:
		list, err := a.userList(e)
		if err != nil {
			return e, err
		}
		return a.convertArray(expr{sql: list, typ: plain(ArrayOf(OIDText)), loc: e.loc, scale: -1}, to)
	case from == OIDJSONB && (numericRank(to.OID) > 0 || to.OID == OIDBool):
		return a.fromJSONB(e, to)
	case from == OIDJSON && to.OID == OIDJSONB:
		out.sql = jsonFromText(e.sql, OIDJSONB)
		return out, nil
	case to.OID == OIDNumeric:
		return a.toNumeric(e, to), nil
	case isString(to.OID) || to.OID == OIDChar:
		s, err := a.textOf(e)
		if err != nil {
			return e, err
		}
		if from == OIDInet { // shown without the mask, cast with it
			s = "skippr_inet_text(" + s + ")"
		}
		out.sql = s
		if to.OID == OIDChar {
			out.sql = "left(" + s + ", 1)"
		}
		return a.applyMod(out, to), nil
	case isString(from) || from == OIDChar:
		return a.fromText(e, to)
	case convertsTyped(from, to.OID):
		return a.convertTyped(e, to), nil
	case from == OIDNumeric:
		out.sql = fromNumeric(e, to)
	case from == OIDInterval && to.OID == OIDTime:
		out.sql = "skippr_iv_time(" + native(e) + ")"
	case e.text:
		out.sql = "CAST(" + exactValue(e) + " AS " + to.engineType() + ")"
	case from == OIDTime && to.OID == OIDInterval:
		out.sql = "skippr_time_iv(" + e.sql + ")"
	case from == OIDTimestamp && to.OID == OIDTime:
		out.sql = "skippr_ts_time(" + e.sql + ")"
	case from == OIDTimestamptz && to.OID == OIDTime:
		out.sql = "skippr_ts_time(CAST(" + e.sql + " AS TIMESTAMP))"
	case from == OIDDate && to.OID == OIDTimestamp:
		out.sql = "skippr_d_ts(" + e.sql + ")"
	case from == OIDDate && to.OID == OIDTimestamptz:
		out.sql = "CAST(skippr_d_ts(" + e.sql + ") AS TIMESTAMPTZ)"
	case from == OIDFloat8 && to.OID == OIDFloat4:
		out.sql = "CAST(skippr_f4_range(" + e.sql + ") AS FLOAT)"
	case to.engineType() == "VARCHAR" && lookupType(from).engine == "VARCHAR":
		out.sql = e.sql
	case isOID(from) && isOID(to.OID):
		out.sql = e.sql
	default:
		out.sql = "CAST(" + e.sql + " AS " + to.engineType() + ")"
	}
	return out, nil
}

// checkedText reports whether a type that the engine has as text has a form of its own.
func checkedText(oid uint32) bool {
	switch oid {
	case OIDInet, 650, 774, 790, 829, 1560, 1562, 3220, 3904, 3906, 3908, 3910, 3912, 3926:
		return true
	}
	return lookupType(oid).category == 'G'
}
