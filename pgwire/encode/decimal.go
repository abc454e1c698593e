package encode

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/skipprd/skipprd/lake/vector"
)

var pow10 = [20]uint64{
	1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// loadDecimal returns sign and magnitude of a decimal's unscaled value.
func loadDecimal(v *vector.Vector, width uint8, i int) (neg bool, hi, lo uint64) {
	var n int64
	switch {
	case width <= 4:
		n = int64(load[int16](v, i))
	case width <= 9:
		n = int64(load[int32](v, i))
	case width <= 18:
		n = load[int64](v, i)
	default:
		return load[hugeInt](v, i).abs()
	}
	if n < 0 {
		return true, 0, uint64(-n)
	}
	return false, 0, uint64(n)
}

func decimalText(t vector.Type, oid uint32) appendFunc {
	width, scale := t.Width, int(t.Scale)
	plain := func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
		neg, hi, lo := loadDecimal(v, width, i)
		return appendDecimal(dst, neg, hi, lo, scale)
	}
	bitSize := 64
	switch {
	case oid == oidFloat4:
		bitSize = 32
	case oid == oidFloat8:
	default:
		r, integer := integerRange(oid)
		if !integer {
			return plain
		}
		return decimalAsInteger(width, scale, r)
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		at := len(dst)
		dst = plain(s, dst, v, i)
		text := dst[at:]
		f, _ := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), bitSize)
		return s.appendFloat(dst[:at], f, bitSize)
	}
}

// decimalAsInteger rounds half away from zero, as PostgreSQL's cast does.
func decimalAsInteger(width uint8, scale int, r intRange) appendFunc {
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		neg, hi, lo := loadDecimal(v, width, i)
		var last uint64
		for n := scale; n > 0; n-- {
			hi, lo, last = divmod128(hi, lo, 10)
		}
		if last >= 5 {
			var carry uint64
			lo, carry = bits.Add64(lo, 1, 0)
			hi += carry
		}
		ok := hi == 0
		switch {
		case r.unsigned:
			ok = ok && (!neg || lo == 0)
		case neg:
			ok = ok && lo <= -uint64(r.min)
		default:
			ok = ok && lo <= uint64(r.max)
		}
		if !ok {
			s.fail(errOutOfRange(r.name))
			return dst
		}
		return appendDecimal(dst, neg && lo != 0, 0, lo, 0)
	}
}

func decimalBinary(t vector.Type) appendFunc {
	width, scale := t.Width, int(t.Scale)
	return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
		neg, hi, lo := loadDecimal(v, width, i)
		return appendNumericBinary(dst, neg, hi, lo, scale)
	}
}

// divmod128 divides hi:lo by d.
func divmod128(hi, lo, d uint64) (qhi, qlo, r uint64) {
	qhi, r = hi/d, hi%d
	qlo, r = bits.Div64(r, lo, d)
	return qhi, qlo, r
}

// appendDecimal writes ±hi:lo · 10^-scale, scale ≤ 38.
func appendDecimal(dst []byte, neg bool, hi, lo uint64, scale int) []byte {
	if neg {
		dst = append(dst, '-')
	}
	if hi == 0 && scale < len(pow10) {
		p := pow10[scale]
		dst = strconv.AppendUint(dst, lo/p, 10)
		if scale == 0 {
			return dst
		}
		return appendPadded(append(dst, '.'), lo%p, scale)
	}
	var tmp [48]byte
	p, k := len(tmp), 0
	put := func(v uint64, digits int) { // digits < 0: as many as needed
		for n := 0; digits < 0 && (v > 0 || k <= scale) || n < digits; n++ {
			if k == scale && scale > 0 {
				p--
				tmp[p] = '.'
			}
			p--
			tmp[p] = byte('0' + v%10)
			v /= 10
			k++
		}
	}
	for hi != 0 {
		var r uint64
		hi, lo, r = divmod128(hi, lo, pow10[18])
		put(r, 18)
	}
	put(lo, -1)
	return append(dst, tmp[p:]...)
}

// appendPadded writes v with leading zeros to width digits.
func appendPadded(dst []byte, v uint64, width int) []byte {
	at := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; i >= at && v > 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}

const (
	numericNegative = 0x4000
	numericNaN      = 0xC000
	numericPInf     = 0xD000
	numericNInf     = 0xF000
)

// appendNumericBinary writes ±hi:lo · 10^-scale in numeric_send's form: base-10000
// digits.
func appendNumericBinary(dst []byte, neg bool, hi, lo uint64, scale int) []byte {
	var digits [12]uint16 // least significant first
	n := 0
	if first := scale % 4; first != 0 { // the last group is filled up with zeros
		var r uint64
		hi, lo, r = divmod128(hi, lo, pow10[first])
		digits[0] = uint16(r * pow10[4-first])
		n = 1
	}
	for hi != 0 || lo != 0 {
		var r uint64
		if hi == 0 {
			lo, r = lo/10000, lo%10000
		} else {
			hi, lo, r = divmod128(hi, lo, 10000)
		}
		digits[n] = uint16(r)
		n++
	}
	sign := uint16(0)
	if neg {
		sign = numericNegative
	}
	weight := n - (scale+3)/4 - 1
	low := 0
	for low < n && digits[low] == 0 {
		low++
	}
	for n > low && digits[n-1] == 0 { // a value below one
		n--
		weight--
	}
	if low >= n {
		weight, sign, n, low = 0, 0, 0, 0
	}
	dst = appendNumericHeader(dst, n-low, weight, sign, scale)
	for i := n - 1; i >= low; i-- {
		dst = binary.BigEndian.AppendUint16(dst, digits[i])
	}
	return dst
}

func appendNumericHeader(dst []byte, digits, weight int, sign uint16, scale int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(digits))
	dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	return binary.BigEndian.AppendUint16(dst, uint16(scale))
}
