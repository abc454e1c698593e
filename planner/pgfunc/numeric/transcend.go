package numeric

import (
	"math"
	"math/big"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Sqrt is the square root.
func Sqrt(n Num) (Num, error) {
	switch {
	case n.special == nan || n.special == plusInf:
		return n, nil
	case n.Sign() < 0:
		return Zero, pgerr.New(codes.InvalidArgumentForPowerFunction, "cannot take square root of a negative number")
	}
	weight, _ := n.group()
	return sqrtTo(n, chosen(significant-((weight+1)*groupDigits/2-1), n.scale))
}

// sqrtTo is the square root to a scale.
func sqrtTo(n Num, scale int) (Num, error) {
	// One digit more decides the rounding: a root of a decimal is never just half way.
	grow := 2*(scale+1) - n.scale
	c := n.big()
	if grow >= 0 {
		c = new(big.Int).Mul(c, pow10(grow))
	} else {
		c = new(big.Int).Quo(c, pow10(-grow))
	}
	return checked(roundTo(new(big.Int).Sqrt(c), scale+1, scale), scale)
}

// precisionOf is how many bits hold so many decimal digits, with some to spare.
func precisionOf(digits int) uint { return uint(float64(digits)*3.33) + 64 }

func (n Num) float(digits int) *big.Float {
	prec := precisionOf(digits)
	f := new(big.Float).SetPrec(prec).SetInt(n.big())
	if n.scale > 0 {
		f.Quo(f, new(big.Float).SetPrec(prec).SetInt(pow10(n.scale)))
	}
	return f
}

// fromFloat rounds to a scale.
func fromFloat(f *big.Float, scale int) (Num, error) {
	g := new(big.Float).SetPrec(f.Prec()+8).Mul(f, new(big.Float).SetInt(pow10(scale+1)))
	c, _ := g.Int(nil)
	return checked(roundTo(c, scale+1, scale), scale)
}

// lnDigits estimates the decimal weight of ln(n), as PostgreSQL does.
func lnDigits(n Num) int {
	if n.Sign() <= 0 {
		return 0
	}
	low, high := Num{small: 9, scale: 1}, Num{small: 11, scale: 1}
	if Cmp(n, low) >= 0 && Cmp(n, high) <= 0 {
		x, _ := Sub(n, FromInt(1))
		if x.Sign() == 0 {
			return 0
		}
		weight, first := x.group()
		return weight*groupDigits + int(math.Log10(float64(first)))
	}
	// The first two digits in base 10000 are enough.
	c := n.big()
	digits := digitCount(c)
	mant, _ := new(big.Float).SetInt(c).Float64()
	ln := 0.0
	if digits < 300 {
		ln = math.Log(mant) - float64(n.scale)*math.Ln10
	} else {
		lead := new(big.Int).Quo(c, pow10(digits-16))
		m, _ := new(big.Float).SetInt(lead).Float64()
		ln = math.Log(m) + float64(digits-16-n.scale)*math.Ln10
	}
	return int(math.Log10(math.Abs(ln)))
}

// lnFloat is ln(n) to so many digits, of a positive n.
func lnFloat(n Num, digits int) *big.Float {
	prec := precisionOf(digits + 20)
	x := n.float(digits + 20 + digitCount(n.big()))
	x.SetPrec(prec)
	// x = m · 2^e with m in [0.5, 1): ln x = ln m + e ln 2. The series of atanh needs a small
	// argument, so m is brought near 1 by square roots.
	m := new(big.Float)
	e := x.MantExp(m)
	const roots = 8
	for range roots {
		m.Sqrt(m)
	}
	out := atanhSeries(m, prec)
	out.Mul(out, big.NewFloat(1<<roots))
	two := atanhSeries(big.NewFloat(2).SetPrec(prec), prec)
	return out.Add(out, two.Mul(two, new(big.Float).SetPrec(prec).SetInt64(int64(e))))
}

// atanhSeries is ln(x) = 2 atanh((x-1)/(x+1)).
func atanhSeries(x *big.Float, prec uint) *big.Float {
	one := big.NewFloat(1).SetPrec(prec)
	y := new(big.Float).SetPrec(prec).Sub(x, one)
	if y.Sign() == 0 {
		return new(big.Float).SetPrec(prec)
	}
	y.Quo(y, new(big.Float).SetPrec(prec).Add(x, one))
	square := new(big.Float).SetPrec(prec).Mul(y, y)
	sum, term := new(big.Float).SetPrec(prec).Set(y), new(big.Float).SetPrec(prec).Set(y)
	part := new(big.Float).SetPrec(prec)
	for k := int64(3); ; k += 2 {
		term.Mul(term, square)
		part.Quo(term, new(big.Float).SetPrec(prec).SetInt64(k))
		if part.Sign() == 0 || part.MantExp(nil) < sum.MantExp(nil)-int(prec) {
			break
		}
		sum.Add(sum, part)
	}
	return sum.Mul(sum, big.NewFloat(2))
}

// expFloat is e^x to so many digits of a moderate x.
func expFloat(x *big.Float, digits int) *big.Float {
	prec := precisionOf(digits + 20)
	const halvings = 24
	y := new(big.Float).SetPrec(prec).SetMantExp(new(big.Float).SetPrec(prec).Set(x), -halvings)
	sum, term := big.NewFloat(1).SetPrec(prec), big.NewFloat(1).SetPrec(prec)
	for k := int64(1); ; k++ {
		term.Mul(term, y)
		term.Quo(term, new(big.Float).SetPrec(prec).SetInt64(k))
		if term.Sign() == 0 || term.MantExp(nil) < -int(prec) {
			break
		}
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// Ln is the natural logarithm.
func Ln(n Num) (Num, error) {
	if err := logArgument(n); err != nil || n.special != finite {
		return n, err
	}
	scale := chosen(significant-lnDigits(n), n.scale)
	return fromFloat(lnFloat(n, scale+40), scale)
}

func logArgument(n Num) error {
	switch {
	case n.special == nan:
		return nil
	case n.Sign() == 0:
		return pgerr.New(codes.InvalidArgumentForLogarithm, "cannot take logarithm of zero")
	case n.Sign() < 0:
		return pgerr.New(codes.InvalidArgumentForLogarithm, "cannot take logarithm of a negative number")
	}
	return nil
}

// Log is the logarithm of n to a base.
func Log(base, n Num) (Num, error) {
	if base.special == nan || n.special == nan {
		return Num{special: nan}, nil
	}
	if err := logArgument(base); err != nil {
		return Zero, err
	}
	if err := logArgument(n); err != nil {
		return Zero, err
	}
	switch {
	case base.special != finite && n.special != finite:
		return Num{special: nan}, nil
	case base.special != finite:
		return Zero, nil
	case n.special != finite:
		return n, nil
	}
	scale := chosen(significant-(lnDigits(n)-lnDigits(base)), base.scale, n.scale)
	if Cmp(base, FromInt(1)) == 0 {
		return Zero, errDivision
	}
	digits := scale + 60
	below := lnFloat(base, digits)
	return fromFloat(below.Quo(lnFloat(n, digits), below), scale)
}

// Exp is e^n.
func Exp(n Num) (Num, error) {
	switch n.special {
	case nan, plusInf:
		return n, nil
	case minusInf:
		return Zero, nil
	}
	f, _ := n.float(30).Float64()
	val := min(max(f*0.434294481903252, -resultMax), resultMax)
	scale := chosen(significant-int(val), n.scale)
	return expTo(n.float(digitCount(n.big())+60), f, scale)
}

func expTo(x *big.Float, approx float64, scale int) (Num, error) {
	const tooMuch = resultMax * 3
	if math.Abs(approx) > tooMuch {
		if approx > 0 {
			return Zero, errOverflow
		}
		return checked(new(big.Int), scale)
	}
	weight := int(math.Abs(approx)*0.4343) + 1
	digits := scale + weight + 40
	return fromFloat(expFloat(new(big.Float).SetPrec(precisionOf(digits+20)).Set(x), digits), scale)
}

// Power is a ^ b.
func Power(a, b Num) (Num, error) {
	if a.special|b.special != finite {
		return powerSpecial(a, b)
	}
	whole := b.Trunc(0)
	integer := Cmp(whole, b) == 0
	switch {
	case a.Sign() == 0 && b.Sign() < 0:
		return Zero, pgerr.New(codes.InvalidArgumentForPowerFunction, "zero raised to a negative power is undefined")
	case a.Sign() < 0 && !integer:
		return Zero, pgerr.New(codes.InvalidArgumentForPowerFunction,
			"a negative number raised to a non-integer power yields a complex result")
	}
	if integer && whole.coef == nil && whole.small >= math.MinInt32 && whole.small <= math.MaxInt32 {
		return powerInt(a, int(whole.small), chosen(significant, a.scale))
	}
	if a.Sign() == 0 {
		return checked(new(big.Int), significant)
	}
	odd := integer && whole.big().Bit(0) == 1
	out, err := powerReal(a.Abs(), b)
	if a.Sign() < 0 && odd {
		out = out.Neg()
	}
	return out, err
}

func powerReal(a, b Num) (Num, error) {
	local := max(8-lnDigits(a), 0) // as many digits as PostgreSQL estimates with
	rough, err := fromFloat(lnFloat(a, 30+local), local)
	if err != nil {
		return Zero, err
	}
	if rough, err = Mul(rough, b); err != nil {
		return Zero, err
	}
	val, _ := rough.Round(local).float(40).Float64()
	if math.Abs(val) > resultMax*3.01 {
		if val > 0 {
			return Zero, errOverflow
		}
		return checked(new(big.Int), displayMax)
	}
	scale := chosen(significant-int(val*0.434294481903252), a.scale, b.scale)
	digits := scale + int(math.Abs(val)) + digitCount(b.big()) + 60
	x := lnFloat(a, digits)
	x.Mul(x, b.float(digits))
	return expTo(x, val, scale)
}

// powerInt is a ^ e to a scale.
func powerInt(a Num, e, scale int) (Num, error) {
	switch {
	case e == 0:
		return checked(pow10(scale), scale)
	case a.Sign() == 0:
		return checked(new(big.Int), scale)
	}
	mant, _ := new(big.Float).SetInt(a.Abs().big()).Float64()
	if math.IsInf(mant, 0) {
		mant = math.MaxFloat64
	}
	weight := float64(e) * (math.Log10(mant) - float64(a.scale))
	switch {
	case weight > wholeMax+1:
		return Zero, errOverflow
	case weight+1 < -float64(scale):
		return checked(new(big.Int), scale)
	}
	const exactDigits = 50000
	if n := math.Abs(float64(e)) * float64(digitCount(a.big())); n < exactDigits {
		k := e
		if k < 0 {
			k = -k
		}
		coef := new(big.Int).Exp(a.big(), big.NewInt(int64(k)), nil)
		if e > 0 {
			return checked(roundTo(coef, a.scale*k, scale), scale)
		}
		one := Num{small: 1}
		return quotient(one, Num{coef: coef, scale: a.scale * k}, scale, true)
	}
	digits := scale + int(math.Max(weight, 0)) + 60
	out, err := fromFloat(multiplied(a.Abs().float(digits), e), scale)
	if a.Sign() < 0 && e%2 != 0 {
		out = out.Neg()
	}
	return out, err
}

// multiplied is x ^ e, which is as exact as x but for as many digits as e has.
func multiplied(x *big.Float, e int) *big.Float {
	out := new(big.Float).SetPrec(x.Prec()).SetInt64(1)
	for k := max(e, -e); k > 0; k >>= 1 {
		if k&1 == 1 {
			out.Mul(out, x)
		}
		if k > 1 {
			x.Mul(x, x)
		}
	}
	if e < 0 {
		out.Quo(new(big.Float).SetInt64(1), out)
	}
	return out
}

func powerSpecial(a, b Num) (Num, error) {
	one := FromInt(1)
	switch {
	case a.special == nan:
		if b.special == finite && b.Sign() == 0 {
			return one, nil
		}
		return a, nil
	case b.special == nan:
		if a.special == finite && Cmp(a, one) == 0 {
			return one, nil
		}
		return b, nil
	case b.special == finite:
		return infinitePower(a, b)
	}
	size := Cmp(a.Abs(), one)
	switch {
	case a.special == finite && a.Sign() == 0 && b.special == minusInf:
		return Zero, pgerr.New(codes.InvalidArgumentForPowerFunction, "zero raised to a negative power is undefined")
	case size == 0:
		return one, nil
	case (size > 0) == (b.special == plusInf):
		return Num{special: plusInf}, nil
	}
	return Zero, nil
}

// infinitePower is an infinity raised to a number.
func infinitePower(a, b Num) (Num, error) {
	switch {
	case b.Sign() == 0:
		return FromInt(1), nil
	case a.special == plusInf:
		if b.Sign() < 0 {
			return Zero, nil
		}
		return a, nil
	}
	whole := b.Trunc(0)
	switch {
	case Cmp(whole, b) != 0:
		return Zero, pgerr.New(codes.InvalidArgumentForPowerFunction,
			"a negative number raised to a non-integer power yields a complex result")
	case b.Sign() < 0:
		return Zero, nil
	case whole.big().Bit(0) == 1:
		return a, nil
	}
	return Num{special: plusInf}, nil
}

// Deviation is the variance, or its root, of count values with a sum and a sum of squares.
func Deviation(count int64, sum, squares Num, sample, root bool) (Num, error) {
	if sum.special|squares.special != finite {
		return Num{special: nan}, nil
	}
	n := FromInt(count)
	square, err := Mul(sum, sum)
	if err != nil {
		return Zero, err
	}
	if squares, err = Mul(n, squares); err != nil {
		return Zero, err
	}
	if squares, err = Sub(squares, square); err != nil || squares.Sign() <= 0 {
		return Zero, err
	}
	below := n
	if sample {
		below = FromInt(count - 1)
	}
	if below, err = Mul(n, below); err != nil {
		return Zero, err
	}
	scale := divScale(squares, below)
	out, err := quotient(squares, below, scale, true)
	if err != nil || !root {
		return out, err
	}
	return sqrtTo(out, scale)
}
