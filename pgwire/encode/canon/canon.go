// Package canon gives texts of types that are kept as text the form in which PostgreSQL writes
// them, so that equal values have equal texts: ranges, network addresses, money, geometry.
//
// What it does not read is ErrUnsupported, never taken as it is. Pure; safe for concurrent use.
package canon

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What is wrong with a text.
var (
	// ErrSyntax is of a text that is no value of the type.
	ErrSyntax = errors.New("invalid syntax")
	// ErrUnsupported is of a text that PostgreSQL may read, and we do not.
	ErrUnsupported = errors.New("not supported")
	// ErrOrder is of a range that ends before it begins.
	ErrOrder = errors.New("range lower bound must be less than or equal to range upper bound")
)

var (
	macForms = regexp.MustCompile(`^(?:(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|(?:[0-9a-f]{2}-){5}[0-9a-f]{2}|[0-9a-f]{6}[:-][0-9a-f]{6}|` +
		`[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}|[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}|[0-9a-f]{12})$`)
	mac8Forms = regexp.MustCompile(`^(?:(?:[0-9a-f]{2}:){7}[0-9a-f]{2}|(?:[0-9a-f]{2}-){7}[0-9a-f]{2}|[0-9a-f]{16})$`)
	notHex    = regexp.MustCompile(`[^0-9a-f]`)
	lsnForm   = regexp.MustCompile(`^([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})$`)
)

// MAC is a macaddr, or a macaddr8 when long.
func MAC(text string, long bool) (string, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if !long && !macForms.MatchString(s) || long && !mac8Forms.MatchString(s) {
		return "", ErrUnsupported
	}
	s = notHex.ReplaceAllString(s, "")
	var parts []string
	for ; s != ""; s = s[2:] {
		parts = append(parts, s[:2])
	}
	return strings.Join(parts, ":"), nil
}

// LSN is a pg_lsn.
func LSN(text string) (string, error) {
	m := lsnForm.FindStringSubmatch(text)
	if m == nil {
		return "", ErrSyntax
	}
	hi, err1 := strconv.ParseUint(m[1], 16, 32)
	lo, err2 := strconv.ParseUint(m[2], 16, 32)
	if err1 != nil || err2 != nil {
		return "", ErrSyntax
	}
	return fmt.Sprintf("%X/%X", hi, lo), nil
}

// Money is a number of cents as money.
func Money(cents int64) string {
	sign, u := "", uint64(cents)
	if cents < 0 {
		sign, u = "-", -u
	}
	digits := fmt.Sprintf("%03d", u)
	whole, rest := digits[:len(digits)-2], digits[len(digits)-2:]
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + "$" + whole + "." + rest
}

const number = `(-?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Infinity)|NaN)`

var (
	pair   = `\(` + number + `,` + number + `\)`
	shapes = map[uint32]*regexp.Regexp{
		600: regexp.MustCompile(`^` + pair + `$`),
		601: regexp.MustCompile(`^\[` + pair + `,` + pair + `\]$`),
		602: regexp.MustCompile(`^(?:\(` + pair + `(?:,` + pair + `)*\)|\[` + pair + `(?:,` + pair + `)*\])$`),
		603: regexp.MustCompile(`^` + pair + `,` + pair + `$`),
		604: regexp.MustCompile(`^\(` + pair + `(?:,` + pair + `)*\)$`),
		628: regexp.MustCompile(`^\{` + number + `,` + number + `,` + number + `\}$`),
		718: regexp.MustCompile(`^<` + pair + `,` + number + `>$`),
	}
	numbers = regexp.MustCompile(number)
)

// Shape is a geometric value, by its type's oid, in the very form in which PostgreSQL writes it;
// float is that of a number.
func Shape(oid uint32, text string, float func(string) (string, error)) (string, error) {
	if !shapes[oid].MatchString(text) {
		return "", ErrUnsupported
	}
	list := numbers.FindAllString(text, -1)
	for _, n := range list {
		if s, err := float(n); err != nil || s != n {
			return "", ErrUnsupported
		}
	}
	if oid == 603 { // the upper right corner is first
		var v [4]float64
		for i, n := range list {
			v[i], _ = strconv.ParseFloat(n, 64)
		}
		if !(v[0] >= v[2] && v[1] >= v[3]) {
			return "", ErrUnsupported
		}
	}
	return text, nil
}
