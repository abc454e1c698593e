package ddl

import (
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokWord
	tokQuoted // "identifier"
	tokString // 'literal'
	tokNumber
	tokPunct
)

// token is one lexeme. text is folded to lower case for words, unescaped for
// quoted identifiers and strings; raw is as it is written, off where in the statement,
// in bytes; pos is its 1-based character position.
type token struct {
	kind tokenKind
	text string
	raw  string
	pos  int32
	off  int
}

type lexer struct {
	src  string
	off  int
	char int32 // 1-based position of off, in characters
}

// lex splits sql into tokens, ending with tokEOF. A statement of ours is short: one
// over statementBytesMax is refused.
func lex(sql string) ([]token, error) {
	if len(sql) > statementBytesMax {
		return nil, pgerr.New(codes.StatementTooComplex, "pipeline statement is too long").
			WithDetail("It has %d bytes; at most %d are taken.", len(sql), statementBytesMax)
	}
	l := &lexer{src: sql, char: 1}
	var out []token
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		t.off = l.off - len(t.raw)
		out = append(out, t)
		if t.kind == tokEOF {
			return out, nil
		}
	}
}

const statementBytesMax = 1 << 20

func (l *lexer) advance(n int) {
	l.char += int32(utf8.RuneCountInString(l.src[l.off : l.off+n])) // bounded by statementBytesMax
	l.off += n
}

func (l *lexer) next() (token, error) {
	if err := l.skipBlank(); err != nil {
		return token{}, err
	}
	if l.off >= len(l.src) {
		return token{kind: tokEOF, pos: l.char}, nil
	}
	rest, pos := l.src[l.off:], l.char
	c := rest[0]
	switch {
	case isWordStart(c):
		if (c == 'e' || c == 'E') && len(rest) > 1 && rest[1] == '\'' {
			return l.escapeString(pos)
		}
		n := 1
		for n < len(rest) && isWordPart(rest[n]) {
			n++
		}
		l.advance(n)
		return token{kind: tokWord, text: strings.ToLower(rest[:n]), raw: rest[:n], pos: pos}, nil
	case c == '"':
		return l.quoted('"', tokQuoted, "quoted identifier", pos)
	case c == '\'':
		return l.quoted('\'', tokString, "quoted string", pos)
	case c == '$':
		return l.dollarString(pos)
	case c >= '0' && c <= '9':
		n := 1
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
			n++
		}
		l.advance(n)
		return token{kind: tokNumber, text: rest[:n], raw: rest[:n], pos: pos}, nil
	}
	_, n := utf8.DecodeRuneInString(rest)
	l.advance(n)
	return token{kind: tokPunct, text: rest[:n], raw: rest[:n], pos: pos}, nil
}

func isWordStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isWordPart(c byte) bool { return isWordStart(c) || c >= '0' && c <= '9' || c == '$' }

func (l *lexer) skipBlank() error {
	for l.off < len(l.src) {
		rest := l.src[l.off:]
		switch {
		case strings.ContainsRune(" \t\r\n\f\v", rune(rest[0])):
			l.advance(1)
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.advance(n)
		case strings.HasPrefix(rest, "/*"):
			n := commentEnd(rest)
			if n < 0 {
				return syntaxAt(l.char, "unterminated /* comment")
			}
			l.advance(n)
		default:
			return nil
		}
	}
	return nil
}

// commentEnd returns the length of the nested comment at the start of s, or -1.
func commentEnd(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); {
		switch s[i : i+2] {
		case "/*":
			depth++
			i += 2
		case "*/":
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return -1
}

// quoted reads a '…' or "…" token with doubled quotes.
func (l *lexer) quoted(q byte, kind tokenKind, what string, pos int32) (token, error) {
	rest := l.src[l.off:]
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		if rest[i] != q {
			b.WriteByte(rest[i])
			continue
		}
		if i+1 < len(rest) && rest[i+1] == q {
			b.WriteByte(q)
			i++
			continue
		}
		l.advance(i + 1)
		if kind == tokQuoted && b.Len() == 0 {
			return token{}, syntaxAt(pos, "zero-length delimited identifier")
		}
		return token{kind: kind, text: b.String(), raw: rest[:i+1], pos: pos}, nil
	}
	return token{}, syntaxAt(pos, "unterminated %s at or near \"%s\"", what, rest)
}

// escapeString reads E'…' with the common backslash escapes.
func (l *lexer) escapeString(pos int32) (token, error) {
	rest := l.src[l.off:]
	plain := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}
	var b strings.Builder
	for i := 2; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && i+1 < len(rest):
			i++
			if p, ok := plain[rest[i]]; ok {
				b.WriteByte(p)
			} else {
				b.WriteByte(rest[i])
			}
		case c == '\'' && i+1 < len(rest) && rest[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\'':
			l.advance(i + 1)
			return token{kind: tokString, text: b.String(), raw: rest[:i+1], pos: pos}, nil
		default:
			b.WriteByte(c)
		}
	}
	return token{}, syntaxAt(pos, "unterminated quoted string at or near \"%s\"", rest)
}

// dollarString reads $tag$…$tag$.
func (l *lexer) dollarString(pos int32) (token, error) {
	rest := l.src[l.off:]
	n := 1
	for n < len(rest) && isWordPart(rest[n]) && rest[n] != '$' {
		n++
	}
	if n >= len(rest) || rest[n] != '$' {
		l.advance(1)
		return token{kind: tokPunct, text: "$", raw: "$", pos: pos}, nil
	}
	tag := rest[:n+1]
	end := strings.Index(rest[n+1:], tag)
	if end < 0 {
		return token{}, syntaxAt(pos, "unterminated dollar-quoted string at or near \"%s\"", rest)
	}
	text := rest[n+1 : n+1+end]
	l.advance(n + 1 + end + len(tag))
	return token{kind: tokString, text: text, raw: rest[:n+1+end+len(tag)], pos: pos}, nil
}

func syntaxAt(pos int32, format string, args ...any) *pgerr.Error {
	return pgerr.New(codes.Syntax, format, args...).WithPosition(pos)
}
