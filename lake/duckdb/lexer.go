package duckdb

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// rewrite replaces, outside of literals and comments, each quoted identifier that is
// a key of relations by its text in parentheses, and each parameter $n by a literal.
// With params nil parameters stay. A parameter becomes part of the text because the
// engine prunes files and row groups by constants only, not by bound values.
func rewrite(sql string, relations map[string]string, params []*string) (string, error) {
	var out strings.Builder
	out.Grow(len(sql) + 256)
	for at := 0; at < len(sql); {
		end := tokenEnd(sql, at)
		token := sql[at:end]
		switch {
		case token[0] == '"' && len(token) > 1:
			name := strings.ReplaceAll(token[1:len(token)-1], `""`, `"`)
			if text, ok := relations[name]; ok {
				out.WriteString("(" + text + ")")
			} else {
				out.WriteString(token)
			}
		case params != nil && token[0] == '$' && len(token) > 1 && isDigit(token[1]):
			n, err := strconv.Atoi(token[1:])
			if err != nil || n < 1 || n > len(params) {
				return "", fmt.Errorf("parameter %s of %d: %w", token, len(params), ErrPlan)
			}
			writeParam(&out, params[n-1])
		default:
			out.WriteString(token)
		}
		at = end
	}
	return out.String(), nil
}

func writeParam(out *strings.Builder, p *string) {
	if p == nil {
		out.WriteString("NULL")
		return
	}
	out.WriteString(quote.Text(*p))
}

// tokenEnd returns the end of the token at sql[at]: a quoted thing, a comment, a
// parameter, a word, or one byte of anything else.
func tokenEnd(sql string, at int) int {
	switch c := sql[at]; {
	case c == '\'':
		return quotedEnd(sql, at+1, '\'', false)
	case c == '"':
		return quotedEnd(sql, at+1, '"', false)
	case (c == 'e' || c == 'E') && strings.HasPrefix(sql[at+1:], "'"):
		return quotedEnd(sql, at+2, '\'', true)
	case c == '-' && strings.HasPrefix(sql[at:], "--"):
		if n := strings.IndexByte(sql[at:], '\n'); n >= 0 {
			return at + n
		}
		return len(sql)
	case c == '/' && strings.HasPrefix(sql[at:], "/*"):
		return commentEnd(sql, at)
	case c == '$':
		return dollarEnd(sql, at)
	case isWord(c):
		end := at + 1
		for end < len(sql) && (isWord(sql[end]) || sql[end] == '$') {
			end++
		}
		return end
	}
	return at + 1
}

// quotedEnd returns the place after the closing quote; a doubled quote does not
// close, nor does a backslashed one where escapes count.
func quotedEnd(sql string, at int, quote byte, escapes bool) int {
	for at < len(sql) {
		switch {
		case escapes && sql[at] == '\\':
			at++
		case sql[at] == quote && at+1 < len(sql) && sql[at+1] == quote:
			at++
		case sql[at] == quote:
			return at + 1
		}
		at++
	}
	return len(sql)
}

// commentEnd handles nested comments.
func commentEnd(sql string, at int) int {
	depth := 0
	for at < len(sql) {
		switch {
		case strings.HasPrefix(sql[at:], "/*"):
			depth++
			at++
		case strings.HasPrefix(sql[at:], "*/"):
			depth--
			at++
		}
		at++
		if depth == 0 {
			return min(at, len(sql))
		}
	}
	return len(sql)
}

// dollarEnd is for $1 and for $tag$ … $tag$.
func dollarEnd(sql string, at int) int {
	end := at + 1
	for end < len(sql) && isDigit(sql[end]) {
		end++
	}
	if end > at+1 {
		return end
	}
	for end < len(sql) && isWord(sql[end]) {
		end++
	}
	if end == len(sql) || sql[end] != '$' {
		return at + 1
	}
	tag := sql[at : end+1]
	if n := strings.Index(sql[end+1:], tag); n >= 0 {
		return end + 1 + n + len(tag)
	}
	return len(sql)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
