package pgfunc

import (
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// readFields are what to_date and to_timestamp read.
type readFields struct {
	year, month, mday, yday int64
	hasYear, bc             bool
	yearDigits              int
	hour, min, sec, usec    int64
	pm, am, twelve          bool
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
const readable = " YYYY YYY YY Y MM DD DDD HH24 HH12 HH MI SS MS US AM PM A.M. P.M. AD BC A.D. B.C. MONTH MON DAY DY FF1 FF2 FF3 FF4 FF5 FF6 "

// readMoment reads a text by a template; nil when either is empty.
func readMoment(text, format string) (*readFields, error) {
	nodes := momentTemplate(format)
	for _, n := range nodes {
		if n.key != "" && !strings.Contains(readable, " "+n.key+" ") || n.ordinal != "" {
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
	if i+1 >= len(r.nodes) {
		return true
	}
	n := r.nodes[i+1]
	if n.key == "" {
		return n.text[0] < '0' || n.text[0] > '9'
	}
	switch n.key {
	case "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "MONTH", "MON", "DAY", "DY":
		return true
	}
	return false
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
	v, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return bad("Value must be an integer.")
	}
	r.s = s[end:]
	return v, end, nil
}

var fieldWidths = map[string]int{"YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "DDD": 3, "MS": 3, "US": 6}

func (r *templateReader) field(n node, i int) error {
	switch n.key {
	case "MONTH", "MON":
		return r.name(n, monthNames, &r.out.month, n.key == "MON")
	case "DAY", "DY":
		var ignored int64
		return r.name(n, dayNames, &ignored, n.key == "DY")
	case "AM", "PM", "A.M.", "P.M.":
		return r.word(n, strings.Contains(n.key, "."), "AM", "PM", func(second bool) {
			r.out.am, r.out.pm, r.out.twelve = !second, second, true
		})
	case "AD", "BC", "A.D.", "B.C.":
		return r.word(n, strings.Contains(n.key, "."), "AD", "BC", func(second bool) { r.out.bc = second })
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
	r.set(n.key, v, digits)
	return nil
}

func (r *templateReader) set(key string, v int64, digits int) {
	o := &r.out
	switch key {
	case "YYYY":
		o.year, o.hasYear, o.yearDigits = v, true, 4
	case "YYY", "YY", "Y":
		o.year, o.hasYear, o.yearDigits = v, true, len(key)
		if digits < 4 && len(key) < 4 { // the nearest to 2020
			switch {
			case v < 70:
				o.year += 2000
			case v < 100:
				o.year += 1900
			case v < 520:
				o.year += 2000
			case v < 1000:
				o.year += 1000
			}
		}
	case "MM":
		o.month = v
	case "DD":
		o.mday = v
	case "DDD":
		o.yday = v
	case "HH24":
		o.hour = v
	case "HH12", "HH":
		o.hour, o.twelve = v, true
	case "MI":
		o.min = v
	case "SS":
		o.sec = v
	default: // a fraction
		places := map[string]int{"MS": 3, "US": 6}[key]
		if places == 0 {
			places = int(key[2] - '0')
		}
		for n := max(digits, 0); n < 6; n++ {
			v *= 10
		}
		_ = places
		o.usec += v
	}
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
			*to = int64(i + 1)
			return nil
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

// finish makes a day and a time of the fields.
func (r *templateReader) finish() error {
	o := &r.out
	bad := func() error { return fieldRange("date/time field value out of range: \"%s\"", r.all) }
	if o.twelve {
		if o.hour < 1 || o.hour > 12 {
			return pgerr.New(codes.InvalidDatetimeFormat, "hour \"%d\" is invalid for the 12-hour clock", o.hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		if o.pm && o.hour < 12 {
			o.hour += 12
		} else if o.am && o.hour == 12 {
			o.hour = 0
		}
	}
	year := o.year
	switch {
	case !o.hasYear:
		year = 0 // 1 BC, as there
	case o.bc && year > 0:
		year = 1 - year
	case year < 0:
		year++
	}
	month, mday := max(o.month, 0), max(o.mday, 0)
	if o.month == 0 {
		month = 1
	}
	if o.mday == 0 {
		mday = 1
	}
	if o.yday != 0 && o.month == 0 && o.mday == 0 {
		if o.yday < 1 || o.yday > 365 && !(o.yday == 366 && leap(year)) {
			return bad()
		}
		_, m, d := civil(dayOf(year, 1, 1) + o.yday - 1)
		month, mday = int64(m), int64(d)
	}
	if month < 1 || month > 12 || mday < 1 || mday > int64(monthDays(year, int(month))) || o.hour < 0 || o.hour > 23 || o.min < 0 ||
		o.min > 59 || o.sec < 0 || o.sec > 59 {
		return bad()
	}
	o.day = dayOf(year, int(month), int(mday))
	if o.day < firstDay || o.day >= endDay {
		return fieldRange("date out of range: \"%s\"", r.all)
	}
	o.time = o.hour*hour + o.min*minute + o.sec*second + o.usec
	return nil
}
