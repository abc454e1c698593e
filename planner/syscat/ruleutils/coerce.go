package ruleutils

import (
	"errors"
	"fmt"
)

// errUnknown says that something is not resolved here.
var errUnknown = errors.New("not resolved")

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUnknown, fmt.Sprintf(format, args...))
}

// context is how a cast is asked for: in an expression, in an assignment, by CAST.
type context byte

const (
	implicit   context = 'i'
	assignment context = 'a'
	explicit   context = 'e'
)

// allows reports whether a cast of a kind of pg_cast happens in a context.
func (c context) allows(kind byte) bool {
	switch c {
	case explicit:
		return true
	case assignment:
		return kind != 'e'
	}
	return kind == 'i'
}

// pathKind is how a value becomes one of another type.
type pathKind uint8

const (
	noPath pathKind = iota
	pathRelabel
	pathFunction
	pathArray
	pathText
)

// path is find_coercion_pathway.
func (f *Facts) path(from, to uint32, c context) (pathKind, uint32) {
	if from == to {
		return pathRelabel, 0
	}
	if k, ok := f.casts[[2]uint32{from, to}]; ok {
		if !c.allows(k.context) {
			return noPath, 0
		}
		switch k.method {
		case 'f':
			return pathFunction, k.function
		case 'i':
			return pathText, 0
		}
		return pathRelabel, 0
	}
	if e, t := f.elemOf(from), f.elemOf(to); e != 0 && t != 0 && from != 22 && from != 30 {
		if kind, fn := f.path(e, t, c); kind != noPath {
			if kind == pathText {
				return pathText, 0
			}
			return pathArray, fn
		}
	}
	if c != implicit && f.typeOf(to).category == 'S' || c == explicit && f.typeOf(from).category == 'S' {
		return pathText, 0
	}
	return noPath, 0
}

// canCoerce is can_coerce_type of one type.
func (f *Facts) canCoerce(from, to uint32, c context) bool {
	switch {
	case from == to, to == typAny, from == typUnknown, isPolymorphic(to):
		return true
	case to == typRecord:
		return f.typeOf(from).kind == 'c'
	case to == typName && f.typeOf(from).kind == 'e':
		return c != implicit
	}
	kind, _ := f.path(from, to, c)
	return kind != noPath
}

// coerce is coerce_type and coerce_type_typmod; written says that the statement has the cast.
func (r *resolver) coerce(n node, to typed, c context, written bool) (node, error) {
	fm := formImplicit
	if written {
		fm = formExplicit
	}
	out, err := r.coerceType(n, to, c, fm)
	if err != nil || to.typmod < 0 || to.typmod == out.mod() {
		return out, err
	}
	if out != n {
		out = hidden(out)
	}
	return r.applyLength(out, to, fm)
}

// applyLength is coerce_type_typmod.
func (r *resolver) applyLength(n node, to typed, fm form) (node, error) {
	if elem := r.facts.elemOf(to.oid); elem != 0 && r.facts.lengths[elem] != 0 {
		return &relabel{typed: to, arg: n, form: fm}, nil
	}
	if r.facts.lengths[to.oid] == 0 {
		return n, nil
	}
	return &function{typed: to, args: []node{n}, form: fm}, nil
}

// hidden makes the cast under a cast to a length one that is not shown.
func hidden(n node) node {
	switch v := n.(type) {
	case *relabel:
		if v.form == formExplicit {
			k := *v
			k.form = formImplicit
			return &k
		}
	case *function:
		if v.form == formExplicit {
			k := *v
			k.form = formImplicit
			return &k
		}
	}
	return n
}

func (r *resolver) coerceType(n node, to typed, c context, fm form) (node, error) {
	from := n.typ()
	switch {
	case from == to.oid:
		return n, nil
	case to.oid == typAny, isPolymorphic(to.oid):
		if from == typUnknown && to.oid != typAny {
			return nil, unknown("polymorphic argument")
		}
		return n, nil
	}
	if k, ok := n.(*constant); ok && from == typUnknown {
		return r.literal(k, to)
	}
	if from == typUnknown {
		return nil, unknown("an expression without a type")
	}
	kind, fn := r.facts.path(from, to.oid, c)
	bare := typed{to.oid, -1}
	switch kind {
	case pathRelabel, pathText, pathArray:
		return &relabel{typed: bare, arg: n, form: fm}, nil
	case pathFunction:
		name := ""
		_ = fn
		return &function{typed: bare, name: name, args: []node{n}, form: fm}, nil
	}
	return nil, unknown("no cast from %d to %d", from, to.oid)
}

// common is select_common_type.
func (r *resolver) common(list []node) (uint32, error) {
	var best uint32 = typUnknown
	for _, n := range list {
		best = r.commonOf(best, n.typ())
		if best == 0 {
			return 0, unknown("types that do not match")
		}
	}
	if best == typUnknown {
		best = typText
	}
	return best, nil
}

// commonOf is a step of it; 0 for types that do not match.
func (r *resolver) commonOf(best, t uint32) uint32 {
	if best == typUnknown || t == best {
		return t
	}
	if t == typUnknown {
		return best
	}
	a, b := r.facts.typeOf(best), r.facts.typeOf(t)
	switch {
	case a.category != b.category:
		return 0
	case !a.preferred && r.facts.canCoerce(best, t, implicit) && !r.facts.canCoerce(t, best, implicit):
		return t
	}
	return best
}

// unify brings expressions to their common type.
func (r *resolver) unify(list []node) ([]node, uint32, error) {
	t, err := r.common(list)
	if err != nil {
		return nil, 0, err
	}
	out := make([]node, len(list))
	for i, n := range list {
		if out[i], err = r.coerceType(n, typed{t, -1}, implicit, formImplicit); err != nil {
			return nil, 0, err
		}
	}
	return out, t, nil
}
