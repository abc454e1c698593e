package pgsql

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// EngineText turns the PostgreSQL text form of a value of t into the text that the
// engine's cast to EngineType(t) accepts, or a *pgerr.Error 22P02, 22003 or 22007.
func EngineText(t Type, s string) (string, error) {
	if elem := lookupType(t.OID).elem; elem != 0 && t.OID != OIDInt2Vector && t.OID != OIDOidVector {
		return engineArray(t, elem, s)
	}
	switch t.OID {
	case OIDBool:
		return boolText(s)
	case OIDInt2:
		return intText(s, 16, "smallint")
	case OIDInt4:
		return intText(s, 32, "integer")
	case OIDInt8:
		return intText(s, 64, "bigint")
	case OIDOid, OIDXid, 29, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnsp, OIDRegrole, 2202, 2203:
		return oidText(t, s)
	case OIDFloat4, OIDFloat8:
		return floatText(t, s)
	case OIDNumeric:
		return numericText(t, s)
	case OIDBytea:
		return byteaText(s)
	case OIDUUID:
		return uuidText(s)
	case OIDDate:
		return dateText(s)
	case OIDTimestamp, OIDTimestamptz:
		return timestampText(t, s)
	case OIDTime:
		return strings.TrimSpace(s), nil
	case OIDInterval:
		return intervalText(s)
	case OIDVarchar, OIDBpchar:
		return charText(t, s), nil
	case OIDName:
		return truncateName(s), nil
	case OIDInt2Vector, OIDOidVector:
		return "[" + strings.Join(strings.Fields(s), ", ") + "]", nil
	}
	return s, nil
}

func badInput(t Type, s string) error {
	return pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", t.Name(), s)
}

func boolText(s string) (string, error) {
	v := strings.ToLower(strings.TrimSpace(s))
	if v == "" {
		return "", badInput(plain(OIDBool), s)
	}
	for _, w := range []string{"true", "yes", "on", "1"} {
		if strings.HasPrefix(w, v) && v != "o" {
			return "true", nil
		}
	}
	for _, w := range []string{"false", "no", "off", "0"} {
		if strings.HasPrefix(w, v) && v != "o" {
			return "false", nil
		}
	}
	return "", badInput(plain(OIDBool), s)
}

func intText(s string, bits int, name string) (string, error) {
	v := strings.TrimSpace(s)
	n, err := strconv.ParseInt(v, 10, bits)
	if err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	digits := strings.TrimLeft(v, "+-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		return "", pgerr.New(codes.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", v, name)
	}
	return "", pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", name, s)
}

func oidText(t Type, s string) (string, error) {
	v := strings.TrimSpace(s)
	if _, err := strconv.ParseUint(v, 10, 32); err != nil {
		return "", badInput(t, s)
	}
	return v, nil
}

func floatText(t Type, s string) (string, error) {
	v := strings.TrimSpace(s)
	bits := 64
	if t.OID == OIDFloat4 {
		bits = 32
	}
	f, err := strconv.ParseFloat(v, bits)
	if err != nil && math.IsInf(f, 0) {
		return "", pgerr.New(codes.NumericValueOutOfRange, "\"%s\" is out of range for type %s", v, t.Name())
	}
	if err != nil || strings.ContainsAny(v, "xX_") {
		return "", badInput(t, s)
	}
	return v, nil
}

// numericText checks the syntax; the value's own digits stay.
func numericText(t Type, s string) (string, error) {
	v := strings.TrimSpace(s)
	switch strings.ToLower(strings.TrimLeft(v, "+-")) {
	case "nan", "inf", "infinity":
		return "", unsupported("numeric value \"%s\" is not supported in expressions", v)
	}
	if _, err := strconv.ParseFloat(v, 64); err != nil && !strings.Contains(err.Error(), "range") ||
		v == "" || strings.ContainsAny(v, "xXpP_") {
		return "", badInput(t, s)
	}
	return v, nil
}

func byteaText(s string) (string, error) {
	var raw []byte
	if strings.HasPrefix(s, `\x`) {
		b, err := hex.DecodeString(strings.Join(strings.Fields(s[2:]), ""))
		if err != nil {
			return "", pgerr.New(codes.InvalidTextRepresentation, "invalid hexadecimal data: odd number of digits or bad digit")
		}
		raw = b
	} else {
		for i := 0; i < len(s); i++ {
			switch {
			case s[i] != '\\':
				raw = append(raw, s[i])
			case i+1 < len(s) && s[i+1] == '\\':
				raw = append(raw, '\\')
				i++
			case i+3 < len(s) && octal(s[i+1:i+4]) >= 0:
				raw = append(raw, byte(octal(s[i+1:i+4])))
				i += 3
			default:
				return "", pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type bytea")
			}
		}
	}
	var b strings.Builder
	for _, c := range raw {
		fmt.Fprintf(&b, `\x%02X`, c)
	}
	return b.String(), nil
}

func octal(s string) int {
	n, err := strconv.ParseUint(s, 8, 8)
	if err != nil {
		return -1
	}
	return int(n)
}

func uuidText(s string) (string, error) {
	v := strings.ToLower(strings.Trim(strings.TrimSpace(s), "{}"))
	v = strings.ReplaceAll(v, "-", "")
	if len(v) != 32 || strings.Trim(v, "0123456789abcdef") != "" {
		return "", badInput(plain(OIDUUID), s)
	}
	return v[:8] + "-" + v[8:12] + "-" + v[12:16] + "-" + v[16:20] + "-" + v[20:], nil
}

// dateText accepts ISO dates, also with a time of day, which a date drops.
func dateText(s string) (string, error) {
	v := strings.TrimSpace(s)
	switch strings.ToLower(v) {
	case "epoch":
		return "1970-01-01", nil
	case "infinity", "-infinity":
		return strings.ToLower(v), nil
	}
	y, m, d, rest, ok := isoDate(v)
	if !ok {
		return "", dateProblem(plain(OIDDate), v)
	}
	if !validDate(y, m, d) {
		return "", pgerr.New(codes.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", v)
	}
	if rest != "" && rest[0] != ' ' && rest[0] != 'T' {
		return "", dateProblem(plain(OIDDate), v)
	}
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d), nil
}

func dateProblem(t Type, v string) error {
	switch strings.ToLower(v) {
	case "today", "now", "tomorrow", "yesterday":
		return unsupported("date/time input \"%s\" is not supported", v).WithHint("Use current_date or now().")
	}
	if strings.ContainsAny(v, "/.") || strings.ContainsAny(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSUVWXYZ") && strings.ContainsAny(v, "0123456789") {
		return unsupported("date/time input \"%s\" is not supported", v).WithHint("Write dates as YYYY-MM-DD.")
	}
	return pgerr.New(codes.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", t.Name(), v)
}

func isoDate(v string) (y, m, d int, rest string, ok bool) {
	head, rest := v, ""
	if i := strings.IndexAny(v, " T"); i >= 0 {
		head, rest = v[:i], v[i:]
	}
	p := strings.Split(head, "-")
	if len(p) == 1 && len(head) == 8 && strings.Trim(head, "0123456789") == "" {
		p = []string{head[:4], head[4:6], head[6:]}
	}
	if len(p) != 3 || len(p[0]) < 4 {
		return 0, 0, 0, "", false
	}
	var n [3]int
	for i := range p {
		x, err := strconv.Atoi(p[i])
		if err != nil || x < 0 {
			return 0, 0, 0, "", false
		}
		n[i] = x
	}
	return n[0], n[1], n[2], rest, true
}

func validDate(y, m, d int) bool {
	if m < 1 || m > 12 || d < 1 {
		return false
	}
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[m-1]
	if m == 2 && (y%4 == 0 && y%100 != 0 || y%400 == 0) {
		days = 29
	}
	return d <= days
}

func timestampText(t Type, s string) (string, error) {
	v := strings.TrimSpace(s)
	switch strings.ToLower(v) {
	case "epoch":
		if t.OID == OIDTimestamptz {
			return "1970-01-01 00:00:00+00", nil
		}
		return "1970-01-01 00:00:00", nil
	case "infinity", "-infinity":
		return strings.ToLower(v), nil
	}
	y, m, d, rest, ok := isoDate(v)
	if !ok {
		return "", dateProblem(t, v)
	}
	if !validDate(y, m, d) {
		return "", pgerr.New(codes.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", v)
	}
	clock, zone, ok := clockText(strings.TrimLeft(rest, " T"))
	if !ok {
		return "", dateProblem(t, v)
	}
	if t.OID == OIDTimestamp {
		zone = "" // PostgreSQL ignores it
	}
	return fmt.Sprintf("%04d-%02d-%02d %s%s", y, m, d, clock, zone), nil
}

// clockText normalises "HH:MM[:SS[.f]][ zone]" to what the engine reads.
func clockText(s string) (clock, zone string, ok bool) {
	if s == "" {
		return "00:00:00", "", true
	}
	end := 0
	for end < len(s) && strings.IndexByte("0123456789:.", s[end]) >= 0 {
		end++
	}
	clock, zone = s[:end], strings.TrimSpace(s[end:])
	p := strings.Split(clock, ":")
	switch len(p) {
	case 1:
		if len(p[0]) > 2 {
			return "", "", false
		}
		clock = p[0] + ":00:00"
	case 2:
		clock += ":00"
	case 3:
	default:
		return "", "", false
	}
	if p[0] == "" || len(p[0]) > 2 {
		return "", "", false
	}
	if len(p[0]) == 1 {
		clock = "0" + clock
	}
	switch strings.ToUpper(zone) {
	case "Z", "UTC", "GMT":
		zone = "+00"
	}
	if zone != "" && zone[0] != '+' && zone[0] != '-' {
		if !strings.Contains(zone, "/") {
			return "", "", false
		}
		zone = " " + zone
	}
	return clock, zone, true
}

// intervalText passes the traditional form, which the engine reads too, and
// refuses the others.
func intervalText(s string) (string, error) {
	v := strings.TrimSpace(s)
	if v == "" {
		return "", pgerr.New(codes.InvalidDatetimeFormat, "invalid input syntax for type interval: \"%s\"", s)
	}
	if v[0] == 'P' || v[0] == 'p' {
		return isoInterval(v)
	}
	if strings.HasPrefix(v, "@") {
		v = strings.TrimSpace(v[1:])
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return strconv.FormatFloat(n, 'f', -1, 64) + " seconds", nil
	}
	return v, nil
}

func isoInterval(v string) (string, error) {
	var out []string
	num, clock := "", false
	units := map[bool]map[byte]string{
		false: {'Y': "years", 'M': "months", 'W': "weeks", 'D': "days"},
		true:  {'H': "hours", 'M': "minutes", 'S': "seconds"},
	}
	for i := 1; i < len(v); i++ {
		c := v[i]
		switch {
		case c == 'T':
			clock = true
		case strings.IndexByte("0123456789.-+", c) >= 0:
			num += string(c)
		case units[clock][c] != "" && num != "":
			out = append(out, num+" "+units[clock][c])
			num = ""
		default:
			return "", pgerr.New(codes.InvalidDatetimeFormat, "invalid input syntax for type interval: \"%s\"", v)
		}
	}
	if num != "" || len(out) == 0 {
		return "", pgerr.New(codes.InvalidDatetimeFormat, "invalid input syntax for type interval: \"%s\"", v)
	}
	return strings.Join(out, " "), nil
}

// charText applies the length of varchar(n) and char(n) as an explicit cast does.
func charText(t Type, s string) string {
	if t.Mod < 4 {
		return s
	}
	n := int(t.Mod - 4)
	r := []rune(s)
	if len(r) > n {
		return string(r[:n])
	}
	if t.OID == OIDBpchar {
		return s + strings.Repeat(" ", n-len(r))
	}
	return s
}

func truncateName(s string) string {
	const nameBytes = 63
	if len(s) <= nameBytes {
		return s
	}
	return strings.ToValidUTF8(s[:nameBytes], "")
}

// engineArray turns '{1,NULL,"a b"}' into the engine's list literal.
func engineArray(t Type, elem uint32, s string) (string, error) {
	items, err := parseArray(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, it := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		if it == nil {
			b.WriteString("NULL")
			continue
		}
		v, err := EngineText(Type{elem, t.Mod}, *it)
		if err != nil {
			return "", err
		}
		b.WriteString(quoteListItem(v))
	}
	b.WriteByte(']')
	return b.String(), nil
}

func quoteListItem(v string) string {
	r := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	return "'" + r.Replace(v) + "'"
}

// parseArray reads a one-dimensional array literal; nil items are NULL.
func parseArray(s string) ([]*string, error) {
	bad := func(detail string) error {
		return pgerr.New(codes.InvalidTextRepresentation, "malformed array literal: \"%s\"", s).WithDetail("%s", detail)
	}
	v := strings.TrimSpace(s)
	if len(v) < 2 || v[0] != '{' {
		return nil, bad("Array value must start with \"{\" or dimension information.")
	}
	if v[len(v)-1] != '}' {
		return nil, bad("Unexpected end of input.")
	}
	v = v[1 : len(v)-1]
	var out []*string
	if strings.TrimSpace(v) == "" {
		return out, nil
	}
	for i := 0; ; i++ {
		item, next, err := arrayItem(v, i)
		if err != "" {
			if strings.HasPrefix(err, "!") {
				return nil, unsupported("%s", err[1:])
			}
			return nil, bad(err)
		}
		out = append(out, item)
		i = next
		if i >= len(v) {
			return out, nil
		}
		if v[i] != ',' {
			return nil, bad("Unexpected array element.")
		}
	}
}

// arrayItem reads the item that starts at v[i] and returns where it ended.
func arrayItem(v string, i int) (item *string, next int, problem string) {
	for i < len(v) && v[i] == ' ' {
		i++
	}
	if i >= len(v) {
		return nil, i, `Unexpected "}" character.`
	}
	var b strings.Builder
	if v[i] == '"' {
		for i++; i < len(v) && v[i] != '"'; i++ {
			if v[i] == '\\' && i+1 < len(v) {
				i++
			}
			b.WriteByte(v[i])
		}
		if i >= len(v) {
			return nil, i, "Unexpected end of input."
		}
		for i++; i < len(v) && v[i] == ' '; i++ {
		}
		s := b.String()
		return &s, i, ""
	}
	if v[i] == '{' {
		return nil, i, "!multi-dimensional arrays are not supported"
	}
	for ; i < len(v) && v[i] != ','; i++ {
		switch v[i] {
		case '\\':
			i++
			if i >= len(v) {
				return nil, i, "Unexpected end of input."
			}
		case '"', '{', '}':
			return nil, i, "Unexpected array element."
		}
		b.WriteByte(v[i])
	}
	s := strings.TrimRight(b.String(), " ")
	if s == "" {
		return nil, i, `Unexpected "," character.`
	}
	if strings.EqualFold(s, "null") {
		return nil, i, ""
	}
	return &s, i, ""
}

// quote renders a string literal of the engine.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ident renders a quoted identifier of the engine.
func ident(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
