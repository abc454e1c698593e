package ruleutils

import "slices"

// candidate is an overload of a function or operator, with the types of its arguments as many as
// the call has.
type candidate struct {
	proc     *procFact
	oper     *operFact
	args     []uint32
	variadic int // how many of them are of a variadic argument, 0 for none
}

// fits is func_match_argtypes.
func (f *Facts) fits(c candidate, types []uint32) bool {
	for i, t := range c.args {
		if !f.canCoerce(types[i], t, implicit) {
			return false
		}
	}
	return f.consistent(c.args, types)
}

// consistent is check_generic_type_consistency, as far as the types in question go.
func (f *Facts) consistent(args, types []uint32) bool {
	var elem, array uint32
	for i, t := range args {
		from := types[i]
		if from == typUnknown {
			continue
		}
		switch t {
		case typAnyElement, typAnyNonarray, typAnyEnum:
			if elem != 0 && elem != from || t == typAnyEnum && f.typeOf(from).kind != 'e' || t == typAnyNonarray && f.elemOf(from) != 0 {
				return false
			}
			elem = from
		case typAnyArray:
			if array != 0 && array != from || f.elemOf(from) == 0 {
				return false
			}
			array = from
		case typCompArray:
			if f.elemOf(from) == 0 {
				return false
			}
		case 3831, 4537, 5080, 4538: // ranges
			if f.typeOf(from).category != 'R' {
				return false
			}
		}
	}
	return elem == 0 || array == 0 || f.elemOf(array) == elem
}

// choose is func_select_candidate after func_match_argtypes; nil when nothing is best.
func (f *Facts) choose(list []candidate, types []uint32) *candidate {
	for i := range list {
		if slices.Equal(list[i].args, types) {
			return &list[i]
		}
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !f.fits(c, types) })
	if len(list) > 1 && slices.ContainsFunc(list, func(c candidate) bool { return c.variadic == 0 }) {
		list = slices.DeleteFunc(list, func(c candidate) bool { return c.variadic > 0 && duplicate(list, c) })
	}
	for _, score := range []func(candidate, []uint32) int{f.exact, f.preferred} {
		list = bestBy(list, types, score)
	}
	if len(list) > 1 && slices.Contains(types, typUnknown) {
		list = f.byUnknown(list, types)
	}
	if len(list) != 1 {
		return nil
	}
	return &list[0]
}

func duplicate(list []candidate, c candidate) bool {
	return slices.ContainsFunc(list, func(o candidate) bool { return o.variadic == 0 && slices.Equal(o.args, c.args) })
}

func bestBy(list []candidate, types []uint32, score func(candidate, []uint32) int) []candidate {
	if len(list) < 2 {
		return list
	}
	best := 0
	for _, c := range list {
		best = max(best, score(c, types))
	}
	return slices.DeleteFunc(list, func(c candidate) bool { return score(c, types) < best })
}

func (f *Facts) exact(c candidate, types []uint32) (n int) {
	for i, t := range c.args {
		if types[i] != typUnknown && t == types[i] {
			n++
		}
	}
	return n
}

func (f *Facts) preferred(c candidate, types []uint32) (n int) {
	for i, t := range c.args {
		if types[i] != typUnknown && (t == types[i] || f.typeOf(t).preferred && f.typeOf(t).category == f.typeOf(types[i]).category) {
			n++
		}
	}
	return n
}

// byUnknown decides by the arguments that have no type yet: first by the category that they
// seem to have, then by the type of the others.
func (f *Facts) byUnknown(list []candidate, types []uint32) []candidate {
	left := list
	for i, t := range types {
		if t != typUnknown {
			continue
		}
		category, ok := f.categoryAt(list, i)
		if !ok {
			left = nil
			break
		}
		in := func(c candidate) bool { return f.typeOf(c.args[i]).category == category }
		preferred := slices.ContainsFunc(list, func(c candidate) bool { return in(c) && f.typeOf(c.args[i]).preferred })
		left = slices.DeleteFunc(slices.Clone(left), func(c candidate) bool { return !in(c) || preferred && !f.typeOf(c.args[i]).preferred })
	}
	if len(left) == 1 {
		return left
	}
	if len(left) > 0 {
		list = left
	}
	known := typUnknown
	for _, t := range types {
		if t == typUnknown {
			continue
		}
		if known != typUnknown && known != t {
			return list
		}
		known = t
	}
	if known == typUnknown {
		return list
	}
	all := make([]uint32, len(types))
	for i := range all {
		all[i] = known
	}
	var out []candidate
	for _, c := range list {
		if f.fits(c, all) {
			out = append(out, c)
		}
	}
	if len(out) != 1 {
		return list
	}
	return out
}

// categoryAt is the category of the candidates' arguments at a place: that of texts if any takes
// one, else the one that all have.
func (f *Facts) categoryAt(list []candidate, i int) (byte, bool) {
	var category byte
	same := true
	for _, c := range list {
		k := f.typeOf(c.args[i]).category
		if k == 'S' {
			return 'S', true
		}
		if category != 0 && category != k {
			same = false
		}
		category = k
	}
	return category, same
}

// polymorphic gives the types of a polymorphic call: what its arguments are cast to, and the result.
func (r *resolver) polymorphic(c candidate, result uint32, nodes []node) ([]uint32, uint32, error) {
	f := r.facts
	var elem uint32
	var compatible []node
	for i, t := range c.args {
		from := nodes[i].typ()
		switch t {
		case typAnyElement, typAnyNonarray, typAnyEnum:
			if from != typUnknown {
				elem = from
			}
		case typAnyArray:
			if e := f.elemOf(from); e != 0 {
				elem = e
			}
		case typCompatible, typCompNonarr:
			compatible = append(compatible, nodes[i])
		case typCompArray:
			if e := f.elemOf(from); e != 0 {
				compatible = append(compatible, &constant{typed: typed{e, -1}})
			}
		case 3831, 4537, 5080, 4538:
			return nil, 0, unknown("ranges of any type")
		}
	}
	var common uint32
	if len(compatible) > 0 {
		var err error
		if common, err = r.common(compatible); err != nil {
			return nil, 0, err
		}
	}
	bind := func(t uint32) uint32 {
		switch t {
		case typAnyElement, typAnyNonarray, typAnyEnum:
			return elem
		case typAnyArray:
			return f.arrayOf(elem)
		case typCompatible, typCompNonarr:
			return common
		case typCompArray:
			return f.arrayOf(common)
		}
		return t
	}
	out := make([]uint32, len(c.args))
	for i, t := range c.args {
		if out[i] = bind(t); out[i] == 0 {
			return nil, 0, unknown("a polymorphic type that is not determined")
		}
	}
	if result = bind(result); result == 0 {
		return nil, 0, unknown("a polymorphic result")
	}
	return out, result, nil
}
