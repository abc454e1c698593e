package ruleutils

import (
	"math"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// resolver is the state of one resolution; used once.
type resolver struct {
	d     *Deparser
	facts *Facts
	// recursive is the query of WITH RECURSIVE whose outermost set operation comes next.
	recursive *cte
}

var boolean = typed{typBool, -1}

func (r *resolver) expr(n *pg.Node, s *scope) (node, error) {
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return r.columnRef(v.ColumnRef, s)
	case *pg.Node_AConst:
		return r.constant(v.AConst)
	case *pg.Node_TypeCast:
		return r.typeCast(v.TypeCast, s)
	case *pg.Node_AExpr:
		return r.operatorExpr(v.AExpr, s)
	case *pg.Node_BoolExpr:
		return r.boolExpr(v.BoolExpr, s)
	case *pg.Node_FuncCall:
		return r.funcCall(v.FuncCall, s)
	case *pg.Node_SubLink:
		return r.subLink(v.SubLink, s)
	case *pg.Node_CaseExpr:
		return r.caseExpr(v.CaseExpr, s)
	case *pg.Node_NullTest:
		return r.nullTest(v.NullTest, s)
	case *pg.Node_BooleanTest:
		return r.booleanTest(v.BooleanTest, s)
	case *pg.Node_CoalesceExpr:
		return r.choice("COALESCE", v.CoalesceExpr.Args, s)
	case *pg.Node_MinMaxExpr:
		if v.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return r.choice("LEAST", v.MinMaxExpr.Args, s)
		}
		return r.choice("GREATEST", v.MinMaxExpr.Args, s)
	case *pg.Node_AArrayExpr:
		return r.array(v.AArrayExpr, s, typed{0, -1})
	case *pg.Node_AIndirection:
		return r.indirection(v.AIndirection, s)
	case *pg.Node_CollateClause:
		return r.collate(v.CollateClause, s)
	case *pg.Node_SqlvalueFunction:
		return valueFunction(v.SqlvalueFunction)
	case *pg.Node_RowExpr:
		return r.row(v.RowExpr, s)
	case *pg.Node_GroupingFunc:
		list, err := r.exprs(v.GroupingFunc.Args, s)
		return &listed{typed: typed{typInt4, -1}, word: "GROUPING", open: "(", end: ")", args: list}, err
	}
	return nil, unknown("%T", n.GetNode())
}

func (r *resolver) exprs(list []*pg.Node, s *scope) ([]node, error) {
	var out []node
	for _, n := range list {
		e, err := r.expr(n, s)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (r *resolver) constant(c *pg.A_Const) (node, error) {
	if c.Isnull {
		return &constant{typed: typed{typUnknown, -1}, null: true}, nil
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return &constant{typed: typed{typInt4, -1}, text: strconv.Itoa(int(v.Ival.Ival))}, nil
	case *pg.A_Const_Fval:
		text := v.Fval.Fval
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			t := typInt8
			if n >= math.MinInt32 && n <= math.MaxInt32 {
				t = typInt4
			}
			return &constant{typed: typed{t, -1}, text: text}, nil
		}
		if !plainNumber.MatchString(text) {
			return nil, unknown("number %s", text)
		}
		return &constant{typed: typed{typNumeric, -1}, text: text}, nil
	case *pg.A_Const_Boolval:
		return &constant{typed: boolean, text: strconv.FormatBool(v.Boolval.Boolval)}, nil
	case *pg.A_Const_Sval:
		return &constant{typed: typed{typUnknown, -1}, text: v.Sval.Sval}, nil
	case *pg.A_Const_Bsval:
		text, err := r.valueText(v.Bsval.Bsval, typBit)
		return &constant{typed: typed{typBit, -1}, text: text}, err
	}
	return nil, unknown("a constant")
}

func (r *resolver) typeCast(n *pg.TypeCast, s *scope) (node, error) {
	oid, mod, err := r.d.Names.TypeName(n.TypeName)
	if err != nil {
		return nil, err
	}
	to := typed{oid, mod}
	if arr := n.Arg.GetAArrayExpr(); arr != nil && r.facts.elemOf(oid) != 0 {
		e, err := r.array(arr, s, to)
		if err != nil || e.typ() == oid && mod < 0 {
			return e, err
		}
		return r.coerce(e, to, explicit, true)
	}
	e, err := r.expr(n.Arg, s)
	if err != nil {
		return nil, err
	}
	if k, ok := e.(*constant); ok && k.oid == typUnknown && oid == 2205 {
		return r.d.relationConstant(k.text)
	}
	return r.coerce(e, to, explicit, true)
}

// operands resolves an operator by the types of its operands, and casts these.
func (r *resolver) operate(name string, args []node) (*operator, error) {
	found, types, result, err := r.findOperator(name, args)
	if err != nil {
		return nil, err
	}
	out := &operator{typed: typed{result, -1}, name: found.name}
	for i, a := range args {
		c, err := r.coerceType(a, typed{types[i], -1}, implicit, formImplicit)
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, c)
	}
	return out, nil
}

func (r *resolver) findOperator(name string, args []node) (*operFact, []uint32, uint32, error) {
	if name == "!=" {
		name = "<>"
	}
	types := make([]uint32, len(args))
	for i, a := range args {
		types[i] = a.typ()
	}
	var list []candidate
	opers := r.facts.opers[name]
	for i := range opers {
		o := &opers[i]
		switch {
		case len(args) == 2 && o.left != 0:
			list = append(list, candidate{oper: o, args: []uint32{o.left, o.right}})
		case len(args) == 1 && o.left == 0:
			list = append(list, candidate{oper: o, args: []uint32{o.right}})
		}
	}
	best := r.exactOperator(list, types)
	if best == nil {
		best = r.facts.choose(list, types)
	}
	if best == nil {
		return nil, nil, 0, unknown("operator %s", name)
	}
	to, result, err := r.polymorphic(*best, best.oper.result, args)
	return best.oper, to, result, err
}

// exactOperator is binary_oper_exact: a literal is taken to be of the other's type.
func (r *resolver) exactOperator(list []candidate, types []uint32) *candidate {
	if len(types) != 2 {
		return nil
	}
	want := slices.Clone(types)
	switch {
	case want[0] == typUnknown && want[1] != typUnknown:
		want[0] = want[1]
	case want[1] == typUnknown && want[0] != typUnknown:
		want[1] = want[0]
	}
	for i := range list {
		if slices.Equal(list[i].args, want) {
			return &list[i]
		}
	}
	return nil
}

func (r *resolver) operatorExpr(n *pg.A_Expr, s *scope) (node, error) {
	name := ""
	if len(n.Name) > 0 {
		name = n.Name[len(n.Name)-1].GetString_().GetSval()
	}
	switch n.Kind {
	case pg.A_Expr_Kind_AEXPR_IN:
		return r.in(n, name, s)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return r.between(n, s)
	}
	var args []node
	for _, x := range []*pg.Node{n.Lexpr, n.Rexpr} {
		if x == nil {
			continue
		}
		e, err := r.expr(x, s)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	for _, a := range args {
		if a.typ() == typRecord {
			return nil, unknown("a comparison of rows")
		}
	}
	switch n.Kind {
	case pg.A_Expr_Kind_AEXPR_OP, pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE, pg.A_Expr_Kind_AEXPR_SIMILAR:
		return r.operate(name, args)
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return r.anyArray(name, args, n.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		o, err := r.operate("=", args)
		if err != nil {
			return nil, err
		}
		o.kind = distinctFrom
		if n.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT {
			return &logic{typed: boolean, word: "NOT", args: []node{o}}, nil
		}
		return o, nil
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		o, err := r.operate("=", args)
		if err != nil {
			return nil, err
		}
		o.kind, o.typed = nullIf, typed{o.args[0].typ(), o.args[0].mod()}
		return o, nil
	}
	return nil, unknown("an operator")
}

// anyArray is make_scalar_array_op.
func (r *resolver) anyArray(name string, args []node, any bool) (node, error) {
	elem := &constant{typed: typed{typUnknown, -1}}
	if args[1].typ() != typUnknown {
		if elem.oid = r.facts.elemOf(args[1].typ()); elem.oid == 0 {
			return nil, unknown("ANY of no array")
		}
	}
	found, types, _, err := r.findOperator(name, []node{args[0], elem})
	if err != nil {
		return nil, err
	}
	left, err := r.coerceType(args[0], typed{types[0], -1}, implicit, formImplicit)
	if err != nil {
		return nil, err
	}
	right, err := r.coerceType(args[1], typed{r.facts.arrayOf(types[1]), -1}, implicit, formImplicit)
	return &operator{typed: boolean, kind: anyOrAll, name: found.name, args: []node{left, right}, any: any}, err
}

func (r *resolver) in(n *pg.A_Expr, name string, s *scope) (node, error) {
	left, err := r.expr(n.Lexpr, s)
	if err != nil {
		return nil, err
	}
	some := name == "="
	var values, columns []node
	for _, x := range n.Rexpr.GetList().GetItems() {
		e, err := r.expr(x, s)
		if err != nil {
			return nil, err
		}
		if hasColumn(x) {
			columns = append(columns, e)
		} else {
			values = append(values, e)
		}
	}
	var parts []node
	rest := append(values, columns...)
	if len(values) > 1 {
		if t, err := r.common(append([]node{left}, values...)); err == nil && r.facts.arrayOf(t) != 0 {
			items := make([]node, len(values))
			for i, v := range values {
				if items[i], err = r.coerceType(v, typed{t, -1}, implicit, formImplicit); err != nil {
					return nil, err
				}
			}
			e, err := r.anyArray(name, []node{left, arrayOf(items, r.facts.arrayOf(t))}, some)
			if err != nil {
				return nil, err
			}
			parts, rest = append(parts, e), columns
		}
	} else {
		rest = nil // in the order in which they are written
		for _, x := range n.Rexpr.GetList().GetItems() {
			e, err := r.expr(x, s)
			if err != nil {
				return nil, err
			}
			rest = append(rest, e)
		}
	}
	for _, e := range rest {
		o, err := r.operate(name, []node{left, e})
		if err != nil {
			return nil, err
		}
		parts = append(parts, o)
	}
	return oneOf(parts, some), nil
}

// oneOf joins conditions pairwise, as the parser does.
func oneOf(parts []node, some bool) node {
	out, word := parts[0], "AND"
	if some {
		word = "OR"
	}
	for _, p := range parts[1:] {
		out = &logic{typed: boolean, word: word, args: []node{out, p}}
	}
	return out
}

func arrayOf(items []node, oid uint32) *listed {
	return &listed{typed: typed{oid, -1}, word: "ARRAY", open: "[", end: "]", args: items}
}

func (r *resolver) between(n *pg.A_Expr, s *scope) (node, error) {
	bounds := n.Rexpr.GetList().GetItems()
	if len(bounds) != 2 {
		return nil, unknown("BETWEEN")
	}
	list, err := r.exprs([]*pg.Node{n.Lexpr, bounds[0], bounds[1]}, s)
	if err != nil {
		return nil, err
	}
	pair := func(op1 string, a node, op2 string, b node, word string) (node, error) {
		l, err := r.operate(op1, []node{list[0], a})
		if err != nil {
			return nil, err
		}
		h, err := r.operate(op2, []node{list[0], b})
		return &logic{typed: boolean, word: word, args: []node{l, h}}, err
	}
	lo, hi := list[1], list[2]
	not := n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM
	one := func(lo, hi node) (node, error) {
		if not {
			return pair("<", lo, ">", hi, "OR")
		}
		return pair(">=", lo, "<=", hi, "AND")
	}
	first, err := one(lo, hi)
	if err != nil || n.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN || n.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN {
		return first, err
	}
	second, err := one(hi, lo)
	return oneOf([]node{first, second}, !not), err
}

func (r *resolver) truth(n node) (node, error) {
	return r.coerceType(n, boolean, assignment, formImplicit)
}

func (r *resolver) boolExpr(n *pg.BoolExpr, s *scope) (node, error) {
	out := &logic{typed: boolean, word: strings.TrimSuffix(strings.TrimPrefix(n.Boolop.String(), ""), "_EXPR")}
	for _, x := range n.Args {
		e, err := r.expr(x, s)
		if err == nil {
			e, err = r.truth(e)
		}
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, e)
	}
	return out, nil
}

// settled makes a literal that nothing has given a type a text.
func (r *resolver) settled(n node) (node, error) {
	if n.typ() != typUnknown {
		return n, nil
	}
	return r.coerceType(n, typed{typText, -1}, implicit, formImplicit)
}

func (r *resolver) caseExpr(n *pg.CaseExpr, s *scope) (node, error) {
	out := &caseOf{}
	var err error
	if n.Arg != nil {
		if out.arg, err = r.expr(n.Arg, s); err == nil {
			out.arg, err = r.settled(out.arg)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, w := range n.Args {
		cw := w.GetCaseWhen()
		cond, err := r.expr(cw.Expr, s)
		if err != nil {
			return nil, err
		}
		if out.arg != nil {
			o, err := r.operate("=", []node{&word{typed: typed{out.arg.typ(), out.arg.mod()}}, cond})
			if err != nil {
				return nil, err
			}
			cond = o.args[1]
		} else if cond, err = r.truth(cond); err != nil {
			return nil, err
		}
		value, err := r.expr(cw.Result, s)
		if err != nil {
			return nil, err
		}
		out.conds, out.values = append(out.conds, cond), append(out.values, value)
	}
	out.last = &constant{typed: typed{typUnknown, -1}, null: true}
	if n.Defresult != nil {
		if out.last, err = r.expr(n.Defresult, s); err != nil {
			return nil, err
		}
	}
	all, t, err := r.unify(append([]node{out.last}, out.values...))
	if err != nil {
		return nil, err
	}
	out.last, out.values, out.typed = all[0], all[1:], typed{t, commonMod(all)}
	return out, nil
}

// commonMod is the modifier that all have, -1 if they differ.
func commonMod(list []node) int32 {
	for _, n := range list {
		if n.mod() != list[0].mod() {
			return -1
		}
	}
	return list[0].mod()
}

func (r *resolver) choice(name string, args []*pg.Node, s *scope) (node, error) {
	list, err := r.exprs(args, s)
	if err != nil {
		return nil, err
	}
	list, t, err := r.unify(list)
	if err != nil {
		return nil, err
	}
	return &listed{typed: typed{t, commonMod(list)}, word: name, open: "(", end: ")", args: list}, nil
}

func (r *resolver) nullTest(n *pg.NullTest, s *scope) (node, error) {
	e, err := r.expr(n.Arg, s)
	if err != nil || e.typ() == typUnknown {
		return nil, unknown("a test of a literal: %v", err)
	}
	suffix := " IS NULL"
	if n.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
		suffix = " IS NOT NULL"
	}
	return &test{typed: boolean, arg: e, suffix: suffix, isNull: true}, nil
}

func (r *resolver) booleanTest(n *pg.BooleanTest, s *scope) (node, error) {
	e, err := r.expr(n.Arg, s)
	if err == nil {
		e, err = r.truth(e)
	}
	if err != nil {
		return nil, err
	}
	suffix := map[pg.BoolTestType]string{
		pg.BoolTestType_IS_TRUE: " IS TRUE", pg.BoolTestType_IS_NOT_TRUE: " IS NOT TRUE", pg.BoolTestType_IS_FALSE: " IS FALSE",
		pg.BoolTestType_IS_NOT_FALSE: " IS NOT FALSE", pg.BoolTestType_IS_UNKNOWN: " IS UNKNOWN", pg.BoolTestType_IS_NOT_UNKNOWN: " IS NOT UNKNOWN",
	}[n.Booltesttype]
	return &test{typed: boolean, arg: e, suffix: suffix}, nil
}

func (r *resolver) array(n *pg.A_ArrayExpr, s *scope, to typed) (node, error) {
	var list []node
	for _, x := range n.Elements {
		if x.GetAArrayExpr() != nil {
			return nil, unknown("an array of arrays")
		}
		e, err := r.expr(x, s)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if to.oid != 0 {
		for i, e := range list {
			c, err := r.coerce(e, typed{r.facts.elemOf(to.oid), to.typmod}, explicit, true)
			if err != nil {
				return nil, err
			}
			list[i] = c
		}
		return &listed{typed: to, word: "ARRAY", open: "[", end: "]", args: list}, nil
	}
	if len(list) == 0 {
		return nil, unknown("an empty array")
	}
	list, t, err := r.unify(list)
	if err != nil || r.facts.arrayOf(t) == 0 || r.facts.elemOf(t) != 0 {
		return nil, unknown("an array: %v", err)
	}
	return arrayOf(list, r.facts.arrayOf(t)), nil
}

func (r *resolver) row(n *pg.RowExpr, s *scope) (node, error) {
	list, err := r.exprs(n.Args, s)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i], err = r.settled(list[i]); err != nil {
			return nil, err
		}
	}
	return &listed{typed: typed{typRecord, -1}, word: "ROW", open: "(", end: ")", args: list}, nil
}

func (r *resolver) indirection(n *pg.A_Indirection, s *scope) (node, error) {
	e, err := r.expr(n.Arg, s)
	if err != nil {
		return nil, err
	}
	elem := r.facts.elemOf(e.typ())
	out := &subscript{typed: typed{elem, e.mod()}, arg: e}
	for _, x := range n.Indirection {
		i := x.GetAIndices()
		if i == nil || elem == 0 {
			return nil, unknown("a field")
		}
		var bounds []node
		parts := []*pg.Node{i.Uidx}
		if i.IsSlice {
			parts, out.oid = []*pg.Node{i.Lidx, i.Uidx}, e.typ()
		}
		for _, x := range parts {
			if x == nil {
				bounds = append(bounds, nil)
				continue
			}
			at, err := r.expr(x, s)
			if err == nil {
				at, err = r.coerceType(at, typed{typInt4, -1}, assignment, formImplicit)
			}
			if err != nil {
				return nil, err
			}
			bounds = append(bounds, at)
		}
		out.bounds = append(out.bounds, bounds)
	}
	return out, nil
}

func (r *resolver) collate(n *pg.CollateClause, s *scope) (node, error) {
	e, err := r.expr(n.Arg, s)
	if err == nil {
		e, err = r.settled(e)
	}
	if err != nil {
		return nil, err
	}
	return &collated{typed: typed{e.typ(), e.mod()}, arg: e, name: n.Collname[len(n.Collname)-1].GetString_().GetSval()}, nil
}
