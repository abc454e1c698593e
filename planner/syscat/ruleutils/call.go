package ruleutils

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// funcCall resolves a call of a function, an aggregate or a window function.
func (r *resolver) funcCall(n *pg.FuncCall, s *scope) (node, error) {
	name := n.Funcname[len(n.Funcname)-1].GetString_().GetSval()
	if len(n.Funcname) > 1 && n.Funcname[0].GetString_().GetSval() != "pg_catalog" {
		return nil, unknown("a function of another schema")
	}
	args, err := r.exprs(n.Args, s)
	if err != nil {
		return nil, err
	}
	var order []sortKey
	all := args
	if n.AggWithinGroup {
		if order, err = r.sortKeys(n.AggOrder, s, nil); err != nil {
			return nil, err
		}
		all = slices.Clone(args)
		for _, k := range order {
			all = append(all, k.expr)
		}
	}
	types := make([]uint32, len(all))
	for i, a := range all {
		types[i] = a.typ()
	}
	best := r.facts.choose(r.facts.functions(name, len(all), n.FuncVariadic), types)
	if best == nil {
		return r.castCall(name, args)
	}
	to, result, err := r.polymorphic(*best, best.proc.result, all)
	if err != nil {
		return nil, err
	}
	cast := make([]node, len(all))
	for i, a := range all {
		if cast[i], err = r.coerceType(a, typed{to[i], -1}, implicit, formImplicit); err != nil {
			return nil, err
		}
	}
	variadic := n.FuncVariadic
	if best.variadic > 0 && best.proc.variadic != typAny { // they are put into an array
		at := len(cast) - best.variadic
		elem := to[at]
		cast, variadic = append(slices.Clone(cast[:at]), arrayOf(cast[at:], r.facts.arrayOf(elem))), true
	}
	if best.proc.kind == 'a' || best.proc.kind == 'w' {
		return r.aggregateCall(n, best.proc, result, cast, len(args), s)
	}
	if n.Over != nil || n.AggFilter != nil || n.AggDistinct || len(n.AggOrder) > 0 {
		return nil, unknown("a function with the clauses of an aggregate")
	}
	fm := formCall
	if n.Funcformat == pg.CoercionForm_COERCE_SQL_SYNTAX {
		fm = formSQL
	}
	return &function{typed: typed{result, -1}, name: name, args: cast, form: fm, variadic: variadic}, nil
}

// functions are the overloads of a name that take so many arguments.
func (f *Facts) functions(name string, n int, variadic bool) []candidate {
	var out []candidate
	procs := f.procs[name]
	for i := range procs {
		p := &procs[i]
		switch {
		case p.variadic != 0 && !variadic && n >= len(p.args):
			c := candidate{proc: p, args: slices.Clone(p.args[:len(p.args)-1]), variadic: n - len(p.args) + 1}
			for range c.variadic {
				elem := p.variadic
				if e := map[uint32]uint32{typAnyArray: typAnyElement, typCompArray: typCompatible}[elem]; e != 0 {
					elem = e
				}
				c.args = append(c.args, elem)
			}
			out = append(out, c)
			if n == len(p.args) {
				out = append(out, candidate{proc: p, args: p.args})
			}
		case n <= len(p.args) && n >= len(p.args)-p.defaults:
			out = append(out, candidate{proc: p, args: p.args[:n]})
		}
	}
	return out
}

// castCall is the name of a type that is used as a function.
func (r *resolver) castCall(name string, args []node) (node, error) {
	oid := r.facts.names[name]
	if oid == 0 || len(args) != 1 {
		return nil, unknown("function %s", name)
	}
	from := args[0].typ()
	if from != typUnknown {
		if kind, _ := r.facts.path(from, oid, explicit); kind != pathRelabel && kind != pathText {
			return nil, unknown("function %s", name)
		}
	}
	return r.coerceType(args[0], typed{oid, -1}, explicit, formExplicit)
}

func (r *resolver) aggregateCall(n *pg.FuncCall, p *procFact, result uint32, args []node, direct int, s *scope) (node, error) {
	out := &aggregate{typed: typed{result, -1}, name: p.name, star: n.AggStar, distinct: n.AggDistinct, args: args, variadic: n.FuncVariadic}
	var err error
	if n.AggWithinGroup {
		if out.order, err = r.sortKeys(n.AggOrder, s, nil); err != nil {
			return nil, err
		}
		out.ordered, out.direct, out.args = true, args[:direct], nil
		for i := range out.order {
			out.order[i].expr = args[direct+i]
		}
	} else if out.order, err = r.sortKeys(n.AggOrder, s, nil); err != nil {
		return nil, err
	}
	if n.AggFilter != nil {
		if out.filter, err = r.expr(n.AggFilter, s); err != nil {
			return nil, err
		}
	}
	if n.Over == nil {
		return out, nil
	}
	out.isWindow = true
	out.over, err = r.windowOf(n.Over, s)
	return out, err
}

// Options of a window's frame, as the parser has them.
const (
	frameNonDefault = 1 << iota
	frameRange
	frameRows
	frameGroups
	frameBetween
	frameStartUnbounded
	frameEndUnboundedPreceding
	frameStartUnboundedFollowing
	frameEndUnbounded
	frameStartCurrent
	frameEndCurrent
	frameStartPreceding
	frameEndPreceding
	frameStartFollowing
	frameEndFollowing
	frameNotCurrent
	frameNotGroup
	frameNotTies
)

func (r *resolver) windowOf(n *pg.WindowDef, s *scope) (*window, error) {
	if n.Name != "" && n.Refname == "" && len(n.PartitionClause)+len(n.OrderClause) == 0 && n.FrameOptions&frameNonDefault == 0 && s.windows[n.Name] != nil {
		return s.windows[n.Name], nil
	}
	out := &window{refName: n.Refname}
	var err error
	if out.partition, err = r.exprs(n.PartitionClause, s); err != nil {
		return nil, err
	}
	if out.order, err = r.sortKeys(n.OrderClause, s, nil); err != nil {
		return nil, err
	}
	if n.FrameOptions&frameNonDefault == 0 {
		return out, nil
	}
	return out, r.frame(out, n, s)
}

// frame resolves the frame of a window.
func (r *resolver) frame(out *window, n *pg.WindowDef, s *scope) error {
	o := n.FrameOptions
	pick := func(pairs ...any) string {
		for i := 0; i < len(pairs); i += 2 {
			if o&int32(pairs[i].(int)) != 0 {
				return pairs[i+1].(string)
			}
		}
		return ""
	}
	out.frame = pick(frameRange, "RANGE ", frameRows, "ROWS ", frameGroups, "GROUPS ")
	out.between = o&frameBetween != 0
	out.startWord = pick(frameStartUnbounded, "UNBOUNDED PRECEDING ", frameStartCurrent, "CURRENT ROW ", frameStartPreceding, " PRECEDING ", frameStartFollowing, " FOLLOWING ")
	out.endWord = pick(frameEndUnbounded, "UNBOUNDED FOLLOWING ", frameEndCurrent, "CURRENT ROW ", frameEndPreceding, " PRECEDING ", frameEndFollowing, " FOLLOWING ")
	out.exclude = pick(frameNotCurrent, "EXCLUDE CURRENT ROW ", frameNotGroup, "EXCLUDE GROUP ", frameNotTies, "EXCLUDE TIES ")
	bound := func(x *pg.Node) (node, error) {
		if x == nil {
			return nil, nil
		}
		if out.frame == "RANGE " {
			return nil, unknown("RANGE with an offset")
		}
		e, err := r.expr(x, s)
		if err != nil {
			return nil, err
		}
		return r.coerceType(e, typed{typInt8, -1}, assignment, formImplicit)
	}
	var err error
	if out.start, err = bound(n.StartOffset); err != nil {
		return err
	}
	out.end, err = bound(n.EndOffset)
	return err
}

// sortKeys resolves ORDER BY. With targets a name may be one of theirs, and a number the place of one.
func (r *resolver) sortKeys(list []*pg.Node, s *scope, targets []target) ([]sortKey, error) {
	var out []sortKey
	for _, n := range list {
		sb := n.GetSortBy()
		if len(sb.UseOp) > 0 {
			return nil, unknown("ORDER BY USING")
		}
		k := sortKey{desc: sb.SortbyDir == pg.SortByDir_SORTBY_DESC}
		k.nullsFirst = k.desc
		switch sb.SortbyNulls {
		case pg.SortByNulls_SORTBY_NULLS_FIRST:
			k.nullsFirst = true
		case pg.SortByNulls_SORTBY_NULLS_LAST:
			k.nullsFirst = false
		}
		var err error
		if k.expr, k.number, err = r.keyOf(sb.Node, s, targets, false); err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// keyOf finds what an entry of ORDER BY, GROUP BY or DISTINCT ON means; number is the place of the
// target that it is, 0 for none.
func (r *resolver) keyOf(n *pg.Node, s *scope, targets []target, group bool) (e node, number int, err error) {
	if i := n.GetAConst().GetIval(); i != nil && targets != nil {
		if i.Ival < 1 || int(i.Ival) > len(targets) {
			return nil, 0, unknown("a place of no column")
		}
		return targets[i.Ival-1].expr, int(i.Ival), nil
	}
	if c := n.GetColumnRef(); c != nil && len(c.Fields) == 1 && targets != nil {
		name := c.Fields[0].GetString_().GetSval()
		if !group || !s.hasColumn(name) {
			for i, t := range targets {
				if t.name == name {
					return t.expr, i + 1, nil
				}
			}
		}
	}
	if e, err = r.expr(n, s); err == nil {
		e, err = r.settled(e)
	}
	return e, 0, err
}

// sqlCall is how a function is written that has words of SQL; ok is false for others.
func (p *printer) sqlCall(f *function) bool {
	a := f.args
	part := func(before string, i int) {
		if i < len(a) {
			p.text(before)
			p.expr(a[i], false)
		}
	}
	switch f.name {
	case "timezone":
		p.text("(")
		p.paren(a[1], false, f)
		p.text(" AT TIME ZONE ")
		p.paren(a[0], false, f)
		p.text(")")
	case "extract":
		k, ok := a[0].(*constant)
		if !ok {
			return false
		}
		p.text("EXTRACT(" + k.text)
		part(" FROM ", 1)
		p.text(")")
	case "position":
		part("POSITION((", 1)
		part(") IN (", 0)
		p.text("))")
	case "overlay":
		part("OVERLAY(", 0)
		part(" PLACING ", 1)
		part(" FROM ", 2)
		part(" FOR ", 3)
		p.text(")")
	case "substring":
		part("SUBSTRING(", 0)
		part(" FROM ", 1)
		part(" FOR ", 2)
		p.text(")")
	case "btrim", "ltrim", "rtrim":
		p.text("TRIM(" + map[string]string{"btrim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[f.name])
		part(" ", 1)
		part(" FROM ", 0)
		p.text(")")
	default:
		return false
	}
	return true
}

func hasColumn(n *pg.Node) bool { return strings.Contains(n.String(), "column_ref:") }

func valueFunction(n *pg.SQLValueFunction) (node, error) {
	name := strings.TrimPrefix(n.Op.String(), "SVFOP_")
	name, precise := strings.CutSuffix(name, "_N")
	types := map[string]uint32{
		"CURRENT_DATE": typDate, "CURRENT_TIME": typTimetz, "CURRENT_TIMESTAMP": typTimestamptz, "LOCALTIME": typTime, "LOCALTIMESTAMP": typTimestamp,
	}
	out := &word{typed: typed{types[name], -1}, text: name}
	if out.oid == 0 {
		out.oid = typName
	}
	if precise {
		out.typmod = n.Typmod
		out.text += "(" + strconv.Itoa(int(n.Typmod)) + ")"
	}
	return out, nil
}
