package pgsql

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// operatorName returns the operator of an expression; OPERATOR(pg_catalog.=) is =.
func operatorName(names []*pg.Node) (string, error) {
	op := names[len(names)-1].GetString_().GetSval()
	if len(names) > 1 {
		if schema := names[len(names)-2].GetString_().GetSval(); schema != "pg_catalog" {
			return "", pgerr.New(codes.UndefinedFunction, "operator does not exist: %s.%s", schema, op)
		}
	}
	return op, nil
}

func (a *analyzer) operator(n *pg.A_Expr, s *scope) (expr, error) {
	var op string
	var err error
	if len(n.Name) > 0 {
		if op, err = operatorName(n.Name); err != nil {
			return expr{}, a.errAt(n.Location, err)
		}
	}
	switch n.Kind {
	case pg.A_Expr_Kind_AEXPR_IN:
		return a.in(n, op, s)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return a.between(n, s)
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return a.anyArray(n, op, s)
	}
	var left *expr
	if n.Lexpr != nil {
		l, err := a.expr(n.Lexpr, s)
		if err != nil {
			return l, err
		}
		left = &l
	}
	if sub := n.Rexpr.GetSubLink(); left != nil && left.row != nil && !left.whole && n.Kind == pg.A_Expr_Kind_AEXPR_OP &&
		sub.GetSubLinkType() == pg.SubLinkType_EXPR_SUBLINK {
		return a.rowSubquery(op, *left, sub, s)
	}
	right, err := a.expr(n.Rexpr, s)
	if err != nil {
		return right, err
	}
	var out expr
	switch {
	case n.Kind == pg.A_Expr_Kind_AEXPR_OP && left == nil:
		out, err = a.prefix(op, right, n.Location)
	case n.Kind == pg.A_Expr_Kind_AEXPR_OP:
		out, err = a.binary(op, *left, right, n.Location)
	case n.Kind == pg.A_Expr_Kind_AEXPR_DISTINCT:
		out, err = a.compare("IS DISTINCT FROM", *left, right, n.Location)
	case n.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		out, err = a.compare("IS NOT DISTINCT FROM", *left, right, n.Location)
	case n.Kind == pg.A_Expr_Kind_AEXPR_NULLIF:
		out, err = a.nullIf(*left, right, n.Location)
	case n.Kind == pg.A_Expr_Kind_AEXPR_LIKE, n.Kind == pg.A_Expr_Kind_AEXPR_ILIKE:
		out, err = a.like(op, *left, right, n.Location)
	case n.Kind == pg.A_Expr_Kind_AEXPR_SIMILAR:
		out, err = a.binary("~", *left, right, n.Location)
		if err == nil && op == "!~" {
			out.sql = "(NOT " + out.sql + ")"
		}
	default:
		return expr{}, unsupported("this kind of operator is not supported")
	}
	out.loc = n.Location
	return out, err
}

// noOperator is PostgreSQL's error for an operator that does not take its operands.
func (a *analyzer) noOperator(op string, l *expr, r expr, loc int32) error {
	left := ""
	if l != nil {
		left = l.typ.Name() + " "
	}
	return a.errAt(loc, pgerr.New(codes.UndefinedFunction, "operator does not exist: %s%s %s", left, op, r.typ.Name()).
		WithHint("No operator matches the given name and argument types. You might need to add explicit type casts."))
}

var comparisons = map[string]string{"=": "=", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}

func (a *analyzer) binary(op string, l, r expr, loc int32) (expr, error) {
	if cmp, ok := comparisons[op]; ok {
		return a.compare(cmp, l, r, loc)
	}
	if !strings.Contains(op, "~") {
		l, r = asText(l), asText(r)
	}
	if e, ok, err := a.typedOperator(op, []expr{l, r}, loc); ok || err != nil {
		return e, err
	}
	if e, ok, err := a.userArrayOperator(op, l, r, loc); ok || err != nil {
		return e, a.errAt(loc, err)
	}
	if l.typ.OID == OIDJSONB || r.typ.OID == OIDJSONB {
		if e, ok, err := a.jsonbOperator(op, l, r, loc); ok || err != nil {
			return e, err
		}
	}
	switch op {
	case "+", "-", "*", "/", "%", "^":
		return a.arithmetic(op, l, r, loc)
	case "||":
		return a.concat(l, r, loc)
	case "~", "~*", "!~", "!~*":
		return a.regex(op, l, r, loc)
	case "~~", "!~~", "~~*", "!~~*":
		return a.like(op, l, r, loc)
	case "->", "->>", "#>", "#>>":
		return a.jsonOperator(op, l, r, loc)
	case "@>", "<@", "&&":
		return a.arrayOperator(op, l, r, loc)
	case "&", "|", "#", "<<", ">>":
		return a.bitwise(op, l, r, loc)
	case "^@":
		return a.callNamed("starts_with", []expr{l, r}, loc)
	}
	return expr{}, a.noOperator(op, &l, r, loc)
}

func (a *analyzer) prefix(op string, r expr, loc int32) (expr, error) {
	if r.num != nil && (op == "-" || op == "+") {
		if op == "-" {
			v := -*r.num
			r.num = &v
			r.sql = "(-" + r.sql + ")"
		}
		return r, nil
	}
	if e, ok, err := a.typedOperator(op, []expr{r}, loc); ok || err != nil {
		return e, err
	}
	if r.undecided() {
		d, err := a.coerce(r, plain(OIDFloat8), implicit)
		if err != nil {
			return d, err
		}
		r = d
	}
	out := r
	out.num, out.col, out.name, out.loc = nil, nil, "", loc
	out.typ.Mod = -1
	switch {
	case op == "-" && r.typ.OID == OIDNumeric && r.text:
		out.setText("skippr_n_neg(" + r.sql + ")")
		return out, nil
	case op == "+" && numericRank(r.typ.OID) > 0:
		return out, nil
	case op == "-" && numericRank(r.typ.OID) > 0:
		out.sql = "(-" + r.sql + ")"
		return out, nil
	case op == "-" && r.typ.OID == OIDInterval:
		out.sql, out.text = "skippr_iv_neg("+native(r)+")", false
		return out, nil
	case op == "@" && numericRank(r.typ.OID) > 0:
		return a.callNamed("abs", []expr{r}, loc)
	case op == "~" && isInt(r.typ.OID):
		out.sql = "(~(" + r.sql + "))"
		return out, nil
	case op == "|/" && numericRank(r.typ.OID) > 0:
		return a.callNamed("sqrt", []expr{a.mustFloat(r)}, loc)
	case op == "||/" && numericRank(r.typ.OID) > 0:
		return a.callNamed("cbrt", []expr{a.mustFloat(r)}, loc)
	}
	return out, a.noOperator(op, nil, r, loc)
}

func (a *analyzer) mustFloat(e expr) expr {
	if f, err := a.coerce(e, plain(OIDFloat8), implicit); err == nil {
		return f
	}
	return e
}

// doubleText renders a number so that the engine casts it to a double.
func doubleText(e expr) string {
	if e.typ.OID == OIDNumeric {
		return doubleOf(e)
	}
	return e.sql
}

// native renders a value in the engine's own type.
func native(e expr) string {
	switch {
	case e.typ.OID == OIDNumeric:
		return e.sql
	case e.typ.OID == OIDBpchar:
		return "rtrim(" + e.sql + ", ' ')"
	case e.text:
		return exactValue(e)
	}
	return e.sql
}

// exactValue reads exact text as the engine's own type; it fails for a value that the
// engine does not have.
func exactValue(e expr) string {
	text := e.sql
	if shaped(e) {
		text = "skippr_text_in(" + text + ", " + strconv.Itoa(int(e.typ.OID)) + ")"
	}
	if isDateLike(e.typ.OID) {
		text = "skippr_exact_moment(" + text + ")"
	}
	return "CAST(" + text + " AS " + e.typ.engineType() + ")"
}

// pair decides the operands of a comparison: an undecided one takes the other's
// type.
func (a *analyzer) pair(l, r expr) (expr, expr, error) {
	var err error
	switch {
	case l.undecided() && r.undecided():
		if l, err = a.coerce(l, plain(OIDText), implicit); err != nil {
			return l, r, err
		}
		r, err = a.coerce(r, plain(OIDText), implicit)
	case l.undecided():
		l, err = a.coerce(l, comparedAs(r.typ), implicit)
	case r.undecided():
		r, err = a.coerce(r, comparedAs(l.typ), implicit)
	}
	return l, r, err
}

func comparedAs(t Type) Type {
	switch {
	case t.OID == OIDVarchar:
		return plain(OIDText)
	case t.OID == OIDRecord:
		return plain(OIDText)
	case t.OID == OIDNumeric:
		return plain(OIDNumeric)
	}
	return bare(t)
}

// compare analyses a comparison; op is an engine operator.
func (a *analyzer) compare(op string, l, r expr, loc int32) (expr, error) {
	if e, ok, err := a.compareWhole(op, l, r, expr{typ: plain(OIDBool), loc: loc, scale: -1}); ok || err != nil {
		return e, a.errAt(loc, err)
	}
	if l.row != nil || r.row != nil {
		return a.compareRows(op, l, r, loc)
	}
	l, r, err := a.pair(l, r)
	if err != nil {
		return l, err
	}
	if d, err := collated(l, r); err != nil || d.oid == mixedCollation {
		return l, cmp.Or(err, mixed(d, "string comparison"))
	}
	out := expr{typ: plain(OIDBool), loc: loc, scale: -1, con: l.con && r.con}
	shown := strings.TrimPrefix(strings.TrimPrefix(op, "IS NOT DISTINCT FROM"), "IS DISTINCT FROM")
	if shown == "" {
		shown = "="
	}
	ls, rs, ok, err := a.comparable(l, r, shown)
	if err != nil {
		return out, a.errAt(loc, err)
	}
	if !ok {
		return out, a.noOperator(shown, &l, r, loc)
	}
	out.sql = "(" + ls + " " + op + " " + rs + ")"
	return out, nil
}

// comparable renders two decided operands in a type in which the engine compares
// them as PostgreSQL does.
func (a *analyzer) comparable(l, r expr, op string) (string, string, bool, error) {
	if isRecord(l) && isRecord(r) {
		ls, rs, err := a.compareRecords(l, r)
		return ls, rs, true, err
	}
	if l.typ.User != nil && r.typ.User != nil || l.typ.OID >= firstUserOID && l.typ.OID == r.typ.OID {
		return compareUser(l, r, op)
	}
	l, r = foldedAsText(l, r.typ), foldedAsText(r, l.typ)
	lt, rt := l.typ.OID, r.typ.OID
	lr, rr := numericRank(lt), numericRank(rt)
	switch {
	case lr > 0 && rr > 0:
		if isFloat(lt) || isFloat(rt) {
			lf, err := a.coerce(l, plain(OIDFloat8), implicit)
			if err != nil {
				return "", "", false, err
			}
			rf, err := a.coerce(r, plain(OIDFloat8), implicit)
			return lf.sql, rf.sql, true, err
		}
		if x, y, ok := decimals(&l, &r); ok {
			return x.sql, y.sql, true, nil
		}
		return textKey(l), textKey(r), true, nil
	case (isOID(lt) || lr > 0 && isInt(lt)) && (isOID(rt) || isInt(rt)):
		return l.sql, r.sql, true, nil
	case (isString(lt) || lt == OIDChar) && (isString(rt) || rt == OIDChar):
		return native(l), native(r), true, nil
	case isDateLike(lt) && isDateLike(rt):
		return a.comparableDates(l, r)
	case l.typ.category() == 'I' && r.typ.category() == 'I':
		return typeKey(l), typeKey(r), true, nil
	case l.typ.category() == 'V' && r.typ.category() == 'V':
		return l.sql, r.sql, true, nil
	case lt != rt:
		return "", "", false, nil
	case ElemOf(lt) != 0 && !plain(ElemOf(lt)).equatable() && op == "=":
		return "", "", false, pgerr.New(codes.UndefinedFunction, "could not identify an equality operator for type %s", plain(ElemOf(lt)).Name())
	case shaped(l) || shaped(r):
		if err := a.toShaped(&l, &r); err != nil {
			return "", "", false, err
		}
		return shapedKey(l), shapedKey(r), true, nil
	case l.typ.isArray() && !isVector(l.typ) && ElemOf(lt) != OIDRecord:
		return sortKey(l), sortKey(r), true, nil
	}
	switch p := lookupType(lt); {
	case lt == OIDJSON || lt == OIDXML || lt == OIDRecord || lt == 600 || lt == 604:
		return "", "", false, nil
	case p.category == 'G': // PostgreSQL compares areas, lengths, or nearly equal coordinates
		return "", "", false, unsupported("comparison of %s values is not supported", l.typ.Name()).WithHint("Cast the value to text.")
	case lt == OIDJSONB, lt == OIDInterval, typeKey(l) != "":
		return sortKey(l), sortKey(r), true, nil
	case p.engine == "VARCHAR" && lt != OIDText && op != "=" && op != "<>" && !p.textOrdered():
		return "", "", false, unsupported("ordering of %s values is not supported", l.typ.Name())
	}
	return native(l), native(r), true, nil
}

// listKeys renders the members of a list of one type so that they compare as the type
// does.
func listKeys(list []expr) []string {
	keys := make([]string, len(list))
	exact := true
	for _, e := range list {
		_, ok := e.decimal()
		exact = exact && ok
	}
	for i, e := range list {
		switch {
		case e.typ.OID == OIDJSONB, e.typ.OID == OIDInterval, e.typ.User != nil, typeKey(e) != "":
			keys[i] = equalKey(e)
		case e.typ.OID != OIDNumeric:
			keys[i] = native(e)
		case exact:
			keys[i] = numericKey(e)
		default:
			keys[i] = textKey(e)
		}
	}
	return keys
}

// textOrdered reports whether the text form orders as the type does.
func (p *pgType) textOrdered() bool {
	return p.oid == 829 || p.oid == 774 || p.oid == 194 || p.oid == 1033 || p.oid == 1560 || p.oid == 1562
}

func isDateLike(oid uint32) bool {
	return oid == OIDDate || oid == OIDTimestamp || oid == OIDTimestamptz
}

func (a *analyzer) comparableDates(l, r expr) (string, string, bool, error) {
	to := l.typ
	for _, t := range []Type{l.typ, r.typ} {
		if t.OID == OIDTimestamptz || t.OID == OIDTimestamp && to.OID == OIDDate {
			to = plain(t.OID)
		}
	}
	side := func(e expr) (string, error) {
		if e.typ.OID == OIDDate && to.OID == OIDTimestamp { // one later than all timestamps compares too
			return "skippr_d_when(" + native(e) + ")", nil
		}
		c, err := a.coerce(e, plain(to.OID), implicit)
		return native(c), err
	}
	ls, err := side(l)
	if err != nil {
		return "", "", false, err
	}
	rs, err := side(r)
	return ls, rs, true, err
}

// compareRows compares row constructors field by field, as SQL defines it.
func (a *analyzer) compareRows(op string, l, r expr, loc int32) (expr, error) {
	out := expr{typ: plain(OIDBool), loc: loc, scale: -1}
	if len(l.row) != len(r.row) || len(l.row) == 0 {
		return out, a.errAt(loc, pgerr.New(codes.Syntax, "unequal number of entries in row expressions"))
	}
	field := func(op string, i int) (string, error) {
		e, err := a.compare(op, l.row[i], r.row[i], loc)
		return e.sql, err
	}
	var parts []string
	join := " AND "
	switch op {
	case "=", "IS NOT DISTINCT FROM", "<>", "IS DISTINCT FROM":
		if op == "<>" || op == "IS DISTINCT FROM" {
			join = " OR "
		}
		for i := range l.row {
			p, err := field(op, i)
			if err != nil {
				return out, err
			}
			parts = append(parts, p)
		}
	default: // a < x OR (a = x AND (b < y OR …))
		strict := op[:1]
		sql := ""
		for i := len(l.row) - 1; i >= 0; i-- {
			last := i == len(l.row)-1
			o := strict
			if last {
				o = op
			}
			cmp, err := field(o, i)
			if err != nil {
				return out, err
			}
			eq, err := field("=", i)
			if err != nil {
				return out, err
			}
			if last {
				sql = cmp
			} else {
				sql = "(" + cmp + " OR (" + eq + " AND " + sql + "))"
			}
		}
		parts = []string{sql}
	}
	out.sql = "(" + strings.Join(parts, join) + ")"
	return out, nil
}

func (a *analyzer) nullIf(l, r expr, loc int32) (expr, error) {
	l, err := a.settledLike(l, r)
	if err != nil {
		return l, err
	}
	if l.row != nil {
		return l, unsupported("NULLIF of rows is not supported")
	}
	eq, err := a.compare("=", l, r, loc)
	if err != nil {
		return eq, err
	}
	if lr, rr := numericRank(l.typ.OID), numericRank(r.typ.OID); lr > 0 && rr > lr && rr >= numericRank(OIDNumeric) {
		if l, err = a.coerce(l, plain(r.typ.OID), implicit); err != nil {
			return l, err
		}
	}
	out := l
	if out.typ.OID == OIDVarchar { // which = compares as text
		out.typ = plain(OIDText)
	}
	out.col, out.num, out.name = nil, nil, "nullif"
	out.sql = "CASE WHEN " + eq.sql + " THEN NULL ELSE " + l.sql + " END"
	return out, nil
}

func (a *analyzer) settledLike(e, other expr) (expr, error) {
	if e.undecided() && !other.undecided() {
		return a.coerce(e, comparedAs(other.typ), implicit)
	}
	return a.settled(e)
}

func (a *analyzer) between(n *pg.A_Expr, s *scope) (expr, error) {
	e, err := a.expr(n.Lexpr, s)
	if err != nil {
		return e, err
	}
	// Each bound is analysed where it is compared, so that the second one knows a
	// parameter of the first.
	bounds := n.Rexpr.GetList().GetItems()
	one := func(lo, hi *pg.Node) (string, error) {
		var sql [2]string
		for i, bound := range []*pg.Node{lo, hi} {
			b, err := a.expr(bound, s)
			if err != nil {
				return "", err
			}
			c, err := a.compare([]string{">=", "<="}[i], e, b, n.Location)
			if err != nil {
				return "", err
			}
			sql[i] = c.sql
		}
		return "(" + sql[0] + " AND " + sql[1] + ")", nil
	}
	sql, err := one(bounds[0], bounds[1])
	if err != nil {
		return e, err
	}
	sym := n.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM
	if sym {
		other, err := one(bounds[1], bounds[0])
		if err != nil {
			return e, err
		}
		sql = "(" + sql + " OR " + other + ")"
	}
	if n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typ: plain(OIDBool), loc: n.Location, scale: -1}, nil
}

// in analyses x IN (a, b, …).
func (a *analyzer) in(n *pg.A_Expr, op string, s *scope) (expr, error) {
	l, err := a.expr(n.Lexpr, s)
	if err != nil {
		return l, err
	}
	list, err := a.exprList(n.Rexpr.GetList().GetItems(), s)
	if err != nil {
		return l, err
	}
	out := expr{typ: plain(OIDBool), loc: n.Location, scale: -1}
	neg, join, cmp := "", " OR ", "="
	if op == "<>" {
		neg, join, cmp = "NOT ", " AND ", "<>"
	}
	if l.row == nil {
		all := append([]expr{l}, list...)
		if l.undecided() || !mixedList(all) {
			if _, err := a.unify(pointers(all), "IN"); err != nil {
				return out, err
			}
			if _, _, ok, err := a.comparable(all[0], all[0], "="); !ok || err != nil {
				if err == nil {
					err = a.noOperator("=", &all[0], all[1], n.Location)
				}
				return out, a.errAt(n.Location, err)
			}
			keys := listKeys(all)
			out.sql = "(" + keys[0] + " " + neg + "IN (" + strings.Join(keys[1:], ", ") + "))"
			return out, nil
		}
	}
	var parts []string
	for _, r := range list {
		e, err := a.compare(cmp, l, r, n.Location)
		if err != nil {
			return e, err
		}
		parts = append(parts, e.sql)
	}
	out.sql = "(" + strings.Join(parts, join) + ")"
	return out, nil
}

// mixedList reports whether a list needs pairwise comparisons: types of different
// categories, or rows.
func mixedList(list []expr) bool {
	for _, e := range list {
		if e.row != nil {
			return true
		}
		if !e.undecided() && !list[0].undecided() && e.typ.category() != list[0].typ.category() {
			return true
		}
	}
	return false
}
