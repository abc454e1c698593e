package ruleutils

import "slices"

// inQuery are the queries that stand directly in another.
func inQuery(q *query) []*query {
	var out []*query
	for _, c := range q.ctes {
		out = append(out, c.query)
	}
	if q.left != nil {
		out = append(out, q.left, q.right)
	}
	for _, r := range q.relations {
		if r.query != nil {
			out = append(out, r.query)
		}
		out = append(out, inNodes(r.call)...)
	}
	for _, t := range q.targets {
		out = append(out, inNodes(t.expr)...)
	}
	for _, j := range q.from {
		out = append(out, inJoin(j)...)
	}
	for _, g := range q.group {
		out = append(out, inGroup(g)...)
	}
	for _, w := range q.windows {
		out = append(out, inWindow(w)...)
	}
	for _, row := range q.values {
		out = append(out, inNodes(row...)...)
	}
	out = append(out, inKeys(q.sort)...)
	out = append(out, inNodes(q.on...)...)
	return append(out, inNodes(q.where, q.having, q.limit, q.offset)...)
}

func inJoin(j *join) []*query {
	if j == nil {
		return nil
	}
	return append(append(inJoin(j.left), inJoin(j.right)...), inNodes(j.on)...)
}

func inGroup(g groupItem) []*query {
	out := inNodes(g.exprs...)
	for _, x := range g.list {
		out = append(out, inGroup(x)...)
	}
	return out
}

func inKeys(keys []sortKey) (out []*query) {
	for _, k := range keys {
		out = append(out, inNodes(k.expr)...)
	}
	return out
}

func inWindow(w *window) []*query {
	if w == nil {
		return nil
	}
	return append(append(inNodes(w.partition...), inKeys(w.order)...), inNodes(w.start, w.end)...)
}

func inNodes(list ...node) (out []*query) {
	for _, n := range list {
		switch v := n.(type) {
		case *function:
			out = append(out, inNodes(v.args...)...)
		case *operator:
			out = append(out, inNodes(v.args...)...)
		case *logic:
			out = append(out, inNodes(v.args...)...)
		case *listed:
			out = append(out, inNodes(v.args...)...)
		case *relabel:
			out = append(out, inNodes(v.arg)...)
		case *test:
			out = append(out, inNodes(v.arg)...)
		case *collated:
			out = append(out, inNodes(v.arg)...)
		case *subscript:
			out = append(out, inNodes(v.arg)...)
			for _, b := range v.bounds {
				out = append(out, inNodes(b...)...)
			}
		case *caseOf:
			out = append(append(out, inNodes(v.arg, v.last)...), append(inNodes(v.conds...), inNodes(v.values...)...)...)
		case *aggregate:
			out = append(append(out, inNodes(v.args...)...), inNodes(v.direct...)...)
			out = append(append(append(out, inKeys(v.order)...), inNodes(v.filter)...), inWindow(v.over)...)
		case *subLink:
			out = append(append(out, v.query), inNodes(v.left...)...)
		}
	}
	return out
}

// usesAny reports whether an expression names a column of one of the relations, but in queries
// within it.
func usesAny(n node, relations []*relation) bool {
	for _, r := range relations {
		if uses(n, r) {
			return true
		}
	}
	return false
}

func uses(n node, r *relation) bool {
	some := func(list ...node) bool { return slices.ContainsFunc(list, func(x node) bool { return uses(x, r) }) }
	switch v := n.(type) {
	case *variable:
		return v.rel == r
	case *function:
		return some(v.args...)
	case *operator:
		return some(v.args...)
	case *logic:
		return some(v.args...)
	case *listed:
		return some(v.args...)
	case *relabel:
		return some(v.arg)
	case *test:
		return some(v.arg)
	case *collated:
		return some(v.arg)
	case *caseOf:
		return some(v.arg, v.last) || some(v.conds...) || some(v.values...)
	case *subscript:
		return some(v.arg)
	}
	return false
}
