package pgfunc

import (
	"strings"

	"github.com/skipprd/skipprd/lake/scalar"
)

// Access to members goes over the text of a jsonb value without a tree of it: the text is
// as jsonb_out writes it, and so is every part of it.

// scanString returns where the string that begins at s[at] ends.
func scanString(s string, at int) int {
	for at++; at < len(s); at++ {
		switch s[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(s)
}

// scanValue returns where the value that begins at s[at] ends.
func scanValue(s string, at int) int {
	depth := 0
	for at < len(s) {
		switch s[at] {
		case '"':
			at = scanString(s, at)
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				if depth < 0 {
					return at
				}
				return at + 1
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return at
}

// rawMember is the text of a member of an object, "" when there is none.
func rawMember(s, name string) string {
	if s == "" || s[0] != '{' {
		return ""
	}
	for at := 1; at < len(s) && s[at] == '"'; {
		end := scanString(s, at)
		key := s[at+1 : end-1]
		from := min(end+len(": "), len(s))
		at = scanValue(s, from)
		if key == name && strings.IndexByte(key, '\\') < 0 || strings.IndexByte(key, '\\') >= 0 && unquote(s[end-len(key)-2:end]) == name {
			return s[from:at]
		}
		at += len(", ")
	}
	return ""
}

// rawElement is the text of an element of an array, "" when there is none. A scalar is an
// array of itself.
func rawElement(s string, i int64) string {
	switch {
	case s == "" || s[0] == '{':
		return ""
	case s[0] != '[':
		if i == 0 || i == -1 {
			return s
		}
		return ""
	}
	var ends []string
	for at := 1; at < len(s) && s[at] != ']'; {
		end := scanValue(s, at)
		if i == 0 {
			return s[at:end]
		}
		if i > 0 {
			i--
		} else {
			ends = append(ends, s[at:end])
		}
		at = end + len(", ")
	}
	if at := int64(len(ends)) + i; i < 0 && at >= 0 {
		return ends[at]
	}
	return ""
}

// rawPath follows a path of names; a null among them finds nothing.
func rawPath(s string, names []*string) string {
	for _, name := range names {
		if name == nil || s == "" {
			return ""
		}
		if s[0] == '{' {
			s = rawMember(s, *name)
			continue
		}
		i, ok := pathIndex(*name)
		if !ok || s[0] != '[' {
			return ""
		}
		s = rawElement(s, i)
	}
	return s
}

// unquote is the value of a JSON string's text.
func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	p := &jsonParser{s: raw}
	s, err := p.str()
	if err != nil {
		return raw // not reached: jsonb_out wrote it
	}
	return s
}

// getters make the two forms of an access: as jsonb, and as text.
func getters(name string, param scalar.Kind, f func(s string, arg value) (string, error)) []scalar.Function {
	make := func(name string, result func(string) value) scalar.Function {
		return scalar.Function{
			Name: name, Params: kinds(scalar.Text, param), Result: scalar.Text,
			Call: func(args []value) (value, error) {
				s, err := f(args[0].Text, args[1])
				if err != nil || s == "" {
					return scalar.Null, err
				}
				return result(s), nil
			},
		}
	}
	return []scalar.Function{make(name, scalar.OfText), make(name+"_text", func(raw string) value {
		switch {
		case raw == "null":
			return scalar.Null
		case raw[0] == '"':
			return scalar.OfText(unquote(raw))
		}
		return scalar.OfText(raw)
	})}
}
