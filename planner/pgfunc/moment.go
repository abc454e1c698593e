package pgfunc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func momentOf(rough float64, t int64) (value, error) {
	if t < firstMoment || t >= endMoment || math.Abs(rough) > 1e9 {
		return value{}, errTimestampRange
	}
	return scalar.OfInt(t), nil
}

func makeDate(year, month, day int64) (int64, error) {
	bad := func() (int64, error) {
		return 0, fieldRange("date field value out of range: %d-%02d-%02d", year, month, day)
	}
	y := year
	if y < 0 {
		y++ // -1 is 1 BC
	}
	if year == 0 || month < 1 || month > 12 || day < 1 || day > int64(monthDays(y, int(month))) {
		return bad()
	}
	d := dayOf(y, int(month), int(day))
	if d < firstDay || d >= endDay {
		return 0, fieldRange("date out of range: %d-%02d-%02d", year, month, day)
	}
	return d, nil
}

func makeTime(h, m int64, sec float64) (int64, error) {
	bad := func() (int64, error) {
		s := strconv.FormatFloat(sec, 'g', 6, 64)
		return 0, fieldRange("time field value out of range: %d:%02d:%s", h, m, s)
	}
	if math.IsNaN(sec) || sec < 0 || sec > 60 || h < 0 || m < 0 || m > 59 || h > 24 {
		return bad()
	}
	t := h*hour + m*minute + int64(math.RoundToEven(sec*1e6))
	if t > dayTime {
		return bad()
	}
	return t, nil
}

// addMoment is timestamp + interval.
func addMoment(t int64, iv value) (value, error) {
	if infiniteMoment(t) {
		return scalar.OfInt(t), nil
	}
	if iv.Months != 0 {
		day := floorDiv(t, dayTime)
		y, m, d := civil(day)
		month := y*12 + int64(m-1) + int64(iv.Months)
		y, m = floorDiv(month, 12), int(floorMod(month, 12))+1
		d = min(d, monthDays(y, m))
		moved := dayOf(y, m, d)
		if moved < firstDay || moved > endMoment/dayTime {
			return value{}, errTimestampRange
		}
		t = moved*dayTime + floorMod(t, dayTime)
	}
	if iv.Days != 0 {
		day := floorDiv(t, dayTime) + int64(iv.Days)
		if day < firstDay || day > endMoment/dayTime {
			return value{}, errTimestampRange
		}
		t = day*dayTime + floorMod(t, dayTime)
	}
	sum := t + iv.Int
	if (sum < t) != (iv.Int < 0) || sum < firstMoment || sum >= endMoment {
		return value{}, errTimestampRange
	}
	return scalar.OfInt(sum), nil
}

// age is timestamp_age: years, months, days and a time between two moments.
func age(a, b int64) value {
	sign := int64(1)
	if a < b {
		a, b, sign = b, a, -1
	}
	x, y := clockOf(a), clockOf(b)
	micros := floorMod(a, dayTime) - floorMod(b, dayTime)
	days, months := int64(x.mday-y.mday), int64(x.month-y.month)
	years := x.year - y.year
	if micros < 0 {
		micros += dayTime
		days--
	}
	for days < 0 {
		// The month of the earlier moment is as long as it is.
		days += int64(monthDays(y.year, y.month))
		months--
	}
	for months < 0 {
		months += 12
		years--
	}
	return value{Months: int32(sign * (years*12 + months)), Days: int32(sign * days), Int: sign * micros}
}

// truncYear cuts a year to a multiple of a unit, as PostgreSQL counts centuries: from 1.
func truncYear(unit string, y int64) int64 {
	switch unit {
	case "millennium", "millennia":
		if y > 0 {
			return (y+999)/1000*1000 - 999
		}
		return -((999-(y-1))/1000)*1000 + 1
	case "century", "centuries":
		if y > 0 {
			return (y+99)/100*100 - 99
		}
		return -((99-(y-1))/100)*100 + 1
	case "decade", "decades":
		if y > 0 {
			return y / 10 * 10
		}
		return -((8 - (y - 1)) / 10) * 10
	}
	return y
}

func truncMoment(unit string, t int64, typ string) (value, error) {
	u := strings.ToLower(unit)
	if infiniteMoment(t) {
		return scalar.OfInt(t), nil
	}
	if u != "week" && u != "weeks" && u != "day" && u != "days" && monthUnits[u] == 0 && timeUnits[u] == 0 {
		return value{}, unknownUnit(u, typ)
	}
	day := floorDiv(t, dayTime)
	y, m, _ := civil(day)
	switch {
	case u == "week" || u == "weeks":
		return scalar.OfInt((day - floorMod(day+3, 7)) * dayTime), nil
	case u == "day" || u == "days":
		return scalar.OfInt(day * dayTime), nil
	case timeUnits[u] != 0:
		return scalar.OfInt(floorDiv(t, timeUnits[u]) * timeUnits[u]), nil
	case monthUnits[u] == 1:
		return scalar.OfInt(dayOf(y, m, 1) * dayTime), nil
	case u == "quarter":
		return scalar.OfInt(dayOf(y, (m-1)/3*3+1, 1) * dayTime), nil
	}
	return scalar.OfInt(dayOf(truncYear(u, y), 1, 1) * dayTime), nil
}

func binMoment(width value, t, origin int64) (value, error) {
	if infiniteMoment(t) {
		return scalar.OfInt(t), nil
	}
	switch {
	case infiniteMoment(origin):
		return value{}, fieldRange("origin out of range")
	case width.Months != 0:
		return value{}, unsupported("timestamps cannot be binned into intervals containing months or years")
	}
	step := int64(width.Days)*dayTime + width.Int
	if step <= 0 {
		return value{}, fieldRange("stride must be greater than zero")
	}
	out := origin + floorDiv(t-origin, step)*step
	if out < firstMoment {
		return value{}, errTimestampRange
	}
	return scalar.OfInt(out), nil
}

// epochMoment is to_timestamp of seconds.
func epochMoment(f float64) (value, error) {
	switch {
	case math.IsNaN(f):
		return value{}, fieldRange("timestamp cannot be NaN")
	case math.IsInf(f, 1):
		return scalar.OfInt(futureMoment), nil
	case math.IsInf(f, -1):
		return scalar.OfInt(pastMoment), nil
	}
	bad := func() (value, error) {
		return value{}, fieldRange("timestamp out of range: \"%s\"", strconv.FormatFloat(f, 'g', -1, 64))
	}
	if f < float64(firstMoment)/1e6 || f >= float64(endMoment)/1e6 {
		return bad()
	}
	// Seconds are counted from 2000 there, which is where they are rounded.
	const y2000 = 946684800
	t := int64(math.RoundToEven((f-y2000)*1e6)) + y2000*second
	if t < firstMoment || t >= endMoment {
		return bad()
	}
	return scalar.OfInt(t), nil
}

// shiftMoment is AT TIME ZONE of an interval.
func shiftMoment(t int64, zone value, sign int64) (value, error) {
	if zone.Months != 0 || zone.Days != 0 {
		return value{}, invalid("interval time zone \"%s\" must not include months or days", intervalText(zone.Months, zone.Days, zone.Int))
	}
	if infiniteMoment(t) {
		return scalar.OfInt(t), nil
	}
	return scalar.OfInt(t + sign*zone.Int), nil
}

// roundMoment rounds to so many digits of a second.
func roundMoment(t int64, digits int) int64 {
	if infiniteMoment(t) || digits >= 6 {
		return t
	}
	unit := int64(1)
	for range 6 - digits {
		unit *= 10
	}
	// Half away from 2000, from which moments are counted there.
	const y2000 = 946684800 * second
	d := t - y2000
	if d >= 0 {
		return (d+unit/2)/unit*unit + y2000
	}
	return -((-d+unit/2)/unit)*unit + y2000
}

// overlaps is (a, b) OVERLAPS (c, d) with SQL's nulls.
func overlaps(v []value) (value, error) {
	a, b, err := period(v[0], v[1])
	if err {
		return scalar.Null, nil
	}
	c, d, err := period(v[2], v[3])
	if err {
		return scalar.Null, nil
	}
	switch {
	case a.Int > c.Int:
		return overlapStart(a, b, d)
	case a.Int < c.Int:
		return overlapStart(c, d, b)
	}
	if b.Null || d.Null {
		return scalar.Null, nil
	}
	return scalar.OfBool(true), nil
}

// period orders the ends of one side; null when both are.
func period(a, b value) (from, to value, null bool) {
	switch {
	case a.Null && b.Null:
		return a, b, true
	case a.Null:
		return b, a, false
	case !b.Null && a.Int > b.Int:
		return b, a, false
	}
	return a, b, false
}

// overlapStart decides for the period that starts later: whether it does before the other,
// which ends at end, is over.
func overlapStart(later, laterEnd, end value) (value, error) {
	switch {
	case end.Null:
		return scalar.Null, nil
	case later.Int < end.Int:
		return scalar.OfBool(true), nil
	case laterEnd.Null:
		return scalar.Null, nil
	}
	return scalar.OfBool(false), nil
}

// zoneMoment is AT TIME ZONE: in a zone, the local time of a moment (out), or the moment of
// a local time.
func zoneMoment(t int64, zone string, out bool) (value, error) {
	if infiniteMoment(t) {
		return scalar.OfInt(t), nil
	}
	loc, err := zoneNamed(zone)
	if err != nil {
		return value{}, err
	}
	return inZone(t, loc, out)
}

func inZone(t int64, loc *time.Location, out bool) (value, error) {
	var offset int
	if out {
		_, offset = time.UnixMicro(t).In(loc).Zone()
		t += int64(offset) * second
	} else {
		t -= localOffset(t, loc) * second
	}
	if t < firstMoment || t >= endMoment {
		return value{}, errTimestampRange
	}
	return scalar.OfInt(t), nil
}

// localOffset is the offset of a zone at a local time. Where clocks go back, and in the gap
// where they go forward, it is the standard one, as PostgreSQL has it.
func localOffset(local int64, loc *time.Location) int64 {
	at := func(t int64) int64 {
		_, offset := time.UnixMicro(t).In(loc).Zone()
		return int64(offset)
	}
	before, after := at(local-dayTime), at(local+dayTime)
	if before == after {
		return at(local - before*second)
	}
	// A change is near: the local time in either offset.
	early := at(local-before*second) == before
	late := at(local-after*second) == after
	switch {
	case early && late: // twice: the standard time, which is the later one
		return min(before, after)
	case early:
		return before
	case late:
		return after
	}
	return before // in the gap, by the offset before it
}

func zoneNamed(name string) (*time.Location, error) {
	loc, ok := zoneCache.get(name, func() (*time.Location, bool) { return findZone(strings.Clone(name)) })
	if !ok {
		return nil, pgerr.New(codes.InvalidParameterValue, "time zone \"%s\" not recognized", strings.Clone(name))
	}
	return loc, nil
}

// unitValue is an EXTRACT of an integer.
func unitValue(n int64) (value, error) { return scalar.OfText(strconv.FormatInt(n, 10)), nil }

func microsText(us int64, scale int) string {
	sign := ""
	if us < 0 {
		sign, us = "-", -us
	}
	unit := int64(1)
	for range scale {
		unit *= 10
	}
	return fmt.Sprintf("%s%d.%0*d", sign, us/unit, scale, us%unit)
}

// momentPart is EXTRACT from a timestamp (typ says of which type), as a numeric.
func momentPart(field string, t int64, typ string) (value, error) {
	if infiniteMoment(t) {
		return infinitePart(field, t, typ)
	}
	return clockPart(field, clockOf(t), t, typ)
}

// datePart is EXTRACT from a date.
func datePart(field string, day int64) (value, error) {
	if infiniteDay(day) {
		return infinitePart(field, day, "date")
	}
	return clockPart(field, clockOn(day), 0, "date")
}

// clockPart takes a field out of a moment t that is taken apart.
func clockPart(field string, c clock, t int64, typ string) (value, error) {
	switch field {
	case "microseconds", "microsecond":
		return unitValue(int64(c.sec)*second + int64(c.usec))
	case "milliseconds", "millisecond":
		return scalar.OfText(microsText(int64(c.sec)*second+int64(c.usec), 3)), nil
	case "second", "seconds":
		return scalar.OfText(microsText(int64(c.sec)*second+int64(c.usec), 6)), nil
	case "minute", "minutes":
		return unitValue(int64(c.min))
	case "hour", "hours":
		return unitValue(int64(c.hour))
	case "day", "days":
		return unitValue(int64(c.mday))
	case "month", "months":
		return unitValue(int64(c.month))
	case "quarter":
		return unitValue(int64((c.month-1)/3 + 1))
	case "week", "weeks":
		_, w := isoWeek(c.day)
		return unitValue(int64(w))
	case "epoch":
		if typ == "date" {
			return unitValue(c.day * 86400)
		}
		return scalar.OfText(microsText(t, 6)), nil
	case "dow":
		return unitValue(int64(weekday(c.day)))
	case "isodow":
		return unitValue(int64((weekday(c.day)+6)%7 + 1))
	case "doy":
		return unitValue(int64(c.dayYear))
	case "julian":
		return julian(c.day, floorMod(t, dayTime), typ)
	}
	return yearPart(field, c, typ)
}

func julian(day, time int64, typ string) (value, error) {
	if typ == "date" {
		return unitValue(day + julianEpoch)
	}
	// PostgreSQL divides numerics: 20 digits or more after the point, when there is a time.
	return scalar.OfText(julianText(day+julianEpoch, time)), nil
}

// bcYear is a year as it is written: there is no year 0.
func bcYear(y int64) int64 {
	if y <= 0 {
		return y - 1
	}
	return y
}

func yearPart(field string, c clock, typ string) (value, error) {
	switch field {
	case "year", "years":
		return unitValue(bcYear(c.year))
	case "isoyear":
		y, _ := isoWeek(c.day)
		return unitValue(bcYear(y))
	case "decade", "decades":
		return unitValue(floorDiv(c.year, 10))
	case "century", "centuries":
		return unitValue(centuries(c.year, 100))
	case "millennium", "millennia":
		return unitValue(centuries(c.year, 1000))
	case "timezone", "timezone_hour", "timezone_minute":
		return value{}, unsupportedUnit(field, typ)
	}
	return value{}, unknownUnit(field, typ)
}

func centuries(y, unit int64) int64 {
	if y > 0 {
		return (y + unit - 1) / unit
	}
	return -((unit - 1 - (y - 1)) / unit)
}

func unsupportedUnit(field, typ string) error {
	return pgerr.New(codes.FeatureNotSupported, "unit \"%s\" not supported for type %s", strings.Clone(field), typ)
}

// infinitePart is EXTRACT from an infinite moment: infinite for what only grows, else null.
func infinitePart(field string, t int64, typ string) (value, error) {
	switch field {
	case "microsecond", "microseconds", "millisecond", "milliseconds", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days",
		"month", "months", "quarter", "week", "weeks", "dow", "isodow", "doy", "timezone", "timezone_hour", "timezone_minute":
		return scalar.Null, nil
	case "year", "years", "decade", "decades", "century", "centuries", "millennium", "millennia", "julian", "isoyear", "epoch":
		if t < 0 {
			return scalar.OfText("-Infinity"), nil
		}
		return scalar.OfText("Infinity"), nil
	}
	return value{}, unknownUnit(field, typ)
}

// intervalPart is EXTRACT from an interval, as a numeric.
func intervalPart(field string, v value) (value, error) {
	t := v.Int % minute
	switch field {
	case "microseconds", "microsecond":
		return unitValue(t)
	case "milliseconds", "millisecond":
		return scalar.OfText(microsText(t, 3)), nil
	case "second", "seconds":
		return scalar.OfText(microsText(t, 6)), nil
	case "minute", "minutes":
		return unitValue(v.Int / minute % 60)
	case "hour", "hours":
		return unitValue(v.Int / hour)
	case "day", "days":
		return unitValue(int64(v.Days))
	case "month", "months":
		return unitValue(int64(v.Months % 12))
	case "quarter":
		return unitValue(int64(v.Months%12/3 + 1))
	case "year", "years":
		return unitValue(int64(v.Months / 12))
	case "decade", "decades":
		return unitValue(int64(v.Months / 120))
	case "century", "centuries":
		return unitValue(int64(v.Months / 1200))
	case "millennium", "millennia":
		return unitValue(int64(v.Months / 12000))
	case "epoch":
		return intervalEpoch(v)
	case "week", "weeks", "dow", "isodow", "doy", "isoyear", "julian", "timezone", "timezone_hour", "timezone_minute":
		return value{}, unsupportedUnit(field, "interval")
	}
	return value{}, unknownUnit(field, "interval")
}
