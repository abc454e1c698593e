package pgfunc

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

type value = scalar.Value

// binary makes a function of two numerics.
func binary(name string, f func(a, b numeric.Num) (numeric.Num, error)) scalar.Function {
	return scalar.Function{
		Name: name, Params: kinds(scalar.Text, scalar.Text), Result: scalar.Text,
		Call: func(args []value) (value, error) {
			a, err := numeric.Parse(args[0].Text)
			if err != nil {
				return value{}, err
			}
			b, err := numeric.Parse(args[1].Text)
			if err != nil {
				return value{}, err
			}
			out, err := f(a, b)
			return scalar.OfText(out.Text()), err
		},
	}
}

// unary makes a function of a numeric.
func unary(name string, result scalar.Kind, f func(n numeric.Num) (value, error)) scalar.Function {
	return scalar.Function{
		Name: name, Params: kinds(scalar.Text), Result: result,
		Call: func(args []value) (value, error) {
			n, err := numeric.Parse(args[0].Text)
			if err != nil {
				return value{}, err
			}
			return f(n)
		},
	}
}

func asText(f func(numeric.Num) (numeric.Num, error)) func(numeric.Num) (value, error) {
	return func(n numeric.Num) (value, error) {
		out, err := f(n)
		return scalar.OfText(out.Text()), err
	}
}

func sure(f func(numeric.Num) numeric.Num) func(numeric.Num) (value, error) {
	return func(n numeric.Num) (value, error) { return scalar.OfText(f(n).Text()), nil }
}

func numericFunctions() []scalar.Function {
	list := []scalar.Function{
		binary("skippr_n_add", numeric.Add), binary("skippr_n_sub", numeric.Sub), binary("skippr_n_mul", numeric.Mul),
		binary("skippr_n_div", numeric.Div), binary("skippr_n_mod", numeric.Mod), binary("skippr_n_quo", numeric.DivTrunc),
		binary("skippr_n_pow", numeric.Power), binary("skippr_n_log", numeric.Log), binary("skippr_n_lcm", numeric.LCM),
		binary("skippr_n_gcd", func(a, b numeric.Num) (numeric.Num, error) { return numeric.GCD(a, b), nil }),
		unary("skippr_n_sqrt", scalar.Text, asText(numeric.Sqrt)),
		unary("skippr_n_ln", scalar.Text, asText(numeric.Ln)), unary("skippr_n_exp", scalar.Text, asText(numeric.Exp)),
		unary("skippr_n_log10", scalar.Text, asText(func(n numeric.Num) (numeric.Num, error) {
			return numeric.Log(numeric.FromInt(10), n)
		})),
		unary("skippr_n_neg", scalar.Text, sure(numeric.Num.Neg)), unary("skippr_n_abs", scalar.Text, sure(numeric.Num.Abs)),
		unary("skippr_n_ceil", scalar.Text, sure(numeric.Num.Ceil)), unary("skippr_n_floor", scalar.Text, sure(numeric.Num.Floor)),
		unary("skippr_n_trim", scalar.Text, sure(numeric.Num.TrimScale)),
		unary("skippr_n_sign", scalar.Text, sure(signOf)),
		unary("skippr_n_key", scalar.Text, func(n numeric.Num) (value, error) { return scalar.OfText(n.Key()), nil }),
		unary("skippr_n_norm", scalar.Text, sure(func(n numeric.Num) numeric.Num { return n })),
		{
			Name: "skippr_n_scale", Params: kinds(scalar.Text), Result: scalar.Int32,
			Call: func(args []value) (value, error) {
				if n, ok := plainScale(args[0].Text); ok {
					return scalar.OfInt(int64(n)), nil
				}
				n, err := numeric.Parse(args[0].Text)
				if err != nil {
					return value{}, err
				}
				return scaleOf(numeric.Num.Scale)(n)
			},
		},
		unary("skippr_n_minscale", scalar.Int32, scaleOf(numeric.Num.MinScale)),
		unary("skippr_n_float", scalar.Float64, func(n numeric.Num) (value, error) {
			f, err := n.Float()
			return scalar.OfFloat(f), err
		}),
		{
			Name: "skippr_n_int", Params: kinds(scalar.Text, scalar.Int32, scalar.Text), Result: scalar.Int64,
			Call: func(args []value) (value, error) {
				n, err := numeric.Parse(args[0].Text)
				if err != nil {
					return value{}, err
				}
				v, err := n.Int(int(args[1].Int), strings.Clone(args[2].Text))
				return scalar.OfInt(v), err
			},
		},
		{
			Name: "skippr_n_constrain", Params: kinds(scalar.Text, scalar.Int32, scalar.Int32), Result: scalar.Text,
			Call: func(args []value) (value, error) {
				n, err := numeric.Parse(args[0].Text)
				if err != nil {
					return value{}, err
				}
				n, err = n.Constrain(int(args[1].Int), int(args[2].Int))
				return scalar.OfText(n.Text()), err
			},
		},
		digits("skippr_n_round", numeric.Num.Round), digits("skippr_n_trunc", numeric.Num.Trunc),
		{
			Name: "skippr_n_factorial", Params: kinds(scalar.Int64), Result: scalar.Text,
			Call: func(args []value) (value, error) {
				n, err := numeric.Factorial(args[0].Int)
				return scalar.OfText(n.Text()), err
			},
		},
		ofFloat("skippr_n_float8", 64), ofFloat("skippr_n_float4", 32),
	}
	return append(list, sumFunctions()...)
}

func signOf(n numeric.Num) numeric.Num {
	if n.IsNaN() {
		return n
	}
	return numeric.FromInt(int64(n.Sign()))
}

func scaleOf(f func(numeric.Num) int) func(numeric.Num) (value, error) {
	return func(n numeric.Num) (value, error) {
		if !n.IsFinite() {
			return scalar.Null, nil
		}
		return scalar.OfInt(int64(f(n))), nil
	}
}

func digits(name string, f func(numeric.Num, int) numeric.Num) scalar.Function {
	return scalar.Function{
		Name: name, Params: kinds(scalar.Text, scalar.Int32), Result: scalar.Text,
		Call: func(args []value) (value, error) {
			n, err := numeric.Parse(args[0].Text)
			return scalar.OfText(f(n, int(args[1].Int)).Text()), err
		},
	}
}

func ofFloat(name string, bits int) scalar.Function {
	return scalar.Function{
		Name: name, Params: kinds(scalar.Float64), Result: scalar.Text,
		Call: func(args []value) (value, error) {
			return scalar.OfText(numeric.FromFloat(args[0].Float, bits).Text()), nil
		},
	}
}

// A sum of numerics is that of their parts of 18 digits each, which the engine adds as
// integers: two before the point and two after it. What does not fit is refused.
const (
	partDigits  = 18
	partsBefore = 2
	parts       = 4
)

var partUnit = new(big.Int).Exp(big.NewInt(10), big.NewInt(partDigits), nil)

// Flags of special values in a sum.
const (
	sumNaN = 1 << iota
	sumPlus
	sumMinus
)

func sumFunctions() []scalar.Function {
	return []scalar.Function{
		{
			Name: "skippr_n_part", Params: kinds(scalar.Text, scalar.Int32), Result: scalar.Int64,
			Call: func(args []value) (value, error) {
				if p, ok := textPart(args[0].Text, int(args[1].Int)); ok {
					return scalar.OfInt(p), nil
				}
				n, err := numeric.Parse(args[0].Text)
				if err != nil || !n.IsFinite() {
					return value{}, err
				}
				p, err := n.Part(int(args[1].Int), partDigits, partsBefore, parts)
				return scalar.OfInt(p), err
			},
		},
		{
			Name: "skippr_n_special", Params: kinds(scalar.Text), Result: scalar.Int32,
			Call: func(args []value) (value, error) {
				if _, ok := plainScale(args[0].Text); ok {
					return scalar.OfInt(0), nil
				}
				n, err := numeric.Parse(args[0].Text)
				return scalar.OfInt(specialOf(n)), err
			},
		},
		{
			// The sums of the parts as text, the greatest scale, the flags.
			Name: "skippr_n_total", Result: scalar.Text,
			Params: kinds(scalar.Text, scalar.Text, scalar.Text, scalar.Text, scalar.Int32, scalar.Int32),
			Nulls:  true, Call: total,
		},
		{
			// Count, sum, sum of squares; whether of a sample, whether the root.
			Name: "skippr_n_deviation", Result: scalar.Text,
			Params: kinds(scalar.Int64, scalar.Text, scalar.Text, scalar.Bool, scalar.Bool),
			Call:   deviation,
		},
	}
}

// textPart reads a part out of a plain text of no more digits than the parts have.
func textPart(s string, part int) (int64, bool) {
	if _, plain := plainScale(s); !plain {
		return 0, false
	}
	negative := s[0] == '-'
	if negative {
		s = s[1:]
	}
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > partsBefore*partDigits || len(frac) > (parts-partsBefore)*partDigits {
		return 0, false
	}
	digits, fill := "", 0
	switch cut := len(whole) - partDigits; {
	case part == 0:
		digits = whole[:max(cut, 0)]
	case part == 1:
		digits = whole[max(cut, 0):]
	case part == partsBefore:
		digits = frac[:min(len(frac), partDigits)]
		fill = partDigits - len(digits)
	case len(frac) > partDigits:
		digits = frac[partDigits:]
		fill = partDigits - len(digits)
	}
	var n int64
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(digits[i]-'0')
	}
	for ; fill > 0 && n != 0; fill-- {
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, true
}

// plainScale is the scale of a plain text.
func plainScale(s string) (int, bool) {
	if s == "" || s[len(s)-1] > '9' { // NaN, Infinity
		return 0, false
	}
	whole, frac, _ := strings.Cut(s, ".")
	if strings.ContainsAny(whole, "eE ") || strings.ContainsAny(frac, "eE ") {
		return 0, false
	}
	return len(frac), true
}

func specialOf(n numeric.Num) int64 {
	switch {
	case n.IsFinite():
		return 0
	case n.IsNaN():
		return sumNaN
	case n.Sign() > 0:
		return sumPlus
	}
	return sumMinus
}

func total(args []value) (value, error) {
	if args[0].Null {
		return scalar.Null, nil
	}
	switch flags := args[5].Int; {
	case flags == sumPlus:
		return scalar.OfText("Infinity"), nil
	case flags == sumMinus:
		return scalar.OfText("-Infinity"), nil
	case flags != 0:
		return scalar.OfText("NaN"), nil
	}
	sum := new(big.Int)
	for i := range parts {
		p, ok := new(big.Int).SetString(args[i].Text, 10)
		if !ok {
			return value{}, pgerr.New(codes.Internal, "sum of numerics: part %d is no integer", i)
		}
		sum.Add(sum.Mul(sum, partUnit), p)
	}
	n, err := numeric.FromBig(sum, partDigits*(parts-partsBefore))
	if err != nil {
		return value{}, err
	}
	return scalar.OfText(n.Round(int(args[4].Int)).Text()), nil
}

// deviation is PostgreSQL's numeric_stddev_internal.
func deviation(args []value) (value, error) {
	count, sample, root := args[0].Int, args[3].Int != 0, args[4].Int != 0
	if count == 0 || sample && count == 1 {
		return scalar.Null, nil
	}
	sum, err := numeric.Parse(args[1].Text)
	if err != nil {
		return value{}, err
	}
	squares, err := numeric.Parse(args[2].Text)
	if err != nil {
		return value{}, err
	}
	n, err := numeric.Deviation(count, sum, squares, sample, root)
	return scalar.OfText(n.Text()), err
}

// sumListFunctions add the numerics of a JSON array up, to a scale: those of sum(DISTINCT …).
func sumListFunctions() []scalar.Function {
	return []scalar.Function{{
		Name: "skippr_n_list_sum", Params: kinds(scalar.Text, scalar.Int32), Result: scalar.Text,
		Call: func(a []value) (value, error) {
			var list []*string
			if err := json.Unmarshal([]byte(a[0].Text), &list); err != nil {
				return value{}, fmt.Errorf("read the numbers of a sum: %w", err)
			}
			sum, some := numeric.FromInt(0), false
			for _, text := range list {
				if text == nil {
					continue
				}
				n, err := numeric.Parse(*text)
				if err != nil {
					return value{}, err
				}
				if sum, err = numeric.Add(sum, n); err != nil {
					return value{}, err
				}
				some = true
			}
			if !some {
				return scalar.Null, nil
			}
			return scalar.OfText(sum.Round(int(a[1].Int)).Text()), nil
		},
	}}
}
