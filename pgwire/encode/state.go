package encode

import (
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// maxMessage is the largest message that PostgreSQL's clients take.
const maxMessage = 1<<30 - 1

type dateStyle uint8

const (
	dateISO dateStyle = iota
	dateSQL
	datePostgres
	dateGerman
)

type intervalStyle uint8

const (
	intervalPostgres intervalStyle = iota
	intervalVerbose
	intervalSQL
	intervalISO
)

// state is what value functions need: how the session formats, scratch space, and
// the first error.
type state struct {
	dates       dateStyle
	dayFirst    bool
	intervals   intervalStyle
	byteaEscape bool
	// floatDigits is extra_float_digits; shortest output when positive.
	floatDigits int
	zone        zoneCache
	days        *dayCache // made by New, for the columns that use it
	scratch     []byte
	err         error
}

func (s *state) init(f Format) error {
	var err error
	if s.dates, s.dayFirst, err = parseDateStyle(f.DateStyle); err != nil {
		return err
	}
	switch strings.ToLower(f.IntervalStyle) {
	case "", "postgres":
	case "postgres_verbose":
		s.intervals = intervalVerbose
	case "sql_standard":
		s.intervals = intervalSQL
	case "iso_8601":
		s.intervals = intervalISO
	default:
		return badSetting("IntervalStyle", f.IntervalStyle)
	}
	switch strings.ToLower(f.ByteaOutput) {
	case "", "hex":
	case "escape":
		s.byteaEscape = true
	default:
		return badSetting("bytea_output", f.ByteaOutput)
	}
	s.floatDigits = f.ExtraFloatDigits
	loc, err := LoadZone(f.TimeZone)
	if err != nil {
		return err
	}
	s.zone.loc = loc
	return nil
}

func badSetting(name, value string) error {
	return pgerr.New(codes.InvalidParameterValue, "invalid value for parameter \"%s\": \"%s\"", name, value)
}

// parseDateStyle reads a DateStyle value such as "ISO, MDY".
func parseDateStyle(v string) (style dateStyle, dayFirst bool, err error) {
	for part := range strings.SplitSeq(strings.ToLower(v), ",") {
		switch strings.TrimSpace(part) {
		case "", "mdy", "us", "noneuro", "noneuropean", "ymd":
		case "iso":
			style = dateISO
		case "sql":
			style = dateSQL
		case "postgres", "postgresql":
			style = datePostgres
		case "german":
			style, dayFirst = dateGerman, true
		case "dmy", "euro", "european":
			dayFirst = true
		default:
			return 0, false, badSetting("DateStyle", v)
		}
	}
	return style, dayFirst, nil
}

// Styled gives a text that is in the style of DefaultFormat the style of f; where none of its
// settings matters, it stays.
func Styled(oid uint32, text string, f Format) (string, error) {
	var s state
	if err := s.init(f); err != nil {
		return "", err
	}
	out, err := Input{}.restyled(&s, oid, text, nil)
	if err != nil {
		return "", err
	}
	return out, nil
}

// Settled gives the text of a value a form that every session reads alike. local is the
// offset of the session's zone, in seconds, at a local time in microseconds since 1970.
func (in Input) Settled(oid uint32, text string, local func(int64) int64) (string, *pgerr.Error) {
	s := state{floatDigits: 1}
	s.zone.loc = time.UTC
	return in.restyled(&s, oid, text, local)
}

func (in Input) restyled(s *state, oid uint32, text string, local func(int64) int64) (string, *pgerr.Error) {
	switch oid {
	case oidInterval:
		iv, err := in.interval(text)
		return string(s.appendInterval(nil, iv)), err
	case oidFloat4, oidFloat8:
		bits := map[uint32]int{oidFloat4: 32, oidFloat8: 64}[oid]
		f, err := parseFloat(text, bits)
		return string(s.appendFloat(nil, f, bits)), err
	case oidBytea:
		b, err := parseBytea(text)
		return string(s.appendBytea(nil, b)), err
	case oidDate, oidTimestamp, oidTimestampTZ:
	default:
		return text, nil
	}
	d, err := in.parseDateTime(text, inputName(oid))
	switch {
	case err != nil:
		return "", err
	case !d.hasDate:
		return "", errDateSyntax(inputName(oid), text)
	case d.infinity != 0:
		return []string{"-infinity", "", "infinity"}[d.infinity+1], nil
	}
	if oid == oidDate { // it may be too late for a timestamp
		return string(s.appendDate(nil, int32(d.days+floorDiv(d.micros, dayMicros)))), nil
	}
	us := d.days*dayMicros + d.micros
	switch {
	case oid == oidTimestamp:
		return string(s.appendTimestamp(nil, us)), nil
	case d.hasZone:
		us -= int64(d.offset) * 1e6
	case local != nil:
		us -= local(us) * 1e6
	}
	return string(s.appendTimestampTZ(nil, us)), nil
}

// fail latches the first error.
func (s *state) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func errRowTooLong() error {
	return pgerr.New(codes.ProgramLimitExceeded, "out of memory").
		WithDetail("A row of the result is larger than %d bytes.", maxMessage)
}

func errOutOfRange(typeName string) *pgerr.Error {
	return pgerr.New(codes.NumericValueOutOfRange, "%s out of range", typeName)
}
