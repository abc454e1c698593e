package pgfunc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// node is a part of a template pattern: a keyword with its modifiers, or a literal.
type node struct {
	key     string // upper case, "" for a literal
	text    string // the keyword as it stands, or the literal
	fill    bool   // FM
	local   bool   // TM
	ordinal string // TH or th
}

// momentKeys are the keywords of date templates, the longest of a beginning first. Each
// exists in upper and in lower case; some also begin with a capital.
var momentKeys = strings.Fields(`Y,YYY A.D. A.M. B.C. P.M. HH24 HH12 IDDD IYYY MONTH SSSSS SSSS YYYY DAY DDD IYY MON TZH TZM YYY
	FF1 FF2 FF3 FF4 FF5 FF6 AD AM BC CC DD DY FX HH ID IW IY MI MM MS OF PM RM SS TZ US WW YY D I J Q W Y`)

var capitalKeys = strings.Fields("Month Mon Day Dy")

// matchKey finds the keyword that a template begins with.
func matchKey(s string) (key, text string) {
	for _, k := range capitalKeys {
		if strings.HasPrefix(s, k) {
			return strings.ToUpper(k), k
		}
	}
	best := ""
	for _, k := range momentKeys {
		if len(k) > len(best) && (strings.HasPrefix(s, k) || strings.HasPrefix(s, strings.ToLower(k))) {
			best = k
		}
	}
	return best, s[:len(best)]
}

var templateCache cache[[]node]

// momentTemplate takes a date template apart.
func momentTemplate(format string) []node {
	list, _ := templateCache.get(format, func() ([]node, bool) { return parseTemplate(strings.Clone(format)), true })
	return list
}

func parseTemplate(f string) []node {
	var out []node
	for len(f) > 0 {
		var n node
		rest := f
		for prefix := true; prefix && len(rest) >= 2; {
			switch rest[:2] {
			case "FM", "fm":
				n.fill = true
				rest = rest[2:]
			case "TM", "tm":
				n.local = true
				rest = rest[2:]
			default:
				prefix = false
			}
		}
		if n.key, n.text = matchKey(rest); n.key != "" {
			rest = rest[len(n.text):]
			for _, th := range []string{"TH", "th"} {
				if strings.HasPrefix(rest, th) {
					n.ordinal, rest = th, rest[2:]
					break
				}
			}
			if strings.HasPrefix(rest, "SP") || strings.HasPrefix(rest, "sp") {
				rest = rest[2:]
			}
			out, f = append(out, n), rest
			continue
		}
		if f = rest; f != "" {
			f = literalNodes(f, &out)
		}
	}
	return out
}

// literalNodes takes a quoted text, or one character, and returns what follows.
func literalNodes(f string, out *[]node) string {
	if f[0] == '"' {
		f = f[1:]
		for len(f) > 0 {
			if f[0] == '"' {
				return f[1:]
			}
			if f[0] == '\\' && len(f) > 1 {
				f = f[1:]
			}
			f = oneLiteral(f, out)
		}
		return f
	}
	if f[0] == '\\' && len(f) > 1 && f[1] == '"' {
		f = f[1:]
	}
	return oneLiteral(f, out)
}

func oneLiteral(f string, out *[]node) string {
	n := 1
	for n < len(f) && f[n]&0xc0 == 0x80 { // the rest of a character
		n++
	}
	*out = append(*out, node{text: f[:n]})
	return f[n:]
}

var (
	monthNames = strings.Fields("January February March April May June July August September October November December")
	dayNames   = strings.Fields("Sunday Monday Tuesday Wednesday Thursday Friday Saturday")
	romanMonth = strings.Fields("I II III IV V VI VII VIII IX X XI XII")
)

// printed is a moment or an interval to be shown by a template.
type printed struct {
	clock
	interval bool
	zone     string // "" for a moment without one
	offset   int    // of the zone, in seconds
}

// adjusted is the year as it is written.
func (p *printed) adjusted(y int64) int64 {
	if p.interval || y > 0 {
		return y
	}
	return 1 - y
}

// show writes a moment by a template.
func (p *printed) show(nodes []node) (string, error) {
	var b strings.Builder
	for _, n := range nodes {
		if n.key == "" {
			b.WriteString(n.text)
			continue
		}
		s, numeric, err := p.item(n)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		if numeric && n.ordinal != "" {
			b.WriteString(ordinalOf(s, n.ordinal == "TH"))
		}
	}
	return b.String(), nil
}

// ordinalOf is the ending of a number.
func ordinalOf(s string, upper bool) string {
	end := "th"
	last := s[len(s)-1]
	if len(s) < 2 || s[len(s)-2] != '1' {
		switch last {
		case '1':
			end = "st"
		case '2':
			end = "nd"
		case '3':
			end = "rd"
		}
	}
	if upper {
		return strings.ToUpper(end)
	}
	return end
}

// cased writes a name as its keyword is written.
func cased(name, keyword string) string {
	switch {
	case keyword == strings.ToLower(keyword):
		return strings.ToLower(name)
	case keyword == strings.ToUpper(keyword):
		return strings.ToUpper(name)
	}
	return name
}

var intervalLacks = strings.Fields("A.D. B.C. AD BC MONTH MON DAY DY TZ TZH TZM OF ID IDDD IW IYYY IYY IY I D")

func (p *printed) item(n node) (s string, numeric bool, err error) {
	if p.interval && slices.Contains(intervalLacks, n.key) {
		return "", false, pgerr.New(codes.InvalidDatetimeFormat, "invalid format specification for an interval value").
			WithHint("Intervals are not tied to specific calendar dates.")
	}
	number := func(width int, v int64) (string, bool, error) {
		if n.fill {
			return strconv.FormatInt(v, 10), true, nil
		}
		return fmt.Sprintf("%0*d", width, v), true, nil
	}
	signed := func(v int64) int { // one more for a sign
		if v < 0 {
			return 3
		}
		return 2
	}
	h := int64(p.hour)
	switch n.key {
	case "HH", "HH12":
		v := h % 12
		if v == 0 {
			v = 12
		}
		return number(signed(h), v)
	case "HH24":
		return number(signed(h), h)
	case "MI":
		return number(signed(int64(p.min)), int64(p.min))
	case "SS":
		return number(signed(int64(p.sec)), int64(p.sec))
	case "MS":
		return fmt.Sprintf("%03d", p.usec/1000), true, nil
	case "US":
		return fmt.Sprintf("%06d", p.usec), true, nil
	case "SSSS", "SSSSS":
		return strconv.Itoa(p.hour*3600 + p.min*60 + p.sec), true, nil
	case "A.M.", "P.M.", "AM", "PM":
		return p.meridian(n), false, nil
	}
	if strings.HasPrefix(n.key, "FF") {
		digits := int(n.key[2] - '0')
		return fmt.Sprintf("%06d", p.usec)[:digits], true, nil
	}
	return p.dateItem(n, number)
}

func (p *printed) meridian(n node) string {
	word := "AM"
	if p.hour%24 >= 12 {
		word = "PM"
	}
	if strings.Contains(n.text, ".") {
		word = word[:1] + "." + word[1:] + "."
	}
	return cased(word, n.text)
}

func (p *printed) dateItem(n node, number func(int, int64) (string, bool, error)) (string, bool, error) {
	name := func(s string) (string, bool, error) {
		s = cased(s, n.text)
		if !n.fill && !n.local && (n.key == "MONTH" || n.key == "DAY") {
			s += strings.Repeat(" ", 9-len(s))
		}
		return s, false, nil
	}
	switch n.key {
	case "MONTH", "MON":
		full := monthNames[p.month-1]
		if n.key == "MON" {
			full = full[:3]
		}
		return name(full)
	case "DAY", "DY":
		full := dayNames[weekday(p.day)]
		if n.key == "DY" {
			full = full[:3]
		}
		return name(full)
	case "MM":
		if p.month < 0 {
			return number(3, int64(p.month))
		}
		return number(2, int64(p.month))
	case "DD":
		return number(2, int64(p.mday))
	case "DDD":
		return number(3, int64(p.dayYear))
	case "D":
		return strconv.Itoa(weekday(p.day) + 1), true, nil
	case "ID":
		return strconv.Itoa((weekday(p.day)+6)%7 + 1), true, nil
	case "IDDD":
		year, _ := isoWeek(p.day)
		first := dayOf(year, 1, 4)
		first -= floorMod(first+3, 7)
		return number(3, p.day-first+1)
	case "WW":
		return number(2, int64((p.dayYear-1)/7+1))
	case "IW":
		_, w := isoWeek(p.day)
		return number(2, int64(w))
	case "W":
		return strconv.Itoa((p.mday-1)/7 + 1), true, nil
	case "Q":
		return strconv.Itoa((p.month-1)/3 + 1), true, nil
	case "J":
		return strconv.FormatInt(p.day+julianEpoch, 10), true, nil
	case "RM":
		return p.roman(n)
	}
	return p.yearItem(n, number)
}

func (p *printed) roman(n node) (string, bool, error) {
	if p.month < 1 {
		return "", false, unsupported("RM of an interval is not supported")
	}
	s := cased(romanMonth[p.month-1], n.text)
	if !n.fill {
		s += strings.Repeat(" ", 4-len(s))
	}
	return s, false, nil
}

func (p *printed) yearItem(n node, number func(int, int64) (string, bool, error)) (string, bool, error) {
	year := p.year
	if n.key[0] == 'I' {
		year, _ = isoWeek(p.day)
	}
	y := p.adjusted(year)
	switch n.key {
	case "YYYY", "IYYY":
		width := 4
		if y < 0 {
			width = 5
		}
		return number(width, y)
	case "Y,YYY":
		return fmt.Sprintf("%d,%03d", y/1000, y%1000), true, nil
	case "YYY", "IYY":
		return number(3, y%1000)
	case "YY", "IY":
		return number(2, y%100)
	case "Y", "I":
		return strconv.FormatInt(y%10, 10), true, nil
	case "A.D.", "B.C.", "AD", "BC":
		word := "AD"
		if p.year <= 0 {
			word = "BC"
		}
		if strings.Contains(n.text, ".") {
			word = word[:1] + "." + word[1:] + "."
		}
		return cased(word, n.text), false, nil
	case "CC":
		return p.century(number)
	}
	return p.zoneItem(n)
}

func (p *printed) century(number func(int, int64) (string, bool, error)) (string, bool, error) {
	var c int64
	switch {
	case p.interval:
		c = p.year / 100
	case p.year > 0:
		c = (p.year-1)/100 + 1
	default:
		c = p.year/100 - 1
	}
	switch {
	case c > 99 || c < -99:
		return strconv.FormatInt(c, 10), true, nil
	case c < 0:
		return number(3, c)
	}
	return number(2, c)
}

func (p *printed) zoneItem(n node) (string, bool, error) {
	sign, off := "+", p.offset
	if off < 0 {
		sign, off = "-", -off
	}
	switch n.key {
	case "TZ":
		if n.text == "tz" {
			return strings.ToLower(p.zone), false, nil
		}
		return p.zone, false, nil
	case "TZH":
		return fmt.Sprintf("%s%02d", sign, off/3600), false, nil
	case "TZM":
		return fmt.Sprintf("%02d", off/60%60), false, nil
	case "OF":
		s := fmt.Sprintf("%s%02d", sign, off/3600)
		if off%3600 != 0 {
			s += fmt.Sprintf(":%02d", off/60%60)
		}
		return s, false, nil
	}
	return "", false, nil // FX
}

func templateFunctions() []scalar.Function {
	text := scalar.Text
	return []scalar.Function{
		{Name: "skippr_ts_char", Params: kinds(scalar.Timestamp, text), Result: text, Call: func(a []value) (value, error) {
			return showMoment(a[0].Int, "", 0, a[1].Text)
		}},
		// A moment in a zone: the zone's name, the format.
		{Name: "skippr_tz_char", Params: kinds(scalar.TimestampTZ, text, text), Result: text, Call: func(a []value) (value, error) {
			t := a[0].Int
			if infiniteMoment(t) {
				return scalar.Null, nil
			}
			loc, err := zoneNamed(a[1].Text)
			if err != nil {
				return value{}, err
			}
			name, offset := zoneAt(t, loc)
			return showMoment(t+int64(offset)*second, name, offset, a[2].Text)
		}},
		{Name: "skippr_tz_add", Params: kinds(scalar.TimestampTZ, scalar.Interval, text), Result: scalar.TimestampTZ, Call: func(a []value) (value, error) {
			loc, err := zoneNamed(a[2].Text)
			if err != nil {
				return value{}, err
			}
			return addZoned(a[0].Int, a[1], loc)
		}},
		{Name: "skippr_tz_text", Params: kinds(scalar.TimestampTZ, text), Result: text, Call: func(a []value) (value, error) {
			loc, err := zoneNamed(a[1].Text)
			if err != nil {
				return value{}, err
			}
			return scalar.OfText(zonedText(a[0].Int, loc)), nil
		}},
		{Name: "skippr_iv_char", Params: kinds(scalar.Interval, text), Result: text, Call: func(a []value) (value, error) {
			return showInterval(a[0], a[1].Text)
		}},
		// The text of a number, how it was made ("n", "i", "f"), the format.
		{Name: "skippr_n_char", Params: kinds(text, text, text), Result: text, Call: func(a []value) (value, error) {
			return showNumber(a[0].Text, a[1].Text, a[2].Text)
		}},
		{Name: "skippr_n_read", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			return readNumber(a[0].Text, a[1].Text)
		}},
		{Name: "skippr_d_read", Params: kinds(text, text), Result: scalar.Date, Call: func(a []value) (value, error) {
			r, err := readMoment(a[0].Text, a[1].Text)
			if err != nil || r == nil {
				return scalar.Null, err
			}
			return scalar.OfInt(r.day), nil
		}},
		// The moment of a text that has a zone, in UTC, null for any other.
		{Name: "skippr_ts_zoned", Params: kinds(text, text), Result: scalar.Timestamp, Call: func(a []value) (value, error) {
			r, err := readMoment(a[0].Text, a[1].Text)
			if err != nil || r == nil || r.zoneSign == 0 {
				return scalar.Null, err
			}
			return momentOf(0, r.day*dayTime+r.time-r.zoneSign*(r.zoneHours*hour+r.zoneMinutes*minute))
		}},
		// The local time.
		{Name: "skippr_ts_read", Params: kinds(text, text), Result: scalar.Timestamp, Call: func(a []value) (value, error) {
			r, err := readMoment(a[0].Text, a[1].Text)
			if err != nil || r == nil {
				return scalar.Null, err
			}
			return momentOf(0, r.day*dayTime+r.time)
		}},
	}
}

func showMoment(t int64, zone string, offset int, format string) (value, error) {
	if infiniteMoment(t) || format == "" {
		return scalar.Null, nil
	}
	p := printed{clock: clockOf(t), zone: zone, offset: offset}
	s, err := p.show(momentTemplate(format))
	return scalar.OfText(s), err
}

func showInterval(v value, format string) (value, error) {
	if format == "" {
		return scalar.Null, nil
	}
	nodes := momentTemplate(format)
	p := printed{interval: true}
	p.year, p.month, p.mday = int64(v.Months/12), int(v.Months%12), int(v.Days)
	t := v.Int
	p.hour, p.min, p.sec, p.usec = int(t/hour), int(t/minute%60), int(t/second%60), int(t%second)
	p.dayYear = (int(p.year)*12+p.month)*daysPerMonth + p.mday
	for _, n := range nodes {
		if v.Months < 0 || v.Days < 0 || v.Int < 0 {
			if n.key != "" && n.key != "HH24" && n.key != "MI" && n.key != "SS" {
				return value{}, unsupported("to_char of a negative interval by \"%s\" is not supported", n.text)
			}
		}
		if slices.Contains([]string{"WW", "W", "J", "Q", "RM", "DD", "CC", "Y,YYY"}, n.key) && n.key != "DD" {
			return value{}, unsupported("to_char of an interval by \"%s\" is not supported", n.text)
		}
	}
	s, err := p.show(nodes)
	return scalar.OfText(s), err
}
