package jsonpath

import (
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/are"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// deepest is the level "last" of .**.
const deepest = math.MaxUint32

// anyLevel reads what is behind .**: nothing, {n}, {n to m}.
func (p *parser) anyLevel() (*node, error) {
	out := &node{op: ".**", last: deepest}
	if p.sign("{") == "" {
		return p.made(out)
	}
	level := func() (int64, error) {
		before := p.at
		w := p.bare()
		if w == "last" {
			return deepest, nil
		}
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil || n < 0 || len(w) > 1 && w[0] == '0' {
			p.at = before
			return 0, p.syntax()
		}
		return n, nil
	}
	var err error
	if out.first, err = level(); err != nil {
		return nil, err
	}
	out.last = out.first
	if p.word("to") {
		if out.last, err = level(); err != nil {
			return nil, err
		}
	}
	if p.sign("}") == "" {
		return nil, p.syntax()
	}
	return p.made(out)
}

// anywhere goes on from a value and from all within it, at some levels; errors of structure do not
// count there.
func (r *run) anywhere(s *node, v value, level int64, next emit) error {
	if level > s.last {
		return nil
	}
	container := v.kind == array || v.kind == object
	if level >= s.first || s.first == deepest && s.last == deepest && !container && level > 0 {
		before := r.lenient
		r.lenient = true
		err := next(v)
		r.lenient = before
		if err != nil {
			return err
		}
	}
	if level < s.last {
		return each(v.items, func(item value) error { return r.anywhere(s, item, level+1, next) })
	}
	return nil
}

// likeRegex reads a regular expression and its flags.
func (p *parser) likeRegex(left *node) (*node, error) {
	out := &node{op: "like_regex", left: left}
	if p.space(); p.at >= len(p.in) || p.in[p.at] != '"' {
		return nil, p.syntax()
	}
	var err error
	if out.text, err = p.quoted(); err != nil {
		return nil, err
	}
	given := ""
	if p.word("flag") {
		if p.space(); p.at >= len(p.in) || p.in[p.at] != '"' {
			return nil, p.syntax()
		}
		if given, err = p.quoted(); err != nil {
			return nil, err
		}
	}
	for _, c := range given {
		if !strings.ContainsRune("ismxq", c) {
			return nil, pgerr.New(codes.Syntax, "invalid input syntax for type jsonpath").
				WithDetail("Unrecognized flag character \"%c\" in LIKE_REGEX predicate.", c)
		}
	}
	for _, c := range "ismxq" {
		if strings.ContainsRune(given, c) {
			out.flags += string(c)
		}
	}
	if out.regex, err = compileLike(out.text, out.flags); err != nil {
		return nil, err
	}
	return p.made(out)
}

// compileLike compiles a regular expression with XQuery's flags.
func compileLike(expr, flags string) (*are.Regexp, error) {
	has := func(f string) bool { return strings.Contains(flags, f) }
	letters := "p" // . does not match a newline
	switch {
	case has("q"):
		letters = "q"
	case has("x"):
		return nil, pgerr.New(codes.FeatureNotSupported, "XQuery \"x\" flag (expanded regular expressions) is not implemented")
	case has("s") && has("m"):
		letters = "w"
	case has("s"):
		letters = "s"
	case has("m"):
		letters = "n"
	}
	if has("i") {
		letters += "i"
	}
	re, err := are.Compile(expr, letters)
	if err != nil {
		return nil, pgerr.New(codes.InvalidRegularExpression, "invalid regular expression: %v", err)
	}
	return re, nil
}

// matches says whether a value is a text with a match.
func (n *node) matches(v value) (logic, error) {
	if v.kind != text {
		return unknown, nil
	}
	loc, err := n.regex.Find([]rune(v.s), 0)
	if err != nil {
		return unknown, pgerr.New(codes.ProgramLimitExceeded, "regular expression failed: %v", err)
	}
	return ofBool(loc != nil), nil
}

// keyValue are the members of an object, each as one. id tells objects apart: by where PostgreSQL
// has one in its form of the document, and which document that is.
func (r *run) keyValue(v value, next emit) error {
	if v.kind != object {
		return failed("2203C", "jsonpath item method .keyvalue() can only be applied to an object")
	}
	const perDocument = 10000000000
	id := numeric.FromInt(int64(v.at) + int64(v.of)*perDocument)
	for i, k := range v.keys {
		r.made++
		pair := value{
			kind: object, keys: []string{"id", "key", "value"},
			items: []value{{kind: number, n: id}, {kind: text, s: k}, v.items[i]},
		}
		pair = clone(pair)
		pair.place(0, r.made)
		if err := next(pair); err != nil {
			return err
		}
	}
	return nil
}

func clone(v value) value {
	items := make([]value, len(v.items))
	for i, item := range v.items {
		items[i] = clone(item)
	}
	v.items = items
	return v
}

// place notes where containers are in PostgreSQL's binary form of a document, of which v begins at
// at, and gives the size of v.
func (v *value) place(at, of int) int {
	const entry = 4
	v.at, v.of = at, of
	size := entry // its header
	size += entry * (len(v.items) + len(v.keys))
	for _, k := range v.keys {
		size += len(k)
	}
	pad := func() {
		for (at+size)%4 != 0 {
			size++
		}
	}
	for i := range v.items {
		switch item := &v.items[i]; item.kind {
		case text:
			size += len(item.s)
		case number:
			pad()
			size += numericSize(item.n)
		case array, object:
			pad()
			size += item.place(at+size, of)
		}
	}
	return size
}

// numericSize is the size of PostgreSQL's form of a number.
func numericSize(n numeric.Num) int {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(n.Text(), "-"), ".")
	scale := len(fraction)
	whole = strings.Repeat("0", (4-len(whole)%4)%4) + whole
	fraction += strings.Repeat("0", (4-scale%4)%4)
	weight := len(whole)/4 - 1
	digits := whole + fraction
	for strings.HasPrefix(digits, "0000") {
		digits, weight = digits[4:], weight-1
	}
	for strings.HasSuffix(digits, "0000") {
		digits = digits[:len(digits)-4]
	}
	const varlena, short, long = 4, 2, 4
	header := short
	if scale > 63 || weight > 63 || weight < -64 {
		header = long
	}
	return varlena + header + 2*(len(digits)/4)
}
