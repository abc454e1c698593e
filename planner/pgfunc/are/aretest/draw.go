// Package aretest draws expressions and texts for tests.
package aretest

import (
	"math/rand/v2"
	"strings"
)

// Draw draws of a source of chance.
type Draw struct{ *rand.Rand }

func (d Draw) of(s ...string) string { return s[d.IntN(len(s))] }

func (d Draw) atom(depth int) string {
	switch n := d.IntN(24); {
	case n < 9:
		return d.of("a", "b", "c", "ab")
	case n < 10:
		return "."
	case n < 11:
		return d.of("[ab]", "[^a]", `\w`, `\s`, `\d`, "[[:alpha:]]", `[^\w]`, `[a-c]`, `\W`, `[\W]`, "é", "[à-ü]")
	case n < 14 && depth > 0:
		return "(" + d.Expression(depth-1) + ")"
	case n < 16 && depth > 0:
		return "(?:" + d.Expression(depth-1) + ")"
	case n < 17 && depth > 0:
		return d.of("(?=", "(?!", "(?<=", "(?<!") + d.Expression(depth-1) + ")"
	case n < 19:
		return d.of(`\m`, `\M`, `\y`, `\Y`, "^", "$", `\A`, `\Z`, "[[:<:]]", "[[:>:]]")
	case n < 21:
		return d.of(`\1`, `\2`)
	}
	return d.of("a", "b", " ")
}

func (d Draw) quantifier() string {
	switch n := d.IntN(12); {
	case n < 6:
		return ""
	case n < 9:
		return d.of("*", "+", "?")
	case n < 10:
		return d.of("{2}", "{1,2}", "{0,1}", "{2,}", "{0}", "{1}", "{1,1}")
	}
	return d.of("*?", "+?", "??", "{1,2}?", "{2,}?", "{2}?")
}

func (d Draw) branch(depth int) string {
	var b strings.Builder
	for range d.IntN(4) + d.IntN(2) {
		b.WriteString(d.atom(depth) + d.quantifier())
	}
	return b.String()
}

// Expression draws an expression, which may be none: quantifiers stand anywhere.
func (d Draw) Expression(depth int) string {
	s := d.branch(depth)
	for d.IntN(4) == 0 {
		s += "|" + d.branch(depth)
	}
	return s
}

// Flags draws option letters.
func (d Draw) Flags() string { return d.of("", "", "", "i", "n", "p", "w", "x") }

// Text draws what is searched.
func (d Draw) Text() string {
	var b strings.Builder
	for range d.IntN(9) {
		b.WriteString(d.of("a", "b", "c", "a", "b", "ab", " ", "\n", "A", "1", "é"))
	}
	return b.String()
}
