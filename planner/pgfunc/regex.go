package pgfunc

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// pattern is a PostgreSQL regular expression made one of Go. Where the two would not find
// the same, it is refused.
type pattern struct {
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
		p, err := translate(expr, flags)
		failed = err
		return p, err == nil
	})
	if failed != nil {
		return nil, failed
	}
	return p, nil
}

func badRegex(why string) error {
	return pgerr.New(codes.InvalidRegularExpression, "invalid regular expression: %s", why)
}

func refusedRegex(what string) error {
	return unsupported("regular expressions with %s are not supported", what)
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
		return nil, badRegex("quantifier operand invalid")
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
		return nil, refusedRegex("such repetitions")
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
		case 't', 'g', 'q', 'e':
		case 'x':
			t.expanded = true
		case 'b':
			return refusedRegex("option b")
		default:
			return pgerr.New(codes.InvalidParameterValue, "invalid regular expression option: \"%c\"", c)
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
		return badRegex("parentheses () not balanced")
	}
	t.close()
	switch {
	case t.greedy && t.lazy:
		return refusedRegex("greedy and non-greedy quantifiers together")
	case t.lazy && t.alternatives:
		return refusedRegex("non-greedy quantifiers and alternatives together")
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
			return false, badRegex("parentheses () not balanced")
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
			return false, badRegex("parentheses () not balanced")
		}
		t.at += end + 1
		return true, nil
	case strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!") || strings.HasPrefix(rest, "(?<"):
		return false, refusedRegex("lookaround")
	case strings.HasPrefix(rest, "(?"):
		return false, badRegex("quantifier operand invalid")
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
		return false, badRegex("quantifier operand invalid")
	}
	t.top().plain = false
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
		return false, badRegex("quantifier operand invalid")
	}
	t.out.WriteString(text)
	return false, nil
}

func (t *translator) bound(start bool) (bool, error) {
	end := strings.IndexByte(t.in[t.at:], '}')
	if end < 0 {
		return false, badRegex("braces {} not balanced")
	}
	var lo, hi int
	body := t.in[t.at+1 : t.at+end]
	low, high, two := strings.Cut(body, ",")
	if _, err := fmt.Sscanf(low, "%d", &lo); err != nil || strings.Trim(body, "0123456789,") != "" {
		return false, badRegex("invalid repetition count(s)")
	}
	const most = 255
	hi = lo
	if two && high != "" {
		_, _ = fmt.Sscanf(high, "%d", &hi) // digits only
	}
	if lo > most || hi > most || hi < lo {
		return false, badRegex("invalid repetition count(s)")
	}
	return t.quantifier(start, end+1)
}

// classes are the class escapes, of which \s has one more blank than Go's.
var classes = map[byte]string{
	'd': `0-9`, 's': `\t\n\v\f\r `, 'w': `\pL\pN_`,
}

var controls = map[byte]rune{'a': 7, 'b': 8, 'B': '\\', 'e': 27, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '0': 0}

func (t *translator) escape() error {
	if t.at+1 == len(t.in) {
		return badRegex(`invalid escape \ sequence`)
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
		return refusedRegex("word boundaries")
	case c >= '1' && c <= '9':
		return refusedRegex("back references")
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
			return 0, 0, badRegex(`invalid escape \ sequence`)
		}
		return r, n, nil
	}
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		return 0, 0, badRegex(`invalid escape \ sequence`)
	}
	r, n := utf8.DecodeRuneInString(t.in[t.at+1:])
	return r, n + 1, nil
}

func (t *translator) bracket() error {
	rest := t.in[t.at:]
	if strings.HasPrefix(rest, "[[:<:]]") || strings.HasPrefix(rest, "[[:>:]]") {
		return refusedRegex("word boundaries")
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
			return badRegex("brackets [] not balanced")
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
			return badRegex("brackets [] not balanced")
		}
		class, ok := posixClasses[rest[2:end]]
		if !ok {
			return badRegex("invalid character class")
		}
		b.WriteString(class)
		t.at += end + 2
		return nil
	case strings.HasPrefix(rest, "[.") || strings.HasPrefix(rest, "[="):
		return refusedRegex("collating elements")
	case c == '\\':
		if t.at+1 == len(t.in) {
			return badRegex(`invalid escape \ sequence`)
		}
		if class := classes[t.in[t.at+1]]; class != "" {
			b.WriteString(class)
			t.at += 2
			return nil
		}
		if strings.IndexByte("DSW", t.in[t.at+1]) >= 0 {
			return refusedRegex("complemented classes in brackets")
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

// posixClasses are the classes with letters of every script.
var posixClasses = map[string]string{
	"alpha": `\pL`, "digit": `0-9`, "alnum": `\pL\pN`, "upper": `\p{Lu}`, "lower": `\p{Ll}`, "space": `\t\n\v\f\r `, "blank": ` \t`,
	"punct": `!-/:-@\[-` + "`" + `{-~`, "cntrl": `\x00-\x1f\x7f`, "xdigit": `0-9A-Fa-f`, "word": `\pL\pN_`, "print": ` -~`, "graph": `!-~`, "ascii": `\x00-\x7f`,
}

// matches are all matches of a text: indexes as regexp gives them. Those that are empty and
// follow another at once are PostgreSQL's only.
func (p *pattern) matches(s string, most int) ([][]int, error) {
	if most == 1 {
		if m := p.FindStringSubmatchIndex(s); m != nil {
			return [][]int{m}, nil
		}
		return nil, nil
	}
	all := p.FindAllStringSubmatchIndex(s, -1)
	if !p.nullable {
		return all, nil
	}
	if p.assertions {
		return nil, refusedRegex("assertions that match the empty text")
	}
	var out [][]int
	for i, m := range all {
		out = append(out, m)
		next := len(s) + 1
		if i+1 < len(all) {
			next = all[i+1][0]
		}
		if m[1] > m[0] && next != m[1] {
			empty := make([]int, len(m))
			for k := range empty {
				empty[k] = -1
			}
			empty[0], empty[1] = m[1], m[1]
			if len(m) > 2 {
				return nil, refusedRegex("groups that match the empty text")
			}
			out = append(out, empty)
		}
	}
	return out, nil
}

// RegexSource is the engine's regular expression that matches what one of PostgreSQL's does.
func RegexSource(expr, flags string) (string, error) {
	p, err := compile(expr, flags)
	if err != nil {
		return "", err
	}
	return p.String(), nil
}
