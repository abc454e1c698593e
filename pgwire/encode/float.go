package encode

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/skipprd/skipprd/lake/vector"
)

func loadFloat(v *vector.Vector, k vector.Kind, i int) float64 {
	if k == vector.Float32 {
		return float64(load[float32](v, i))
	}
	return load[float64](v, i)
}

func floatText(k vector.Kind, oid uint32) appendFunc {
	bitSize := 64
	if oid == oidFloat4 || k == vector.Float32 && oid != oidFloat8 {
		bitSize = 32
	}
	if _, ok := integerRange(oid); ok {
		return floatAsInteger(k, oid)
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		f := loadFloat(v, k, i)
		if oid == oidNumeric && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.AppendFloat(dst, f, 'f', -1, bitSize)
		}
		if bitSize == 32 && k == vector.Float64 && overflows32(f) {
			s.fail(errOutOfRange("real"))
			return dst
		}
		return s.appendFloat(dst, f, bitSize)
	}
}

func overflows32(f float64) bool { return !math.IsInf(f, 0) && math.IsInf(float64(float32(f)), 0) }

// floatAsInteger rounds half to even, as PostgreSQL's cast does.
func floatAsInteger(k vector.Kind, oid uint32) appendFunc {
	r, _ := integerRange(oid)
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		f := math.RoundToEven(loadFloat(v, k, i))
		if r.unsigned || !(f >= float64(r.min) && f < float64(r.max)+1) {
			s.fail(errOutOfRange(r.name))
			return dst
		}
		return strconv.AppendInt(dst, int64(f), 10)
	}
}

func floatBinary(k vector.Kind, oid uint32) appendFunc {
	switch {
	case oid == oidFloat8 && k == vector.Float64:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return binary.BigEndian.AppendUint64(dst, load[uint64](v, i))
		}
	case oid == oidFloat8:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(loadFloat(v, k, i)))
		}
	case oid == oidFloat4:
		return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
			f := loadFloat(v, k, i)
			if overflows32(f) {
				s.fail(errOutOfRange("real"))
				return dst
			}
			return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(f)))
		}
	}
	return nil
}

// appendFloat writes what float8out (bitSize 64) or float4out (32) writes.
func (s *state) appendFloat(dst []byte, f float64, bitSize int) []byte {
	if s.floatDigits > 0 {
		return appendFloat(dst, f, bitSize)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendFloat(dst, f, bitSize)
	}
	digits := 15
	if bitSize == 32 {
		digits = 6
	}
	return appendFloatG(dst, f, max(1, digits+s.floatDigits))
}

// appendFloat writes the shortest text that reads back as f.
func appendFloat(dst []byte, f float64, bitSize int) []byte {
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	small, limit, exact := 1e-4, 1e15, 0x1p53
	if bitSize == 32 {
		small, limit, exact = float64(float32(1e-4)), 1e6, 0x1p24
	}
	x := math.Abs(f)
	if x == 0 || x >= small && x < limit {
		return strconv.AppendFloat(dst, f, 'f', -1, bitSize)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, bitSize)
	if x >= exact {
		if digits := digitsOnBound(dst[at:], x, bitSize); digits > 0 {
			// PostgreSQL does not take a text half-way between two floats as either.
			return appendLonger(dst[:at], f, digits+1, bitSize)
		}
	}
	return dst
}

// appendLonger writes f in %e form with the fewest digits, at least digits, that do
// not end in zero.
func appendLonger(dst []byte, f float64, digits, bitSize int) []byte {
	at := len(dst)
	for ; ; digits++ {
		dst = strconv.AppendFloat(dst[:at], f, 'e', digits-1, bitSize)
		if dst[at+digits+boolInt(f < 0)] != '0' || digits > 17 {
			return dst
		}
	}
}

func boolInt(b bool) int { return int(boolByte(b)) }

// digitsOnBound returns the number of significant digits of text, which is the
// shortest text of x in %e form, if its value lies exactly half-way between x and a
// neighbour, and 0 otherwise. x is at least 2^mantissa bits, so that all are
// integers.
func digitsOnBound(text []byte, x float64, bitSize int) int {
	var digits uint64
	n, k := 0, 0
	for i, c := range text {
		if c == 'e' {
			k, _ = strconv.Atoi(string(text[i+2:])) // small: does not escape
			break
		}
		if c >= '0' && c <= '9' {
			digits = digits*10 + uint64(c-'0')
			n++
		}
	}
	k -= n - 1
	if k < 0 || k > 23 {
		return 0
	}
	// value = digits · 10^k; half-way points are odd · 2^h.
	mantissa, exp := math.Frexp(x)
	width := 53
	if bitSize == 32 {
		width = 24
	}
	m := uint64(math.Ldexp(mantissa, width))
	e := exp - width
	z := bits.TrailingZeros64(digits)
	odd := digits >> z
	for range k {
		hi, lo := bits.Mul64(odd, 5)
		if hi != 0 {
			return 0
		}
		odd = lo
	}
	h := z + k
	if h == e-1 && (odd == 2*m+1 || odd == 2*m-1) {
		return n
	}
	if m == 1<<(width-1) && h == e-2 && odd == 4*m-1 {
		return n
	}
	return 0
}

// appendFloatG is C's %.*g.
func appendFloatG(dst []byte, f float64, precision int) []byte {
	if f == 0 {
		if math.Signbit(f) {
			return append(dst, "-0"...)
		}
		return append(dst, '0')
	}
	var buf [40]byte
	e := strconv.AppendFloat(buf[:0], f, 'e', precision-1, 64)
	exp := 0
	end := len(e)
	for i, c := range e {
		if c == 'e' {
			exp, _ = strconv.Atoi(string(e[i+1:]))
			end = i
			break
		}
	}
	if exp >= -4 && exp < precision {
		at := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', precision-1-exp, 64)
		return trimFraction(dst, at)
	}
	at := len(dst)
	dst = trimFraction(append(dst, e[:end]...), at)
	return append(dst, e[end:]...)
}

// trimFraction removes trailing zeros of the fraction in dst[at:].
func trimFraction(dst []byte, at int) []byte {
	for i := at; i < len(dst); i++ {
		if dst[i] != '.' {
			continue
		}
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
		if dst[len(dst)-1] == '.' {
			dst = dst[:len(dst)-1]
		}
		break
	}
	return dst
}
