// Package bitstring holds PostgreSQL's functions and operators of bit and bit varying, in Go.
// Values travel as texts of 0 and 1. Pure; safe for concurrent use.
package bitstring

import (
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// lengthMax bounds what is made longer than its input.
const lengthMax = 1 << 24

// Functions are the functions of the package.
func Functions() []scalar.Function {
	text, i32, i64 := scalar.Text, scalar.Int32, scalar.Int64
	kinds := func(k ...scalar.Kind) []scalar.Kind { return k }
	return []scalar.Function{
		pairwise("skippr_bit_and", "AND", func(a, b byte) byte { return a & b }),
		pairwise("skippr_bit_or", "OR", func(a, b byte) byte { return a | b }),
		pairwise("skippr_bit_xor", "XOR", func(a, b byte) byte { return '0' + (a ^ b) }),
		{Name: "skippr_bit_not", Params: kinds(text), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			return scalar.OfText(strings.Map(func(r rune) rune { return '0' + '1' - r }, v[0].Text)), nil
		}},
		{Name: "skippr_bit_shift", Params: kinds(text, i32), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			return scalar.OfText(shifted(v[0].Text, v[1].Int)), nil
		}},
		{Name: "skippr_bit_fit", Params: kinds(text, i32), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			return fit(v[0].Text, int(v[1].Int))
		}},
		{Name: "skippr_bit_exact", Params: kinds(text, i32), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			if len(v[0].Text) != int(v[1].Int) {
				return scalar.Value{}, pgerr.New(codes.StringDataLengthMismatch, "bit string length %d does not match type bit(%d)", len(v[0].Text), v[1].Int)
			}
			return v[0], nil
		}},
		{Name: "skippr_bit_of", Params: kinds(i64, i32, i32), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			return ofInteger(v[0].Int, int(v[1].Int), int(v[2].Int))
		}},
		{Name: "skippr_bit_int", Params: kinds(text, i32), Result: i64, Call: func(v []scalar.Value) (scalar.Value, error) {
			return integer(v[0].Text, int(v[1].Int))
		}},
		{Name: "skippr_bit_get", Params: kinds(text, i32), Result: i32, Call: func(v []scalar.Value) (scalar.Value, error) {
			if err := index(v[1].Int, len(v[0].Text)); err != nil {
				return scalar.Value{}, err
			}
			return scalar.OfInt(int64(v[0].Text[v[1].Int] - '0')), nil
		}},
		{Name: "skippr_bit_set", Params: kinds(text, i32, i32), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			if err := index(v[1].Int, len(v[0].Text)); err != nil {
				return scalar.Value{}, err
			}
			if v[2].Int != 0 && v[2].Int != 1 {
				return scalar.Value{}, pgerr.New(codes.InvalidParameterValue, "new bit must be 0 or 1")
			}
			b := []byte(v[0].Text)
			b[v[1].Int] = byte('0' + v[2].Int)
			return scalar.OfText(string(b)), nil
		}},
		{Name: "skippr_bit_part", Params: kinds(text, i32, i32), Result: text, Call: func(v []scalar.Value) (scalar.Value, error) {
			return part(v[0].Text, v[1].Int, v[2].Int)
		}},
	}
}

func pairwise(name, word string, f func(a, b byte) byte) scalar.Function {
	params := []scalar.Kind{scalar.Text, scalar.Text}
	return scalar.Function{Name: name, Params: params, Result: scalar.Text, Call: func(v []scalar.Value) (scalar.Value, error) {
		if len(v[0].Text) != len(v[1].Text) {
			return scalar.Value{}, pgerr.New(codes.StringDataLengthMismatch, "cannot %s bit strings of different sizes", word)
		}
		b := []byte(v[0].Text)
		for i := range b {
			b[i] = f(b[i], v[1].Text[i])
		}
		return scalar.OfText(string(b)), nil
	}}
}

// shifted is a string moved to the right, or to the left by a negative number, of the same
// length.
func shifted(s string, by int64) string {
	n := int64(len(s))
	switch {
	case by >= n || -by >= n:
		return strings.Repeat("0", len(s))
	case by >= 0:
		return strings.Repeat("0", int(by)) + s[:n-by]
	}
	return s[-by:] + strings.Repeat("0", int(-by))
}

// fit cuts a string to a length, or adds zeros.
func fit(s string, n int) (scalar.Value, error) {
	if n > lengthMax {
		return scalar.Value{}, pgerr.New(codes.FeatureNotSupported, "bit strings of more than %d bits are not supported", lengthMax)
	}
	if len(s) >= n {
		return scalar.OfText(s[:n]), nil
	}
	return scalar.OfText(s + strings.Repeat("0", n-len(s))), nil
}

// ofInteger are the last n bits of an integer of some bits, with its sign before them.
func ofInteger(v int64, bits, n int) (scalar.Value, error) {
	if n > lengthMax {
		return fit("", n)
	}
	b := make([]byte, n)
	for i := range b {
		at := n - 1 - i
		b[i] = '0' + byte(v>>min(at, bits-1)&1)
	}
	return scalar.OfText(string(b)), nil
}

// integer is the number of a string of at most so many bits, the first of all of which is its
// sign.
func integer(s string, bits int) (scalar.Value, error) {
	word := map[int]string{32: "integer", 64: "bigint"}[bits]
	if len(s) > bits {
		return scalar.Value{}, pgerr.New(codes.NumericValueOutOfRange, "%s out of range", word)
	}
	if s == "" {
		return scalar.OfInt(0), nil
	}
	u, err := strconv.ParseUint(s, 2, 64)
	if err != nil {
		return scalar.Value{}, pgerr.New(codes.InvalidTextRepresentation, "invalid bit string")
	}
	if bits == 32 {
		return scalar.OfInt(int64(int32(u))), nil
	}
	return scalar.OfInt(int64(u)), nil
}

func index(i int64, n int) error {
	if i < 0 || i >= int64(n) {
		return pgerr.New(codes.ArraySubscript, "bit index %d out of valid range (0..%d)", i, n-1)
	}
	return nil
}

// part is substring: from a place, so many.
func part(s string, from, count int64) (scalar.Value, error) {
	if count < 0 {
		return scalar.Value{}, pgerr.New("22011", "negative substring length not allowed")
	}
	lo, hi := max(from, 1), min(from+count, int64(len(s))+1)
	if lo > int64(len(s)) || hi <= lo {
		return scalar.OfText(""), nil
	}
	return scalar.OfText(s[lo-1 : hi-1]), nil
}
