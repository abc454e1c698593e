package jsonpath

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// run is one run of a path.
type run struct {
	strict     bool
	lenient    bool // errors of structure do not count
	root, vars value
	last       int // of the array that is subscripted
	made       int // how many documents were made
}

// emit takes an item; an error ends the run.
type emit func(value) error

// errEnough ends a run that has found what it looks for.
var errEnough = errors.New("enough")

// logic is a truth value of three.
type logic uint8

const (
	no logic = iota
	yes
	unknown
)

func ofBool(b bool) logic {
	if b {
		return yes
	}
	return no
}

func failed(code codes.Code, format string, args ...any) error {
	return pgerr.New(code, format, args...)
}

// eval gives the items of an expression.
func (r *run) eval(n *node, current value, out emit) error {
	switch n.op {
	case "root":
		return out(r.root)
	case "current":
		return out(current)
	case "literal":
		return out(n.value)
	case "group":
		return r.eval(n.left, current, out)
	case "last":
		return out(value{kind: number, n: numeric.FromInt(int64(r.last))})
	case "variable":
		for i, k := range r.vars.keys {
			if k == n.text {
				return out(r.vars.items[i])
			}
		}
		return failed(codes.UndefinedObject, "could not find jsonpath variable \"%s\"", n.text)
	case "path":
		return r.eval(n.left, current, func(v value) error { return r.steps(n.steps, v, current, !r.strict, out) })
	case "unary +", "unary -":
		return r.signs(n, current, out)
	case "+", "-", "*", "/", "%":
		v, err := r.arithmetic(n, current)
		if err != nil {
			return err
		}
		return out(v)
	}
	switch t, err := r.test(n, current); {
	case err != nil:
		return err
	case t == unknown:
		return out(value{kind: null})
	default:
		return out(truth(t == yes))
	}
}

// sequence are the items of an expression; in lax mode those of arrays.
func (r *run) sequence(n *node, current value) (list []value, err error) {
	err = r.eval(n, current, func(v value) error {
		if !r.strict && v.kind == array {
			list = append(list, v.items...)
		} else {
			list = append(list, v)
		}
		return nil
	})
	return list, err
}

func (r *run) signs(n *node, current value, out emit) error {
	list, err := r.sequence(n.left, current)
	if err != nil {
		return err
	}
	for _, v := range list {
		if v.kind != number {
			return failed("2203B", "operand of unary jsonpath operator %s is not a numeric value", n.op[len("unary "):])
		}
		if n.op == "unary -" {
			v.n = v.n.Neg()
		}
		if err := out(v); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) arithmetic(n *node, current value) (value, error) {
	var operands [2]numeric.Num
	for i, side := range []*node{n.left, n.right} {
		list, err := r.sequence(side, current)
		if err != nil {
			return value{}, err
		}
		if len(list) != 1 || list[0].kind != number {
			return value{}, failed("22038", "%s operand of jsonpath operator %s is not a single numeric value", []string{"left", "right"}[i], n.op)
		}
		operands[i] = list[0].n
	}
	f := map[string]func(a, b numeric.Num) (numeric.Num, error){
		"+": numeric.Add, "-": numeric.Sub, "*": numeric.Mul, "/": numeric.Div, "%": numeric.Mod,
	}[n.op]
	v, err := f(operands[0], operands[1])
	return value{kind: number, n: v}, err
}

// steps goes from an item along accessors. unwrap has arrays give their elements to an accessor
// that is not for arrays.
func (r *run) steps(list []*node, v, current value, unwrap bool, out emit) error {
	if len(list) == 0 {
		return out(v)
	}
	s, rest := list[0], list[1:]
	next := func(v value) error { return r.steps(rest, v, current, !r.strict, out) }
	elements := func() error {
		return each(v.items, func(item value) error { return r.steps(list, item, current, false, out) })
	}
	unwraps := unwrap && v.kind == array
	switch s.op {
	case ".":
		switch {
		case v.kind == object:
			for i, k := range v.keys {
				if k == s.text {
					return next(v.items[i])
				}
			}
			if !r.lenient {
				return failed("2203A", "JSON object does not contain key \"%s\"", s.text)
			}
			return nil
		case unwraps:
			return elements()
		case !r.lenient:
			return failed("2203A", "jsonpath member accessor can only be applied to an object")
		}
		return nil
	case ".*":
		switch {
		case v.kind == object:
			return each(v.items, next)
		case unwraps:
			return elements()
		case !r.lenient:
			return failed("2203C", "jsonpath wildcard member accessor can only be applied to an object")
		}
		return nil
	case "[*]":
		switch {
		case v.kind == array:
			return each(v.items, next)
		case r.strict && r.lenient:
			return nil
		case r.strict:
			return failed("22039", "jsonpath wildcard array accessor can only be applied to an array")
		}
		return next(v)
	case ".**":
		return r.anywhere(s, v, 0, next)
	case "[]":
		return r.subscripts(s, v, current, next)
	case "?":
		if unwraps {
			return elements()
		}
		t, err := r.test(s.left, v)
		if err != nil || t != yes {
			return err
		}
		return next(v)
	}
	return r.call(s, v, unwraps, next, elements)
}

// call is a step that is a method.
func (r *run) call(s *node, v value, unwraps bool, next emit, elements func() error) error {
	switch {
	case unwraps && s.text != "type" && s.text != "size":
		return elements()
	case s.text == "keyvalue":
		return r.keyValue(v, next)
	case s.text == "size" && v.kind != array && r.strict && r.lenient:
		return nil
	}
	out2, err := r.method(s.text, v)
	if err != nil {
		return err
	}
	return next(out2)
}

func each(list []value, f emit) error {
	for _, v := range list {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) subscripts(s *node, v, current value, next emit) error {
	items := v.items
	switch {
	case v.kind == array:
	case r.strict && r.lenient:
		return nil
	case r.strict:
		return failed("22039", "jsonpath array accessor can only be applied to an array")
	default:
		items = []value{v}
	}
	before := r.last
	defer func() { r.last = before }()
	for _, pair := range s.subs {
		r.last = len(items) - 1
		from, err := r.index(pair[0], current)
		if err != nil {
			return err
		}
		to := from
		if pair[1] != nil {
			if to, err = r.index(pair[1], current); err != nil {
				return err
			}
		}
		if !r.lenient && (from < 0 || from > to || to >= int64(len(items))) {
			return failed("22033", "jsonpath array subscript is out of bounds")
		}
		for i := max(from, 0); i <= min(to, int64(len(items))-1); i++ {
			r.last = before
			if err := next(items[i]); err != nil {
				return err
			}
			r.last = len(items) - 1
		}
	}
	return nil
}

func (r *run) index(n *node, current value) (int64, error) {
	var list []value
	err := r.eval(n, current, func(v value) error { list = append(list, v); return nil })
	if err != nil {
		return 0, err
	}
	if len(list) != 1 || list[0].kind != number {
		return 0, failed("22033", "jsonpath array subscript is not a single numeric value")
	}
	i, err := strconv.ParseInt(list[0].n.Trunc(0).Text(), 10, 32)
	if err != nil {
		return 0, failed("22033", "jsonpath array subscript is out of integer range")
	}
	return i, nil
}

func (r *run) method(name string, v value) (value, error) {
	switch {
	case name == "type":
		return value{kind: text, s: kindNames[v.kind]}, nil
	case name == "size" && v.kind == array:
		return value{kind: number, n: numeric.FromInt(int64(len(v.items)))}, nil
	case name == "size" && !r.strict:
		return value{kind: number, n: numeric.FromInt(1)}, nil
	case name == "size":
		return v, failed("22039", "jsonpath item method .size() can only be applied to an array")
	case name == "double":
		return double(v)
	case v.kind != number:
		return v, failed("22036", "jsonpath item method .%s() can only be applied to a numeric value", name)
	}
	v.n = map[string]func(numeric.Num) numeric.Num{"abs": numeric.Num.Abs, "floor": numeric.Num.Floor, "ceiling": numeric.Num.Ceil}[name](v.n)
	return v, nil
}

// double is the number that a number or text is as a float8.
func double(v value) (value, error) {
	s := v.s
	switch v.kind {
	case number:
		s = v.n.Text()
	case text:
		s = strings.TrimSpace(s)
		if s == "" || strings.Trim(s, "+-.0123456789eE") != "" {
			return v, failed("22036", "string argument of jsonpath item method .double() is not a valid representation of a double precision number")
		}
	default:
		return v, failed("22036", "jsonpath item method .double() can only be applied to a string or numeric value")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return v, failed("22036", "numeric argument of jsonpath item method .double() is out of range for type double precision")
	}
	if v.kind == text {
		v = value{kind: number, n: numeric.FromFloat(f, 64)}
	}
	return v, nil
}
