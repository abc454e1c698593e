package pgsql

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// expr analyses an expression in a scope. A part of it that is grouped by counts as
// grouped as a whole.
func (a *analyzer) expr(n *pg.Node, s *scope) (expr, error) {
	if err := a.enter(); err != nil {
		return expr{}, err
	}
	defer a.leave()
	mark := len(s.refs)
	e, err := a.collating(n, func() (expr, error) {
		if e, known := s.groupedValue(n); known {
			return e, nil
		}
		return a.exprNode(n, s)
	})
	if err == nil && a.types != nil {
		a.types[n] = e.typ
	}
	if err == nil && s.grouped && s.groupSQL[e.sql] && len(s.refs) > mark {
		s.refs = s.refs[:mark]
	}
	if err == nil && s.grouped && s.aggDepth == 0 && s.groupKeys[e.sql] != "" {
		e = s.keyedValue(e)
	}
	return e, err
}

func (a *analyzer) exprNode(n *pg.Node, s *scope) (expr, error) {
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return a.columnRef(v.ColumnRef, s)
	case *pg.Node_AConst:
		return a.constant(v.AConst)
	case *pg.Node_ParamRef:
		return a.paramRef(v.ParamRef)
	case *pg.Node_TypeCast:
		return a.typeCast(v.TypeCast, s)
	case *pg.Node_AExpr:
		return a.operator(v.AExpr, s)
	case *pg.Node_BoolExpr:
		return a.boolExpr(v.BoolExpr, s)
	case *pg.Node_FuncCall:
		return a.funcCall(v.FuncCall, s)
	case *pg.Node_SubLink:
		return a.subLink(v.SubLink, s)
	case *pg.Node_CaseExpr:
		return a.caseExpr(v.CaseExpr, s)
	case *pg.Node_NullTest:
		return a.nullTest(v.NullTest, s)
	case *pg.Node_BooleanTest:
		return a.booleanTest(v.BooleanTest, s)
	}
	return a.exprRest(n, s)
}

func (a *analyzer) exprRest(n *pg.Node, s *scope) (expr, error) {
	switch v := n.GetNode().(type) {
	case *pg.Node_CoalesceExpr:
		return a.choice("coalesce", "COALESCE", v.CoalesceExpr.Args, v.CoalesceExpr.Location, s)
	case *pg.Node_MinMaxExpr:
		if v.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return a.choice("least", "LEAST", v.MinMaxExpr.Args, v.MinMaxExpr.Location, s)
		}
		return a.choice("greatest", "GREATEST", v.MinMaxExpr.Args, v.MinMaxExpr.Location, s)
	case *pg.Node_AIndirection:
		return a.indirection(v.AIndirection, s)
	case *pg.Node_AArrayExpr:
		return a.arrayExpr(v.AArrayExpr, s, nil)
	case *pg.Node_RowExpr:
		return a.rowExpr(v.RowExpr, s)
	case *pg.Node_CollateClause:
		return a.collate(v.CollateClause, s)
	case *pg.Node_SqlvalueFunction:
		return a.valueFunction(v.SqlvalueFunction)
	case *pg.Node_GroupingFunc:
		return a.grouping(v.GroupingFunc, s)
	case *pg.Node_SetToDefault:
		return expr{}, a.errAt(v.SetToDefault.Location, pgerr.New(codes.Syntax, "DEFAULT is not allowed in this context"))
	}
	return expr{}, unsupported("%s is not supported", Word(n))
}

func (a *analyzer) constant(c *pg.A_Const) (expr, error) {
	e := expr{typ: plain(OIDUnknown), loc: c.Location, con: true, scale: -1}
	if c.Isnull {
		e.null = true
		return e, nil
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		n := int64(v.Ival.Ival)
		e.num, e.typ, e.sql = &n, plain(OIDInt4), strconv.FormatInt(n, 10)
		return e, nil
	case *pg.A_Const_Fval:
		s := strings.ReplaceAll(v.Fval.Fval, "_", "")
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			e.num, e.typ, e.sql = &n, plain(OIDInt8), fmt.Sprintf("CAST(%d AS BIGINT)", n)
			if n == math.MinInt32 {
				e.typ, e.sql = plain(OIDInt4), fmt.Sprintf("CAST(%d AS INTEGER)", n)
			}
			return e, nil
		}
		e.typ = plain(OIDNumeric)
		return a.decimalLiteral(s, e.typ, e)
	case *pg.A_Const_Boolval:
		e.typ, e.sql = plain(OIDBool), strconv.FormatBool(v.Boolval.Boolval)
		return e, nil
	case *pg.A_Const_Sval:
		s := v.Sval.Sval
		e.lit, e.node = &s, v.Sval
		return e, nil
	}
	s := c.GetBsval().GetBsval() // b101, x1F
	e.typ, e.node = plain(1560), nil
	text, err := EngineText(e.typ, s)
	e.sql = quote.Text(text)
	return e, a.errAt(c.Location, err)
}

func (a *analyzer) paramRef(p *pg.ParamRef) (expr, error) {
	n := int(p.Number)
	const maxParams = 65535
	if n < 1 || n > maxParams {
		return expr{}, a.errAt(p.Location, pgerr.New(codes.UndefinedParameter, "there is no parameter $%d", n))
	}
	for len(a.params) < n {
		a.params = append(a.params, 0)
	}
	if a.seenParam == nil {
		a.seenParam = map[int]bool{}
	}
	a.seenParam[n] = true
	e := expr{typ: plain(OIDUnknown), param: n, loc: p.Location, scale: -1, con: true}
	if t := a.params[n-1]; t != 0 && t != OIDUnknown {
		return a.decide(e, plain(t))
	}
	a.params[n-1] = 0
	return e, nil
}

func (a *analyzer) typeCast(n *pg.TypeCast, s *scope) (expr, error) {
	if rel := a.rowType(n.TypeName); rel != nil {
		return a.castRow(n, rel, s)
	}
	to, err := a.typeName(n.TypeName)
	if err != nil {
		return expr{}, err
	}
	var e expr
	f := n.Arg.GetAConst().GetFval()
	switch arr := n.Arg.GetAArrayExpr(); {
	case arr != nil && to.isArray():
		e, err = a.arrayExpr(arr, s, &to)
	case f != nil && (to.OID == OIDFloat8 || to.OID == OIDFloat4): // no digits limit there
		e = expr{typ: plain(OIDUnknown), loc: n.Arg.GetAConst().Location, con: true, scale: -1, lit: &f.Fval}
	default:
		e, err = a.expr(n.Arg, s)
	}
	if err != nil {
		return e, err
	}
	loc := e.loc
	if to.OID == OIDInterval && to.Mod >= 0 {
		if e, err = intervalField(e, to.Mod); err != nil {
			return e, a.errAt(loc, err)
		}
	}
	if e.typ.OID == to.OID && e.typ.OID == OIDNumeric && to.Mod < 0 {
		e.typ.Mod, e.col = -1, nil
		return e, nil
	}
	out, err := a.castReg(e, to)
	if err == errNotReg {
		out, err = a.coerce(e, to, explicit)
	}
	if err != nil {
		return e, a.errAt(loc, err)
	}
	if out.typ.OID == OIDBpchar && e.typ.OID == OIDBpchar {
		out.typ = to
	}
	if e.typ.OID == to.OID && to.Mod < 0 && !to.isArray() {
		out.typ, out.col = to, nil // the length that it has does not count any more
	}
	out.name, out.loc = e.name, loc
	return out, nil
}

func (a *analyzer) boolExpr(n *pg.BoolExpr, s *scope) (expr, error) {
	var parts []string
	con := true
	word := map[pg.BoolExprType]string{
		pg.BoolExprType_AND_EXPR: "AND", pg.BoolExprType_OR_EXPR: "OR",
		pg.BoolExprType_NOT_EXPR: "NOT",
	}[n.Boolop]
	defer a.mayBe()()
	for i, arg := range n.Args {
		a.maybe += min(i, 1) // the first is always computed
		e, err := a.expr(arg, s)
		if err != nil {
			return e, err
		}
		if e, err = a.boolean(e, word); err != nil {
			return e, err
		}
		con = con && e.con
		parts = append(parts, e.sql)
	}
	out := expr{typ: plain(OIDBool), loc: n.Location, scale: -1, con: con}
	if n.Boolop == pg.BoolExprType_NOT_EXPR {
		out.sql = "(NOT " + parts[0] + ")"
		return out, nil
	}
	out.sql = "(" + strings.Join(parts, " "+word+" ") + ")"
	return out, nil
}

func (a *analyzer) nullTest(n *pg.NullTest, s *scope) (expr, error) {
	e, err := a.expr(n.Arg, s)
	if err != nil {
		return e, err
	}
	if e, err = a.settled(e); err != nil {
		return e, err
	}
	word := " IS NULL"
	if n.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
		word = " IS NOT NULL"
	}
	out := expr{typ: plain(OIDBool), loc: n.Location, scale: -1, con: e.con}
	if e.row != nil { // a row is null when all its fields are, not null when none is
		var parts []string
		for _, f := range e.row {
			if f, err = a.settled(f); err != nil {
				return e, err
			}
			parts = append(parts, f.sql+word)
		}
		out.sql = "(" + strings.Join(parts, " AND ") + ")"
		return out, nil
	}
	out.sql = "(" + e.sql + word + ")"
	if e.typ.User != nil && e.typ.User.Composite && e.typ.User.Elem == nil {
		out.sql = compositeNull(e.sql, n.Nulltesttype == pg.NullTestType_IS_NULL)
	}
	return out, nil
}

func (a *analyzer) booleanTest(n *pg.BooleanTest, s *scope) (expr, error) {
	e, err := a.expr(n.Arg, s)
	if err != nil {
		return e, err
	}
	if e, err = a.boolean(e, "IS TRUE"); err != nil {
		return e, err
	}
	forms := map[pg.BoolTestType]string{
		pg.BoolTestType_IS_TRUE:      "(%s IS NOT DISTINCT FROM true)",
		pg.BoolTestType_IS_NOT_TRUE:  "(%s IS DISTINCT FROM true)",
		pg.BoolTestType_IS_FALSE:     "(%s IS NOT DISTINCT FROM false)",
		pg.BoolTestType_IS_NOT_FALSE: "(%s IS DISTINCT FROM false)",
		pg.BoolTestType_IS_UNKNOWN:   "(%s IS NULL)", pg.BoolTestType_IS_NOT_UNKNOWN: "(%s IS NOT NULL)",
	}
	return expr{
		sql: fmt.Sprintf(forms[n.Booltesttype], e.sql), typ: plain(OIDBool), loc: n.Location, scale: -1,
		con: e.con,
	}, nil
}

// exprList analyses several expressions.
func (a *analyzer) exprList(list []*pg.Node, s *scope) ([]expr, error) {
	out := make([]expr, 0, len(list))
	for _, n := range list {
		e, err := a.expr(n, s)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func pointers(list []expr) []*expr {
	out := make([]*expr, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

func sqlOf(list []expr) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].sql
	}
	return out
}

// choice analyses COALESCE, GREATEST and LEAST.
func (a *analyzer) choice(fn, word string, args []*pg.Node, loc int32, s *scope) (expr, error) {
	defer a.mayBe()()
	var list []expr
	for i, arg := range args {
		if fn == "coalesce" {
			a.maybe += min(i, 1) // the first is always computed
		}
		e, err := a.expr(arg, s)
		if err != nil {
			return expr{}, err
		}
		list = append(list, e)
	}
	out, err := a.unify(pointers(list), word)
	if err != nil {
		return expr{}, err
	}
	switch {
	case out.text && fn != "coalesce" && out.typ.OID == OIDNumeric:
		out.sql, out.alt = keyedChoice(fn, list, textKey), nil
	case fn != "coalesce" && (out.typ.OID == OIDInterval || out.typ.OID == OIDJSONB || typeKey(out) != ""):
		out.sql = keyedChoice(fn, list, sortKey)
	default:
		out = choiceOf(out, list, func(parts []string) string { return fn + "(" + strings.Join(parts, ", ") + ")" })
	}
	out.loc, out.name = loc, fn
	if fn != "coalesce" && out.typ.OID == OIDNumeric {
		out.typ.Mod = -1
	}
	return out, nil
}

func (a *analyzer) caseExpr(n *pg.CaseExpr, s *scope) (expr, error) {
	var arg *expr
	if n.Arg != nil {
		e, err := a.expr(n.Arg, s)
		if err != nil {
			return e, err
		}
		if e, err = a.settled(e); err != nil {
			return e, err
		}
		arg = &e
	}
	var conds []string
	var results []expr
	defer a.mayBe()()
	for _, w := range n.Args {
		cw := w.GetCaseWhen()
		e, err := a.expr(cw.Expr, s)
		if err != nil {
			return e, err
		}
		if arg != nil {
			e, err = a.compare("=", *arg, e, cw.Location)
		} else {
			e, err = a.boolean(e, "CASE/WHEN")
		}
		if err != nil {
			return e, err
		}
		conds = append(conds, e.sql)
		a.maybe++ // all but the first condition may not be computed
		r, err := a.expr(cw.Result, s)
		if err != nil {
			return r, err
		}
		results = append(results, r)
	}
	last := expr{typ: plain(OIDUnknown), null: true, con: true, scale: -1, loc: n.Location}
	if n.Defresult != nil {
		var err error
		if last, err = a.expr(n.Defresult, s); err != nil {
			return last, err
		}
	}
	results = append(results, last)
	order := pointers(results) // PostgreSQL looks at ELSE first
	order = append(order[len(conds):], order[:len(conds)]...)
	out, err := a.unify(order, "CASE")
	if err != nil {
		return out, err
	}
	out = choiceOf(out, results, func(parts []string) string {
		var b strings.Builder
		b.WriteString("CASE")
		for i, c := range conds {
			b.WriteString(" WHEN " + c + " THEN " + parts[i])
		}
		b.WriteString(" ELSE " + parts[len(conds)] + " END")
		return b.String()
	})
	out.loc = n.Location
	return out, nil
}

func (a *analyzer) rowExpr(n *pg.RowExpr, s *scope) (expr, error) {
	var list []expr
	for _, arg := range n.Args {
		e, err := a.expr(arg, s)
		if err != nil {
			return expr{}, err
		}
		if _, star := fieldNames(arg.GetColumnRef().GetFields()); star { // all its fields
			list = append(list, e.row...)
			continue
		}
		list = append(list, e)
	}
	for i := range list {
		list[i].name = fmt.Sprintf("f%d", i+1)
	}
	return expr{
		sql: "row(" + strings.Join(sqlOf(list), ", ") + ")", typ: plain(OIDRecord), loc: n.Location, row: list,
		scale: -1,
	}, nil
}

func (a *analyzer) collate(n *pg.CollateClause, s *scope) (expr, error) {
	e, err := a.expr(n.Arg, s)
	if err != nil {
		return e, err
	}
	c, err := findCollation(n.Collname, a.env)
	if e2, ok := pgerr.As(err); ok {
		err = a.errAt(n.Location, e2.WithHint("Strings compare by code point, as with COLLATE \"C\"."))
	}
	if err != nil {
		return e, err
	}
	if e, err = a.settled(e); err == nil && !collatable(e.typ) {
		err = a.errAt(n.Location, pgerr.New(codes.DatatypeMismatch, "collations are not supported by type %s", e.typ.Name()))
	}
	e.coll, e.col, e.loc = derived{oid: c.OID, explicit: true}, nil, n.Location
	return e, err
}

func (a *analyzer) grouping(n *pg.GroupingFunc, s *scope) (expr, error) {
	list := make([]expr, len(n.Args))
	for i, arg := range n.Args {
		e, known := s.groupedValue(arg)
		if !known {
			s.aggDepth++
			var err error
			e, err = a.expr(arg, s)
			s.aggDepth--
			if err != nil {
				return expr{}, err
			}
		}
		list[i] = e
	}
	for i, e := range list {
		if key := s.groupKeys[e.sql]; key != "" {
			list[i].sql = key
		}
	}
	return expr{
		sql: "CAST(grouping(" + strings.Join(sqlOf(list), ", ") + ") AS INTEGER)", typ: plain(OIDInt4), loc: n.Location,
		name: "grouping", scale: -1,
	}, nil
}

// valueFunction analyses CURRENT_DATE, CURRENT_USER and the like.
func (a *analyzer) valueFunction(n *pg.SQLValueFunction) (expr, error) {
	e := expr{loc: n.Location, name: valueFunctionName(n.Op), scale: -1, typ: plain(OIDName)}
	now := "CAST(" + NowMark + " AS TIMESTAMPTZ)"
	switch n.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		e.sql, e.typ = "CAST("+now+" AS DATE)", plain(OIDDate)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:
		e.sql, e.typ = now, plain(OIDTimestamptz)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return a.applyMod(expr{sql: now, typ: plain(OIDTimestamptz), loc: n.Location, name: e.name, scale: -1},
			Type{OID: OIDTimestamptz, Mod: n.Typmod}), nil
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		whole := map[pg.SQLValueFunctionOp]pg.SQLValueFunctionOp{
			pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:   pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME,
			pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:      pg.SQLValueFunctionOp_SVFOP_LOCALTIME,
			pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N: pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP,
		}[n.Op]
		v, err := a.valueFunction(&pg.SQLValueFunction{Op: whole, Location: n.Location})
		return a.applyMod(v, Type{OID: v.typ.OID, Mod: n.Typmod}), err
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:
		e.sql, e.typ = "CAST("+now+" AS TIMESTAMP)", plain(OIDTimestamp)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIME:
		e.sql, e.typ = "CAST("+now+" AS TIMETZ)", plain(OIDTimetz)
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME:
		e.sql, e.typ = "CAST(CAST("+now+" AS TIMESTAMP) AS TIME)", plain(OIDTime)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg.SQLValueFunctionOp_SVFOP_USER,
		pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE:
		e.sql = quote.Text(a.env.User)
	case pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		e.sql = quote.Text(a.env.SessionUser)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		e.sql = quote.Text(a.env.Database)
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		e.sql = a.currentSchema()
	default:
		return e, a.errAt(n.Location, unsupported("%s is not supported", strings.ToUpper(e.name)))
	}
	return e, nil
}

// currentSchema is the first schema of the search path that can hold tables.
func (a *analyzer) currentSchema() string {
	for _, p := range a.env.SearchPath {
		if p != "pg_catalog" && p != a.env.TempSchema && a.env.Resolver.HasSchema(p) {
			return quote.Text(p)
		}
	}
	return "CAST(NULL AS VARCHAR)"
}
