package encode

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/skipprd/skipprd/lake/vector"
)

func load[T any](v *vector.Vector, i int) T {
	return *(*T)(unsafe.Add(v.Data, uintptr(i)*unsafe.Sizeof(*new(T))))
}

func boolText(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	if load[uint8](v, i) != 0 {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

// boolWord is PostgreSQL's cast of boolean to text.
func boolWord(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return strconv.AppendBool(dst, load[uint8](v, i) != 0)
}

func boolBinary(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	if load[uint8](v, i) != 0 {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// intRange is what an integer target holds.
type intRange struct {
	min, max int64
	size     int
	unsigned bool // max is then the bit pattern of a uint64
	name     string
}

// integerRange returns the range of an integer-like target type.
func integerRange(oid uint32) (intRange, bool) {
	switch {
	case oid == oidInt2:
		return intRange{math.MinInt16, math.MaxInt16, 2, false, "smallint"}, true
	case oid == oidInt4:
		return intRange{math.MinInt32, math.MaxInt32, 4, false, "integer"}, true
	case oid == oidInt8:
		return intRange{math.MinInt64, math.MaxInt64, 8, false, "bigint"}, true
	case oid == oidOID || oid == oidXID || oid == oidCID || isRegType(oid):
		return intRange{0, math.MaxUint32, 4, false, "OID"}, true
	case oid == oidXID8:
		return intRange{0, -1, 8, true, "xid8"}, true
	}
	return intRange{}, false
}

func kindRange(k vector.Kind) (lo, hi int64) {
	switch k {
	case vector.Int8:
		return math.MinInt8, math.MaxInt8
	case vector.Int16:
		return math.MinInt16, math.MaxInt16
	case vector.Int32:
		return math.MinInt32, math.MaxInt32
	case vector.UInt8:
		return 0, math.MaxUint8
	case vector.UInt16:
		return 0, math.MaxUint16
	case vector.UInt32:
		return 0, math.MaxUint32
	}
	return math.MinInt64, math.MaxInt64
}

// integerText is the text of an integer announced as oid. A target that is too
// narrow for the value is 22003.
func integerText(k vector.Kind, oid uint32) appendFunc {
	plain := plainIntegerText(k)
	switch oid {
	case oidFloat4, oidFloat8:
		return integerAsFloatText(k, oid)
	case oidBool:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			if hi, lo := loadWide(v, k, i); hi|int64(lo) != 0 {
				return append(dst, 't')
			}
			return append(dst, 'f')
		}
	case oidChar:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			_, lo := loadWide(v, k, i)
			return append(dst, byte(lo))
		}
	}
	r, narrow := integerRange(oid)
	if !narrow || fits(k, r) {
		return plain
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		if _, ok := narrowed(v, k, i, r); !ok {
			s.fail(errOutOfRange(r.name))
			return dst
		}
		return plain(s, dst, v, i)
	}
}

// fits reports that every value of k is in r.
func fits(k vector.Kind, r intRange) bool {
	lo, hi := kindRange(k)
	switch k {
	case vector.UInt64, vector.HugeInt, vector.UHugeInt:
		return false
	}
	return r.min <= lo && (r.unsigned || hi <= r.max)
}

// narrowed returns the value as the 64 bits of target r, or false when r cannot
// hold it.
func narrowed(v *vector.Vector, k vector.Kind, i int, r intRange) (uint64, bool) {
	hi, lo := loadWide(v, k, i)
	if r.unsigned {
		return lo, hi == 0
	}
	if hi != int64(lo)>>63 {
		return 0, false
	}
	n := int64(lo)
	return lo, n >= r.min && n <= r.max
}

// loadWide loads any integer kind as 128 bits in two's complement. A UHugeInt above
// the signed range comes out negative in no target's range but numeric's, which does
// not use this.
func loadWide(v *vector.Vector, k vector.Kind, i int) (hi int64, lo uint64) {
	switch k {
	case vector.Int8:
		n := int64(load[int8](v, i))
		return n >> 63, uint64(n)
	case vector.Int16:
		n := int64(load[int16](v, i))
		return n >> 63, uint64(n)
	case vector.Int32:
		n := int64(load[int32](v, i))
		return n >> 63, uint64(n)
	case vector.Int64:
		n := load[int64](v, i)
		return n >> 63, uint64(n)
	case vector.UInt8:
		return 0, uint64(load[uint8](v, i))
	case vector.UInt16:
		return 0, uint64(load[uint16](v, i))
	case vector.UInt32:
		return 0, uint64(load[uint32](v, i))
	case vector.UInt64:
		return 0, load[uint64](v, i)
	}
	h := load[hugeInt](v, i)
	if k == vector.UHugeInt && h.hi < 0 {
		return math.MaxInt64, h.lo
	}
	return h.hi, h.lo
}

// hugeInt is the engine's 128-bit integer.
type hugeInt struct {
	lo uint64
	hi int64
}

func signedText[T int8 | int16 | int32 | int64](_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return strconv.AppendInt(dst, int64(load[T](v, i)), 10)
}

func unsignedText[T uint8 | uint16 | uint32 | uint64](_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return strconv.AppendUint(dst, uint64(load[T](v, i)), 10)
}

func plainIntegerText(k vector.Kind) appendFunc {
	switch k {
	case vector.Int8:
		return signedText[int8]
	case vector.Int16:
		return signedText[int16]
	case vector.Int32:
		return signedText[int32]
	case vector.Int64:
		return signedText[int64]
	case vector.UInt8:
		return unsignedText[uint8]
	case vector.UInt16:
		return unsignedText[uint16]
	case vector.UInt32:
		return unsignedText[uint32]
	case vector.UInt64:
		return unsignedText[uint64]
	case vector.UHugeInt:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			h := load[hugeInt](v, i)
			return appendDecimal(dst, false, uint64(h.hi), h.lo, 0)
		}
	}
	return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
		neg, hi, lo := load[hugeInt](v, i).abs()
		return appendDecimal(dst, neg, hi, lo, 0)
	}
}

// abs returns sign and magnitude.
func (h hugeInt) abs() (neg bool, hi, lo uint64) {
	if h.hi >= 0 {
		return false, uint64(h.hi), h.lo
	}
	lo, borrow := bits.Sub64(0, h.lo, 0)
	hi, _ = bits.Sub64(0, uint64(h.hi), borrow)
	return true, hi, lo
}

func integerAsFloatText(k vector.Kind, oid uint32) appendFunc {
	bitSize := 64
	if oid == oidFloat4 {
		bitSize = 32
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		return s.appendFloat(dst, integerAsFloat(v, k, i), bitSize)
	}
}

func integerAsFloat(v *vector.Vector, k vector.Kind, i int) float64 {
	if k == vector.UHugeInt {
		h := load[hugeInt](v, i)
		return float64(uint64(h.hi))*0x1p64 + float64(h.lo)
	}
	hi, lo := loadWide(v, k, i)
	if hi == int64(lo)>>63 {
		return float64(int64(lo))
	}
	return float64(hi)*0x1p64 + float64(lo)
}

// integerBinary is the binary form of an integer kind, nil when oid is no number.
func integerBinary(k vector.Kind, oid uint32) appendFunc {
	switch oid {
	case oidNumeric:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			if k == vector.UHugeInt {
				h := load[hugeInt](v, i)
				return appendNumericBinary(dst, false, uint64(h.hi), h.lo, 0)
			}
			hi, lo := loadWide(v, k, i)
			neg, h, l := hugeInt{lo: lo, hi: hi}.abs()
			return appendNumericBinary(dst, neg, h, l, 0)
		}
	case oidFloat8:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(integerAsFloat(v, k, i)))
		}
	case oidFloat4:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(integerAsFloat(v, k, i))))
		}
	case oidBool, oidChar:
		text := integerText(k, oid)
		return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
			at := len(dst)
			dst = text(s, dst, v, i)
			if oid == oidBool {
				dst[at] = boolByte(dst[at] == 't')
			}
			return dst
		}
	}
	r, ok := integerRange(oid)
	if !ok {
		return nil
	}
	switch { // the two pairs that matter
	case k == vector.Int64 && oid == oidInt8:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return binary.BigEndian.AppendUint64(dst, load[uint64](v, i))
		}
	case k == vector.Int32 && oid == oidInt4:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return binary.BigEndian.AppendUint32(dst, load[uint32](v, i))
		}
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		n, ok := narrowed(v, k, i, r)
		if !ok {
			s.fail(errOutOfRange(r.name))
			return dst
		}
		switch r.size {
		case 2:
			return binary.BigEndian.AppendUint16(dst, uint16(n))
		case 4:
			return binary.BigEndian.AppendUint32(dst, uint32(n))
		}
		return binary.BigEndian.AppendUint64(dst, n)
	}
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
