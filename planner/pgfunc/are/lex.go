package are

// kind is a token's.
type kind uint8

const (
	tokEnd     kind = iota
	tokPlain        // value: the character
	tokClass        // value: d, s, w; not: its complement
	tokBackRef      // value: the number
	tokOpen         // value: 1 when it captures
	tokLook         // value: look…
	tokClose
	tokOr
	tokQuant // value: the character, or { of a bound; less: it prefers less
	tokAny
	tokBracket
	tokAssert // value: assert…
)

type token struct {
	kind  kind
	value rune
	not   bool
	less  bool
	m, n  int // of a bound
	fixed bool
}

// unbounded is the count of a repetition without an upper bound.
const unbounded = -1

// countMost is the largest count in a bound.
const countMost = 255

type lexer struct {
	in       []rune
	at       int
	advanced bool // not an extended expression, which has no escapes
	expanded bool
	fold     bool
	lines    bool // . and [^…] take no newline
	anchors  bool // ^ and $ match at lines
	groups   int  // that were opened
}

// options reads letters of options.
func (l *lexer) options(letters []rune, embedded bool) (literal bool, err error) {
	for _, c := range letters {
		switch c {
		case 'b':
			return false, ErrBasic
		case 'c':
			l.fold = false
		case 'e':
			l.advanced = false
		case 'i':
			l.fold = true
		case 'm', 'n':
			l.lines, l.anchors = true, true
		case 'p':
			l.lines, l.anchors = true, false
		case 'q':
			literal = true
		case 's':
			l.lines, l.anchors = false, false
		case 't':
			l.expanded = false
		case 'w':
			l.lines, l.anchors = false, true
		case 'x':
			l.expanded = true
		default:
			if embedded {
				return false, ErrOption
			}
			return false, OptionError(c)
		}
	}
	return literal, nil
}

func (l *lexer) has(s string) bool {
	i := l.at
	for _, c := range s {
		if i >= len(l.in) || l.in[i] != c {
			return false
		}
		i++
	}
	return true
}

// skip passes over blanks and comments of an expanded expression.
func (l *lexer) skip() {
	for l.expanded {
		for l.at < len(l.in) && isSpace(l.in[l.at]) {
			l.at++
		}
		if l.at == len(l.in) || l.in[l.at] != '#' {
			return
		}
		for l.at < len(l.in) && l.in[l.at] != '\n' {
			l.at++
		}
	}
}

func (l *lexer) next() (token, error) {
	l.skip()
	if l.at == len(l.in) {
		return token{kind: tokEnd}, nil
	}
	c := l.in[l.at]
	l.at++
	switch c {
	case '|':
		return token{kind: tokOr}, nil
	case '*':
		return l.quantifier(token{kind: tokQuant, value: c, n: unbounded}), nil
	case '+':
		return l.quantifier(token{kind: tokQuant, value: c, m: 1, n: unbounded}), nil
	case '?':
		return l.quantifier(token{kind: tokQuant, value: c, n: 1}), nil
	case '{':
		if l.skip(); l.at == len(l.in) || l.in[l.at] < '0' || l.in[l.at] > '9' {
			return token{kind: tokPlain, value: c}, nil
		}
		return l.bound()
	case '(':
		return l.open()
	case ')':
		return token{kind: tokClose, value: c}, nil
	case '[':
		if l.has("[:<:]]") || l.has("[:>:]]") {
			l.at += len("[:<:]]")
			return token{kind: tokAssert, value: map[rune]rune{'<': assertWordStart, '>': assertWordEnd}[l.in[l.at-4]]}, nil
		}
		return token{kind: tokBracket}, nil
	case '.':
		return token{kind: tokAny}, nil
	case '^':
		return token{kind: tokAssert, value: assertLineStart}, nil
	case '$':
		return token{kind: tokAssert, value: assertLineEnd}, nil
	case '\\':
		return l.escape()
	}
	return token{kind: tokPlain, value: c}, nil
}

func (l *lexer) quantifier(t token) token {
	if l.advanced && l.at < len(l.in) && l.in[l.at] == '?' {
		l.at++
		t.less = true
	}
	return t
}

// bound reads what follows {.
func (l *lexer) bound() (token, error) {
	t := token{kind: tokQuant, value: '{', fixed: true}
	var err error
	if t.m, err = l.count(); err != nil {
		return t, err
	}
	t.n = t.m
	if l.skip(); l.at < len(l.in) && l.in[l.at] == ',' {
		l.at++
		l.skip()
		t.fixed, t.n = false, unbounded
		if l.at < len(l.in) && l.in[l.at] >= '0' && l.in[l.at] <= '9' {
			if t.n, err = l.count(); err != nil {
				return t, err
			}
			if t.n < t.m {
				return t, ErrCount
			}
		}
	}
	switch l.skip(); {
	case l.at == len(l.in):
		return t, ErrBraces
	case l.in[l.at] != '}':
		return t, ErrCount
	}
	l.at++
	return l.quantifier(t), nil
}

func (l *lexer) count() (int, error) {
	n := 0
	for l.at < len(l.in) && l.in[l.at] >= '0' && l.in[l.at] <= '9' {
		if n = n*10 + int(l.in[l.at]-'0'); n > countMost {
			return 0, ErrCount
		}
		l.at++
		l.skip()
	}
	return n, nil
}

func (l *lexer) open() (token, error) {
	if !l.advanced || l.at == len(l.in) || l.in[l.at] != '?' {
		l.groups++
		return token{kind: tokOpen, value: 1}, nil
	}
	for _, o := range []struct {
		text string
		tok  token
	}{
		{"?:", token{kind: tokOpen}},
		{"?=", token{kind: tokLook, value: lookAhead}},
		{"?!", token{kind: tokLook, value: lookAhead, not: true}},
		{"?<=", token{kind: tokLook, value: lookBehind}},
		{"?<!", token{kind: tokLook, value: lookBehind, not: true}},
	} {
		if l.has(o.text) {
			l.at += len(o.text)
			return o.tok, nil
		}
	}
	if !l.has("?#") {
		return token{}, ErrOperand
	}
	for l.at < len(l.in) && l.in[l.at] != ')' {
		l.at++
	}
	l.at = min(l.at+1, len(l.in))
	return l.next()
}

func isAlnum(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

var plainEscapes = map[rune]rune{'a': 7, 'b': '\b', 'B': '\\', 'e': 27, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

var assertEscapes = map[rune]rune{
	'A': assertStart, 'Z': assertEnd, 'm': assertWordStart, 'M': assertWordEnd, 'y': assertWordEdge, 'Y': assertNoWordEdge,
}

// escape reads what follows a backslash.
func (l *lexer) escape() (token, error) {
	if l.at == len(l.in) {
		return token{}, ErrEscape
	}
	c := l.in[l.at]
	l.at++
	if !l.advanced || !isAlnum(c) {
		return token{kind: tokPlain, value: c}, nil
	}
	if r, ok := plainEscapes[c]; ok {
		return token{kind: tokPlain, value: r}, nil
	}
	if a, ok := assertEscapes[c]; ok {
		return token{kind: tokAssert, value: a}, nil
	}
	switch c {
	case 'd', 's', 'w':
		return token{kind: tokClass, value: c}, nil
	case 'D', 'S', 'W':
		return token{kind: tokClass, value: c | 0x20, not: true}, nil
	case 'c':
		if l.at == len(l.in) {
			return token{}, ErrEscape
		}
		l.at++
		return token{kind: tokPlain, value: l.in[l.at-1] & 0o37}, nil
	case 'u':
		return l.code(16, 4, 4)
	case 'U':
		return l.code(16, 8, 8)
	case 'x':
		return l.code(16, 1, 255)
	case '0':
		return l.octal()
	}
	if c > '9' {
		return token{}, ErrEscape
	}
	save := l.at
	l.at--
	t, err := l.code(10, 1, 255)
	if err != nil {
		return t, err
	}
	if l.at == save || t.value > 0 && int(t.value) <= l.groups {
		t.kind = tokBackRef
		return t, nil
	}
	l.at = save
	return l.octal()
}

// octal reads up to three octal digits, from the one before.
func (l *lexer) octal() (token, error) {
	l.at--
	t, err := l.code(8, 1, 3)
	if t.value > 0xff {
		l.at--
		t.value >>= 3
	}
	return t, err
}

// code reads the number of a character.
func (l *lexer) code(base uint32, least, most int) (token, error) {
	var n uint32
	digits := 0
	for ; digits < most && l.at < len(l.in); digits++ {
		d := digit(l.in[l.at])
		if d >= base {
			break
		}
		n = n*base + d
		l.at++
	}
	const largest = 0x7ffffffe
	if digits < least || n > largest {
		return token{}, ErrEscape
	}
	return token{kind: tokPlain, value: rune(n)}, nil
}

func digit(c rune) uint32 {
	switch {
	case c >= '0' && c <= '9':
		return uint32(c - '0')
	case c >= 'a' && c <= 'f':
		return uint32(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return uint32(c-'A') + 10
	}
	return 99
}
