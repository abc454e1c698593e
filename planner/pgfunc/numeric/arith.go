package numeric

import (
	"fmt"
	"math/big"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

var errDivision = pgerr.New(codes.DivisionByZero, "division by zero")

// Add is a + b.
func Add(a, b Num) (Num, error) {
	if a.special|b.special != finite {
		return addSpecial(a, b), nil
	}
	if a.coef == nil && b.coef == nil && a.scale == b.scale {
		if s := a.small + b.small; s > -smallCeiling && s < smallCeiling {
			return Num{small: s, scale: a.scale}, nil
		}
	}
	x, y, scale := align(a, b)
	return checked(new(big.Int).Add(x, y), scale)
}

func addSpecial(a, b Num) Num {
	switch {
	case a.special == nan || b.special == nan:
		return Num{special: nan}
	case a.special != finite && b.special != finite && a.special != b.special:
		return Num{special: nan}
	case a.special != finite:
		return Num{special: a.special}
	}
	return Num{special: b.special}
}

// Sub is a - b.
func Sub(a, b Num) (Num, error) { return Add(a, b.Neg()) }

// Neg is -n.
func (n Num) Neg() Num {
	switch {
	case n.special == plusInf:
		n.special = minusInf
	case n.special == minusInf:
		n.special = plusInf
	case n.coef != nil:
		n.coef = new(big.Int).Neg(n.coef)
	}
	n.small = -n.small
	return n
}

// Abs is |n|.
func (n Num) Abs() Num {
	if n.Sign() < 0 {
		return n.Neg()
	}
	return n
}

// align gives both coefficients the greater scale.
func align(a, b Num) (x, y *big.Int, scale int) {
	x, y = a.big(), b.big()
	switch {
	case a.scale < b.scale:
		x = new(big.Int).Mul(x, pow10(b.scale-a.scale))
	case b.scale < a.scale:
		y = new(big.Int).Mul(y, pow10(a.scale-b.scale))
	}
	return x, y, max(a.scale, b.scale)
}

// Mul is a * b.
func Mul(a, b Num) (Num, error) {
	if a.special|b.special != finite {
		return mulSpecial(a, b), nil
	}
	return checked(new(big.Int).Mul(a.big(), b.big()), a.scale+b.scale)
}

func mulSpecial(a, b Num) Num {
	if a.special == nan || b.special == nan || a.Sign() == 0 || b.Sign() == 0 {
		return Num{special: nan}
	}
	if a.Sign() == b.Sign() {
		return Num{special: plusInf}
	}
	return Num{special: minusInf}
}

// group is the first digit of n in base 10000, and its weight there.
func (n Num) group() (weight, first int) {
	if n.coef == nil {
		return n.smallGroup()
	}
	c := n.Abs().big()
	digits := digitCount(c)
	if digits == 0 {
		return 0, 0
	}
	weight, used := place(digits - n.scale)
	lead := new(big.Int)
	if digits > used {
		lead.Quo(c, pow10(digits-used))
	} else {
		lead.Mul(c, pow10(used-digits))
	}
	return weight, int(lead.Int64())
}

// place is the weight of the first group of a value 0.d₁d₂… · 10^point, and how many digits
// stand in it: 1 to 4.
func place(point int) (weight, used int) {
	weight = (point+groupDigits-1+4*(scaleMax+1))/groupDigits - (scaleMax + 1) - 1
	return weight, point - weight*groupDigits
}

// smallGroup is group of a small coefficient.
func (n Num) smallGroup() (weight, first int) {
	c := n.small
	if c < 0 {
		c = -c
	}
	digits := 0
	for v := c; v != 0; v /= 10 {
		digits++
	}
	if digits == 0 {
		return 0, 0
	}
	weight, used := place(digits - n.scale)
	for ; digits > used; digits-- {
		c /= 10
	}
	for ; digits < used; digits++ {
		c *= 10
	}
	return weight, int(c)
}

// divScale is PostgreSQL's select_div_scale.
func divScale(a, b Num) int {
	wa, fa := a.group()
	wb, fb := b.group()
	q := wa - wb
	if fa <= fb {
		q--
	}
	return chosen(significant-q*groupDigits, a.scale, b.scale)
}

// chosen bounds a result scale by those of the operands and PostgreSQL's limits.
func chosen(scale int, at ...int) int {
	for _, s := range at {
		scale = max(scale, s)
	}
	return min(max(scale, 0), displayMax)
}

// Div is a / b.
func Div(a, b Num) (Num, error) {
	if a.special|b.special != finite {
		return divSpecial(a, b)
	}
	if b.Sign() == 0 {
		return Zero, errDivision
	}
	return quotient(a, b, divScale(a, b), true)
}

func divSpecial(a, b Num) (Num, error) {
	switch {
	case a.special == nan || b.special == nan || a.special != finite && b.special != finite:
		return Num{special: nan}, nil
	case b.special != finite:
		return Zero, nil
	case b.Sign() == 0:
		return Zero, errDivision
	case b.Sign() < 0:
		return a.Neg(), nil
	}
	return Num{special: a.special}, nil
}

// quotient divides to a scale, rounded or cut.
func quotient(a, b Num, scale int, round bool) (Num, error) {
	x, y := a.big(), b.big()
	grow := scale + b.scale - a.scale
	if grow >= 0 {
		x = new(big.Int).Mul(x, pow10(grow))
	} else {
		y = new(big.Int).Mul(y, pow10(-grow))
	}
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	if round && r.Abs(r).Lsh(r, 1).CmpAbs(y) >= 0 {
		q.Add(q, big.NewInt(int64(a.Sign()*b.Sign())))
	}
	return checked(q, scale)
}

// DivTrunc is div(a, b): the quotient without its fraction.
func DivTrunc(a, b Num) (Num, error) {
	if a.special|b.special != finite {
		return divSpecial(a, b)
	}
	if b.Sign() == 0 {
		return Zero, errDivision
	}
	return quotient(a, b, 0, false)
}

// Mod is a % b.
func Mod(a, b Num) (Num, error) {
	switch {
	case a.special == nan || b.special == nan:
		return Num{special: nan}, nil
	case a.special != finite:
		if b.special == finite && b.Sign() == 0 {
			return Zero, errDivision
		}
		return Num{special: nan}, nil
	case b.special != finite:
		return a, nil
	case b.Sign() == 0:
		return Zero, errDivision
	}
	x, y, scale := align(a, b)
	return checked(new(big.Int).Rem(x, y), scale)
}

// Round rounds half away from zero to so many digits after the point, which may be
// negative.
func (n Num) Round(digits int) Num { return n.cut(digits, true) }

// Trunc cuts to so many digits after the point.
func (n Num) Trunc(digits int) Num { return n.cut(digits, false) }

func (n Num) cut(digits int, round bool) Num {
	if n.special != finite {
		return n
	}
	digits = min(max(digits, -resultMax), resultMax)
	c := n.big()
	switch {
	case digits >= n.scale || round:
		c = roundTo(c, n.scale, digits)
	default:
		c = new(big.Int).Quo(c, pow10(n.scale-digits))
	}
	if digits < 0 {
		c, digits = new(big.Int).Mul(c, pow10(-digits)), 0
	}
	out, err := checked(c, digits)
	if err != nil {
		return n // not reached: rounding adds a digit at most
	}
	return out
}

// Ceil and Floor are the neighbouring integers.
func (n Num) Ceil() Num { return n.Neg().Floor().Neg() }

// Floor is the greatest integer that is not greater.
func (n Num) Floor() Num {
	t := n.Trunc(0)
	if n.special == finite && n.Sign() < 0 && Cmp(t, n) != 0 {
		t, _ = Sub(t, FromInt(1)) // of an integer
	}
	return t
}

// Cmp orders numerics: NaN is equal to itself and greater than all else.
func Cmp(a, b Num) int {
	if a.special|b.special != finite {
		rank := func(n Num) int { return [...]int{finite: 0, nan: 2, plusInf: 1, minusInf: -1}[n.special] }
		return rank(a) - rank(b)
	}
	if a.coef == nil && b.coef == nil && a.scale == b.scale {
		switch {
		case a.small < b.small:
			return -1
		case a.small > b.small:
			return 1
		}
		return 0
	}
	x, y, _ := align(a, b)
	return x.Cmp(y)
}

// Constrain is the cast to numeric(precision, scale).
func (n Num) Constrain(precision, scale int) (Num, error) {
	overflow := func(why string, args ...any) (Num, error) {
		return Zero, pgerr.New(codes.NumericValueOutOfRange, "numeric field overflow").WithDetail(why, args...)
	}
	if n.special == nan {
		return n, nil
	}
	if n.special != finite {
		return overflow("A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
	}
	out := n.Round(scale)
	if digits := digitCount(out.big()); digits-out.scale > precision-scale {
		return overflow("%s", OverflowDetail(precision, scale))
	}
	return out, nil
}

// OverflowDetail says why a number does not fit into numeric(precision, scale).
func OverflowDetail(precision, scale int) string {
	limit := "1"
	if precision > scale {
		limit = fmt.Sprintf("10^%d", precision-scale)
	}
	return fmt.Sprintf("A field with precision %d, scale %d must round to an absolute value less than %s.", precision, scale, limit)
}

// MinScale is the least scale that shows n exactly.
func (n Num) MinScale() int { return n.TrimScale().scale }

// TrimScale is n without zeros at the end.
func (n Num) TrimScale() Num {
	if n.special != finite {
		return n
	}
	c, scale := new(big.Int).Set(n.big()), n.scale
	ten, r := big.NewInt(10), new(big.Int)
	for scale > 0 {
		q, _ := new(big.Int).QuoRem(c, ten, r)
		if r.Sign() != 0 {
			break
		}
		c, scale = q, scale-1
	}
	out, _ := checked(c, scale) // smaller than n
	return out
}

// GCD is the greatest common divisor.
func GCD(a, b Num) Num {
	if a.special|b.special != finite {
		return Num{special: nan}
	}
	x, y, scale := align(a.Abs(), b.Abs())
	out, _ := checked(new(big.Int).GCD(nil, nil, x, y), scale)
	return out
}

// LCM is the least common multiple.
func LCM(a, b Num) (Num, error) {
	if a.special|b.special != finite {
		return Num{special: nan}, nil
	}
	x, y, scale := align(a.Abs(), b.Abs())
	if x.Sign() == 0 || y.Sign() == 0 {
		return checked(new(big.Int), scale)
	}
	g := new(big.Int).GCD(nil, nil, x, y)
	return checked(x.Quo(new(big.Int).Mul(x, y), g), scale)
}

// Factorial is n!.
func Factorial(n int64) (Num, error) {
	switch {
	case n < 0:
		return Zero, pgerr.New(codes.NumericValueOutOfRange, "factorial of a negative number is undefined")
	case n > 32177:
		return Zero, errOverflow
	}
	return checked(new(big.Int).MulRange(1, n), 0)
}
