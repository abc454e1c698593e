package encode

import (
	"encoding/binary"
	"strconv"

	"github.com/skipprd/skipprd/lake/vector"
)

// engineInterval is the engine's layout.
type engineInterval struct {
	months, days int32
	micros       int64
}

// intervalParts are the fields of PostgreSQL's output routines; all of one source
// field have its sign.
type intervalParts struct {
	year, mon, day, hour, min, sec, fsec int64
}

func (iv engineInterval) parts() intervalParts {
	return intervalParts{
		year: int64(iv.months / 12), mon: int64(iv.months % 12), day: int64(iv.days),
		hour: iv.micros / 3600e6, min: iv.micros / 60e6 % 60, sec: iv.micros / 1e6 % 60, fsec: iv.micros % 1e6,
	}
}

func intervalText(s *state, dst []byte, v *vector.Vector, i int) []byte {
	return s.appendInterval(dst, load[engineInterval](v, i))
}

func intervalBinary(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return appendIntervalBinary(dst, load[engineInterval](v, i))
}

func appendIntervalBinary(dst []byte, iv engineInterval) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(iv.micros))
	dst = binary.BigEndian.AppendUint32(dst, uint32(iv.days))
	return binary.BigEndian.AppendUint32(dst, uint32(iv.months))
}

func (s *state) appendInterval(dst []byte, iv engineInterval) []byte {
	p := iv.parts()
	switch s.intervals {
	case intervalVerbose:
		return p.appendVerbose(dst)
	case intervalSQL:
		return p.appendSQL(dst)
	case intervalISO:
		return p.appendISO(dst)
	}
	return p.appendPostgres(dst)
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// appendAtLeastTwo writes a non-negative number with at least two digits.
func appendAtLeastTwo(dst []byte, n int64) []byte {
	if n < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendHMS writes hh:mm:ss[.f] of absolute values; pad says whether hours have two
// digits.
func (p intervalParts) appendHMS(dst []byte, pad bool) []byte {
	if pad {
		dst = appendAtLeastTwo(dst, abs(p.hour))
	} else {
		dst = strconv.AppendInt(dst, abs(p.hour), 10)
	}
	dst = appendTwo(append(dst, ':'), int(abs(p.min)))
	dst = appendTwo(append(dst, ':'), int(abs(p.sec)))
	return appendFraction(dst, int(abs(p.fsec)))
}

func (p intervalParts) negativeTime() bool { return p.hour < 0 || p.min < 0 || p.sec < 0 || p.fsec < 0 }

func (p intervalParts) hasTime() bool { return p.hour != 0 || p.min != 0 || p.sec != 0 || p.fsec != 0 }

func (p intervalParts) appendPostgres(dst []byte) []byte {
	zero, before := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if !zero {
			dst = append(dst, ' ')
		}
		if before && n > 0 {
			dst = append(dst, '+')
		}
		dst = append(append(strconv.AppendInt(dst, n, 10), ' '), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		before, zero = n < 0, false
	}
	part(p.year, "year")
	part(p.mon, "mon")
	part(p.day, "day")
	if !zero && !p.hasTime() {
		return dst
	}
	if !zero {
		dst = append(dst, ' ')
	}
	if p.negativeTime() {
		dst = append(dst, '-')
	} else if before {
		dst = append(dst, '+')
	}
	return p.appendHMS(dst, true)
}

func (p intervalParts) appendVerbose(dst []byte) []byte {
	dst = append(dst, '@')
	zero, before := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if zero {
			before = n < 0
			n = abs(n)
		} else if before {
			n = -n
		}
		dst = append(append(strconv.AppendInt(append(dst, ' '), n, 10), ' '), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		zero = false
	}
	part(p.year, "year")
	part(p.mon, "mon")
	part(p.day, "day")
	part(p.hour, "hour")
	part(p.min, "min")
	if p.sec != 0 || p.fsec != 0 {
		dst = append(dst, ' ')
		switch negative := p.sec < 0 || p.sec == 0 && p.fsec < 0; {
		case negative && zero:
			before = true
		case negative != before:
			dst = append(dst, '-')
		}
		dst = appendFraction(strconv.AppendInt(dst, abs(p.sec), 10), int(abs(p.fsec)))
		dst = append(dst, " sec"...)
		if abs(p.sec) != 1 || p.fsec != 0 {
			dst = append(dst, 's')
		}
		zero = false
	}
	if zero {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}

func (p intervalParts) appendSQL(dst []byte) []byte {
	negative := p.year < 0 || p.mon < 0 || p.day < 0 || p.negativeTime()
	positive := p.year > 0 || p.mon > 0 || p.day > 0 || p.hour > 0 || p.min > 0 || p.sec > 0 || p.fsec > 0
	yearMonth := p.year != 0 || p.mon != 0
	dayTime := p.day != 0 || p.hasTime()
	standard := !(negative && positive) && !(yearMonth && dayTime)
	switch {
	case !negative && !positive:
		return append(dst, '0')
	case !standard:
		dst = strconv.AppendInt(append(dst, signByte(p.year < 0 || p.mon < 0)), abs(p.year), 10)
		dst = strconv.AppendInt(append(dst, '-'), abs(p.mon), 10)
		dst = strconv.AppendInt(append(dst, ' ', signByte(p.day < 0)), abs(p.day), 10)
		return p.appendHMS(append(dst, ' ', signByte(p.negativeTime())), false)
	}
	if negative {
		dst = append(dst, '-')
	}
	switch {
	case yearMonth:
		dst = strconv.AppendInt(dst, abs(p.year), 10)
		return strconv.AppendInt(append(dst, '-'), abs(p.mon), 10)
	case p.day != 0:
		dst = append(strconv.AppendInt(dst, abs(p.day), 10), ' ')
	}
	return p.appendHMS(dst, false)
}

func signByte(negative bool) byte {
	if negative {
		return '-'
	}
	return '+'
}

func (p intervalParts) appendISO(dst []byte) []byte {
	if p == (intervalParts{}) {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(p.year, 'Y')
	part(p.mon, 'M')
	part(p.day, 'D')
	if p.hasTime() {
		dst = append(dst, 'T')
	}
	part(p.hour, 'H')
	part(p.min, 'M')
	if p.sec != 0 || p.fsec != 0 {
		if p.sec < 0 || p.fsec < 0 {
			dst = append(dst, '-')
		}
		dst = append(appendFraction(strconv.AppendInt(dst, abs(p.sec), 10), int(abs(p.fsec))), 'S')
	}
	return dst
}
