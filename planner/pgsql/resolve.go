package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// candidates are the overloads of a name.
func (a *analyzer) candidates(schema, name string) []*signature {
	var out []*signature
	if schema == "" || schema == "pg_catalog" {
		out = append(out, builtinIndex()[name]...)
	}
	for _, f := range a.env.Functions[name] {
		if schema != "" && schema != f.Schema {
			continue
		}
		if slices.ContainsFunc(out, func(c *signature) bool { return slices.Equal(c.args, f.Args) }) {
			continue // the built-in one is as good
		}
		kind := byte('f')
		if f.Set {
			kind = 's'
		}
		c := &signature{kind: kind, name: name, args: f.Args, result: f.Result, engine: f.Engine}
		for _, x := range f.Fields {
			c.fields = append(c.fields, field{name: x.Name, typ: x.Type})
		}
		out = append(out, c)
	}
	return out
}

// choose is PostgreSQL's func_select_candidate: it returns nil when nothing fits
// and ambiguous when nothing is best.
func choose(cands []*signature, args []expr) (best *signature, ambiguous bool) {
	var fit []*signature
	for _, c := range cands {
		if len(c.args) == len(args) && accepts(c, args) {
			fit = append(fit, c)
		}
	}
	for _, keep := range []func(*signature, []expr) int{exactMatches, preferredMatches, unknownMatches} {
		if len(fit) > 1 {
			fit = bestBy(fit, args, keep)
		}
	}
	if len(fit) > 1 {
		fit = sameTypeGuess(fit, args)
	}
	switch len(fit) {
	case 0:
		return nil, false
	case 1:
		return fit[0], false
	}
	return nil, true
}

func accepts(c *signature, args []expr) bool {
	elem := uint32(0)
	for i, t := range c.args {
		from := args[i].typ.OID
		switch t {
		case OIDAnyArray:
			if from != OIDUnknown && ElemOf(from) == 0 {
				return false
			}
			if from != OIDUnknown {
				elem = ElemOf(from)
			}
		case OIDAny, OIDAnyElement:
		default:
			if args[i].row != nil || !canCoerce(from, t, implicit) {
				return false
			}
		}
	}
	if elem != 0 {
		for i, t := range c.args {
			if t == OIDAnyElement && !canCoerce(args[i].typ.OID, elem, implicit) {
				return false
			}
		}
	}
	return true
}

func bestBy(fit []*signature, args []expr, score func(*signature, []expr) int) []*signature {
	best := -1
	var out []*signature
	for _, c := range fit {
		n := score(c, args)
		if n > best {
			best, out = n, nil
		}
		if n == best {
			out = append(out, c)
		}
	}
	return out
}

// baseType is what a domain-like type counts as in resolution.
func baseType(oid uint32) uint32 {
	if oid == OIDVarchar {
		return OIDText
	}
	return oid
}

func exactMatches(c *signature, args []expr) (n int) {
	for i, t := range c.args {
		if baseType(args[i].typ.OID) == t {
			n++
		}
	}
	return n
}

func preferredMatches(c *signature, args []expr) (n int) {
	for i, t := range c.args {
		from := baseType(args[i].typ.OID)
		if from != OIDUnknown && (from == t || lookupType(t).preferred &&
			lookupType(t).category == lookupType(from).category) {
			n++
		}
	}
	return n
}

// unknownMatches prefers the string category for undecided arguments, then
// preferred types.
func unknownMatches(c *signature, args []expr) (n int) {
	for i, t := range c.args {
		if args[i].typ.OID != OIDUnknown {
			continue
		}
		if lookupType(t).category == 'S' {
			n += 2
		}
		if lookupType(t).preferred {
			n++
		}
	}
	return n
}

// sameTypeGuess assumes that undecided arguments have the type of the decided ones.
func sameTypeGuess(fit []*signature, args []expr) []*signature {
	known := uint32(0)
	for _, e := range args {
		if e.typ.OID == OIDUnknown {
			continue
		}
		if known != 0 && known != e.typ.OID {
			return fit
		}
		known = baseType(e.typ.OID)
	}
	var out []*signature
	for _, c := range fit {
		ok := known != 0
		for i, t := range c.args {
			if args[i].typ.OID == OIDUnknown && t != known {
				ok = false
			}
		}
		if ok {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return fit
	}
	return out
}

func typeList(args []expr) string {
	var names []string
	for _, e := range args {
		names = append(names, e.typ.Name())
	}
	return strings.Join(names, ", ")
}

func noFunction(name string, args []expr, ambiguous bool) *pgerr.Error {
	if ambiguous {
		return pgerr.New(codes.AmbiguousFunction, "function %s(%s) is not unique", name, typeList(args)).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
	}
	return pgerr.New(codes.UndefinedFunction, "function %s(%s) does not exist", name, typeList(args)).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

// bindArgs casts the arguments to the overload's types and returns its result type.
func (a *analyzer) bindArgs(c *signature, args []expr) ([]expr, Type, error) {
	elem := uint32(0)
	for i, t := range c.args {
		from := args[i].typ.OID
		if t == OIDAnyArray && ElemOf(from) != 0 {
			elem = ElemOf(from)
		}
	}
	if elem == 0 {
		var poly []*expr
		for i, t := range c.args {
			if t == OIDAnyElement {
				poly = append(poly, &args[i])
			}
		}
		if len(poly) > 0 && !slices.ContainsFunc(poly, func(e *expr) bool { return !e.undecided() }) {
			if c.name == "array_agg" { // of elements, or of arrays
				return nil, Type{}, noFunction(c.name, args, true)
			}
			return nil, Type{}, polymorphicUnknown()
		}
		if len(poly) > 0 {
			u, err := a.unify(poly, c.name)
			if err != nil {
				return nil, Type{}, err
			}
			elem = u.typ.OID
		}
	}
	out := make([]expr, len(args))
	for i, t := range c.args {
		to := plain(t)
		switch t {
		case OIDAnyArray:
			if elem == 0 {
				return nil, Type{}, polymorphicUnknown()
			}
			to = plain(ArrayOf(elem))
		case OIDAnyElement:
			to = a.env.TypeOf(elem, -1)
		case OIDAny:
			to = args[i].typ
			if args[i].undecided() {
				to = plain(OIDText)
			}
		}
		if t == OIDAny && args[i].row != nil {
			out[i] = args[i]
			continue
		}
		if args[i].typ.OID == to.OID {
			to.Mod = args[i].typ.Mod
		}
		e, err := a.coerce(args[i], to, implicit)
		if err != nil {
			return nil, Type{}, err
		}
		out[i] = e
	}
	switch c.result {
	case OIDAnyElement:
		return out, a.env.TypeOf(elem, -1), nil
	case OIDAnyArray:
		array, err := arrayType(c, elem)
		return out, array, err
	}
	return out, plain(c.result), nil
}

// arrayType is the type of an array of elem that a function returns: of arrays array_agg makes one
// of one more dimension.
func arrayType(c *signature, elem uint32) (Type, error) {
	if c.name == "array_agg" && ElemOf(elem) != 0 && !isVector(plain(elem)) {
		return plain(elem), nil
	}
	return plain(ArrayOf(elem)), arrayable(elem)
}

// arrayable reports that there are arrays of a type.
func arrayable(elem uint32) error {
	switch {
	case ArrayOf(elem) != 0:
		return nil
	case ElemOf(elem) != 0:
		return unsupported("arrays of several dimensions are not supported")
	}
	return pgerr.New(codes.UndefinedObject, "could not find array type for data type %s", plain(elem).Name())
}
