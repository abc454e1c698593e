package span

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// element is a value of what a range is of: a number, a day or a microsecond; or, of Num, a
// numeric.
type element struct {
	n   int64
	num *numeric.Num
	// text is as PostgreSQL writes it.
	text string
}

func (a element) compare(b element) int {
	if a.num != nil {
		return numeric.Cmp(*a.num, *b.num)
	}
	return cmp.Compare(a.n, b.n)
}

// key orders by bytes as elements do; none begins another.
func (a element) key() string {
	if a.num != nil {
		return a.num.Key() + " "
	}
	return fmt.Sprintf("%016x", uint64(a.n)^1<<63)
}

// elementType is the oid of what a kind is of.
func (k Kind) elementType() uint32 {
	return map[Kind]uint32{Int4: 23, Int8: 20, Num: 1700, Date: 1082, TS: 1114, TSTZ: 1184}[k]
}

// Reader reads the bounds of ranges.
type Reader struct {
	// Input is how the session reads values.
	Input encode.Input
	// Local gives the moment of a time in the session's zone; nil refuses texts without a
	// zone.
	Local func(int64) int64
}

// element reads a bound.
func (r Reader) element(k Kind, text string) (element, error) {
	switch k {
	case Num:
		s, failed := r.Input.Decode(k.elementType(), 0, []byte(text))
		if failed != nil {
			return element{}, failed
		}
		n, err := numeric.Parse(s)
		return element{num: &n, text: n.Text()}, err
	case Int4, Int8:
		s, failed := r.Input.Decode(k.elementType(), 0, []byte(text))
		if failed != nil {
			return element{}, failed
		}
		n, err := strconv.ParseInt(s, 10, 64)
		return element{n: n, text: s}, err
	}
	if k == TSTZ && r.Local == nil && !hasZone(text) {
		return element{}, pgerr.New(codes.FeatureNotSupported, "bounds of a tstzrange without a time zone are not supported here").
			WithHint("Write the time zone: 2024-01-01 00:00+00.")
	}
	s, failed := r.Input.Settled(k.elementType(), text, r.Local)
	if failed != nil {
		return element{}, failed
	}
	return ofMoment(k, s)
}

// hasZone says that a text surely says its zone, or is of no day.
func hasZone(text string) bool {
	t := strings.ToLower(strings.TrimSpace(text))
	at := strings.LastIndexAny(t, "+-")
	return t == "infinity" || t == "-infinity" || strings.HasSuffix(t, "z") || strings.HasSuffix(t, "+00 bc") ||
		at > 0 && strings.Contains(t[:at], ":")
}

// ofMoment reads a date or timestamp as PostgreSQL writes it.
func ofMoment(k Kind, s string) (element, error) {
	e := element{text: s}
	switch s {
	case "infinity":
		e.n = math.MaxInt64
		return e, nil
	case "-infinity":
		e.n = math.MinInt64
		return e, nil
	}
	rest, bc := strings.CutSuffix(s, " BC")
	day, clock, _ := strings.Cut(rest, " ")
	var year, month, dom, hour, minute int64
	if _, err := fmt.Sscanf(day, "%d-%d-%d", &year, &month, &dom); err != nil {
		return e, fmt.Errorf("read date %q: %w", s, err)
	}
	if bc {
		year = 1 - year
	}
	e.n = days(year, month, dom)
	if k == Date {
		return e, nil
	}
	clock = strings.TrimSuffix(clock, "+00")
	whole, frac, _ := strings.Cut(clock, ".")
	var second int64
	if _, err := fmt.Sscanf(whole, "%d:%d:%d", &hour, &minute, &second); err != nil {
		return e, fmt.Errorf("read time %q: %w", s, err)
	}
	micros, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	if err != nil {
		return e, fmt.Errorf("read time %q: %w", s, err)
	}
	e.n = e.n*86400e6 + (hour*3600+minute*60+second)*1e6 + micros
	return e, nil
}

// days is the number of a day of the Gregorian calendar, counted from 1970.
func days(year, month, day int64) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	yoe := year - era*400
	doy := (153*((month+9)%12)+2)/5 + day - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// date is the inverse of days, as text.
func date(n int64) string {
	n += 719468
	era := n / 146097
	if n < 0 {
		era = (n - 146096) / 146097
	}
	doe := n - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day, month, year := doy-(153*mp+2)/5+1, (mp+2)%12+1, yoe+era*400
	if month <= 2 {
		year++
	}
	if year <= 0 {
		return fmt.Sprintf("%04d-%02d-%02d BC", 1-year, month, day)
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day)
}

// lastDay is the last date that PostgreSQL has: 5874897-12-31.
const lastDay = 2145042905

// next is the element after one; ok is false for what has none, an infinite date.
func (k Kind) next(e element) (out element, ok bool, err error) {
	if k == Date {
		switch {
		case e.n == math.MaxInt64 || e.n == math.MinInt64:
			return e, false, nil
		case e.n >= lastDay:
			return e, false, pgerr.New(codes.DatetimeFieldOverflow, "date out of range")
		}
		return element{n: e.n + 1, text: date(e.n + 1)}, true, nil
	}
	top, word := int64(math.MaxInt64), "bigint"
	if k == Int4 {
		top, word = math.MaxInt32, "integer"
	}
	if e.n == top {
		return e, false, pgerr.New(codes.NumericValueOutOfRange, "%s out of range", word)
	}
	return element{n: e.n + 1, text: strconv.FormatInt(e.n+1, 10)}, true, nil
}
