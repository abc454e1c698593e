package encode

import (
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// dateTime is a parsed date, time or timestamp in any of the forms that PostgreSQL
// takes.
type dateTime struct {
	infinity int // +1, -1, or 0 for finite values
	days     int64
	micros   int64 // of the day; one full day for 24:00:00
	offset   int   // seconds east of UTC
	hasDate  bool
	hasTime  bool
	hasZone  bool
}

// dateTimePunctuation is what PostgreSQL takes for a blank between fields: the
// punctuation that no date, time or zone holds.
const dateTimePunctuation = "!\"#$%&'()*,;<=>?@[\\]^`{|}~"

func errDateSyntax(typeName, text string) *pgerr.Error {
	return pgerr.New(codes.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", typeName, text)
}

func errFieldRange(text string) *pgerr.Error {
	return pgerr.New(codes.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", text)
}

// dateTimeParser collects the fields of one text.
type dateTimeParser struct {
	in             Input
	text, typeName string
	out            dateTime
	year           int64
	month, day     int
	hasYear        bool
	bc, pm, am     bool
	twoDigits      bool
	zone           *time.Location
}

func (in Input) parseDateTime(text, typeName string) (dateTime, *pgerr.Error) {
	s := strings.ToLower(trimSpace(text))
	switch s {
	case "infinity", "+infinity":
		return dateTime{infinity: 1, hasDate: true}, nil
	case "-infinity":
		return dateTime{infinity: -1, hasDate: true}, nil
	case "epoch":
		return dateTime{hasDate: true, hasTime: true, hasZone: true}, nil
	case "":
		return dateTime{}, errDateSyntax(typeName, text)
	}
	if !in.Now.IsZero() {
		if d, ok := in.relative(s); ok {
			return d, nil
		}
	}
	p := &dateTimeParser{in: in, text: text, typeName: typeName}
	fields := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(spaces+dateTimePunctuation, r) })
	for _, f := range fields {
		if err := p.field(f); err != nil {
			return dateTime{}, err
		}
	}
	return p.finish()
}

// relative reads the words that mean a time or a day relative to now.
func (in Input) relative(word string) (dateTime, bool) {
	zone := in.Zone
	if zone == nil {
		zone = time.UTC
	}
	t := in.Now.In(zone)
	d := dateTime{
		hasDate: true, hasTime: true, hasZone: true, days: daysFromCivil(int64(t.Year()), int(t.Month()), t.Day()),
	}
	_, d.offset = t.Zone()
	switch word {
	case "now":
		d.micros = int64(t.Hour())*3600e6 + int64(t.Minute())*60e6 + int64(t.Second())*1e6 + int64(t.Nanosecond()/1000)
		return d, true
	case "today":
	case "tomorrow":
		d.days++
	case "yesterday":
		d.days--
	default:
		return dateTime{}, false
	}
	d.offset = zoneOffset(zone, d.days*dayMicros)
	return d, true
}

func (p *dateTimeParser) syntax() *pgerr.Error { return errDateSyntax(p.typeName, p.text) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// field reads one blank-separated field.
func (p *dateTimeParser) field(f string) *pgerr.Error {
	switch f {
	case "bc":
		p.bc = true
		return nil
	case "ad", "on", "at", "t":
		return nil
	case "am":
		p.am = true
		return nil
	case "pm":
		p.pm = true
		return nil
	case "allballs":
		p.out.hasTime, p.out.hasZone = true, true
		return nil
	}
	if number, ok := strings.CutPrefix(f, "j"); ok && number != "" && isDigit(number[0]) {
		return p.julian(number)
	}
	if m := monthByName(f); m != 0 && p.month == 0 {
		p.month = m
		return nil
	}
	if isWeekday(f) {
		return nil
	}
	if day, clock, ok := strings.Cut(f, "t"); ok && clock != "" && isDigit(clock[0]) {
		if day != "" {
			if err := p.date(day); err != nil {
				return err
			}
		}
		return p.clock(clock)
	}
	switch {
	case isDigit(f[0]) && (strings.Contains(f, ":") || p.compactClock(f)):
		return p.clock(f)
	case (f[0] == '+' || f[0] == '-') && (p.out.hasTime || p.out.hasDate):
		return p.zoneField(f)
	case isDigit(f[0]):
		return p.date(f)
	case strings.Count(f, "-") == 2 && monthByName(f[:strings.IndexByte(f, '-')]) != 0:
		return p.date(f)
	}
	return p.zoneField(f)
}

// date reads a field of digits with separators, or a bare number: a compact date, a
// day or a year.
func (p *dateTimeParser) date(f string) *pgerr.Error {
	if p.out.hasDate {
		return p.syntax()
	}
	if tz := strings.TrimRight(f, "z"); tz != f { // 2024-02-29Z
		if err := p.zoneField("z"); err != nil {
			return err
		}
		f = tz
	}
	sep := strings.IndexAny(f, "-/.")
	if sep < 0 {
		return p.bareNumber(f)
	}
	parts := strings.Split(f, f[sep:sep+1])
	if len(parts) == 2 {
		return p.dayOfYear(parts[0], parts[1])
	}
	if len(parts) != 3 {
		return p.syntax()
	}
	for i, part := range parts {
		if m := monthByName(part); m != 0 {
			p.month = m
			parts = append(parts[:i:i], parts[i+1:]...)
			break
		}
	}
	numbers := make([]int64, len(parts))
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return p.syntax()
		}
		numbers[i] = int64(n)
	}
	return p.order(parts, numbers)
}

// order decides which number is what: a first number of three or more digits is the
// year; otherwise the session's order holds.
func (p *dateTimeParser) order(parts []string, n []int64) *pgerr.Error {
	yearFirst := len(parts[0]) >= 3
	switch {
	case len(n) == 2 && yearFirst:
		p.setYear(parts[0], n[0])
		p.day = int(n[1])
	case len(n) == 2:
		p.day = int(n[0])
		p.setYear(parts[1], n[1])
	case yearFirst, p.in.Order == YMD:
		p.setYear(parts[0], n[0])
		p.month, p.day = int(min(n[1], 99)), int(min(n[2], 99))
	case p.in.Order == DMY:
		p.day, p.month = int(min(n[0], 99)), int(min(n[1], 99))
		p.setYear(parts[2], n[2])
	default:
		p.month, p.day = int(min(n[0], 99)), int(min(n[1], 99))
		p.setYear(parts[2], n[2])
	}
	p.out.hasDate = true
	return nil
}

func (p *dateTimeParser) setYear(text string, n int64) {
	p.year, p.hasYear, p.twoDigits = n, true, len(text) <= 2
}

func (p *dateTimeParser) bareNumber(f string) *pgerr.Error {
	n, err := strconv.ParseUint(f, 10, 31)
	if err != nil {
		return p.syntax()
	}
	switch {
	case len(f) == 8:
		p.year, p.month, p.day = int64(n/10000), int(n/100%100), int(n%100)
		p.hasYear, p.out.hasDate = true, true
	case len(f) == 6 && p.month == 0:
		p.setYear(f[:2], int64(n/10000))
		p.month, p.day = int(n/100%100), int(n%100)
		p.out.hasDate = true
	case p.month != 0 && p.day == 0 && len(f) <= 2:
		p.day = int(n)
	case p.month == 0 && p.day == 0 && len(f) <= 2:
		p.day = int(n)
	case !p.hasYear:
		p.setYear(f, int64(n))
	default:
		return p.syntax()
	}
	if p.month != 0 && p.day != 0 && p.hasYear {
		p.out.hasDate = true
	}
	return nil
}

// compactClock reports whether digits without separators are a time: behind a date,
// or where only a time makes sense.
func (p *dateTimeParser) compactClock(f string) bool {
	digits, _, _ := strings.Cut(f, ".")
	n := len(strings.TrimLeft(digits, "0123456789"))
	timeOnly := p.typeName == "time" || p.typeName == "time with time zone"
	return n == 0 && (len(digits) == 4 || len(digits) == 6) && (p.out.hasDate || timeOnly) && !p.out.hasTime
}

// clock reads hh:mm[:ss[.f]], or the same without colons, with an optional zone behind
// it.
func (p *dateTimeParser) clock(f string) *pgerr.Error {
	if p.out.hasTime {
		return p.syntax()
	}
	end := 0
	for end < len(f) && (isDigit(f[end]) || f[end] == ':' || f[end] == '.') {
		end++
	}
	rest := f[end:]
	if digits, fraction, point := strings.Cut(f[:end], "."); !strings.Contains(digits, ":") && len(digits) >= 4 {
		f = digits[:2] + ":" + digits[2:4]
		if len(digits) == 6 {
			f += ":" + digits[4:]
		}
		if point {
			f += "." + fraction
		}
		end = len(f)
	}
	parts := strings.Split(f[:end], ":")
	if len(parts) < 2 || len(parts) > 3 {
		return p.syntax()
	}
	h, err1 := strconv.ParseUint(parts[0], 10, 16)
	m, err2 := strconv.ParseUint(parts[1], 10, 16)
	if err1 != nil || err2 != nil {
		return p.syntax()
	}
	var sec uint64
	var fraction int64
	if len(parts) == 3 {
		whole, frac, _ := strings.Cut(parts[2], ".")
		var err error
		if sec, err = strconv.ParseUint(whole, 10, 16); err != nil {
			return p.syntax()
		}
		var ok bool
		if fraction, ok = parseFraction(frac); !ok {
			return p.syntax()
		}
	}
	p.out.micros = int64(h)*3600e6 + int64(m)*60e6 + int64(sec)*1e6 + fraction
	if h > 24 || m > 59 || sec > 60 || p.out.micros > dayMicros {
		return errFieldRange(p.text)
	}
	p.out.hasTime = true
	switch rest {
	case "":
		return nil
	case "am":
		p.am = true
		return nil
	case "pm":
		p.pm = true
		return nil
	}
	return p.zoneField(rest)
}

// parseFraction reads the digits after a decimal point as microseconds, rounded.
func parseFraction(digits string) (int64, bool) {
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	padded := (digits + "0000000")[:7]
	n, _ := strconv.ParseInt(padded, 10, 64) // digits only
	return (n + 5) / 10, true
}

func (p *dateTimeParser) finish() (dateTime, *pgerr.Error) {
	o := &p.out
	if p.am || p.pm {
		hour := o.micros / 3600e6
		switch {
		case !o.hasTime:
			return *o, p.syntax()
		case hour > 12:
			return *o, errFieldRange(p.text)
		case p.pm && hour < 12:
			o.micros += dayMicros / 2
		case p.am && hour == 12:
			o.micros -= dayMicros / 2
		}
	}
	if !o.hasDate {
		if p.month != 0 || p.day != 0 || p.hasYear || p.bc {
			return *o, p.syntax()
		}
		return *o, nil
	}
	switch {
	case p.bc && p.year == 0, p.year == 0 && !p.twoDigits:
		return *o, errFieldRange(p.text)
	case p.bc:
		p.year = 1 - p.year
	case p.twoDigits && p.year < 70:
		p.year += 2000
	case p.twoDigits && p.year < 100:
		p.year += 1900
	}
	if p.month < 1 || p.month > 12 || p.day < 1 || p.day > daysIn(p.year, p.month) {
		e := errFieldRange(p.text)
		if p.month > 12 {
			return *o, e.WithHint("Perhaps you need a different \"datestyle\" setting.")
		}
		return *o, e
	}
	o.days = daysFromCivil(p.year, p.month, p.day)
	if err := p.inRange(); err != nil {
		return *o, err
	}
	if p.zone != nil {
		o.offset = zoneOffset(p.zone, o.days*dayMicros+o.micros)
	}
	return *o, nil
}

// The range of dates is PostgreSQL's; that of timestamps ends where microseconds since
// 1970 do, thirty years before PostgreSQL's.
const (
	daysMin      = -2440588   // 4714-11-24 BC
	daysMax      = 2145042905 // 5874897-12-31
	stampDaysMax = 106751990
)

func (p *dateTimeParser) inRange() *pgerr.Error {
	limit, name := int64(daysMax), "date"
	if p.typeName != name {
		limit, name = stampDaysMax, "timestamp"
	}
	if p.out.days < daysMin || p.out.days > limit {
		return pgerr.New(codes.DatetimeFieldOverflow, "%s out of range: \"%s\"", name, p.text)
	}
	return nil
}

func daysIn(year int64, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// monthByName takes the three-letter abbreviation or the full name.
func monthByName(f string) int {
	for m := time.January; m <= time.December; m++ {
		name := strings.ToLower(m.String())
		if f == name || f == name[:3] || m == time.September && f == "sept" {
			return int(m)
		}
	}
	return 0
}

func isWeekday(f string) bool {
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := strings.ToLower(d.String())
		if f == name || f == name[:3] {
			return true
		}
	}
	return f == "tues" || f == "wednes" || f == "thur" || f == "thurs"
}

// dayOfYear reads 2024.015: a year and its day, of three digits.
func (p *dateTimeParser) dayOfYear(year, day string) *pgerr.Error {
	const yearDigits, dayDigits, longest = 3, 3, 366
	y, err1 := strconv.ParseUint(year, 10, 31)
	d, err2 := strconv.ParseUint(day, 10, 31)
	if err1 != nil || err2 != nil || len(year) < yearDigits || len(day) != dayDigits || d < 1 || d > longest {
		return p.syntax()
	}
	p.setDay(daysFromCivil(int64(y), 1, 1) + int64(d) - 1)
	return nil
}

// julian reads J2451187: a number of days since the beginning of 4713 BC, and perhaps a part of
// one.
func (p *dateTimeParser) julian(number string) *pgerr.Error {
	const epoch, last = 2440588, 2147483493
	whole, frac, part := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	switch {
	case strings.Trim(whole+frac, "0123456789") != "" || p.out.hasDate:
		return p.syntax()
	case err != nil || n > last:
		return errFieldRange(p.text)
	}
	p.setDay(int64(n) - epoch)
	if part && p.typeName != "date" {
		f, err := strconv.ParseFloat("0."+frac+"0", 64)
		if err != nil || p.out.hasTime {
			return p.syntax()
		}
		p.out.micros, p.out.hasTime = int64(f*float64(dayMicros)+0.5), true
	}
	return nil
}

// setDay takes a day, counted from 1970.
func (p *dateTimeParser) setDay(days int64) {
	year, month, day := civil(days)
	p.year, p.month, p.day = year, month, day
	if year <= 0 {
		p.year, p.bc = 1-year, true
	}
	p.hasYear, p.twoDigits, p.out.hasDate = true, false, true
}
