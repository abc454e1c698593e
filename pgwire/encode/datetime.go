package encode

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/skipprd/skipprd/lake/vector"
)

const (
	epochDays   = 10957 // 2000-01-01, in days since 1970-01-01
	epochMicros = int64(946684800) * 1e6
	dayMicros   = int64(86400) * 1e6
)

// Infinities: the engine's for dates and timestamps, and PostgreSQL's -infinity;
// both have the same +infinity.
const (
	dateInf     = math.MaxInt32
	dateNInf    = -math.MaxInt32
	stampInf    = math.MaxInt64
	stampNInf   = -math.MaxInt64
	pgDateNInf  = math.MinInt32
	pgStampNInf = math.MinInt64
)

// loadMicros loads any timestamp kind as microseconds, keeping infinities.
func loadMicros(v *vector.Vector, k vector.Kind, i int) int64 {
	if k == vector.Date {
		switch d := load[int32](v, i); d {
		case dateInf:
			return stampInf
		case dateNInf:
			return stampNInf
		default:
			return int64(d) * dayMicros
		}
	}
	n := load[int64](v, i)
	if n == stampInf || n == stampNInf {
		return n
	}
	switch k {
	case vector.TimestampS:
		return n * 1e6
	case vector.TimestampMS:
		return n * 1e3
	case vector.TimestampNS:
		return floorDiv(n, 1000)
	}
	return n
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// microsToDate is the day of a timestamp, as a date.
func microsToDate(us int64) int32 {
	switch us {
	case stampInf:
		return dateInf
	case stampNInf:
		return dateNInf
	}
	return int32(floorDiv(us, dayMicros))
}

// dateTimeText is the text of a date or time kind; a target of another date or time
// type casts without a time zone.
func dateTimeText(k vector.Kind, oid uint32) appendFunc {
	switch k {
	case vector.Time:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return appendClock(dst, load[int64](v, i))
		}
	case vector.TimeTZ:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			us, offset := loadTimeTZ(v, i)
			return appendOffset(appendClock(dst, us), offset)
		}
	case vector.Date:
		if oid != oidTimestamp && oid != oidTimestampTZ {
			return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
				return s.appendDate(dst, load[int32](v, i))
			}
		}
	case vector.TimestampTZ:
		if oid != oidTimestamp && oid != oidDate {
			return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
				return s.appendTimestampTZ(dst, load[int64](v, i))
			}
		}
	}
	if oid == oidDate {
		return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
			return s.appendDate(dst, microsToDate(loadMicros(v, k, i)))
		}
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		return s.appendTimestamp(dst, loadMicros(v, k, i))
	}
}

// dateTimeBinary is the direct binary form, nil where there is none.
func dateTimeBinary(k vector.Kind, oid uint32) appendFunc {
	switch k {
	case vector.Time:
		if oid == oidTime {
			return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
				return binary.BigEndian.AppendUint64(dst, load[uint64](v, i))
			}
		}
		return nil
	case vector.TimeTZ:
		if oid == oidTimeTZ {
			return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
				us, offset := loadTimeTZ(v, i)
				return appendTimeTZBinary(dst, us, offset)
			}
		}
		return nil
	}
	switch oid {
	case oidDate:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			if k == vector.Date {
				return appendDateBinary(dst, load[int32](v, i))
			}
			return appendDateBinary(dst, microsToDate(loadMicros(v, k, i)))
		}
	case oidTimestamp, oidTimestampTZ:
		return func(_ *state, dst []byte, v *vector.Vector, i int) []byte {
			return appendStampBinary(dst, loadMicros(v, k, i))
		}
	}
	return nil
}

func appendDateBinary(dst []byte, days int32) []byte {
	switch days {
	case dateInf:
	case dateNInf:
		days = pgDateNInf
	default:
		days -= epochDays
	}
	return binary.BigEndian.AppendUint32(dst, uint32(days))
}

func appendStampBinary(dst []byte, us int64) []byte {
	switch us {
	case stampInf:
	case stampNInf:
		us = pgStampNInf
	default:
		us -= epochMicros
	}
	return binary.BigEndian.AppendUint64(dst, uint64(us))
}

func appendTimeTZBinary(dst []byte, us int64, offset int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(us))
	return binary.BigEndian.AppendUint32(dst, uint32(int32(-offset)))
}

// loadTimeTZ unpacks the engine's form: 40 bits of microseconds, 24 bits of offset,
// counted down from its maximum.
func loadTimeTZ(v *vector.Vector, i int) (us int64, offset int) {
	n := load[uint64](v, i)
	return int64(n >> 24), 16*3600 - 1 - int(n&0xffffff)
}

func appendTwo(dst []byte, v int) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }

// civil splits days since 1970-01-01 into the proleptic Gregorian date; year 0 is
// 1 BC.
func civil(days int64) (year int64, month, day int) {
	const eras = 82 // moves the range of the fast way to years ±32800
	if n := days + 719468 + eras*146097; uint64(n) < 2*eras*146097 {
		year, month, day = fastCivil(uint32(n))
		return year - eras*400, month, day
	}
	return slowCivil(days)
}

// fastCivil is Neri's and Schneider's algorithm: n counts from March 1st of year 0.
func fastCivil(n uint32) (year int64, month, day int) {
	n1 := 4*n + 3
	century := n1 / 146097
	n2 := 4*(n1%146097/4) + 3
	p := 2939745 * uint64(n2)
	ofCentury := uint32(p >> 32)
	ofYear := uint32(p) / 2939745 / 4
	n3 := 2141*ofYear + 197913
	year = int64(100*century + ofCentury)
	month, day = int(n3>>16), int(n3&0xffff/2141)+1
	if ofYear >= 306 {
		year++
		month -= 12
	}
	return year, month, day
}

func slowCivil(days int64) (year int64, month, day int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if mp >= 10 {
		month = int(mp - 9)
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// daysFromCivil is the inverse of civil.
func daysFromCivil(year int64, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	mp := int64(month+9) % 12
	doy := (153*mp+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func appendYear(dst []byte, year int64) []byte {
	if year < 10000 {
		return appendTwo(appendTwo(dst, int(year/100)), int(year%100))
	}
	return strconv.AppendInt(dst, year, 10)
}

// appendYMD writes a date in the session's style, without BC, which it reports.
func (s *state) appendYMD(dst []byte, days int64) (_ []byte, bc bool) {
	y, m, d := civil(days)
	if bc = y <= 0; bc {
		y = 1 - y
	}
	first, second, sep := m, d, byte('/')
	switch s.dates {
	case dateISO:
		dst = appendTwo(append(appendYear(dst, y), '-'), m)
		return appendTwo(append(dst, '-'), d), bc
	case datePostgres:
		sep = '-'
	case dateGerman:
		sep = '.'
	}
	if s.dayFirst || s.dates == dateGerman {
		first, second = d, m
	}
	dst = appendTwo(append(appendTwo(dst, first), sep), second)
	return appendYear(append(dst, sep), y), bc
}

func (s *state) appendDate(dst []byte, days int32) []byte {
	switch days {
	case dateInf:
		return append(dst, "infinity"...)
	case dateNInf:
		return append(dst, "-infinity"...)
	}
	dst, bc := s.appendYMD(dst, int64(days))
	return appendBC(dst, bc)
}

func appendBC(dst []byte, bc bool) []byte {
	if bc {
		return append(dst, " BC"...)
	}
	return dst
}

// appendClock writes hh:mm:ss[.ffffff] of us, 0 ≤ us ≤ one day.
func appendClock(dst []byte, us int64) []byte {
	sec := us / 1e6
	dst = appendTwo(dst, int(sec/3600))
	dst = appendTwo(append(dst, ':'), int(sec/60%60))
	dst = appendTwo(append(dst, ':'), int(sec%60))
	return appendFraction(dst, int(us%1e6))
}

// appendFraction writes microseconds without trailing zeros, nothing for 0.
func appendFraction(dst []byte, f int) []byte {
	if f == 0 {
		return dst
	}
	dst = append(dst, '.')
	dst = appendTwo(appendTwo(appendTwo(dst, f/10000), f/100%100), f%100)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendOffset writes a zone offset: +hh[:mm[:ss]].
func appendOffset(dst []byte, offset int) []byte {
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = appendTwo(append(dst, sign), offset/3600)
	if offset%3600 != 0 {
		dst = appendTwo(append(dst, ':'), offset/60%60)
	}
	if offset%60 != 0 {
		dst = appendTwo(append(dst, ':'), offset%60)
	}
	return dst
}

func (s *state) appendTimestamp(dst []byte, us int64) []byte {
	switch us {
	case stampInf:
		return append(dst, "infinity"...)
	case stampNInf:
		return append(dst, "-infinity"...)
	}
	dst, bc := s.appendStamp(dst, us)
	return appendBC(dst, bc)
}

func (s *state) appendTimestampTZ(dst []byte, us int64) []byte {
	switch us {
	case stampInf:
		return append(dst, "infinity"...)
	case stampNInf:
		return append(dst, "-infinity"...)
	}
	offset, abbreviation := s.zone.at(floorDiv(us, 1e6))
	dst, bc := s.appendStamp(dst, us+int64(offset)*1e6)
	switch {
	case s.dates == dateISO:
		dst = appendOffset(dst, offset)
	case abbreviation != "":
		dst = append(append(dst, ' '), abbreviation...)
	case s.dates == datePostgres:
		dst = appendOffset(append(dst, ' '), offset)
	default:
		dst = appendOffset(dst, offset)
	}
	return appendBC(dst, bc)
}

const (
	dayNames   = "SunMonTueWedThuFriSat"
	monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// appendStamp writes date and time of local microseconds in the session's style,
// without zone and BC.
func (s *state) appendStamp(dst []byte, us int64) (_ []byte, bc bool) {
	days := floorDiv(us, dayMicros)
	clock := us - days*dayMicros
	if s.dates != datePostgres {
		dst, bc = s.appendYMD(dst, days)
		return appendClock(append(dst, ' '), clock), bc
	}
	y, m, d := civil(days)
	if bc = y <= 0; bc {
		y = 1 - y
	}
	dow := int(((days+4)%7 + 7) % 7)
	dst = append(append(dst, dayNames[dow*3:dow*3+3]...), ' ')
	month := monthNames[m*3-3 : m*3]
	if s.dayFirst {
		dst = append(append(appendTwo(dst, d), ' '), month...)
	} else {
		dst = appendTwo(append(append(dst, month...), ' '), d)
	}
	dst = appendClock(append(dst, ' '), clock)
	return appendYear(append(dst, ' '), y), bc
}
