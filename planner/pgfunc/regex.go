package pgfunc

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/are"
)

// pattern is a PostgreSQL regular expression. As long as Go's finds the same it is used, which is
// faster; for all else there is one that does as PostgreSQL.
type pattern struct {
	own *are.Regexp
	// Regexp is nil when the two would not find the same.
	*regexp.Regexp
	// nullable: it matches the empty text, and where does not depend on what is around.
	nullable, assertions bool
	// choices: it has alternatives of which PostgreSQL might choose others for its groups.
	choices bool
}

var patternCache cache[*pattern]

// compile makes the pattern of an expression and its flags; g is for the caller.
func compile(expr, flags string) (*pattern, error) {
	var failed error
	p, _ := patternCache.get(flags+"\x00"+expr, func() (*pattern, bool) {
		flags := strings.ReplaceAll(flags, "g", "")
		own, err := are.Compile(expr, flags)
		if err != nil {
			failed = regexError(err)
			return nil, false
		}
		p, err := translate(expr, flags)
		if err != nil {
			p = &pattern{}
		}
		p.own = own
		return p, true
	})
	if failed != nil {
		return nil, failed
	}
	return p, nil
}

// errOther is that an expression is none of Go's.
var errOther = errors.New("not an expression of Go")

// regexError is what the statement says of an expression.
func regexError(err error) error {
	switch {
	case errors.Is(err, are.ErrSteps):
		return pgerr.New(codes.ProgramLimitExceeded, "regular expression failed: %v", err).
			WithHint("Back references and many groups in a long text make a search try many ways.")
	case errors.Is(err, are.ErrBasic):
		return unsupported("%v", err)
	}
	var option are.OptionError
	if errors.As(err, &option) {
		return pgerr.New(codes.InvalidParameterValue, "%v", err)
	}
	return pgerr.New(codes.InvalidRegularExpression, "invalid regular expression: %v", err)
}

// translator reads a PostgreSQL advanced regular expression and writes one of Go.
type translator struct {
	in           string
	at           int
	out          strings.Builder
	fold         bool
	lines        bool // . and [^] do not match a newline
	anchors      bool // ^ and $ match at lines
	expanded     bool
	greedy, lazy bool
	assertions   bool
	alternatives bool
	choices      bool
	depth        int
	literals     []branch // of the open groups
}

// branch is what is known of the alternatives of a group.
type branch struct {
	done  []string // literal alternatives so far
	text  string   // of the current one
	plain bool     // which is literal so far
	mixed bool     // some alternative is not
}

// translate makes a pattern.
func translate(expr, flags string) (*pattern, error) {
	t := &translator{in: strings.Clone(expr)}
	if err := t.options(flags); err != nil {
		return nil, err
	}
	literal := strings.ContainsRune(flags, 'q')
	switch {
	case literal:
	case strings.HasPrefix(t.in, "***="):
		t.in, literal = t.in[4:], true
	case strings.HasPrefix(t.in, "***:"):
		t.in = t.in[4:]
	case strings.HasPrefix(t.in, "***"):
		return nil, errOther
	}
	if !literal && strings.HasPrefix(t.in, "(?") {
		if end := strings.IndexByte(t.in, ')'); end > 2 && strings.Trim(t.in[2:end], "abcdefghijklmnopqrstuvwxyz") == "" {
			if err := t.options(t.in[2:end]); err != nil {
				return nil, err
			}
			t.in = t.in[end+1:]
		}
	}
	if literal {
		t.out.WriteString(regexp.QuoteMeta(t.in))
	} else if err := t.all(); err != nil {
		return nil, err
	}
	prefix := "(?"
	if t.fold {
		prefix += "i"
	}
	if t.anchors {
		prefix += "m"
	}
	if !t.lines {
		prefix += "s"
	}
	if prefix += ")"; prefix == "(?)" {
		prefix = ""
	}
	re, err := regexp.Compile(prefix + t.out.String())
	if err != nil {
		return nil, errOther
	}
	if !t.lazy {
		re.Longest()
	}
	return &pattern{
		Regexp: re, assertions: t.assertions, choices: t.choices, nullable: re.MatchString(""),
	}, nil
}

func (t *translator) options(flags string) error {
	for _, c := range flags {
		switch c {
		case 'c':
			t.fold = false
		case 'i':
			t.fold = true
		case 'n', 'm':
			t.lines, t.anchors = true, true
		case 'p':
			t.lines, t.anchors = true, false
		case 'w':
			t.lines, t.anchors = false, true
		case 's':
			t.lines, t.anchors = false, false
		case 'q':
		case 't':
			t.expanded = false
		case 'x':
			t.expanded = true
		default:
			return errOther
		}
	}
	return nil
}

func (t *translator) all() error {
	t.open()
	start := true // nothing to repeat yet
	for t.at < len(t.in) {
		c := t.in[t.at]
		if t.expanded && strings.IndexByte(" \t\n\v\f\r", c) >= 0 {
			t.at++
			continue
		}
		if t.expanded && c == '#' {
			for t.at < len(t.in) && t.in[t.at] != '\n' {
				t.at++
			}
			continue
		}
		var err error
		if start, err = t.item(c, start); err != nil {
			return err
		}
	}
	if t.depth > 0 {
		return errOther
	}
	t.close()
	switch {
	case t.greedy && t.lazy:
		return errOther
	case t.lazy && t.alternatives:
		return errOther
	}
	return nil
}

func (t *translator) open() { t.literals = append(t.literals, branch{plain: true}) }

func (t *translator) top() *branch { return &t.literals[len(t.literals)-1] }

// endBranch ends an alternative.
func (t *translator) endBranch() {
	b := t.top()
	if !b.plain {
		b.mixed = true
	}
	for _, before := range b.done {
		if strings.HasPrefix(b.text, before) {
			t.choices = true // the shorter one comes first
		}
	}
	b.done = append(b.done, b.text)
	b.text, b.plain = "", true
}

func (t *translator) close() {
	t.endBranch()
	if b := t.top(); b.mixed && len(b.done) > 1 {
		t.choices = true
	}
	t.literals = t.literals[:len(t.literals)-1]
	if len(t.literals) > 0 {
		t.top().plain = false
	}
}

func (t *translator) item(c byte, start bool) (bool, error) {
	switch c {
	case '(':
		return t.group()
	case ')':
		if t.depth == 0 {
			return false, errOther
		}
		t.depth--
		t.close()
		t.take(1)
		return false, nil
	case '|':
		t.alternatives = true
		t.endBranch()
		t.take(1)
		return true, nil
	case '*', '+', '?':
		return t.quantifier(start, 1)
	case '{':
		if t.at+1 < len(t.in) && t.in[t.at+1] >= '0' && t.in[t.at+1] <= '9' {
			return t.bound(start)
		}
		t.literal('{', 1)
		return false, nil
	case '^', '$':
		t.assertions = true
		t.top().plain = false
		t.take(1)
		return c == '^', nil
	case '.':
		t.top().plain = false
		t.take(1)
		return false, nil
	case '[':
		t.top().plain = false
		return false, t.bracket()
	case '\\':
		return false, t.escape()
	}
	r, n := utf8.DecodeRuneInString(t.in[t.at:])
	t.literal(r, n)
	return false, nil
}

func (t *translator) take(n int) {
	t.out.WriteString(t.in[t.at : t.at+n])
	t.at += n
}

func (t *translator) literal(r rune, n int) {
	t.out.WriteString(regexp.QuoteMeta(string(r)))
	t.top().text += string(r)
	t.at += n
}

func (t *translator) group() (bool, error) {
	rest := t.in[t.at:]
	switch {
	case strings.HasPrefix(rest, "(?:"):
		t.take(3)
	case strings.HasPrefix(rest, "(?#"):
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return false, errOther
		}
		t.at += end + 1
		return true, nil
	case strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!") || strings.HasPrefix(rest, "(?<"):
		return false, errOther
	case strings.HasPrefix(rest, "(?"):
		return false, errOther
	default:
		t.take(1)
	}
	t.depth++
	t.open()
	return true, nil
}

// quantifier takes one of n bytes, and the ? that makes it prefer less.
func (t *translator) quantifier(start bool, n int) (bool, error) {
	if start {
		return false, errOther
	}
	t.top().plain = false
	if t.in[t.at-1] == ')' { // which turn is a group's, PostgreSQL decides otherwise
		t.choices = true
	}
	text := t.in[t.at : t.at+n]
	t.at += n
	fixed := text[0] == '{' && !strings.Contains(text, ",")
	if t.at < len(t.in) && t.in[t.at] == '?' {
		t.at++
		text += "?"
		t.lazy = t.lazy || !fixed
	} else {
		t.greedy = t.greedy || !fixed
	}
	if t.at < len(t.in) && strings.IndexByte("*+?", t.in[t.at]) >= 0 {
		return false, errOther
	}
	t.out.WriteString(text)
	return false, nil
}

func (t *translator) bound(start bool) (bool, error) {
	end := strings.IndexByte(t.in[t.at:], '}')
	if end < 0 {
		return false, errOther
	}
	var lo, hi int
	body := t.in[t.at+1 : t.at+end]
	low, high, two := strings.Cut(body, ",")
	if _, err := fmt.Sscanf(low, "%d", &lo); err != nil || strings.Trim(body, "0123456789,") != "" {
		return false, errOther
	}
	const most = 255
	hi = lo
	if two && high != "" {
		_, _ = fmt.Sscanf(high, "%d", &hi) // digits only
	}
	if lo > most || hi > most || hi < lo {
		return false, errOther
	}
	return t.quantifier(start, end+1)
}

// classes are the class escapes, of which \s has one more blank than Go's.
var classes = map[byte]string{'d': `0-9`, 's': spaces, 'w': words}

// spaces are the blanks of the C library in C.UTF-8.
const spaces = `\t\n\v\f\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}`

// alphabetic are letters of all scripts, with the vowel signs, alphanumeric digits, too.
var (
	alphabetic   = `\pL\p{Nl}` + rangesOf(unicode.Other_Alphabetic, 0) + rangesOf(unicode.Nd, unicode.MaxASCII)
	alphanumeric = `\pL\p{Nd}\p{Nl}` + rangesOf(unicode.Other_Alphabetic, 0)
	words        = alphanumeric + "_"
)

// rangesOf writes a table, what is above a character, as members of a bracket expression.
func rangesOf(t *unicode.RangeTable, above uint32) string {
	var b strings.Builder
	write := func(lo, hi, stride uint32) {
		if lo <= above {
			return
		}
		if stride == 1 && hi > lo {
			fmt.Fprintf(&b, `\x{%x}-\x{%x}`, lo, hi)
			return
		}
		for c := lo; c <= hi; c += stride {
			fmt.Fprintf(&b, `\x{%x}`, c)
		}
	}
	for _, r := range t.R16 {
		write(uint32(r.Lo), uint32(r.Hi), uint32(r.Stride))
	}
	for _, r := range t.R32 {
		write(r.Lo, r.Hi, r.Stride)
	}
	return b.String()
}

var controls = map[byte]rune{'a': 7, 'b': 8, 'B': '\\', 'e': 27, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '0': 0}

func (t *translator) escape() error {
	if t.at+1 == len(t.in) {
		return errOther
	}
	c := t.in[t.at+1]
	low := c | 0x20
	switch {
	case c == 'A' || c == 'Z':
		t.assertions, t.top().plain = true, false
		t.out.WriteString(map[byte]string{'A': `\A`, 'Z': `\z`}[c])
		t.at += 2
		return nil
	case c == 'm' || c == 'M' || c == 'y' || c == 'Y':
		return errOther
	case c >= '1' && c <= '9':
		return errOther
	case classes[low] != "" && (low == 'd' || low == 's' || low == 'w'):
		t.top().plain = false
		not := ""
		if c != low {
			not = "^"
		}
		t.out.WriteString("[" + not + classes[low] + "]")
		t.at += 2
		return nil
	}
	r, n, err := t.character()
	if err != nil {
		return err
	}
	t.literal(r, n)
	return nil
}

// character is the character that an escape stands for, and the escape's length.
func (t *translator) character() (rune, int, error) {
	c := t.in[t.at+1]
	if r, ok := controls[c]; ok {
		return r, 2, nil
	}
	digits := map[byte]int{'u': 4, 'U': 8, 'x': 6}[c]
	if digits > 0 {
		var r rune
		n := 2
		for ; n < 2+digits && t.at+n < len(t.in); n++ {
			d := strings.IndexByte("0123456789abcdef", t.in[t.at+n]|0x20)
			if d < 0 || t.in[t.at+n] < '0' {
				break
			}
			r = r<<4 | rune(d)
		}
		if n == 2 || c != 'x' && n != 2+digits || !utf8.ValidRune(r) {
			return 0, 0, errOther
		}
		return r, n, nil
	}
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		return 0, 0, errOther
	}
	r, n := utf8.DecodeRuneInString(t.in[t.at+1:])
	return r, n + 1, nil
}

func (t *translator) bracket() error {
	rest := t.in[t.at:]
	if strings.HasPrefix(rest, "[[:<:]]") || strings.HasPrefix(rest, "[[:>:]]") {
		return errOther
	}
	t.at++
	var b strings.Builder
	b.WriteByte('[')
	not := t.at < len(t.in) && t.in[t.at] == '^'
	if not {
		b.WriteByte('^')
		t.at++
		if t.lines {
			b.WriteString(`\n`)
		}
	}
	for first := true; ; first = false {
		if t.at >= len(t.in) {
			return errOther
		}
		c := t.in[t.at]
		if c == ']' && !first {
			t.at++
			break
		}
		if err := t.member(&b, c); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	t.out.WriteString(b.String())
	return nil
}

// member reads one member of a bracket expression.
func (t *translator) member(b *strings.Builder, c byte) error {
	rest := t.in[t.at:]
	switch {
	case strings.HasPrefix(rest, "[:"):
		end := strings.Index(rest, ":]")
		if end < 0 {
			return errOther
		}
		class, ok := posixClasses[rest[2:end]]
		if !ok || t.fold && rest[2:end] == "upper" {
			return errOther
		}
		b.WriteString(class)
		t.at += end + 2
		return nil
	case strings.HasPrefix(rest, "[.") || strings.HasPrefix(rest, "[="):
		return errOther
	case c == '\\':
		if t.at+1 == len(t.in) {
			return errOther
		}
		if class := classes[t.in[t.at+1]]; class != "" {
			b.WriteString(class)
			t.at += 2
			return nil
		}
		if strings.IndexByte("DSW", t.in[t.at+1]) >= 0 {
			return errOther
		}
		r, n, err := t.character()
		if err != nil {
			return err
		}
		b.WriteString(quoteClass(r))
		t.at += n
		return nil
	case c == '-':
		b.WriteString(rangeOrMinus(t.in, t.at))
		t.at++
		return nil
	}
	r, n := utf8.DecodeRuneInString(rest)
	b.WriteString(quoteClass(r))
	t.at += n
	return nil
}

// rangeOrMinus is a minus in brackets: between two members it makes a range.
func rangeOrMinus(in string, at int) string {
	before := in[at-1] == '[' || in[at-1] == '^' && in[at-2] == '['
	after := at+1 < len(in) && in[at+1] == ']'
	if before || after {
		return `\-`
	}
	return "-"
}

func quoteClass(r rune) string {
	if strings.ContainsRune(`\]^-[`, r) {
		return `\` + string(r)
	}
	return string(r)
}

// posixClasses are the classes that Go's expressions have, too.
var posixClasses = map[string]string{
	"alpha": alphabetic, "alnum": alphanumeric, "upper": `\p{Lu}\p{Lt}` + rangesOf(unicode.Other_Uppercase, 0),
	"digit": `0-9`, "space": spaces, "blank": ` \t`, "xdigit": `0-9A-Fa-f`, "word": words, "ascii": `\x00-\x7f`,
}

// RegexSource is the engine's regular expression that matches what one of PostgreSQL's does; "" when
// there is none.
func RegexSource(expr, flags string) (string, error) {
	p, err := compile(expr, flags)
	if err != nil {
		return "", err
	}
	if p.Regexp == nil {
		return "", nil
	}
	return p.String(), nil
}
