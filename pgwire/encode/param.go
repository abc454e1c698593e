package encode

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/digit"
	"github.com/skipprd/skipprd/pgwire/encode/canon"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// DateOrder is how ambiguous dates are read, from DateStyle.
type DateOrder uint8

// The orders.
const (
	MDY DateOrder = iota
	DMY
	YMD
)

// Input is what reading values depends on besides the text. The zero value reads
// dates as month, day, year and knows no time, so that now and today are refused.
type Input struct {
	Order DateOrder
	// Now is the transaction's time, Zone the session's zone (nil: UTC).
	Now  time.Time
	Zone *time.Location
	// SignsAll says that a leading minus is that of all fields of an interval, when none of
	// the others has a sign: IntervalStyle sql_standard.
	SignsAll bool
	// Ranges reads the text of a range or multirange, in the session's zone; nil for one that
	// reads no multiranges, and ranges of timestamptz in UTC alone.
	Ranges func(oid uint32, text string) (string, error)
}

// InputOf is how a session with these settings reads values.
func InputOf(dateStyle, intervalStyle string) Input {
	in := Input{SignsAll: strings.EqualFold(intervalStyle, "sql_standard")}
	for part := range strings.SplitSeq(strings.ToLower(dateStyle), ",") {
		switch strings.TrimSpace(part) {
		case "dmy", "euro", "european", "german":
			in.Order = DMY
		case "ymd":
			in.Order = YMD
		case "mdy", "us", "noneuro", "noneuropean":
			in.Order = MDY
		}
	}
	return in
}

// Number is what the settings of an Input are as a number; NumberedInput is its inverse.
func (in Input) Number() int64 {
	n := int64(in.Order)
	if in.SignsAll {
		n |= 4
	}
	return n
}

// NumberedInput is the Input of a number.
func NumberedInput(n int64) Input { return Input{Order: DateOrder(n & 3), SignsAll: n&4 != 0} }

// DecodeParam is Input.Decode of the zero Input.
func DecodeParam(oid uint32, format int16, b []byte) (text string, err *pgerr.Error) {
	return Input{}.Decode(oid, format, b)
}

// Decode validates a parameter value as the type's input (format 0) or receive
// (format 1) function does, and returns the text that the engine's cast to the type
// accepts: 't' is "true", bytea is the engine's escaped form, '{1,2}' is "[1, 2]".
// Types that the engine keeps as exact text come back as that text. b is not kept.
func (in Input) Decode(oid uint32, format int16, b []byte) (text string, err *pgerr.Error) {
	switch format {
	case 0:
		if err := validText(b); err != nil {
			return "", err
		}
		return in.decodeText(oid, string(b))
	case 1:
		return decodeBinary(oid, b)
	}
	return "", pgerr.New(codes.InvalidParameterValue, "unsupported format code: %d", format)
}

// validText checks for UTF-8 without NUL.
func validText(b []byte) *pgerr.Error {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return pgerr.BadUTF8At(string(b[i:min(len(b), i+utf8.UTFMax)]))
		}
		i += n
	}
	return nil
}

// decodeText is Decode for text.
func (in Input) decodeText(oid uint32, text string) (string, *pgerr.Error) {
	if elem := ElementOID(oid); elem != 0 {
		a, err := parseArray(text, elem)
		if err != nil {
			return "", err
		}
		return a.engineText(func(s string) (string, *pgerr.Error) { return in.decodeText(elem, s) })
	}
	if isRegType(oid) {
		return text, nil // names are resolved by whoever knows the catalog
	}
	if _, ok := integerRange(oid); ok {
		n, err := parseInteger(text, oid)
		if oid == oidXID8 {
			return strconv.FormatUint(uint64(n), 10), err
		}
		return strconv.FormatInt(n, 10), err
	}
	switch oid {
	case oidBool:
		b, err := parseBool(text)
		return strconv.FormatBool(b), err
	case oidFloat4, oidFloat8:
		bitSize := 64
		if oid == oidFloat4 {
			bitSize = 32
		}
		f, err := parseFloat(text, bitSize)
		return string(appendFloat(nil, f, bitSize)), err
	case oidNumeric:
		n, err := parseNumeric(text)
		if err != nil {
			return "", err
		}
		return string(n.text(nil)), nil
	case oidDate, oidTime, oidTimeTZ, oidTimestamp, oidTimestampTZ:
		return in.decodeDateTime(oid, text)
	case oidInterval:
		iv, err := in.interval(text)
		return iv.engineText(), err
	case oidUUID:
		b, err := parseUUID(text)
		return string(appendUUID(nil, b)), err
	case oidBytea:
		b, err := parseBytea(text)
		return engineBlob(b), err
	case oidJSON, oidJSONB:
		if !json.Valid([]byte(text)) {
			return "", errJSON()
		}
	}
	return in.canonical(oid, text)
}

// canonical gives the text of a type that is kept as text the form in which PostgreSQL writes
// it.
func (in Input) canonical(oid uint32, text string) (string, *pgerr.Error) {
	out, err := text, error(nil)
	if in.Ranges != nil && isRange(oid) {
		out, err = in.Ranges(oid, text)
		return out, canonError(err, oid, text)
	}
	switch oid {
	case oidBit, oidVarbit:
		out, err = canon.Bits(text)
	case oidInet, oidCIDR:
		out, err = canon.Network(text, oid == oidCIDR)
	case oidMacaddr, oidMacaddr8:
		out, err = canon.MAC(text, oid == oidMacaddr8)
	case oidLSN:
		out, err = canon.LSN(text)
	case oidMoney:
		cents, failed := moneyCents(text)
		if failed != nil {
			return "", failed
		}
		out = canon.Money(cents)
	case 600, 601, 602, 603, 604, 628, 718:
		out, err = canon.Shape(oid, text, func(s string) (string, error) {
			f, failed := parseFloat(s, 64)
			switch {
			case failed != nil && failed.Code == codes.InvalidTextRepresentation:
				return "", canon.ErrSyntax
			case failed != nil:
				return "", failed
			}
			return string(appendFloat(nil, f, 64)), nil
		})
	case 3904, 3906, 3908, 3912, 3926:
		kind := map[uint32]canon.Kind{3904: canon.Integers, 3926: canon.Integers, 3912: canon.Days, 3906: canon.Numbers, 3908: canon.Moments}[oid]
		sub := map[uint32]uint32{3904: oidInt4, 3926: oidInt8, 3912: oidDate, 3906: oidNumeric, 3908: oidTimestamp}[oid]
		out, err = canon.Range(text, kind, func(s string) (string, error) {
			v, failed := in.decodeText(sub, s)
			if failed == nil && (sub == oidDate || sub == oidTimestamp) {
				v, failed = in.Settled(sub, s, nil)
			}
			if failed != nil {
				return "", failed
			}
			return v, nil
		})
	case 3910:
		if !utcRange.MatchString(text) {
			err = canon.ErrUnsupported
		}
	}
	return out, canonError(err, oid, text)
}

// isRange says whether a type is a range or multirange.
func isRange(oid uint32) bool {
	switch oid {
	case 3904, 3906, 3908, 3910, 3912, 3926, 4451, 4532, 4533, 4534, 4535, 4536:
		return true
	}
	return false
}

// utcRange is a tstzrange as it is kept: in UTC.
var utcRange = regexp.MustCompile(`^(?:empty|[\[(](?:"[0-9-]{10,13} [0-9:.]{8,15}\+00")?,(?:"[0-9-]{10,13} [0-9:.]{8,15}\+00")?[\])])$`)

func canonError(err error, oid uint32, text string) *pgerr.Error {
	var failed *pgerr.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return failed
	case errors.Is(err, canon.ErrOrder):
		return pgerr.New(codes.DataException, "%s", err)
	case errors.Is(err, canon.ErrLine):
		return pgerr.New(codes.InvalidTextRepresentation, "%s", err)
	case errors.Is(err, canon.ErrUnsupported):
		return pgerr.New(codes.FeatureNotSupported, "this text of a value of type %s is not supported", typeName(oid)).
			WithHint("Write it as PostgreSQL does.")
	}
	return errSyntax(typeName(oid), text)
}

func errJSON() *pgerr.Error {
	return pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type json")
}

// decodeDateTime gives dates and times in the engine's ISO form. A timestamptz
// without a zone stays so: the engine reads it in the session's zone.
func (in Input) decodeDateTime(oid uint32, text string) (string, *pgerr.Error) {
	name := inputName(oid)
	d, err := in.parseDateTime(text, name)
	if err != nil {
		return "", err
	}
	if oid == oidTime || oid == oidTimeTZ {
		if !d.hasTime {
			return "", errDateSyntax(name, text)
		}
		dst := appendClock(nil, d.micros)
		if oid == oidTimeTZ && d.hasZone {
			dst = appendLongOffset(dst, d.offset)
		}
		return string(dst), nil
	}
	if !d.hasDate {
		return "", errDateSyntax(name, text)
	}
	return engineDateTime(d, oid), nil
}

func engineDateTime(d dateTime, oid uint32) string {
	switch d.infinity {
	case 1:
		return "infinity"
	case -1:
		return "-infinity"
	}
	carry := d.micros / dayMicros // 24:00:00
	year, month, day := civil(d.days + carry)
	bc := year <= 0
	if bc {
		year = 1 - year
	}
	dst := appendTwo(append(appendYear(nil, year), '-'), month)
	dst = appendTwo(append(dst, '-'), day)
	if bc {
		dst = append(dst, " (BC)"...)
	}
	if oid == oidDate {
		return string(dst)
	}
	dst = appendClock(append(dst, ' '), d.micros%dayMicros)
	if oid == oidTimestampTZ && d.hasZone {
		dst = appendLongOffset(dst, d.offset)
	}
	return string(dst)
}

// appendLongOffset writes +hh:mm[:ss].
func appendLongOffset(dst []byte, offset int) []byte {
	at := len(dst)
	dst = appendOffset(dst, offset)
	if len(dst)-at == 3 {
		dst = append(dst, ":00"...)
	}
	return dst
}

func (iv engineInterval) engineText() string {
	dst := append(strconv.AppendInt(nil, int64(iv.months), 10), " months "...)
	dst = append(strconv.AppendInt(dst, int64(iv.days), 10), " days "...)
	return string(append(strconv.AppendInt(dst, iv.micros, 10), " microseconds"...))
}

// parseUUID reads what uuid_in reads: hex digits with optional hyphens after each
// group of four, and braces.
func parseUUID(text string) (b [16]byte, err *pgerr.Error) {
	s := text
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") {
		s = s[1 : len(s)-1]
	}
	n := 0
	for i := 0; i < len(s); i++ {
		d := digit.Hex(s[i])
		switch {
		case s[i] == '-' && n > 0 && n%4 == 0 && n < 32 && s[i-1] != '-':
		case d < 0 || n == 32:
			return b, errSyntax("uuid", text)
		default:
			b[n/2] = b[n/2]<<4 | byte(d)
			n++
		}
	}
	if n != 32 {
		return b, errSyntax("uuid", text)
	}
	return b, nil
}

// parseBytea reads bytea's hex and escape forms.
func parseBytea(text string) ([]byte, *pgerr.Error) {
	if hexText, ok := strings.CutPrefix(text, `\x`); ok {
		return parseHex(hexText)
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c != '\\':
			out = append(out, c)
		case strings.HasPrefix(text[i+1:], `\`):
			out = append(out, c)
			i++
		case len(text) > i+3 && text[i+1] >= '0' && text[i+1] <= '3' && digit.Octal(text[i+2]) >= 0 && digit.Octal(text[i+3]) >= 0:
			out = append(out, (text[i+1]-'0')<<6|(text[i+2]-'0')<<3|(text[i+3]-'0'))
			i += 3
		default:
			return nil, pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return out, nil
}

func parseHex(text string) ([]byte, *pgerr.Error) {
	out := make([]byte, 0, len(text)/2)
	for i := 0; i < len(text); i++ {
		if strings.IndexByte(spaces, text[i]) >= 0 {
			continue
		}
		hi := digit.Hex(text[i])
		if hi < 0 {
			return nil, pgerr.New(codes.InvalidParameterValue, "invalid hexadecimal digit: \"%c\"", text[i])
		}
		if i++; i == len(text) {
			return nil, pgerr.New(codes.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		lo := digit.Hex(text[i])
		if lo < 0 {
			return nil, pgerr.New(codes.InvalidParameterValue, "invalid hexadecimal digit: \"%c\"", text[i])
		}
		out = append(out, byte(hi<<4|lo))
	}
	return out, nil
}

// engineBlob writes bytes as the engine's cast to BLOB reads them.
func engineBlob(b []byte) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(b)*2)
	for _, c := range b {
		if c < 0x20 || c > 0x7e || c == '\\' || c == '"' || c == '\'' {
			out = append(out, '\\', 'x', digits[c>>4], digits[c&15])
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// listTextMax bounds the text of a list: numbers such as 1e100000 grow on the way.
const listTextMax = 256 << 20

// engineText writes the array as the engine's cast to a list reads it, converting
// each element by f. The engine's lists have one dimension and begin at 1.
func (a array) engineText(f func(string) (string, *pgerr.Error)) (string, *pgerr.Error) {
	switch {
	case len(a.dims) == 0:
		return "[]", nil
	case len(a.dims) > 1:
		return "", pgerr.New(codes.FeatureNotSupported, "multi-dimensional arrays are not supported")
	case len(a.lower) > 0 && a.lower[0] != 1:
		return "", pgerr.New(codes.FeatureNotSupported, "arrays that do not begin at index 1 are not supported")
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, e := range a.elems {
		if i > 0 {
			b.WriteString(", ")
		}
		if e == nil {
			b.WriteString("NULL")
			continue
		}
		s, err := f(*e)
		if err != nil {
			return "", err
		}
		if writeListElement(&b, s); b.Len() > listTextMax {
			return "", pgerr.New(codes.ProgramLimitExceeded, "array is too large")
		}
	}
	b.WriteByte(']')
	return b.String(), nil
}

// writeListElement quotes an element where the engine's list syntax needs it.
func writeListElement(b *strings.Builder, s string) {
	if s != "" && !strings.EqualFold(s, "null") && strings.Trim(s, listPlain) == "" {
		b.WriteString(s)
		return
	}
	b.WriteByte('"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
}

// listPlain are the characters that stand for themselves in a list element.
const listPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._:"
