package value

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// uint128 is an unsigned number of 128 bits.
type uint128 struct{ hi, lo uint64 }

// mulAdd is v*m + a; ok says that it fits.
func (v uint128) mulAdd(m, a uint64) (r uint128, ok bool) {
	carry, lo := bits.Mul64(v.lo, m)
	over, hi := bits.Mul64(v.hi, m)
	hi, c1 := bits.Add64(hi, carry, 0)
	lo, c2 := bits.Add64(lo, a, 0)
	hi, c3 := bits.Add64(hi, 0, c2)
	return uint128{hi, lo}, over|c1|c3 == 0
}

func (v uint128) less(w uint128) bool { return v.hi < w.hi || (v.hi == w.hi && v.lo < w.lo) }

// powers holds 10^0 to 10^38.
var powers = func() (p [39]uint128) {
	p[0] = uint128{0, 1}
	for i := 1; i < len(p); i++ {
		p[i], _ = p[i-1].mulAdd(10, 0)
	}
	return p
}()

var smallPowers = [5]uint64{1, 10, 100, 1000, 10000}

// signed is v with a sign, if it has at most precision digits.
func (v uint128) signed(negative bool, precision int32) (decimal128.Num, error) {
	if precision < 0 || int(precision) >= len(powers) || !v.less(powers[precision]) {
		return decimal128.Num{}, ErrRange
	}
	n := decimal128.New(int64(v.hi), v.lo)
	if negative {
		n = n.Negate()
	}
	return n, nil
}

// scaled is v * 10^by.
func (v uint128) scaled(by int) (uint128, bool) {
	ok := true
	for ; by > 0 && ok; by -= 4 {
		v, ok = v.mulAdd(smallPowers[min(by, 4)], 0)
	}
	return v, ok
}

// parseDecimal reads numeric's text form exactly.
func parseDecimal(src []byte, precision, scale int32) (decimal128.Num, error) {
	digits := src
	negative := len(src) > 0 && src[0] == '-'
	if negative {
		digits = src[1:]
	}
	if len(digits) == 0 || (digits[0]|0x20 >= 'a' && digits[0]|0x20 <= 'z') {
		return decimal128.Num{}, special(digits)
	}
	var v uint128
	places, point, seen := 0, false, false
	for _, c := range digits {
		if c == '.' && !point {
			point = true
			continue
		}
		d := uint64(c - '0')
		if c < '0' || c > '9' {
			return decimal128.Num{}, ErrMalformed
		}
		seen = true
		if point {
			if places == int(scale) {
				if d != 0 {
					return decimal128.Num{}, ErrScale
				}
				continue
			}
			places++
		}
		if v.hi == 0 && v.lo < 1e18 {
			v.lo = v.lo*10 + d
			continue
		}
		var ok bool
		if v, ok = v.mulAdd(10, d); !ok {
			return decimal128.Num{}, ErrRange
		}
	}
	if !seen {
		return decimal128.Num{}, ErrMalformed
	}
	v, ok := v.scaled(int(scale) - places)
	if !ok {
		return decimal128.Num{}, ErrRange
	}
	return v.signed(negative, precision)
}

// special classifies a numeric that is no number.
func special(word []byte) error {
	switch string(word) {
	case "NaN":
		return ErrNaN
	case "Infinity":
		return ErrInfinity
	}
	return ErrMalformed
}

// The signs of numeric's binary form.
const (
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericNaN      = 0xC000
	numericPlusInf  = 0xD000
	numericMinusInf = 0xF000
)

// binaryNumeric reads numeric's binary form: base-10000 digits, the first of which
// counts 10000^weight.
func binaryNumeric(src []byte, precision, scale int32) (decimal128.Num, error) {
	if len(src) < 8 {
		return decimal128.Num{}, ErrMalformed
	}
	count := int(binary.BigEndian.Uint16(src))
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	sign := binary.BigEndian.Uint16(src[4:])
	switch sign {
	case numericPositive, numericNegative:
	case numericNaN:
		return decimal128.Num{}, ErrNaN
	case numericPlusInf, numericMinusInf:
		return decimal128.Num{}, ErrInfinity
	default:
		return decimal128.Num{}, ErrMalformed
	}
	if len(src) != 8+2*count {
		return decimal128.Num{}, ErrMalformed
	}
	var v uint128
	// exponent is the power of ten of a digit's unit, after scaling.
	exponent := weight*4 + int(scale)
	for digits := src[8:]; len(digits) > 0; digits = digits[2:] {
		d := uint64(binary.BigEndian.Uint16(digits))
		if d > 9999 {
			return decimal128.Num{}, ErrMalformed
		}
		kept := min(4, max(0, 4+exponent))
		cut := smallPowers[4-kept]
		if d%cut != 0 {
			return decimal128.Num{}, ErrScale
		}
		var ok bool
		if v, ok = v.mulAdd(smallPowers[kept], d/cut); !ok {
			return decimal128.Num{}, ErrRange
		}
		exponent -= 4
	}
	if exponent+4 > 0 && v != (uint128{}) {
		var ok bool
		if exponent > 40 {
			return decimal128.Num{}, ErrRange
		}
		if v, ok = v.scaled(exponent + 4); !ok {
			return decimal128.Num{}, ErrRange
		}
	}
	return v.signed(sign == numericNegative, precision)
}
