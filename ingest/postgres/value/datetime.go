package value

import "math"

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
	// epochDays is the days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
	epochDays = 10_957
)

// parseDate reads 2026-01-02, 10000-01-01, 0044-03-15 BC, infinity.
func parseDate(src []byte) (int32, error) {
	days, rest, err := parseDay(src)
	if err != nil {
		return 0, err
	}
	if days, err = era(days, src, rest); err != nil {
		return 0, err
	}
	if days < math.MinInt32 || days > math.MaxInt32 {
		return 0, ErrRange
	}
	return int32(days), nil
}

// parseTimestamp reads a date, a time of day, and maybe an offset and BC, as
// microseconds since 1970 UTC.
func parseTimestamp(src []byte) (int64, error) {
	days, rest, err := parseDay(src)
	if err != nil {
		return 0, err
	}
	if len(rest) == 0 || rest[0] != ' ' {
		return 0, ErrMalformed
	}
	us, rest, err := parseClock(rest[1:])
	if err != nil {
		return 0, err
	}
	offset, rest, err := parseOffset(rest)
	if err != nil {
		return 0, err
	}
	if days, err = era(days, src, rest); err != nil {
		return 0, err
	}
	return micros(days, us-offset*microsPerSecond)
}

// micros is days and microseconds in one number, if it fits.
func micros(days, us int64) (int64, error) {
	const daysMax = math.MaxInt64 / microsPerDay
	if days > daysMax-2 || days < -daysMax+2 {
		return 0, ErrRange
	}
	return days*microsPerDay + us, nil
}

// era applies a trailing BC, for which the day is counted again from its year.
func era(days int64, src, rest []byte) (int64, error) {
	switch string(rest) {
	case "":
		return days, nil
	case " BC":
		year, month, day, _, err := parseCivil(src)
		if err != nil {
			return 0, err
		}
		return civilDays(1-year, month, day), nil
	}
	return 0, ErrMalformed
}

func parseDay(src []byte) (days int64, rest []byte, err error) {
	year, month, day, rest, err := parseCivil(src)
	if err != nil {
		return 0, nil, err
	}
	return civilDays(year, month, day), rest, nil
}

// parseCivil reads year, month and day.
func parseCivil(src []byte) (year, month, day int64, rest []byte, err error) {
	if len(src) > 0 && (src[0] == 'i' || src[0] == '-') {
		return 0, 0, 0, nil, ErrInfinity
	}
	n := 0
	for n < len(src) && src[n] >= '0' && src[n] <= '9' {
		if n == 8 {
			return 0, 0, 0, nil, ErrMalformed
		}
		year = year*10 + int64(src[n]-'0')
		n++
	}
	rest = src[n:]
	if n < 4 || len(rest) < 6 || rest[0] != '-' || rest[3] != '-' {
		return 0, 0, 0, nil, ErrMalformed
	}
	month, day = twoDigits(rest[1:]), twoDigits(rest[4:])
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, 0, 0, nil, ErrMalformed
	}
	return year, month, day, rest[6:], nil
}

// twoDigits is the number in the first two bytes, -1 when it is none.
func twoDigits(b []byte) int64 {
	hi, lo := b[0]-'0', b[1]-'0'
	if hi > 9 || lo > 9 {
		return -1
	}
	return int64(hi)*10 + int64(lo)
}

// civilDays is the days from 1970-01-01 to a day of the proleptic Gregorian
// calendar; year 0 is 1 BC.
func civilDays(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	cycle := year / 400
	if year < 0 {
		cycle = (year - 399) / 400
	}
	inCycle := year - cycle*400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return cycle*146_097 + inCycle*365 + inCycle/4 - inCycle/100 + dayOfYear - 719_468
}

// parseClock reads 03:04:05 with up to six decimal places, up to 24:00:00.
func parseClock(src []byte) (us int64, rest []byte, err error) {
	if len(src) < 8 || src[2] != ':' || src[5] != ':' {
		return 0, nil, ErrMalformed
	}
	h, m, s := twoDigits(src), twoDigits(src[3:]), twoDigits(src[6:])
	if h < 0 || h > 24 || m < 0 || m > 59 || s < 0 || s > 60 {
		return 0, nil, ErrMalformed
	}
	us = ((h*60+m)*60 + s) * microsPerSecond
	rest = src[8:]
	if len(rest) == 0 || rest[0] != '.' {
		return us, rest, nil
	}
	unit, i := int64(100_000), 1
	for ; i < len(rest) && rest[i] >= '0' && rest[i] <= '9'; i++ {
		if unit == 0 {
			return 0, nil, ErrScale
		}
		us += int64(rest[i]-'0') * unit
		unit /= 10
	}
	return us, rest[i:], nil
}

// parseOffset reads an offset from UTC, in seconds: +00, -03:30, +01:02:03.
func parseOffset(src []byte) (seconds int64, rest []byte, err error) {
	if len(src) == 0 || (src[0] != '+' && src[0] != '-') {
		return 0, src, nil
	}
	if len(src) < 3 {
		return 0, nil, ErrMalformed
	}
	part := twoDigits(src[1:])
	seconds, rest = part*3600, src[3:]
	for unit := int64(60); unit > 0 && len(rest) >= 3 && rest[0] == ':'; unit /= 60 {
		next := twoDigits(rest[1:])
		part |= next
		seconds += next * unit
		rest = rest[3:]
	}
	if part < 0 {
		return 0, nil, ErrMalformed
	}
	if src[0] == '-' {
		seconds = -seconds
	}
	return seconds, rest, nil
}
