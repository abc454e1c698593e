package arrays

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const dimensionsMost = 6

func badSubscript(detail string) error {
	e := pgerr.New(codes.ArraySubscript, "cannot concatenate incompatible arrays")
	return e.WithDetail("%s", detail)
}

var errSubarrays = pgerr.New(codes.ArraySubscript, "multidimensional arrays must have array expressions with matching dimensions")

// item is the element that subscripts name, a JSON list of them; null when there is none.
func item(a encode.Array, args []scalar.Value) (scalar.Value, error) {
	var at []*int64
	if err := json.Unmarshal([]byte(args[0].Text), &at); err != nil {
		return scalar.Value{}, pgerr.New(codes.Internal, "subscripts: %v", err)
	}
	if len(at) != len(a.Dims) || len(at) == 0 {
		return scalar.Null, nil
	}
	place := 0
	for d, i := range at {
		if i == nil || *i < int64(a.Lower[d]) || *i >= int64(a.Lower[d])+int64(a.Dims[d]) {
			return scalar.Null, nil
		}
		place = place*a.Dims[d] + int(*i-int64(a.Lower[d]))
	}
	if a.Elements[place] == nil {
		return scalar.Null, nil
	}
	return scalar.OfText(*a.Elements[place]), nil
}

// slice is a part of an array: the second argument is a JSON list of pairs of bounds, null for one
// that is left out, and a third member that says that a null was given.
func slice(a encode.Array, args []scalar.Value) (scalar.Value, error) {
	var given [][3]*int64
	if err := json.Unmarshal([]byte(args[0].Text), &given); err != nil {
		return scalar.Value{}, pgerr.New(codes.Internal, "bounds: %v", err)
	}
	for _, g := range given {
		if g[2] != nil {
			return scalar.Null, nil
		}
	}
	if len(given) > len(a.Dims) {
		return whole(encode.Array{}, nil)
	}
	from := make([]int, len(a.Dims))
	out := encode.Array{Dims: make([]int, len(a.Dims)), Lower: make([]int32, len(a.Dims))}
	for d, n := range a.Dims {
		lo, hi := int64(a.Lower[d]), int64(a.Lower[d])+int64(n)-1
		if d < len(given) {
			if g := given[d][0]; g != nil {
				lo = max(lo, *g)
			}
			if g := given[d][1]; g != nil {
				hi = min(hi, *g)
			}
		}
		if lo > hi {
			return whole(encode.Array{}, nil)
		}
		from[d], out.Dims[d], out.Lower[d] = int(lo-int64(a.Lower[d])), int(hi-lo+1), 1
	}
	var walk func(d, base int)
	walk = func(d, base int) {
		for i := range out.Dims[d] {
			at := base*a.Dims[d] + from[d] + i
			if d+1 < len(a.Dims) {
				walk(d+1, at)
				continue
			}
			out.Elements = append(out.Elements, a.Elements[at])
		}
	}
	walk(0, 0)
	return whole(out, nil)
}

// concat is array_cat.
func concat(a, b encode.Array) (encode.Array, error) {
	na, nb := len(a.Dims), len(b.Dims)
	switch {
	case na == 0:
		return b, nil
	case nb == 0:
		return a, nil
	case na != nb && na != nb-1 && na != nb+1:
		e := pgerr.New(codes.ArraySubscript, "cannot concatenate incompatible arrays")
		return a, e.WithDetail("Arrays of %d and %d dimensions are not compatible for concatenation.", na, nb)
	}
	out := encode.Array{Dims: slices.Clone(a.Dims), Lower: slices.Clone(a.Lower), Elements: slices.Concat(a.Elements, b.Elements)}
	switch {
	case na == nb:
		if !slices.Equal(a.Dims[1:], b.Dims[1:]) || !slices.Equal(a.Lower[1:], b.Lower[1:]) {
			return a, badSubscript("Arrays with differing element dimensions are not compatible for concatenation.")
		}
		out.Dims[0] += b.Dims[0]
	case na == nb-1:
		if !slices.Equal(a.Dims, b.Dims[1:]) || !slices.Equal(a.Lower, b.Lower[1:]) {
			return a, badSubscript("Arrays with differing dimensions are not compatible for concatenation.")
		}
		out.Dims, out.Lower = slices.Clone(b.Dims), slices.Clone(b.Lower)
		out.Dims[0]++
	default:
		if !slices.Equal(b.Dims, a.Dims[1:]) || !slices.Equal(b.Lower, a.Lower[1:]) {
			return a, badSubscript("Arrays with differing dimensions are not compatible for concatenation.")
		}
		out.Dims[0]++
	}
	return out, nil
}

// added is array_append, or array_prepend when the element comes before the others.
func added(a encode.Array, e *string, before bool) (encode.Array, error) {
	switch len(a.Dims) {
	case 0:
		return encode.Array{Dims: []int{1}, Lower: []int32{1}, Elements: []*string{e}}, nil
	case 1:
	default:
		return a, pgerr.New(codes.DataException, "argument must be empty or one-dimensional array")
	}
	if !before && int64(a.Lower[0])+int64(a.Dims[0]) > math.MaxInt32 || before && a.Lower[0] == math.MinInt32 {
		return a, pgerr.New(codes.NumericValueOutOfRange, "integer out of range")
	}
	out := encode.Array{Dims: []int{a.Dims[0] + 1}, Lower: a.Lower}
	if before {
		out.Elements = append([]*string{e}, a.Elements...)
	} else {
		out.Elements = append(slices.Clone(a.Elements), e)
	}
	return out, nil
}

// trimmed is trim_array.
func trimmed(a encode.Array, n int64) (encode.Array, error) {
	length := 0
	if len(a.Dims) > 0 {
		length = a.Dims[0]
	}
	if n < 0 || n > int64(length) {
		return a, pgerr.New("2202E", "number of elements to trim must be between 0 and %d", length)
	}
	if length == int(n) {
		return encode.Array{}, nil
	}
	each := len(a.Elements) / length
	out := encode.Array{Dims: slices.Clone(a.Dims), Lower: make([]int32, len(a.Dims)), Elements: a.Elements[:(length-int(n))*each]}
	out.Dims[0] -= int(n)
	for i := range out.Lower {
		out.Lower[i] = 1
	}
	return out, nil
}

// subscripts is generate_subscripts.
func subscripts(a encode.Array, args []scalar.Value) (scalar.Value, error) {
	d := args[0].Int
	list := []int64{}
	if d >= 1 && d <= int64(len(a.Dims)) {
		for i := range a.Dims[d-1] {
			list = append(list, int64(a.Lower[d-1])+int64(i))
		}
	}
	if args[1].Int != 0 {
		slices.Reverse(list)
	}
	out, err := json.Marshal(list)
	return scalar.OfText(string(out)), err
}

// nest makes an array of arrays. An aggregate (strict) takes no nulls and no empty arrays.
func nest(list []*string, strict bool) (encode.Array, error) {
	var out encode.Array
	for i, text := range list {
		var a encode.Array
		switch {
		case text != nil:
			var err error
			if a, err = parse(*text); err != nil {
				return out, err
			}
		case strict:
			return out, pgerr.New(codes.NullValueNotAllowed, "cannot accumulate null arrays")
		}
		if strict && len(a.Dims) == 0 {
			return out, pgerr.New(codes.ArraySubscript, "cannot accumulate empty arrays")
		}
		if i == 0 {
			out = encode.Array{Dims: append([]int{len(list)}, a.Dims...), Lower: append([]int32{1}, a.Lower...)}
		} else if !slices.Equal(a.Dims, out.Dims[1:]) || !slices.Equal(a.Lower, out.Lower[1:]) {
			if strict {
				return out, pgerr.New(codes.ArraySubscript, "cannot accumulate arrays of different dimensionality")
			}
			return out, errSubarrays
		}
		out.Elements = append(out.Elements, a.Elements...)
	}
	switch {
	case len(out.Elements) == 0:
		return encode.Array{}, nil
	case len(out.Dims) > dimensionsMost:
		return out, pgerr.New(codes.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(out.Dims), dimensionsMost)
	case len(out.Elements) > encode.MaxArrayElements:
		return out, encode.TooLarge()
	}
	return out, nil
}

// nested writes an array as JSON.
func nested(a encode.Array, args []scalar.Value) (scalar.Value, error) {
	list, err := texts(args[0].Text)
	if err != nil {
		return scalar.Value{}, err
	}
	if len(a.Dims) == 0 {
		return scalar.OfText("[]"), nil
	}
	var b strings.Builder
	at := 0
	var walk func(d int)
	walk = func(d int) {
		b.WriteByte('[')
		for i := range a.Dims[d] {
			if i > 0 {
				b.WriteString(args[1].Text)
			}
			if d+1 < len(a.Dims) {
				walk(d + 1)
				continue
			}
			b.WriteString(*list[at])
			at++
		}
		b.WriteByte(']')
	}
	walk(0)
	return scalar.OfText(b.String()), nil
}
