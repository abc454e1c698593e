package pgfunc

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// readFields are what to_date and to_timestamp read.
type readFields struct {
	year, month, mday, yday int64
	bc                      bool
	yearDigits              int
	// The century, the day of Julius Caesar's, the week of the month, of the year and the day of that,
	// Sunday being 1, the seconds of the day.
	century, julian, monthWeek, week, wday, daySeconds int64
	// dated says that days are counted, iso that they are by weeks.
	dated, iso bool
	// zoneSign is 0 without a zone.
	zoneSign, zoneHours, zoneMinutes int64
	hour, min, sec, usec             int64
	pm, twelve                       bool
	// The result: a day and a time of it.
	day, time int64
}

// templateReader reads a text by a template.
type templateReader struct {
	s     string // what is left
	all   string
	nodes []node
	out   readFields
	skips int // blanks skipped beyond what the template says
}

func isBlank(c byte) bool { return strings.IndexByte(" \t\n\v\f\r", c) >= 0 }

// isSeparator is a character that is no letter and no digit.
func isSeparator(c byte) bool {
	return c > 0x20 && c < 0x7f && !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
}

// readable are the keywords that can be read here.
const readable = " Y,YYY YYYY YYY YY Y MM DD DDD HH24 HH12 HH MI SS MS US AM PM A.M. P.M. AD BC A.D. B.C. MONTH MON DAY DY FF1 FF2 FF3 FF4 FF5 FF6 " +
	"CC D ID IDDD IW IYYY IYY IY I J Q RM SSSSS SSSS TZH TZM W WW "

// readMoment reads a text by a template; nil when either is empty.
func readMoment(text, format string) (*readFields, error) {
	nodes := momentTemplate(format)
	for _, n := range nodes {
		if n.key == "TZ" || n.key == "OF" {
			return nil, unsupported("formatting field \"%s\" is only supported in to_char", n.text)
		}
		if n.local || n.key != "" && !strings.Contains(readable, " "+n.key+" ") {
			return nil, unsupported("reading dates by \"%s\" is not supported", n.text)
		}
	}
	r := &templateReader{s: strings.Clone(text), all: strings.Clone(text), nodes: nodes}
	for i := range nodes {
		if r.s == "" {
			break
		}
		if err := r.node(i); err != nil {
			return nil, err
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return &r.out, nil
}

func (r *templateReader) node(i int) error {
	n := r.nodes[i]
	for r.s != "" && isBlank(r.s[0]) {
		r.s = r.s[1:]
		r.skips++
	}
	if n.key == "" {
		c := n.text[0]
		switch {
		case isBlank(c) || isSeparator(c):
			r.skips--
			if r.s != "" && (isBlank(r.s[0]) || isSeparator(r.s[0])) {
				r.s = r.s[1:]
				r.skips++
			}
		case r.skips > 0:
			r.skips--
		case r.s != "":
			_, rest := firstRune(r.s)
			r.s = rest
		}
		return nil
	}
	return r.field(n, i)
}

func firstRune(s string) (string, string) {
	n := 1
	for n < len(s) && s[n]&0xc0 == 0x80 {
		n++
	}
	return s[:n], s[n:]
}

// nextSeparates reports whether what follows a field of the template is no digit.
func (r *templateReader) nextSeparates(i int) bool {
	if r.nodes[i].ordinal != "" || i+1 >= len(r.nodes) {
		return true
	}
	n := r.nodes[i+1]
	if n.key == "" {
		return n.text[0] < '0' || n.text[0] > '9'
	}
	return strings.Contains(notDigits, " "+n.key+" ")
}

// number reads an integer of so many digits, or of as many as there are.
func (r *templateReader) number(i, width int) (int64, int, error) {
	n := r.nodes[i]
	s := r.s
	free := n.fill || r.nextSeparates(i)
	end := 0
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	for end < len(s) && s[end] >= '0' && s[end] <= '9' && (free || end < width) {
		end++
	}
	bad := func(detail string, args ...any) (int64, int, error) {
		shown := s
		if !free && len(shown) > width {
			shown = shown[:width]
		}
		e := pgerr.New(codes.InvalidDatetimeFormat, "invalid value \"%s\" for \"%s\"", shown, n.text)
		return 0, 0, e.WithDetail(detail, args...)
	}
	if !free {
		if len(s) < width {
			return 0, 0, pgerr.New(codes.InvalidDatetimeFormat, "source string too short for \"%s\" formatting field", n.text).
				WithDetail("Field requires %d characters, but only %d remain.", width, len(s))
		}
		if end > 0 && end < width {
			return bad("Field requires %d characters, but only %d could be parsed.", width, end)
		}
	}
	v, err := strconv.ParseInt(s[:end], 10, 32)
	if errors.Is(err, strconv.ErrRange) {
		return 0, 0, pgerr.New(codes.DatetimeFieldOverflow, "value for \"%s\" in source string is out of range", n.text).
			WithDetail("Value must be in the range %d to %d.", math.MinInt32, math.MaxInt32)
	}
	if err != nil {
		return bad("Value must be an integer.")
	}
	r.s = s[end:]
	return v, end, nil
}

var fieldWidths = map[string]int{
	"YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "DDD": 3, "MS": 3, "US": 6, "D": 1, "ID": 1, "IDDD": 3, "IYYY": 4, "IYY": 3, "IY": 2, "I": 1, "J": 1, "Q": 1,
	"SSSSS": 5, "SSSS": 4, "W": 1,
}

func (r *templateReader) field(n node, i int) error {
	if err := r.counts(n.key); err != nil {
		return err
	}
	switch n.key {
	case "MONTH", "MON":
		return r.name(n, monthNames, &r.out.month, n.key == "MON")
	case "DAY", "DY":
		return r.name(n, dayNames, &r.out.wday, n.key == "DY")
	case "AM", "PM", "A.M.", "P.M.":
		return r.word(n, strings.Contains(n.key, "."), "AM", "PM", func(second bool) {
			r.out.pm, r.out.twelve = second, true
		})
	case "AD", "BC", "A.D.", "B.C.":
		return r.word(n, strings.Contains(n.key, "."), "AD", "BC", func(second bool) { r.out.bc = second })
	case "RM":
		return r.roman(n)
	case "TZH", "TZM":
		return r.zone(n, i)
	}
	if err := r.numberField(n, i); err != nil {
		return err
	}
	for range n.ordinal { // st, nd, whatever
		if r.s != "" {
			_, r.s = firstRune(r.s)
		}
	}
	return nil
}

func (r *templateReader) numberField(n node, i int) error {
	if n.key == "Y,YYY" {
		return r.thousands(n)
	}
	width := fieldWidths[n.key]
	if strings.HasPrefix(n.key, "FF") {
		width = int(n.key[2] - '0')
	}
	if width == 0 {
		width = 2
	}
	v, digits, err := r.number(i, width)
	if err != nil {
		return err
	}
	return r.set(n, v, digits)
}

// places are the fields of keywords whose values they are.
func (o *readFields) places() map[string]*int64 {
	return map[string]*int64{
		"MM": &o.month, "DD": &o.mday, "DDD": &o.yday, "IDDD": &o.yday, "HH24": &o.hour, "HH12": &o.hour, "HH": &o.hour, "MI": &o.min, "SS": &o.sec,
		"CC": &o.century, "J": &o.julian, "W": &o.monthWeek, "WW": &o.week, "IW": &o.week, "D": &o.wday, "SSSS": &o.daySeconds, "SSSSS": &o.daySeconds,
		"YYYY": &o.year, "IYYY": &o.year,
	}
}

func (r *templateReader) set(n node, v int64, digits int) error {
	o := &r.out
	switch n.key {
	case "Q": // which says nothing of a day
		return nil
	case "YYYY", "IYYY":
		o.yearDigits = 4
	case "YYY", "YY", "Y", "IYY", "IY", "I":
		o.yearDigits = strings.Count(n.key, "Y")
		if n.key[0] == 'I' {
			o.yearDigits++
		}
		return setInt(&o.year, nearYear(v, digits), n)
	case "ID": // Monday is 1
		if v++; v > 7 {
			v = 1
		}
		return setInt(&o.wday, v, n)
	case "HH12", "HH":
		o.twelve = true
	}
	if to := o.places()[n.key]; to != nil {
		return setInt(to, v, n)
	}
	for d := max(digits, 0); d < 6; d++ { // a fraction
		v *= 10
	}
	o.usec += v
	return nil
}

// nearYear is the year nearest to 2020 of one that is not written out.
func nearYear(v int64, digits int) int64 {
	switch {
	case digits >= 4:
	case v < 70:
		return v + 2000
	case v < 100:
		return v + 1900
	case v < 520:
		return v + 2000
	case v < 1000:
		return v + 1000
	}
	return v
}

// name reads a name, which may be written in any case.
func (r *templateReader) name(n node, names []string, to *int64, short bool) error {
	for i, full := range names {
		want := full
		if short {
			want = full[:3]
		}
		if len(r.s) >= len(want) && strings.EqualFold(r.s[:len(want)], want) {
			r.s = r.s[len(want):]
			return setInt(to, int64(i+1), n)
		}
	}
	shown, _, _ := strings.Cut(r.s, " ")
	return pgerr.New(codes.InvalidDatetimeFormat, "invalid value \"%s\" for \"%s\"", shown, n.text).
		WithDetail("The given value did not match any of the allowed values for this field.")
}

// word reads one of two words, with points or without.
func (r *templateReader) word(n node, points bool, first, last string, set func(second bool)) error {
	for k, w := range []string{first, last} {
		if points {
			w = w[:1] + "." + w[1:] + "."
		}
		if len(r.s) >= len(w) && strings.EqualFold(r.s[:len(w)], w) {
			r.s = r.s[len(w):]
			set(k == 1)
			return nil
		}
	}
	shown := r.s
	if len(shown) > len(n.key) {
		shown = shown[:len(n.key)]
	}
	return pgerr.New(codes.InvalidDatetimeFormat, "invalid value \"%s\" for \"%s\"", shown, n.text).
		WithDetail("The given value did not match any of the allowed values for this field.")
}

// notDigits are the keywords of which a text begins with no digit, as PostgreSQL's table has it.
const notDigits = " AM PM A.M. P.M. AD BC A.D. B.C. MONTH MON DAY DY RM FF1 FF2 FF3 FF4 FF5 FF6 TZH TZ OF FX "

// gregorian and isoDates are the keywords of the two ways to count days, which do not mix.
const (
	gregorian = " DDD DD D MM MONTH MON RM WW W Y,YYY YYYY YYY YY Y "
	isoDates  = " IDDD ID IW IYYY IYY IY I "
)

// romanMonths are in the order in which PostgreSQL looks for them: the last month first.
var romanMonths = strings.Fields("XII XI X IX VIII VII VI V IV III II I")

// setInt sets a field, which may not have had another value.
func setInt(to *int64, v int64, n node) error {
	if *to != 0 && *to != v {
		return pgerr.New(codes.InvalidDatetimeFormat, "conflicting values for \"%s\" field in formatting string", n.text).
			WithDetail("This value contradicts a previous setting for the same field type.")
	}
	*to = v
	return nil
}

// counts notes the way in which a keyword counts days.
func (r *templateReader) counts(key string) error {
	iso, common := strings.Contains(isoDates, " "+key+" "), strings.Contains(gregorian, " "+key+" ")
	if !iso && !common {
		return nil
	}
	if r.out.dated && r.out.iso != iso {
		return pgerr.New(codes.InvalidDatetimeFormat, "invalid combination of date conventions").
			WithHint("Do not mix Gregorian and ISO week date conventions in a formatting template.")
	}
	r.out.dated, r.out.iso = true, iso
	return nil
}

// zone reads the hours or minutes of a zone.
func (r *templateReader) zone(n node, i int) error {
	o := &r.out
	if n.key == "TZM" {
		if o.zoneSign == 0 {
			o.zoneSign = 1
		}
		v, _, err := r.number(i, 2)
		if err != nil {
			return err
		}
		return setInt(&o.zoneMinutes, v, n)
	}
	o.zoneSign = 1
	switch {
	case r.s != "" && strings.IndexByte("+- ", r.s[0]) >= 0:
		if r.s[0] == '-' {
			o.zoneSign = -1
		}
		r.s = r.s[1:]
	case r.skips > 0 && strings.HasSuffix(r.all[:len(r.all)-len(r.s)], "-"):
		o.zoneSign = -1
	}
	v, _, err := r.number(i, 2)
	if err != nil {
		return err
	}
	return setInt(&o.zoneHours, v, n)
}

// roman reads a month in Roman numerals.
func (r *templateReader) roman(n node) error {
	for i, name := range romanMonths {
		if len(r.s) >= len(name) && strings.EqualFold(r.s[:len(name)], name) {
			r.s = r.s[len(name):]
			return setInt(&r.out.month, int64(len(romanMonths)-i), n)
		}
	}
	shown, _, _ := strings.Cut(r.s, " ")
	return pgerr.New(codes.InvalidDatetimeFormat, "invalid value \"%s\" for \"%s\"", shown, n.text).
		WithDetail("The given value did not match any of the allowed values for this field.")
}

// thousands reads a year like 2,024.
func (r *templateReader) thousands(n node) error {
	digits := func(s string, most int) int {
		i := 0
		for i < len(s) && i < most && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	whole := digits(r.s, math.MaxInt)
	rest := r.s[whole:]
	if whole == 0 || whole > 6 || !strings.HasPrefix(rest, ",") || digits(rest[1:], 3) == 0 {
		return pgerr.New(codes.InvalidDatetimeFormat, "invalid input string for \"Y,YYY\"")
	}
	years := digits(rest[1:], 3)
	v := atoi(r.s[:whole])*1000 + atoi(rest[1:1+years])
	r.s = rest[1+years:]
	r.out.yearDigits = 4
	return setInt(&r.out.year, v, n)
}

func atoi(digits string) (n int64) {
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	return n
}

// finish makes a day, a time and an offset of the fields.
func (r *templateReader) finish() error {
	o := &r.out
	bad := func() error { return fieldRange("date/time field value out of range: \"%s\"", r.all) }
	if o.daySeconds != 0 {
		h, m, s := o.daySeconds/3600, o.daySeconds%3600/60, o.daySeconds%60
		for _, f := range []struct{ to, from *int64 }{{&o.hour, &h}, {&o.min, &m}, {&o.sec, &s}} {
			if *f.to == 0 {
				*f.to = *f.from
			}
		}
	}
	if o.twelve {
		if o.hour < 1 || o.hour > 12 {
			return pgerr.New(codes.InvalidDatetimeFormat, "hour \"%d\" is invalid for the 12-hour clock", o.hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		if o.pm && o.hour < 12 {
			o.hour += 12
		} else if !o.pm && o.hour == 12 {
			o.hour = 0
		}
	}
	d, err := o.dates()
	if err != nil {
		return err
	}
	if !d.valid() || o.hour < 0 || o.hour > 23 || o.min < 0 || o.min > 59 || o.sec < 0 || o.sec > 59 {
		return bad()
	}
	if d.year < -4713 || d.year > 5874897 {
		return fieldRange("date out of range: \"%s\"", r.all)
	}
	o.day = dayOf(d.year, int(d.month), int(d.mday))
	if o.day < firstDay || o.day >= endDay {
		return fieldRange("date out of range: \"%s\"", r.all)
	}
	o.time = o.hour*hour + o.min*minute + o.sec*second + o.usec
	const hoursMax = 15
	if o.zoneSign != 0 && (o.zoneHours < 0 || o.zoneHours > hoursMax || o.zoneMinutes < 0 || o.zoneMinutes >= 60) {
		return pgerr.New("22009", "time zone displacement out of range: \"%s\"", r.all)
	}
	return nil
}
