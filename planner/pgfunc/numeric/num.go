package numeric

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Num is a numeric: coef · 10^-scale, or a special value. scale is what PostgreSQL
// displays. While the coefficient fits 18 digits it is in small, and coef is nil.
type Num struct {
	special special
	small   int64
	coef    *big.Int
	scale   int
}

type special uint8

const (
	finite special = iota
	nan
	plusInf
	minusInf
)

// The limits of PostgreSQL's format.
const (
	scaleMax     = 16383
	wholeMax     = 131072
	displayMax   = 1000 // of results whose scale is chosen
	resultMax    = 2000
	significant  = 16
	smallDigits  = 18
	groupDigits  = 4
	exponentMax  = wholeMax + scaleMax
	smallCeiling = 1_000_000_000_000_000_000
)

var errOverflow = pgerr.New(codes.NumericValueOutOfRange, "value overflows numeric format")

// Zero is 0.
var Zero = Num{}

// FromInt makes an integer.
func FromInt(n int64) Num {
	if n > -smallCeiling && n < smallCeiling {
		return Num{small: n}
	}
	return Num{coef: big.NewInt(n)}
}

// FromFloat is PostgreSQL's cast of a float8 (bits 64) or a float4 (32): it keeps the 15 or
// 6 digits that such a number surely has.
func FromFloat(f float64, bits int) Num {
	digits := 15
	if bits == 32 {
		digits = 6
	}
	switch {
	case f != f:
		return Num{special: nan}
	case f > 1.7976931348623157e308:
		return Num{special: plusInf}
	case f < -1.7976931348623157e308:
		return Num{special: minusInf}
	}
	s := strconv.FormatFloat(f, 'e', digits-1, bits)
	mant, exp, _ := strings.Cut(s, "e")
	mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
	n, err := Parse(mant + "e" + exp)
	if err != nil {
		return Zero // not reached: the text is a number
	}
	return n
}

// Parse reads numeric_in's text. Errors are those of PostgreSQL.
func Parse(text string) (Num, error) {
	if n, ok := parseSmall(text); ok {
		return n, nil
	}
	s := strings.Trim(text, " \t\n\v\f\r")
	switch strings.ToLower(s) {
	case "nan":
		return Num{special: nan}, nil
	case "infinity", "+infinity", "inf", "+inf":
		return Num{special: plusInf}, nil
	case "-infinity", "-inf":
		return Num{special: minusInf}, nil
	}
	bad := func() (Num, error) {
		return Zero, pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type numeric: \"%s\"", text)
	}
	mant, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mant = s[:i]
		e, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return bad()
		}
		if exponent = e; e > exponentMax || e < -exponentMax {
			return Zero, errOverflow
		}
	}
	sign := ""
	if mant != "" && (mant[0] == '-' || mant[0] == '+') {
		sign, mant = mant[:1], mant[1:]
	}
	whole, frac, _ := strings.Cut(mant, ".")
	if whole+frac == "" || strings.Trim(whole+frac, "0123456789") != "" {
		return bad()
	}
	if len(whole)+len(frac) > 2*exponentMax {
		return Zero, errOverflow
	}
	scale := len(frac) - exponent
	digits := whole + frac
	if scale < 0 {
		digits += strings.Repeat("0", -scale)
		scale = 0
	}
	coef, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return bad()
	}
	if sign == "-" {
		coef.Neg(coef)
	}
	return checked(coef, scale)
}

// parseSmall reads plain digits with a point, at most 18 of them.
func parseSmall(s string) (Num, bool) {
	i, neg := 0, false
	if s != "" && s[0] == '-' {
		neg, i = true, 1
	}
	if len(s)-i > smallDigits || len(s) == i {
		return Num{}, false
	}
	var n Num
	point := -1
	for j := i; j < len(s); j++ {
		c := s[j]
		switch {
		case c >= '0' && c <= '9':
			n.small = n.small*10 + int64(c-'0')
		case c == '.' && point < 0 && j > i && j+1 < len(s):
			point = j
		default:
			return Num{}, false
		}
	}
	if point >= 0 {
		n.scale = len(s) - point - 1
	}
	if neg {
		n.small = -n.small
	}
	return n, true
}

// checked makes a Num that PostgreSQL can hold.
func checked(coef *big.Int, scale int) (Num, error) {
	if scale > scaleMax {
		coef, scale = roundTo(coef, scale, scaleMax), scaleMax
	}
	if coef.IsInt64() {
		if v := coef.Int64(); v > -smallCeiling && v < smallCeiling {
			return Num{small: v, scale: scale}, nil
		}
	}
	if coef.BitLen() > 3*wholeMax && digitCount(coef)-scale > wholeMax {
		return Zero, errOverflow
	}
	return Num{coef: coef, scale: scale}, nil
}

func (n Num) big() *big.Int {
	if n.coef != nil {
		return n.coef
	}
	return big.NewInt(n.small)
}

// Sign is -1, 0 or 1; 1 for NaN.
func (n Num) Sign() int {
	switch {
	case n.special == minusInf:
		return -1
	case n.special != finite:
		return 1
	case n.coef != nil:
		return n.coef.Sign()
	case n.small < 0:
		return -1
	case n.small > 0:
		return 1
	}
	return 0
}

// IsNaN reports whether n is NaN.
func (n Num) IsNaN() bool { return n.special == nan }

// IsFinite reports whether n is a number.
func (n Num) IsFinite() bool { return n.special == finite }

// Scale is how many digits after the point n shows.
func (n Num) Scale() int { return n.scale }

// Text is numeric_out of n.
func (n Num) Text() string {
	switch n.special {
	case nan:
		return "NaN"
	case plusInf:
		return "Infinity"
	case minusInf:
		return "-Infinity"
	}
	var s string
	if n.coef != nil {
		s = n.coef.String()
	} else {
		s = strconv.FormatInt(n.small, 10)
	}
	if n.scale == 0 {
		return s
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if short := n.scale + 1 - len(s); short > 0 {
		s = strings.Repeat("0", short) + s
	}
	return sign + s[:len(s)-n.scale] + "." + s[len(s)-n.scale:]
}

// Float is the nearest float8.
func (n Num) Float() (float64, error) {
	f, err := strconv.ParseFloat(n.Text(), 64)
	if err != nil {
		return 0, pgerr.New(codes.NumericValueOutOfRange, "\"%s\" is out of range for type double precision", n.Text())
	}
	return f, nil
}

// Int rounds n, half away from zero, to an integer of a type of so many bits.
func (n Num) Int(bits int, name string) (int64, error) {
	if n.special != finite {
		word := "infinity"
		if n.special == nan {
			word = "NaN"
		}
		return 0, pgerr.New(codes.FeatureNotSupported, "cannot convert %s to %s", word, name)
	}
	r := n.Round(0)
	v := r.big()
	if !v.IsInt64() || v.Int64() != v.Int64()<<(64-bits)>>(64-bits) {
		return 0, pgerr.New(codes.NumericValueOutOfRange, "%s out of range", name)
	}
	return v.Int64(), nil
}

// powers are the powers of ten that most numbers need.
var powers = makePowers()

func makePowers() (list [64]*big.Int) {
	for i := range list {
		list[i] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(i)), nil)
	}
	return list
}

func pow10(n int) *big.Int {
	if n < len(powers) {
		return powers[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// digitCount is the number of decimal digits of a coefficient, 0 of zero.
func digitCount(c *big.Int) int {
	if c.IsInt64() {
		n := 0
		for v := c.Int64(); v != 0; v /= 10 {
			n++
		}
		return n
	}
	n := len(c.Text(10))
	if c.Sign() < 0 {
		n--
	}
	return n
}

// roundTo changes a coefficient of one scale to a smaller one, half away from zero.
func roundTo(c *big.Int, from, to int) *big.Int {
	if to >= from {
		return new(big.Int).Mul(c, pow10(to-from))
	}
	unit := pow10(from - to)
	q, r := new(big.Int).QuoRem(c, unit, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(unit) >= 0 {
		q.Add(q, big.NewInt(int64(c.Sign())))
	}
	return q
}

// FromBig makes coef · 10^-scale.
func FromBig(coef *big.Int, scale int) (Num, error) { return checked(coef, scale) }

// Part cuts n into so many parts of digits each, of which the first before stand before
// the point, and returns one of them with n's sign. A number that has digits outside of
// them is an error.
func (n Num) Part(part, digits, before, parts int) (int64, error) {
	after := (parts - before) * digits
	if n.scale > after {
		t := n.TrimScale()
		if t.scale > after {
			return 0, pgerr.New(codes.FeatureNotSupported, "sums of numerics with more than %d digits after the point are not supported", after)
		}
		n = t
	}
	low := (parts - 1 - part) * digits // the part's place above 10^-after
	if n.coef == nil && digits == smallDigits {
		return smallPart(n.small, low-after+n.scale), nil
	}
	c := new(big.Int).Mul(n.big(), pow10(after-n.scale))
	c.Quo(c, pow10(low))
	unit := pow10(digits)
	if part == 0 {
		if c.CmpAbs(unit) >= 0 {
			return 0, pgerr.New(codes.FeatureNotSupported, "sums of numerics with more than %d digits before the point are not supported", before*digits)
		}
		return c.Int64(), nil
	}
	return c.Rem(c, unit).Int64(), nil
}

// smallPart is the part of a small coefficient that begins at a power of ten.
func smallPart(small int64, at int) int64 {
	switch {
	case at >= smallDigits || at <= -smallDigits:
		return 0
	case at >= 0:
		return small / powers[at].Int64()
	}
	return small % powers[smallDigits+at].Int64() * powers[-at].Int64()
}
