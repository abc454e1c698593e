package arrays

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// parse reads the text of a value; what it has is well formed.
func parse(text string) (encode.Array, error) { return encode.ParseArray(strings.Clone(text), 0) }

func kinds(k ...scalar.Kind) []scalar.Kind { return k }

// of makes a function whose first argument is an array.
func of(name string, result scalar.Kind, params []scalar.Kind, f func(a encode.Array, args []scalar.Value) (scalar.Value, error)) scalar.Function {
	return scalar.Function{
		Name: name, Params: append(kinds(scalar.Text), params...), Result: result,
		Call: func(args []scalar.Value) (scalar.Value, error) {
			a, err := parse(args[0].Text)
			if err != nil {
				return scalar.Value{}, err
			}
			return f(a, args[1:])
		},
	}
}

func whole(a encode.Array, err error) (scalar.Value, error) {
	if err != nil {
		return scalar.Value{}, err
	}
	return scalar.OfText(a.String()), nil
}

func orNull(n int64, ok bool) (scalar.Value, error) {
	if !ok {
		return scalar.Null, nil
	}
	return scalar.OfInt(n), nil
}

// texts reads a list of texts, which travels as JSON.
func texts(list string) ([]*string, error) {
	var out []*string
	if err := json.Unmarshal([]byte(list), &out); err != nil {
		return nil, pgerr.New(codes.Internal, "list of texts: %v", err)
	}
	return out, nil
}

// Functions are all functions of the package.
func Functions() []scalar.Function { return slices.Concat(questions(), makers()) }

// questions are the functions that tell of an array.
func questions() []scalar.Function {
	text, i32, i64 := scalar.Text, scalar.Int32, scalar.Int64
	bound := func(name string, f func(a encode.Array, d int) int64) scalar.Function {
		return of(name, i32, kinds(i32), func(a encode.Array, args []scalar.Value) (scalar.Value, error) {
			d := args[0].Int
			if d < 1 || d > int64(len(a.Dims)) {
				return scalar.Null, nil
			}
			return scalar.OfInt(f(a, int(d-1))), nil
		})
	}
	return []scalar.Function{
		// The elements as the engine's list of a type: the array's oid, the session's styles above it.
		{Name: "skippr_a_flat", Params: kinds(text, i64), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			out, err := encode.NumberedInput(v[1].Int>>32).Flat(uint32(v[1].Int), strings.Clone(v[0].Text))
			return scalar.OfText(out), err
		}},
		of("skippr_a_dims", text, nil, func(a encode.Array, _ []scalar.Value) (scalar.Value, error) {
			if len(a.Dims) == 0 {
				return scalar.Null, nil
			}
			return scalar.OfText(a.Bounds()), nil
		}),
		of("skippr_a_ndims", i32, nil, func(a encode.Array, _ []scalar.Value) (scalar.Value, error) {
			return orNull(int64(len(a.Dims)), len(a.Dims) > 0)
		}),
		of("skippr_a_cardinality", i32, nil, func(a encode.Array, _ []scalar.Value) (scalar.Value, error) {
			return scalar.OfInt(int64(len(a.Elements))), nil
		}),
		bound("skippr_a_length", func(a encode.Array, d int) int64 { return int64(a.Dims[d]) }),
		bound("skippr_a_lower", func(a encode.Array, d int) int64 { return int64(a.Lower[d]) }),
		bound("skippr_a_upper", func(a encode.Array, d int) int64 { return int64(a.Lower[d]) + int64(a.Dims[d]) - 1 }),
		of("skippr_a_key", text, nil, func(a encode.Array, _ []scalar.Value) (scalar.Value, error) {
			return scalar.OfText(shapeKey(a)), nil
		}),
	}
}

// makers are the functions of which the result is a part of an array, or another.
func makers() []scalar.Function {
	text, i32 := scalar.Text, scalar.Int32
	return []scalar.Function{
		of("skippr_a_item", text, kinds(text), item),
		of("skippr_a_slice", text, kinds(text), slice),
		of("skippr_a_cat", text, kinds(text), func(a encode.Array, args []scalar.Value) (scalar.Value, error) {
			b, err := parse(args[0].Text)
			if err != nil {
				return scalar.Value{}, err
			}
			return whole(concat(a, b))
		}),
		// An array of one dimension with one more element, in a list of one, behind it or before it.
		of("skippr_a_append", text, kinds(text, scalar.Bool), func(a encode.Array, args []scalar.Value) (scalar.Value, error) {
			list, err := texts(args[0].Text)
			if err != nil {
				return scalar.Value{}, err
			}
			return whole(added(a, list[0], args[1].Int != 0))
		}),
		of("skippr_a_trim", text, kinds(i32), func(a encode.Array, args []scalar.Value) (scalar.Value, error) {
			return whole(trimmed(a, args[0].Int))
		}),
		// The list of the subscripts of a dimension, as JSON.
		of("skippr_a_subscripts", text, kinds(i32, scalar.Bool), subscripts),
		// Elements, a list of texts, in the dimensions of another array or of bounds.
		of("skippr_a_shape", text, kinds(text), func(a encode.Array, args []scalar.Value) (scalar.Value, error) {
			list, err := texts(args[0].Text)
			if err != nil {
				return scalar.Value{}, err
			}
			if len(list) != len(a.Elements) {
				return scalar.Value{}, pgerr.New(codes.Internal, "%d elements for an array of %d", len(list), len(a.Elements))
			}
			a.Elements = list
			return whole(a, nil)
		}),
		// A list of JSON texts in the dimensions of an array, as JSON.
		of("skippr_a_json", text, kinds(text, text), nested),
		// An array of arrays; the second argument is how nulls and empty ones are taken.
		{Name: "skippr_a_nest", Params: kinds(text, scalar.Bool), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			list, err := texts(v[0].Text)
			if err != nil || list == nil { // of no rows
				return scalar.Null, err
			}
			return whole(nest(list, v[1].Int != 0))
		}},
	}
}

// shapeKey orders arrays with equal elements: by the number of dimensions, the lengths, the
// first subscripts.
func shapeKey(a encode.Array) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", len(a.Dims))
	for _, n := range a.Dims {
		fmt.Fprintf(&b, " %010d", n)
	}
	for _, l := range a.Lower {
		fmt.Fprintf(&b, " %010d", int64(l)+1<<31)
	}
	return b.String()
}
