package span

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Functions are the functions of the package. Their first argument is the oid of the range or
// multirange type of the values.
func Functions() []scalar.Function {
	text, boolean := scalar.Text, scalar.Bool
	out := []scalar.Function{make2(), agg()}
	for name, f := range predicates {
		out = append(out, operator("skippr_span_"+name, boolean, func(_ Kind, _ bool, a, b set) (scalar.Value, error) {
			return scalar.OfBool(f(a, b)), nil
		}))
	}
	for _, op := range []string{"union", "intersect", "minus", "merge"} {
		out = append(out, operator("skippr_span_"+op, text, func(k Kind, multi bool, a, b set) (scalar.Value, error) {
			s, err := k.combine(op, multi, a, b)
			return scalar.OfText(s.text(multi)), err
		}))
	}
	return append(out,
		property("skippr_span_key", text, func(multi bool, s set) scalar.Value { return scalar.OfText(s.key(multi)) }),
		property("skippr_span_empty", boolean, func(_ bool, s set) scalar.Value { return scalar.OfBool(len(s) == 0) }),
		property("skippr_span_multi", text, func(_ bool, s set) scalar.Value { return scalar.OfText(s.text(true)) }),
		property("skippr_span_hull", text, func(_ bool, s set) scalar.Value {
			if len(s) == 0 {
				return scalar.OfText("empty")
			}
			return scalar.OfText(set{hull(s)}.text(false))
		}),
		property("skippr_span_list", text, func(_ bool, s set) scalar.Value {
			list := make([]string, len(s))
			for i, x := range s {
				list[i] = x.text()
			}
			out, _ := json.Marshal(list) // strings are always marshalled
			return scalar.OfText(string(out))
		}),
		boundOf("skippr_span_lower", text, true, func(b bound) scalar.Value { return ofBound(b) }),
		boundOf("skippr_span_upper", text, false, func(b bound) scalar.Value { return ofBound(b) }),
		boundOf("skippr_span_lower_inc", boolean, true, func(b bound) scalar.Value { return scalar.OfBool(b.inclusive) }),
		boundOf("skippr_span_upper_inc", boolean, false, func(b bound) scalar.Value { return scalar.OfBool(b.inclusive) }),
		boundOf("skippr_span_lower_inf", boolean, true, func(b bound) scalar.Value { return scalar.OfBool(b.infinite) }),
		boundOf("skippr_span_upper_inf", boolean, false, func(b bound) scalar.Value { return scalar.OfBool(b.infinite) }),
		holdsFunction(), readFunction(),
	)
}

func ofBound(b bound) scalar.Value {
	if b.infinite {
		return scalar.Null
	}
	return scalar.OfText(b.at.text)
}

// value reads an argument: a range or multirange, whatever the type that the function is told.
func value(oid int64, text string) (Kind, set, error) {
	k, _, ok := KindOf(uint32(oid))
	if !ok {
		return 0, nil, fmt.Errorf("type %d has no ranges", oid)
	}
	s, err := exact.parse(k, strings.HasPrefix(text, "{"), text)
	return k, s, err
}

func operator(name string, result scalar.Kind, f func(k Kind, multi bool, a, b set) (scalar.Value, error)) scalar.Function {
	params := []scalar.Kind{scalar.Int64, scalar.Text, scalar.Text}
	return scalar.Function{Name: name, Params: params, Result: result, Call: func(v []scalar.Value) (scalar.Value, error) {
		k, a, err := value(v[0].Int, v[1].Text)
		if err != nil {
			return scalar.Value{}, err
		}
		_, b, err := value(v[0].Int, v[2].Text)
		if err != nil {
			return scalar.Value{}, err
		}
		_, multi, _ := KindOf(uint32(v[0].Int))
		return f(k, multi, a, b)
	}}
}

func property(name string, result scalar.Kind, f func(multi bool, s set) scalar.Value) scalar.Function {
	params := []scalar.Kind{scalar.Int64, scalar.Text}
	return scalar.Function{Name: name, Params: params, Result: result, Call: func(v []scalar.Value) (scalar.Value, error) {
		_, s, err := value(v[0].Int, v[1].Text)
		if err != nil {
			return scalar.Value{}, err
		}
		_, multi, _ := KindOf(uint32(v[0].Int))
		return f(multi, s), nil
	}}
}

// boundOf is a function of the first or last bound; of what is empty it is null or false.
func boundOf(name string, result scalar.Kind, lower bool, f func(bound) scalar.Value) scalar.Function {
	return property(name, result, func(_ bool, s set) scalar.Value {
		switch {
		case len(s) == 0 && result == scalar.Bool:
			return scalar.OfBool(false)
		case len(s) == 0:
			return scalar.Null
		case lower:
			return f(s[0].lower)
		}
		return f(s.last())
	})
}

// holdsFunction says whether an element, as text, is in a range.
func holdsFunction() scalar.Function {
	params := []scalar.Kind{scalar.Int64, scalar.Text, scalar.Text}
	return scalar.Function{Name: "skippr_span_holds", Params: params, Result: scalar.Bool, Call: func(v []scalar.Value) (scalar.Value, error) {
		k, s, err := value(v[0].Int, v[1].Text)
		if err != nil {
			return scalar.Value{}, err
		}
		e, err := exact.element(k, v[2].Text)
		return scalar.OfBool(err == nil && holds(s, e)), err
	}}
}

// readFunction reads a text; the upper half of its first argument is encode.Input.Number.
func readFunction() scalar.Function {
	params := []scalar.Kind{scalar.Int64, scalar.Text}
	return scalar.Function{Name: "skippr_span_in", Params: params, Result: scalar.Text, Call: func(v []scalar.Value) (scalar.Value, error) {
		r := Reader{Input: encode.NumberedInput(v[0].Int >> 32)}
		out, err := r.Canonical(uint32(v[0].Int), v[1].Text)
		return scalar.OfText(out), err
	}}
}

// make2 makes a range of two bounds, as texts, and the brackets.
func make2() scalar.Function {
	params := []scalar.Kind{scalar.Int64, scalar.Text, scalar.Text, scalar.Text}
	return scalar.Function{Name: "skippr_span_make", Params: params, Result: scalar.Text, Nulls: true, Call: func(v []scalar.Value) (scalar.Value, error) {
		k, _, ok := KindOf(uint32(v[0].Int))
		switch brackets := v[3].Text; {
		case !ok:
			return scalar.Value{}, fmt.Errorf("type %d has no ranges", v[0].Int)
		case v[3].Null:
			return scalar.Value{}, pgerr.New(codes.DataException, "range constructor flags argument must not be null")
		case brackets != "[]" && brackets != "[)" && brackets != "(]" && brackets != "()":
			return scalar.Value{}, pgerr.New(codes.Syntax, "invalid range bound flags").WithHint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")
		}
		var b [2]bound
		for i := range b {
			b[i].infinite, b[i].inclusive = v[i+1].Null, v[3].Text[i] == "[]"[i]
			if b[i].infinite {
				continue
			}
			var err error
			if b[i].at, err = exact.element(k, v[i+1].Text); err != nil {
				return scalar.Value{}, err
			}
		}
		s, err := k.made(b[0], b[1])
		return scalar.OfText(s.text(false)), err
	}}
}

// agg puts the ranges of a JSON array together, as range_agg and the constructors of
// multiranges do; with the word intersect, it gives what all have.
func agg() scalar.Function {
	params := []scalar.Kind{scalar.Int64, scalar.Text, scalar.Text}
	return scalar.Function{Name: "skippr_span_agg", Params: params, Result: scalar.Text, Call: func(v []scalar.Value) (scalar.Value, error) {
		k, multi, _ := KindOf(uint32(v[0].Int))
		var list []*string
		if err := json.Unmarshal([]byte(v[1].Text), &list); err != nil {
			return scalar.Value{}, fmt.Errorf("read the ranges of an aggregate: %w", err)
		}
		var out set
		var all []span
		first := true
		for _, text := range list {
			if text == nil {
				if v[2].Text == "array" {
					return scalar.Value{}, pgerr.New(codes.NullValueNotAllowed, "multirange values cannot contain null members")
				}
				continue
			}
			_, s, err := value(v[0].Int, *text)
			if err != nil {
				return scalar.Value{}, err
			}
			all = append(all, s...)
			if v[2].Text == "intersect" && !first {
				if out, err = k.intersection(out, s); err != nil {
					return scalar.Value{}, err
				}
			} else {
				out = s
			}
			first = false
		}
		switch {
		case first && v[2].Text != "array":
			return scalar.Null, nil
		case v[2].Text == "intersect":
			return scalar.OfText(out.text(multi)), nil
		}
		return scalar.OfText(normal(all).text(true)), nil
	}}
}

// Restyled is a range or multirange with each bound as f writes it.
func Restyled(oid uint32, text string, f func(elementOID uint32, text string) (string, error)) (string, error) {
	k, s, err := value(int64(oid), text)
	if err != nil {
		return "", err
	}
	_, multi, _ := KindOf(oid)
	for i := range s {
		for _, b := range []*bound{&s[i].lower, &s[i].upper} {
			if b.infinite {
				continue
			}
			if b.at.text, err = f(k.elementType(), b.at.text); err != nil {
				return "", err
			}
		}
	}
	return s.text(multi), nil
}
