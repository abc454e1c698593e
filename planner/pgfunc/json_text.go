package pgfunc

import (
	"strings"

	"github.com/skipprd/skipprd/lake/scalar"
)

// A json value is the text that was written, and so is every part of it: numbers as 1.50 or
// 1E2, blanks, names that are there twice. Access goes over the text; it was checked when it
// became a json.

// checkEscapes is what PostgreSQL says of a text of which it reads the strings, wherever in it
// one is that has no characters.
func checkEscapes(s string) error {
	if !strings.Contains(s, `\u`) {
		return nil
	}
	_, err := parseJSONAs(s, false)
	return err
}

func skipBlanks(s string, at int) int {
	for at < len(s) && strings.IndexByte(" \t\r\n", s[at]) >= 0 {
		at++
	}
	return at
}

// eachPart calls f with every member of an object or array, and with its name in an object, until f says stop.
func eachPart(s string, f func(name, raw string) (stop bool)) {
	at := skipBlanks(s, 0)
	if at == len(s) {
		return
	}
	object := s[at] == '{'
	for at = skipBlanks(s, at+1); at < len(s) && s[at] != '}' && s[at] != ']'; {
		name := ""
		if object {
			end := scanString(s, at)
			name = unquote(s[at:end])
			at = skipBlanks(s, skipBlanks(s, end)+len(":"))
		}
		end := scanValue(s, at)
		if f(name, strings.TrimRight(s[at:end], " \t\r\n")) {
			return
		}
		if at = skipBlanks(s, end); at < len(s) && s[at] == ',' {
			at = skipBlanks(s, at+1)
		}
	}
}

// writtenKind is the first byte of a value: of an object {, of an array [.
func writtenKind(s string) byte {
	if at := skipBlanks(s, 0); at < len(s) {
		return s[at]
	}
	return 0
}

// writtenMember is the text of the last member of that name, "" when there is none.
func writtenMember(s, name string) (found string) {
	if writtenKind(s) == '{' {
		eachPart(s, func(n, raw string) bool {
			if n == name {
				found = raw
			}
			return false
		})
	}
	return found
}

// writtenElement is the text of an element of an array, counted from the end when i is
// negative; "" when there is none.
func writtenElement(s string, i int64) (found string) {
	if writtenKind(s) != '[' {
		return ""
	}
	if i < 0 {
		eachPart(s, func(string, string) bool { i++; return false })
		if i < 0 {
			return ""
		}
	}
	eachPart(s, func(_, raw string) bool {
		if i == 0 {
			found = raw
		}
		i--
		return i < 0
	})
	return found
}

// writtenPath follows a path. Of members of one name each may have what the path says; the
// last that has it counts, as PostgreSQL's reader finds them one after the other.
func writtenPath(s string, names []*string) string {
	for _, name := range names {
		if name == nil {
			return ""
		}
	}
	if len(names) == 0 {
		if c := writtenKind(s); c == '{' || c == '[' {
			return strings.Trim(s, " \t\r\n")
		}
		return strings.TrimRight(s, " \t\r\n")
	}
	return followWritten(s, names)
}

func followWritten(s string, names []*string) (found string) {
	last := len(names) == 1
	switch writtenKind(s) {
	case '{':
		eachPart(s, func(n, raw string) bool {
			switch {
			case n != *names[0]:
			case last:
				found = raw
			default:
				if deep := followWritten(raw, names[1:]); deep != "" {
					found = deep
				}
			}
			return false
		})
		return found
	case '[':
		i, ok := pathIndex(*names[0])
		if !ok {
			return ""
		}
		item := writtenElement(s, i)
		if item == "" || last {
			return item
		}
		return followWritten(item, names[1:])
	}
	return ""
}

// jsonTextFunctions are those of json, of which jsonFunctions has the twins of jsonb.
func jsonTextFunctions() []scalar.Function {
	text := scalar.Text
	out := writtenGetters("skippr_js_member", text, func(s string, arg value) (string, error) {
		return writtenMember(s, arg.Text), nil
	})
	out = append(out, writtenGetters("skippr_js_element", scalar.Int32, func(s string, arg value) (string, error) {
		return writtenElement(s, arg.Int), nil
	})...)
	out = append(out, writtenGetters("skippr_js_path", text, func(s string, arg value) (string, error) {
		names, err := parseList(arg.Text)
		return writtenPath(s, names), err
	})...)
	return append(
		out,
		scalar.Function{Name: "skippr_js_typeof", Params: kinds(text), Result: text, Call: func(a []value) (value, error) {
			return scalar.OfText(writtenType(a[0].Text)), nil
		}},
		scalar.Function{Name: "skippr_js_length", Params: kinds(text), Result: scalar.Int32, Call: func(a []value) (value, error) {
			switch writtenKind(a[0].Text) {
			case '[':
				n := int64(0)
				eachPart(a[0].Text, func(string, string) bool { n++; return false })
				return scalar.OfInt(n), nil
			case '{':
				return value{}, invalid("cannot get array length of a non-array")
			}
			return value{}, invalid("cannot get array length of a scalar")
		}},
		scalar.Function{Name: "skippr_js_strip", Params: kinds(text), Result: text, Call: func(a []value) (value, error) {
			n, err := parseJSONAs(a[0].Text, false)
			if err != nil {
				return value{}, err
			}
			var b strings.Builder
			n.stripNulls().writeCompact(&b)
			return scalar.OfText(b.String()), nil
		}},
	)
}

func writtenType(s string) string {
	switch writtenKind(s) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// writeCompact appends the text without blanks.
func (n *jsonNode) writeCompact(b *strings.Builder) {
	open, closed := byte('['), byte(']')
	switch n.kind {
	case jsonObject:
		open, closed = '{', '}'
	case jsonArray:
	default:
		n.write(b, -1)
		return
	}
	b.WriteByte(open)
	for i, item := range n.items {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.kind == jsonObject {
			appendJSONString(b, n.names[i])
			b.WriteByte(':')
		}
		item.writeCompact(b)
	}
	b.WriteByte(closed)
}

// writtenGetters make the two forms of an access: as json, and as text.
func writtenGetters(name string, param scalar.Kind, f func(s string, arg value) (string, error)) []scalar.Function {
	form := func(name string, result func(string) value) scalar.Function {
		return scalar.Function{
			Name: name, Params: kinds(scalar.Text, param), Result: scalar.Text,
			Call: func(args []value) (value, error) {
				if err := checkEscapes(args[0].Text); err != nil {
					return value{}, err
				}
				s, err := f(args[0].Text, args[1])
				if err != nil || s == "" {
					return scalar.Null, err
				}
				return result(s), nil
			},
		}
	}
	return []scalar.Function{form(name, scalar.OfText), form(name+"_text", func(raw string) value {
		switch s := strings.TrimLeft(raw, " \t\r\n"); {
		case s == "null":
			return scalar.Null
		case s[0] == '"':
			return scalar.OfText(unquote(s))
		}
		return scalar.OfText(raw)
	})}
}
