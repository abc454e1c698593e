package pgfunc

import (
	"fmt"
	"math"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Moments are microseconds since 1970 and dates days since then, as the engine has them;
// the greatest and the least of either are the infinities.
const (
	second  = int64(1_000_000)
	minute  = 60 * second
	hour    = 60 * minute
	dayTime = 24 * hour

	futureMoment = math.MaxInt64
	pastMoment   = -math.MaxInt64
	futureDay    = math.MaxInt32
	pastDay      = -math.MaxInt32

	// julianEpoch is the Julian day of 1970-01-01.
	julianEpoch = 2440588
)

func infiniteMoment(t int64) bool { return t >= futureMoment || t <= pastMoment }

func infiniteDay(d int64) bool { return d >= futureDay || d <= pastDay }

// floorDiv is the quotient that is not greater.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// civil is the proleptic Gregorian date of a day; year 0 is 1 BC.
func civil(day int64) (year int64, month, mday int) {
	z := day + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	mday = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, mday
}

// dayOf is the inverse of civil.
func dayOf(year int64, month, mday int) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	mp := int64(month+9) % 12
	doy := (153*mp+2)/5 + int64(mday) - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

func leap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func monthDays(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	}
	return 31
}

// weekday is 0 for Sunday.
func weekday(day int64) int { return int(floorMod(day+4, 7)) }

// isoWeek is the ISO year and week of a day.
func isoWeek(day int64) (year int64, week int) {
	thursday := day - floorMod(day+3, 7) + 3
	year, _, _ = civil(thursday)
	return year, int((thursday-dayOf(year, 1, 1))/7) + 1
}

// clock is a moment taken apart.
type clock struct {
	day            int64
	year           int64 // 0 is 1 BC
	month, mday    int
	hour, min, sec int
	usec           int
	dayYear        int
}

func clockOf(t int64) clock {
	c := clockOn(floorDiv(t, dayTime))
	c.setTime(floorMod(t, dayTime))
	return c
}

// clockOn is the beginning of a day.
func clockOn(day int64) clock {
	c := clock{day: day}
	c.year, c.month, c.mday = civil(c.day)
	c.dayYear = int(c.day-dayOf(c.year, 1, 1)) + 1
	return c
}

func (c *clock) setTime(t int64) {
	c.hour, c.min, c.sec, c.usec = int(t/hour), int(t/minute%60), int(t/second%60), int(t%second)
}

// The range of timestamps: from 4714-11-24 BC on, to where the engine's end, in 294247.
var (
	firstMoment = dayOf(-4713, 11, 24) * dayTime
	endMoment   = int64(futureMoment)
	firstDay    = dayOf(-4713, 11, 24)
	endDay      = dayOf(5874898, 1, 1)
)

var (
	errIntervalRange  = pgerr.New(codes.DatetimeFieldOverflow, "interval out of range")
	errTimestampRange = pgerr.New(codes.DatetimeFieldOverflow, "timestamp out of range")
)

func fieldRange(format string, args ...any) error {
	return pgerr.New(codes.DatetimeFieldOverflow, format, args...)
}

// intervalText is interval_out in PostgreSQL's style.
func intervalText(months, days int32, micros int64) string {
	var b strings.Builder
	before, first := false, true
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		sign := ""
		if !first {
			sign = " "
		}
		if before && n > 0 {
			sign += "+"
		}
		plural := "s"
		if n == 1 {
			plural = ""
		}
		fmt.Fprintf(&b, "%s%d %s%s", sign, n, unit, plural)
		before, first = n < 0, false
	}
	part(int64(months/12), "year")
	part(int64(months%12), "mon")
	part(int64(days), "day")
	if micros != 0 || first {
		sign := ""
		switch {
		case micros < 0:
			sign = "-"
		case before:
			sign = "+"
		}
		if !first {
			b.WriteByte(' ')
		}
		t := uint64(micros)
		if micros < 0 {
			t = -t
		}
		h, m, s := t/uint64(hour), t/uint64(minute)%60, t/uint64(second)%60
		fmt.Fprintf(&b, "%s%02d:%02d:%02d", sign, h, m, s)
		if us := t % uint64(second); us != 0 {
			b.WriteString(strings.TrimRight(fmt.Sprintf(".%06d", us), "0"))
		}
	}
	return b.String()
}

// date is what do_to_timestamp makes of the fields: a year, a month, a day, which of them were given.
type date struct {
	year, month, mday              int64
	hasYear, hasMonth, hasMonthDay bool
}

func (d *date) of(day int64) {
	year, month, mday := civil(day)
	*d = date{year, int64(month), int64(mday), true, true, true}
}

// isoWeekStart is the Monday of a week of an ISO year.
func isoWeekStart(year, week int64) int64 {
	fourth := dayOf(year, 1, 4)
	return fourth - floorMod(fourth+3, 7) + (week-1)*7
}

// years gives the year of what was read: of a year, a century, or both.
func (o *readFields) years() (year int64, ok bool) {
	cc := o.century
	if o.bc {
		cc = -cc
	}
	switch {
	case o.year != 0 && o.century != 0 && o.yearDigits <= 2:
		switch year = o.year % 100; {
		case year != 0 && cc >= 0:
			return year + (cc-1)*100, true
		case year != 0:
			return (cc+1)*100 - year + 1, true
		case cc >= 0:
			return cc * 100, true
		}
		return cc*100 + 1, true
	case o.year != 0:
		year = o.year
		if o.bc {
			year = -year
		}
		if year < 0 {
			year++
		}
		return year, true
	case o.century != 0 && cc >= 0:
		return (cc-1)*100 + 1, true
	case o.century != 0:
		return cc*100 + 1, true
	}
	return 0, false
}

// dates makes a date of the fields.
func (o *readFields) dates() (date, error) {
	d := date{month: 1, mday: 1}
	d.year, d.hasYear = o.years()
	if o.julian != 0 {
		d.of(o.julian - julianEpoch)
	}
	switch {
	case o.week != 0 && o.iso:
		day := isoWeekStart(d.year, o.week)
		switch {
		case o.wday > 1: // Sunday is 1
			day += o.wday - 2
		case o.wday == 1:
			day += 6
		}
		d.of(day)
	case o.week != 0:
		o.yday = (o.week-1)*7 + 1
	}
	if o.monthWeek != 0 {
		o.mday = (o.monthWeek-1)*7 + 1
	}
	if o.mday != 0 {
		d.mday, d.hasMonthDay = o.mday, true
	}
	if o.month != 0 {
		d.month, d.hasMonth = o.month, true
	}
	if o.yday == 0 || d.month > 1 && d.mday > 1 {
		return d, nil
	}
	if d.year == 0 && !o.bc {
		return d, pgerr.New(codes.InvalidDatetimeFormat, "cannot calculate day of year without year information")
	}
	if o.iso {
		d.of(isoWeekStart(d.year, 1) + o.yday - 1)
		return d, nil
	}
	month, before := int64(1), int64(0)
	for ; month <= 12 && o.yday > before+int64(monthDays(d.year, int(month))); month++ {
		before += int64(monthDays(d.year, int(month)))
	}
	if d.month <= 1 {
		d.month = month
	}
	if d.mday <= 1 {
		d.mday = o.yday - before
	}
	d.hasMonth, d.hasMonthDay = true, true
	return d, nil
}

// valid says whether a date is one, as far as it is known.
func (d date) valid() bool {
	switch {
	case d.hasMonth && (d.month < 1 || d.month > 12), d.hasMonthDay && (d.mday < 1 || d.mday > 31):
		return false
	}
	return !(d.hasYear && d.hasMonth && d.hasMonthDay) || d.mday <= int64(monthDays(d.year, int(d.month)))
}
