package encode

import "slices"

// quoting says how a value is put between quotes: before a and b stand their
// prefixes.
type quoting struct {
	quote            byte
	a, b             byte
	prefixA, prefixB byte
}

var (
	arrayQuoting  = quoting{quote: '"', a: '"', prefixA: '\\', b: '\\', prefixB: '\\'}
	recordQuoting = quoting{quote: '"', a: '"', prefixA: '"', b: '\\', prefixB: '\\'}
)

// wrap quotes dst[at:] in place.
func (q quoting) wrap(dst []byte, at int) []byte {
	extra := 2
	for _, c := range dst[at:] {
		if c == q.a || c == q.b {
			extra++
		}
	}
	r := len(dst) - 1
	dst = slices.Grow(dst, extra)[:len(dst)+extra]
	w := len(dst) - 1
	dst[w] = q.quote
	for w--; r >= at; r-- {
		c := dst[r]
		dst[w] = c
		w--
		switch c {
		case q.a:
			dst[w] = q.prefixA
			w--
		case q.b:
			dst[w] = q.prefixB
			w--
		}
	}
	dst[w] = q.quote
	return dst
}

// escapeTable maps a byte to the letter that follows the backslash, 0 for bytes
// that stand for themselves.
type escapeTable [256]byte

func makeEscapeTable(delimiter byte) (t escapeTable) {
	for c, letter := range map[byte]byte{
		'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v', '\\': '\\',
	} {
		t[c] = letter
	}
	if t[delimiter] == 0 {
		t[delimiter] = delimiter
	}
	return t
}

// escape escapes dst[at:] in place.
func (t *escapeTable) escape(dst []byte, at int) []byte {
	extra := 0
	for _, c := range dst[at:] {
		if t[c] != 0 {
			extra++
		}
	}
	if extra == 0 {
		return dst
	}
	r := len(dst) - 1
	dst = slices.Grow(dst, extra)[:len(dst)+extra]
	for w := len(dst) - 1; r >= at; r-- {
		c := dst[r]
		if e := t[c]; e != 0 {
			dst[w] = e
			dst[w-1] = '\\'
			w -= 2
			continue
		}
		dst[w] = c
		w--
	}
	return dst
}

// arrayNeedsQuotes reports whether array_out quotes an element with this text.
func arrayNeedsQuotes(b []byte, delimiter byte) bool {
	if len(b) == 0 || len(b) == 4 && isNullWord(b) {
		return true
	}
	for _, c := range b {
		switch c {
		case '"', '\\', '{', '}', ' ', '\t', '\n', '\r', '\v', '\f', delimiter:
			return true
		}
	}
	return false
}

func isNullWord(b []byte) bool {
	return len(b) == 4 && b[0]|0x20 == 'n' && b[1]|0x20 == 'u' && b[2]|0x20 == 'l' && b[3]|0x20 == 'l'
}

// recordNeedsQuotes reports whether record_out quotes a field with this text.
func recordNeedsQuotes(b []byte) bool {
	for _, c := range b {
		switch c {
		case '"', '\\', '(', ')', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			return true
		}
	}
	return len(b) == 0
}
