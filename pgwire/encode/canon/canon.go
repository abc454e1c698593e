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
