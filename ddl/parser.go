package ddl

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// IsOurs reports by its first words whether sql is a statement of this package. It
// is cheap and never fails; a statement that is ours may still not parse.
func IsOurs(sql string) bool {
	l := &lexer{src: sql, char: 1}
	if len(sql) > statementBytesMax {
		return false
	}
	var words [5]string
	for i := range words {
		t, err := l.next()
		if err != nil || t.kind != tokWord {
			break
		}
		words[i] = t.text
	}
	first, second := words[0], words[1]
	switch first {
	case "create":
		if second == "or" && words[2] == "replace" {
			second = words[3]
		}
		return isObject(second)
	case "alter", "drop":
		return isObject(second)
	case "enable", "disable", "pause", "resume", "reset", "sync", "refresh", "verify":
		return second == "pipeline"
	case "discover", "validate":
		return second == "pipeline" || second == "connection"
	case "retry":
		return second == "dead"
	case "grant", "revoke":
		return isGrant(&lexer{src: sql, char: 1})
	case "show":
		switch second {
		case "pipelines", "pipeline", "stats", "connections", "secrets", "docs":
			return true
		}
	}
	return false
}

func isObject(word string) bool {
	return word == "secret" || word == "connection" || word == "pipeline"
}

// Parse parses one statement of ours; a trailing semicolon is allowed. Errors are
// *pgerr.Error with position.
func Parse(sql string) (Statement, error) {
	tokens, err := lex(sql)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, src: sql}
	s, err := p.statement()
	if err != nil {
		return nil, err
	}
	p.punct(";")
	if t := p.peek(); t.kind != tokEOF {
		return nil, p.unexpected(t)
	}
	return s, nil
}

type parser struct {
	src    string
	tokens []token
	at     int
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

// word takes the words ws if they come next, all of them or none.
func (p *parser) word(ws ...string) bool {
	for i, w := range ws {
		if p.at+i >= len(p.tokens) {
			return false
		}
		if t := p.tokens[p.at+i]; t.kind != tokWord || t.text != w {
			return false
		}
	}
	p.at += len(ws)
	return true
}

func (p *parser) punct(c string) bool {
	if t := p.peek(); t.kind == tokPunct && t.text == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) expectWord(ws ...string) error {
	for _, w := range ws {
		if !p.word(w) {
			return p.unexpected(p.peek()).WithHint("%s is expected here.", strings.ToUpper(strings.Join(ws, " ")))
		}
	}
	return nil
}

func (p *parser) expectPunct(c string) error {
	if !p.punct(c) {
		return p.unexpected(p.peek())
	}
	return nil
}

func (p *parser) name() (string, error) {
	t := p.next()
	if t.kind != tokWord && t.kind != tokQuoted {
		return "", p.unexpected(t)
	}
	if len(t.text) > identifierBytesMax {
		return "", pgerr.New(codes.NameTooLong, "identifier \"%s\" is too long", t.text).
			WithDetail("An identifier has at most %d bytes.", identifierBytesMax).WithPosition(t.pos)
	}
	return t.text, nil
}

// identifierBytesMax is PostgreSQL's NAMEDATALEN - 1.
const identifierBytesMax = 63

func (p *parser) str() (string, error) {
	t := p.next()
	if t.kind != tokString {
		return "", p.unexpected(t)
	}
	return t.text, nil
}

// qualified parses [schema.]name; the schema defaults to public.
func (p *parser) qualified() (schema, name string, err error) { return p.qualifiedOr(publicSchema) }

const publicSchema = "public"

// qualifiedOr parses [schema.]name; without says what the schema is when there is none.
func (p *parser) qualifiedOr(without string) (schema, name string, err error) {
	name, err = p.name()
	if err != nil || !p.punct(".") {
		return without, name, err
	}
	schema = name
	name, err = p.name()
	return schema, name, err
}

func (p *parser) unexpected(t token) *pgerr.Error {
	if t.kind == tokEOF {
		return syntaxAt(t.pos, "syntax error at end of input")
	}
	return syntaxAt(t.pos, "syntax error at or near \"%s\"", t.raw)
}

func (p *parser) statement() (Statement, error) {
	switch t := p.peek(); t.text {
	case "create":
		p.next()
		return p.create()
	case "alter":
		p.next()
		return p.alter()
	case "drop":
		p.next()
		return p.drop()
	case "enable", "disable", "pause", "resume", "reset", "refresh":
		p.next()
		if err := p.expectWord("pipeline"); err != nil {
			return nil, err
		}
		name, err := p.name()
		verb := strings.ToUpper(t.text)
		return &AlterPipeline{Name: name, Action: Action(verb), Short: verb + " PIPELINE"}, err
	case "discover":
		p.next()
		return p.discover()
	case "sync":
		p.next()
		return p.sync()
	case "validate":
		p.next()
		if err := p.expectWord("connection"); err != nil {
			return nil, err
		}
		name, err := p.name()
		return &ValidateConnection{Name: name}, err
	case "show":
		p.next()
		return p.show()
	case "retry":
		p.next()
		return p.retry()
	case "verify":
		p.next()
		return p.verify()
	case "grant", "revoke":
		return p.grant()
	default:
		return nil, p.unexpected(t)
	}
}

func (p *parser) create() (Statement, error) {
	replace := p.word("or", "replace")
	object := p.next()
	exists := p.word("if", "not", "exists")
	if replace && exists {
		return nil, syntaxAt(object.pos, "OR REPLACE and IF NOT EXISTS cannot be used together")
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	switch object.text {
	case "secret":
		if err := p.expectWord("as"); err != nil {
			return nil, err
		}
		v, err := p.str()
		return &CreateSecret{Name: name, Value: v, OrReplace: replace, IfNotExists: exists}, err
	case "connection":
		if err := p.expectWord("to"); err != nil {
			return nil, err
		}
		spec, err := p.connectionSpec()
		return &CreateConnection{Name: name, Spec: spec, OrReplace: replace, IfNotExists: exists}, err
	case "pipeline":
		s := &CreatePipeline{Name: name, OrReplace: replace, IfNotExists: exists}
		return s, p.pipelineBody(s)
	}
	return nil, p.unexpected(object)
}

func (p *parser) drop() (Statement, error) {
	object := p.next()
	if !isObject(object.text) {
		return nil, p.unexpected(object)
	}
	s := &Drop{Object: strings.ToUpper(object.text), IfExists: p.word("if", "exists")}
	var err error
	if s.Name, err = p.name(); err != nil {
		return nil, err
	}
	for {
		switch {
		case p.word("cascade"): // a pipeline's tables always go with it; what it uses never does
			s.Cascade = true
		case p.word("restrict"):
			s.Cascade = false
		case object.text == "pipeline" && p.word("keep", "data"):
			s.KeepData = true
		default:
			return s, nil
		}
	}
}

func (p *parser) discover() (Statement, error) {
	t := p.next()
	if t.text != "pipeline" && t.text != "connection" {
		return nil, p.unexpected(t)
	}
	name, err := p.name()
	return &Discover{Object: strings.ToUpper(t.text), Name: name}, err
}

func (p *parser) show() (Statement, error) {
	t := p.next()
	s := &Show{What: strings.ToUpper(t.text)}
	var err error
	switch t.text {
	case "pipelines", "connections", "secrets", "docs":
	case "pipeline":
		s.Name, err = p.name()
	case "stats":
		if err := p.expectWord("for"); err != nil {
			return nil, err
		}
		if s.Name, err = p.name(); err == nil && p.punct(".") {
			s.Table, err = p.name()
		}
	default:
		return nil, p.unexpected(t)
	}
	return s, err
}
