// Package jsonpath holds PostgreSQL's json paths, in Go: their language and the functions that
// run them. Documents and results travel as JSON texts. Pure; safe for concurrent use.
//
// Reading order: parse (the language), value (documents), run, function.
package jsonpath

import (
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/are"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// path is a parsed json path.
type path struct {
	strict bool
	keyed  bool // there is .keyvalue()
	expr   *node
}

// node is a part of a path. Which fields count depends on op.
type node struct {
	op          string
	left, right *node
	steps       []*node // of op "path": the accessors behind left
	text        string  // a key, a variable, the name of a method
	value       value
	subs        [][2]*node // of op "[]"; the second is nil without "to"
	first, last int64      // the levels of op ".**"
	flags       string     // of op "like_regex", whose pattern is text
	regex       *are.Regexp
}

// predicate says whether a node gives a truth value, which is no operand of arithmetic.
func (n *node) predicate() bool {
	switch n.op {
	case "&&", "||", "!", "==", "!=", "<", "<=", ">", ">=", "exists", "is unknown", "starts with", "like_regex":
		return true
	}
	return false
}

// nodesMax bounds the size of a path, depthMax how deep it and a document are nested.
const (
	nodesMax = 2000
	depthMax = 500
	jsonMax  = 10000
)

var errDeep = pgerr.New(codes.StatementTooComplex, "stack depth limit exceeded")

type parser struct {
	in    string
	at    int
	nodes int
	depth int
	// filters counts the filters around; subscripts the subscripts.
	filters, subscripts int
	keyed               bool
}

// Check reports what is wrong with the text of a json path.
func Check(text string) error {
	_, err := parse(text)
	return err
}

func parse(text string) (*path, error) {
	p := &parser{in: text}
	out := &path{}
	switch {
	case p.word("strict"):
		out.strict = true
	case p.word("lax"):
	}
	if p.space(); p.at == len(p.in) {
		return nil, pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type jsonpath: \"%s\"", strings.Clone(text))
	}
	var err error
	if out.expr, err = p.binary(0); err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.in) {
		return nil, p.syntax()
	}
	out.keyed = p.keyed
	return out, nil
}

func (p *parser) syntax() error {
	if p.at >= len(p.in) {
		return pgerr.New(codes.Syntax, "syntax error at end of jsonpath input")
	}
	_, n := utf8.DecodeRuneInString(p.in[p.at:])
	return pgerr.New(codes.Syntax, "syntax error at or near \"%s\" of jsonpath input", strings.Clone(p.in[p.at:p.at+n]))
}

func unsupported(what string) error {
	return pgerr.New(codes.FeatureNotSupported, "%s in json paths is not supported", what)
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch {
		case strings.IndexByte(" \t\n\r\f", p.in[p.at]) >= 0:
			p.at++
		case strings.HasPrefix(p.in[p.at:], "/*"):
			end := strings.Index(p.in[p.at:], "*/")
			if end < 0 {
				return
			}
			p.at += end + 2
		default:
			return
		}
	}
}

// sign takes one of some signs.
func (p *parser) sign(list ...string) string {
	p.space()
	for _, s := range list {
		if strings.HasPrefix(p.in[p.at:], s) {
			p.at += len(s)
			return s
		}
	}
	return ""
}

const special = "?%$.[]{}()|&!=<>@#,*:-+/\\\" \t\n\r\f"

// bare reads a name without quotes, "" when there is none.
func (p *parser) bare() string {
	p.space()
	end := p.at
	for end < len(p.in) && strings.IndexByte(special, p.in[end]) < 0 {
		end++
	}
	s := p.in[p.at:end]
	p.at = end
	return s
}

// word takes a keyword.
func (p *parser) word(w string) bool {
	before := p.at
	if strings.EqualFold(p.bare(), w) {
		return true
	}
	p.at = before
	return false
}

func (p *parser) made(n *node) (*node, error) {
	if p.nodes++; p.nodes > nodesMax {
		return nil, pgerr.New(codes.StatementTooComplex, "the json path is too long")
	}
	return n, nil
}

// levels are the operators, from those that bind least.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<>", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}}

const (
	levelCompare = 2
	levelUnary   = 5
)

func (p *parser) binary(level int) (*node, error) {
	if level == levelUnary {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		if level == levelCompare {
			if left, err = p.wordOperators(left); err != nil {
				return nil, err
			}
		}
		at := p.at
		op := p.sign(levels[level]...)
		if op == "" {
			break
		}
		right, failed := p.binary(level + 1)
		if failed != nil {
			return nil, failed
		}
		if logical := level < levelCompare; left.predicate() != logical || right.predicate() != logical {
			p.at = at
			return nil, p.syntax()
		}
		if op == "<>" {
			op = "!="
		}
		left, err = p.made(&node{op: op, left: left, right: right})
	}
	return left, err
}

// wordOperators reads "starts with" and "like_regex".
func (p *parser) wordOperators(left *node) (*node, error) {
	switch {
	case left.predicate():
		return left, nil
	case p.word("like_regex"):
		return p.likeRegex(left)
	case p.word("starts"):
		if !p.word("with") {
			return nil, p.syntax()
		}
		right, err := p.primary()
		if err != nil || right.op != "literal" && right.op != "variable" {
			return nil, p.syntax()
		}
		return p.made(&node{op: "starts with", left: left, right: right})
	}
	return left, nil
}

func (p *parser) unary() (*node, error) {
	if p.depth++; p.depth > depthMax {
		return nil, errDeep
	}
	defer func() { p.depth-- }()
	at := p.at
	op := p.sign("!=", "!", "+", "-")
	if op == "" || op == "!=" {
		p.at = at
		return p.accessors()
	}
	n, err := p.unary()
	if err != nil {
		return nil, err
	}
	if n.predicate() != (op == "!") {
		p.at = at
		return nil, p.syntax()
	}
	if op != "!" {
		op = "unary " + op
	}
	return p.made(&node{op: op, left: n})
}

// accessors reads an operand with what is behind it.
func (p *parser) accessors() (*node, error) {
	head, err := p.primary()
	if err != nil {
		return nil, err
	}
	if head.op == "group" {
		if head.left.predicate() && p.word("is") {
			if !p.word("unknown") {
				return nil, p.syntax()
			}
			return p.made(&node{op: "is unknown", left: head.left})
		}
		head = head.left
	}
	var steps []*node
	for {
		s, err := p.step()
		if err != nil {
			return nil, err
		}
		if s == nil {
			break
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return head, nil
	}
	return p.made(&node{op: "path", left: head, steps: steps})
}

func (p *parser) primary() (*node, error) {
	p.space()
	if p.at == len(p.in) {
		return nil, p.syntax()
	}
	switch c := p.in[p.at]; {
	case c == '(':
		p.at++
		n, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		if p.sign(")") == "" {
			return nil, p.syntax()
		}
		return p.made(&node{op: "group", left: n})
	case c == '$':
		return p.dollar()
	case c == '@':
		if p.filters == 0 {
			return nil, pgerr.New(codes.Syntax, "@ is not allowed in root expressions")
		}
		p.at++
		return p.made(&node{op: "current"})
	case c == '"':
		s, err := p.quoted()
		if err != nil {
			return nil, err
		}
		return p.made(&node{op: "literal", value: value{kind: text, s: s}})
	case c >= '0' && c <= '9' || c == '.':
		return p.number()
	}
	return p.keyword()
}

func (p *parser) keyword() (*node, error) {
	at := p.at
	switch w := p.bare(); w {
	case "true", "false":
		return p.made(&node{op: "literal", value: value{kind: boolean, b: w == "true"}})
	case "null":
		return p.made(&node{op: "literal", value: value{kind: null}})
	case "last":
		if p.subscripts == 0 {
			return nil, pgerr.New(codes.Syntax, "LAST is allowed only in array subscripts")
		}
		return p.made(&node{op: "last"})
	case "exists":
		if p.sign("(") == "" {
			return nil, p.syntax()
		}
		n, err := p.binary(0)
		if err != nil {
			return nil, err
		}
		if p.sign(")") == "" || n.predicate() {
			return nil, p.syntax()
		}
		return p.made(&node{op: "exists", left: n})
	}
	p.at = at
	return nil, p.syntax()
}

func (p *parser) dollar() (*node, error) {
	p.at++
	if p.at < len(p.in) && p.in[p.at] == '"' {
		s, err := p.quoted()
		if err != nil {
			return nil, err
		}
		return p.made(&node{op: "variable", text: s})
	}
	if p.at < len(p.in) && strings.IndexByte(special, p.in[p.at]) < 0 {
		return p.made(&node{op: "variable", text: p.bare()})
	}
	return p.made(&node{op: "root"})
}

func (p *parser) number() (*node, error) {
	end := p.at
	for end < len(p.in) {
		c := p.in[end]
		exponent := end > p.at && (c == '+' || c == '-') && strings.IndexByte("eE", p.in[end-1]) >= 0
		if !(c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || exponent) {
			break
		}
		end++
	}
	s := p.in[p.at:end]
	n, err := numeric.Parse(s)
	whole, _, point := strings.Cut(s, ".")
	if err != nil || len(whole) > 1 && whole[0] == '0' && !strings.ContainsAny(whole, "eE") ||
		end < len(p.in) && strings.IndexByte(special, p.in[end]) < 0 {
		return nil, pgerr.New(codes.Syntax, "trailing junk after numeric literal at or near \"%s\" of jsonpath input", strings.Clone(s))
	}
	if point && whole == "" && strings.Trim(s, ".") == "" {
		return nil, p.syntax()
	}
	p.at = end
	return p.made(&node{op: "literal", value: value{kind: number, n: n}})
}

// quoted reads a text in quotes.
func (p *parser) quoted() (string, error) {
	for end := p.at + 1; end < len(p.in); end++ {
		switch p.in[end] {
		case '\\':
			end++
		case '"':
			raw := p.in[p.at : end+1]
			p.at = end + 1
			return unquoted(raw)
		}
	}
	p.at = len(p.in)
	return "", pgerr.New(codes.Syntax, "unterminated quoted string at end of jsonpath input")
}
