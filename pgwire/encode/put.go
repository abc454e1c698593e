package encode

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

// twoDigits are 00 to 99.
const twoDigits = "00010203040506070809101112131415161718192021222324" +
	"25262728293031323334353637383940414243444546474849" +
	"50515253545556575859606162636465666768697071727374" +
	"75767778798081828384858687888990919293949596979899"

func putTwo(b []byte, v uint64) {
	_ = b[1]
	b[0], b[1] = twoDigits[v*2], twoDigits[v*2+1]
}

// digitCount is the number of decimal digits of v, 1 for 0.
func digitCount(v uint64) int {
	n := bits.Len64(v|1) * 1233 >> 12
	if n < len(pow10) && v >= pow10[n] {
		n++
	}
	return max(n, 1)
}

// putDigits writes the last n digits of v, leading zeros included.
func putDigits(b []byte, v uint64, n int) {
	b = b[:n]
	for n >= 4 {
		q := v / 10000
		four := v - q*10000
		high := four / 100
		w := b[n-4 : n]
		putTwo(w, high)
		putTwo(w[2:], four-high*100)
		v, n = q, n-4
	}
	if n >= 2 {
		q := v / 100
		putTwo(b[n-2:], v-q*100)
		v, n = q, n-2
	}
	if n == 1 {
		b[0] = byte('0' + v%10)
	}
}

// cut splits u into u / 10^scale and the rest; a division by a constant costs little.
func cut(u uint64, scale int) (whole, rest uint64) {
	switch scale {
	case 0:
		return u, 0
	case 1:
		whole = u / 10
	case 2:
		whole = u / 100
	case 3:
		whole = u / 1000
	case 4:
		whole = u / 10000
	case 6:
		whole = u / 1e6
	default:
		whole = u / pow10[scale]
	}
	return whole, u - whole*pow10[scale]
}

// putSign writes the minus of a negative number, and returns how many bytes that were
// and the magnitude.
func putSign(b []byte, v int64) (int, uint64) {
	if v < 0 {
		b[0] = '-'
		return 1, -uint64(v)
	}
	return 0, uint64(v)
}

func putInt(b []byte, v int64) int {
	p, u := putSign(b, v)
	n := digitCount(u)
	putDigits(b[p:], u, n)
	return p + n
}

// putDecimal writes v · 10^-scale, scale ≤ 18.
func putDecimal(b []byte, v int64, scale int) int {
	p, u := putSign(b, v)
	whole, rest := cut(u, scale)
	n := digitCount(whole)
	putDigits(b[p:], whole, n)
	p += n
	if scale == 0 {
		return p
	}
	b[p] = '.'
	putDigits(b[p+1:], rest, scale)
	return p + 1 + scale
}

// putFloat writes what appendFloat writes for 64 bits. A value of few decimal places
// is found by trial: of all decimals with at most 15 digits only one reads back as it,
// which is then the shortest.
func putFloat(b []byte, f float64) int {
	const places, unit = 4, 1e4
	if x := math.Abs(f); x >= 1/unit && x < 1e15/unit {
		k := math.Round(x * unit)
		if k < 1e15 && k/unit == x {
			p := putDecimal(b, int64(math.Copysign(k, f)), places)
			for b[p-1] == '0' {
				p--
			}
			if b[p-1] == '.' {
				p--
			}
			return p
		}
	}
	return len(appendFloat(b[:0], f, 64))
}

// putNumeric writes v · 10^-scale, scale ≤ 18, as appendNumericBinary does.
func putNumeric(b []byte, v int64, scale int) int {
	if v == 0 {
		return len(appendNumericHeader(b[:0], 0, 0, 0, scale))
	}
	sign, u := uint16(0), uint64(v)
	if v < 0 {
		sign, u = numericNegative, -u
	}
	var digits [6]uint16 // least significant first
	n := 0
	if first := scale & 3; first != 0 { // the last group is filled up with zeros
		whole, rest := cut(u, first)
		digits[0] = uint16(rest * pow10[4-first])
		u, n = whole, 1
	}
	for u != 0 {
		q := u / 10000
		digits[n] = uint16(u - q*10000)
		u, n = q, n+1
	}
	weight := n - (scale+3)/4 - 1
	low := 0
	for digits[low] == 0 {
		low++
	}
	for digits[n-1] == 0 { // a value below one
		n--
		weight--
	}
	binary.BigEndian.PutUint64(b, uint64(n-low)<<48|uint64(uint16(int16(weight)))<<32|uint64(sign)<<16|uint64(scale))
	p := 8
	for i := n - 1; i >= low; i-- {
		binary.BigEndian.PutUint16(b[p:], digits[i])
		p += 2
	}
	return p
}

// dayCache keeps the ISO text of days, by their last bits.
type dayCache struct {
	days [512]struct {
		day  int32
		full bool
		text [10]byte
	}
}

// iso returns the text of a day, nil of one outside the years 1 to 9999.
func (c *dayCache) iso(day int64) *[10]byte {
	const first, last = -719162, 2932896
	if day < first || day > last {
		return nil
	}
	e := &c.days[day&511]
	if e.day != int32(day) || !e.full {
		y, m, d := civil(day)
		putDigits(e.text[:], uint64(y), 4)
		e.text[4], e.text[7] = '-', '-'
		putTwo(e.text[5:], uint64(m))
		putTwo(e.text[8:], uint64(d))
		e.day, e.full = int32(day), true
	}
	return &e.text
}

// putDate writes a date in the ISO style.
func (s *state) putDate(b []byte, day int32) int {
	if text := s.days.iso(int64(day)); text != nil {
		return copy(b, text[:])
	}
	return len(s.appendDate(b[:0], day))
}

// putStamp writes a timestamp in the ISO style, with or without the zone's offset.
func (s *state) putStamp(b []byte, us int64, zoned bool) int {
	local, offset := us, 0
	if zoned && s.zone.loc != time.UTC && us != stampInf && us != stampNInf {
		offset, _ = s.zone.at(floorDiv(us, 1e6))
		local += int64(offset) * 1e6
	}
	day := floorDiv(local, dayMicros)
	text := s.days.iso(day)
	switch {
	case text == nil && zoned:
		return len(s.appendTimestampTZ(b[:0], us))
	case text == nil:
		return len(s.appendTimestamp(b[:0], us))
	}
	clock := uint64(local - day*dayMicros)
	sec := clock / 1e6
	fraction := clock - sec*1e6
	minute := sec / 60
	hour := minute / 60
	_ = b[32]
	copy(b, text[:])
	b[10], b[13], b[16] = ' ', ':', ':'
	putTwo(b[11:], hour)
	putTwo(b[14:], minute-hour*60)
	putTwo(b[17:], sec-minute*60)
	p := 19
	if fraction != 0 {
		b[19] = '.'
		putDigits(b[20:], fraction, 6)
		for p = 26; b[p-1] == '0'; p-- {
		}
	}
	if !zoned {
		return p
	}
	if offset == 0 {
		b[p], b[p+1], b[p+2] = '+', '0', '0'
		return p + 3
	}
	return len(appendOffset(b[:p], offset))
}
