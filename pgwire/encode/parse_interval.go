package encode

import (
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// intervalSum adds up fields; fractions cascade to the next smaller field.
type intervalSum struct{ months, days, micros float64 }

// add adds n units; it reports false for an unknown unit.
func (s *intervalSum) add(n float64, unit string) bool {
	whole, fraction := math.Modf(n)
	switch unit {
	case "us", "usec", "usecs", "microsecond", "microseconds", "usecond", "useconds", "microsecon":
		s.micros += math.RoundToEven(n)
	case "ms", "msec", "msecs", "millisecond", "milliseconds", "mseconds", "millisecon":
		s.micros += math.RoundToEven(n * 1e3)
	case "s", "sec", "secs", "second", "seconds":
		s.micros += whole*1e6 + math.RoundToEven(fraction*1e6)
	case "m", "min", "mins", "minute", "minutes":
		s.micros += whole*60e6 + math.RoundToEven(fraction*60e6)
	case "h", "hr", "hrs", "hour", "hours":
		s.micros += whole*3600e6 + math.RoundToEven(fraction*3600e6)
	case "d", "day", "days":
		s.addDays(n)
	case "w", "week", "weeks":
		s.addDays(n * 7)
	case "mon", "mons", "month", "months":
		s.months += whole
		s.addDays(fraction * 30)
	case "y", "yr", "yrs", "year", "years":
		s.months += whole*12 + math.RoundToEven(fraction*12)
	case "dec", "decs", "decade", "decades":
		s.months += math.RoundToEven(n * 120)
	case "c", "cent", "century", "centuries":
		s.months += math.RoundToEven(n * 1200)
	case "mil", "mils", "millennium", "millennia":
		s.months += math.RoundToEven(n * 12000)
	default:
		return false
	}
	return true
}

func (s *intervalSum) addDays(n float64) {
	whole, fraction := math.Modf(n)
	s.days += whole
	s.micros += math.RoundToEven(fraction * 86400e6)
}

// parseInterval reads what interval_in reads: PostgreSQL's own styles, the SQL
// standard's and ISO 8601 with designators.
func parseInterval(text string) (engineInterval, *pgerr.Error) {
	if iv, ok := exactInterval(text); ok {
		return iv, nil
	}
	var sum intervalSum
	s := strings.ToLower(trimSpace(text))
	ok := s != ""
	if strings.HasPrefix(s, "p") {
		ok = sum.parseISO(s)
	} else if ok {
		ok = sum.parseFields(s)
	}
	if !ok {
		return engineInterval{}, errDateSyntax("interval", text)
	}
	if !int32Range(sum.months) || !int32Range(sum.days) || math.Abs(sum.micros) >= 1<<63 {
		return engineInterval{}, pgerr.New(codes.DatetimeFieldOverflow, "interval field value out of range: \"%s\"", text)
	}
	return engineInterval{months: int32(sum.months), days: int32(sum.days), micros: int64(sum.micros)}, nil
}

func int32Range(n float64) bool { return n >= math.MinInt32 && n <= math.MaxInt32 }

// interval reads an interval.
func (in Input) interval(text string) (engineInterval, *pgerr.Error) {
	iv, err := parseInterval(text)
	if err != nil || !in.SignsAll {
		return iv, err
	}
	s := trimSpace(text)
	if !strings.HasPrefix(s, "-") {
		return iv, nil
	}
	for i := 1; i < len(s); i++ {
		if (s[i] == '-' || s[i] == '+') && strings.IndexByte(" \t\n\r\f\v", s[i-1]) >= 0 {
			return iv, nil
		}
	}
	iv.months, iv.days, iv.micros = min(iv.months, -iv.months), min(iv.days, -iv.days), min(iv.micros, -iv.micros)
	return iv, nil
}

// parseISO reads P1Y2M3DT4H5M6.5S and P1W.
func (s *intervalSum) parseISO(text string) bool {
	text = text[1:]
	inTime, seen := false, false
	for text != "" {
		if text[0] == 't' {
			inTime = true
			text = text[1:]
			continue
		}
		n := 0
		for n < len(text) && (isDigit(text[n]) || strings.IndexByte("+-.", text[n]) >= 0) {
			n++
		}
		value, err := strconv.ParseFloat(text[:n], 64)
		if err != nil || n == len(text) {
			return false
		}
		unit := text[n : n+1]
		if unit == "m" && !inTime {
			unit = "mon"
		}
		if strings.Contains("hms", unit) != inTime || !s.add(value, unit) {
			return false
		}
		text, seen = text[n+1:], true
	}
	return seen
}

func (s *intervalSum) negate() { s.months, s.days, s.micros = -s.months, -s.days, -s.micros }

// parseFields reads blank-separated fields.
func (s *intervalSum) parseFields(text string) bool {
	fields := splitUnits(strings.Fields(strings.TrimPrefix(text, "@")))
	seen := false
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		switch {
		case f == "ago" && i == len(fields)-1 && seen:
			s.negate()
			return true
		case strings.Contains(f, ":"):
			if !s.addClock(f) {
				return false
			}
		case strings.IndexByte(f[1:], '-') >= 0:
			if !s.addYearMonth(f) {
				return false
			}
		default:
			n, err := strconv.ParseFloat(f, 64)
			if err != nil || strings.ContainsAny(f, "xpni_") {
				return false
			}
			unit := "s"
			switch {
			case i+1 < len(fields) && strings.Contains(fields[i+1], ":"):
				unit = "d" // the SQL standard's day-time form
			case i+1 < len(fields) && fields[i+1] != "ago":
				i++
				unit = fields[i]
			}
			if !s.add(n, unit) {
				return false
			}
		}
		seen = true
	}
	return seen
}

// splitUnits separates numbers from units written without a blank: 1day, 1h30m.
func splitUnits(fields []string) []string {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' }
	var out []string
	for _, f := range fields {
		start := 0
		for n := 1; n < len(f); n++ {
			if letter(f[n]) != letter(f[n-1]) {
				out = append(out, f[start:n])
				start = n
			}
		}
		out = append(out, f[start:])
	}
	return out
}

func (s *intervalSum) addYearMonth(f string) bool {
	sign := 1.0
	if f[0] == '-' || f[0] == '+' {
		if f[0] == '-' {
			sign = -1
		}
		f = f[1:]
	}
	years, months, ok := strings.Cut(f, "-")
	y, err1 := strconv.ParseUint(years, 10, 31)
	m, err2 := strconv.ParseUint(months, 10, 31)
	if !ok || err1 != nil || err2 != nil || m > 11 {
		return false
	}
	s.months += sign * float64(y*12+m)
	return true
}

func (s *intervalSum) addClock(f string) bool {
	sign := 1.0
	if f[0] == '-' || f[0] == '+' {
		if f[0] == '-' {
			sign = -1
		}
		f = f[1:]
	}
	parts := strings.Split(f, ":")
	if len(parts) > 3 {
		return false
	}
	unit := []float64{3600e6, 60e6, 1e6}
	if len(parts) == 2 && strings.Contains(parts[1], ".") {
		unit = unit[1:] // mm:ss.f
	}
	for i, p := range parts {
		n, err := strconv.ParseFloat(p, 64)
		if err != nil || p == "" || strings.Trim(p, "0123456789.") != "" || i > 0 && n >= 60 && unit[i] != 1e6 {
			return false
		}
		s.micros += sign * math.RoundToEven(n*unit[i])
	}
	return true
}

// exactInterval reads what interval_out writes in the style postgres, without the detour
// over floating point, in which long times lose their microseconds.
func exactInterval(text string) (iv engineInterval, ok bool) {
	fields := strings.Fields(text)
	var months, days int64
	for i := 0; i < len(fields); i += 2 {
		if i+1 == len(fields) {
			if iv.micros, ok = exactClock(fields[i]); !ok {
				return engineInterval{}, false
			}
			break
		}
		n, err := strconv.ParseInt(fields[i], 10, 32)
		if err != nil {
			return engineInterval{}, false
		}
		switch strings.TrimSuffix(fields[i+1], "s") {
		case "year":
			months += 12 * n
		case "mon":
			months += n
		case "day":
			days += n
		default:
			return engineInterval{}, false
		}
	}
	iv.months, iv.days = int32(months), int32(days)
	return iv, len(fields) > 0 && int64(iv.months) == months && int64(iv.days) == days
}

// exactClock reads [+-]h…h:mm:ss[.ffffff] in microseconds.
func exactClock(text string) (int64, bool) {
	digits := strings.TrimLeft(text, "+-")
	parts := strings.Split(digits, ":")
	if len(parts) != 3 || len(text)-len(digits) > 1 {
		return 0, false
	}
	seconds, fraction, _ := strings.Cut(parts[2], ".")
	if len(fraction) > 6 {
		return 0, false
	}
	h, err1 := strconv.ParseUint(parts[0], 10, 32)
	m, err2 := strconv.ParseUint(parts[1], 10, 6)
	sec, err3 := strconv.ParseUint(seconds, 10, 6)
	f, err4 := strconv.ParseUint((fraction + "000000")[:6], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || h > 2_562_047_788 {
		return 0, false
	}
	us := h*3600e6 + m*60e6 + sec*1e6 + f
	switch {
	case text[0] == '-' && us <= 1<<63:
		return -int64(us), true
	case text[0] != '-' && us < 1<<63:
		return int64(us), true
	}
	return 0, false
}
