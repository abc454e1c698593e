package span

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// exact reads what was written here: bounds of timestamptz in UTC.
var exact = Reader{Input: encode.Input{}, Local: nil}

// Canonical is the text of a range or multirange as PostgreSQL writes it.
func (r Reader) Canonical(oid uint32, text string) (string, error) {
	k, multi, ok := KindOf(oid)
	if !ok {
		return text, nil
	}
	s, err := r.parse(k, multi, text)
	if err != nil {
		return "", err
	}
	return s.text(multi), nil
}

func malformed(multi bool, text, detail string) error {
	word := "range"
	if multi {
		word = "multirange"
	}
	return pgerr.New(codes.InvalidTextRepresentation, "malformed %s literal: \"%s\"", word, strings.Clone(text)).WithDetail("%s", detail)
}

func (r Reader) parse(k Kind, multi bool, text string) (set, error) {
	if !multi {
		s, rest, err := r.one(k, strings.TrimLeft(text, " \t\n\r\v\f"), text, false)
		if err == nil && strings.TrimSpace(rest) != "" {
			err = malformed(false, text, "Junk after right parenthesis or bracket.")
		}
		return s, err
	}
	in := strings.TrimSpace(text)
	if !strings.HasPrefix(in, "{") {
		return nil, malformed(true, text, "Missing left brace.")
	}
	in = strings.TrimSpace(in[1:])
	if after, ok := strings.CutPrefix(in, "}"); ok {
		if after != "" {
			return nil, malformed(true, text, "Junk after closing right brace.")
		}
		return nil, nil
	}
	var list []span
	for {
		s, rest, err := r.one(k, in, text, true)
		if err != nil {
			return nil, err
		}
		list = append(list, s...)
		in = strings.TrimSpace(rest)
		switch {
		case strings.HasPrefix(in, ","):
			in = strings.TrimSpace(in[1:])
		case in == "}":
			return normal(list), nil
		case strings.HasPrefix(in, "}"):
			return nil, malformed(true, text, "Junk after closing right brace.")
		default:
			return nil, malformed(true, text, "Expected comma or end of multirange.")
		}
	}
}

// one reads a range at the beginning of a text.
func (r Reader) one(k Kind, in, whole string, multi bool) (s set, rest string, err error) {
	const word = "empty"
	if len(in) >= len(word) && strings.EqualFold(in[:len(word)], word) {
		return nil, in[len(word):], nil
	}
	if in == "" || in[0] != '[' && in[0] != '(' {
		detail := "Missing left parenthesis or bracket."
		if multi {
			detail = "Expected range start."
		}
		return nil, "", malformed(multi, whole, detail)
	}
	var b [2]bound
	b[0].inclusive = in[0] == '['
	in = in[1:]
	for i := range b {
		var text string
		var given bool
		if text, given, in, err = boundText(in); err != nil {
			return nil, "", malformed(multi, whole, err.Error())
		}
		b[i].infinite = !given
		if given {
			if b[i].at, err = r.element(k, text); err != nil {
				return nil, "", err
			}
		}
		if i == 0 {
			if !strings.HasPrefix(in, ",") {
				return nil, "", malformed(multi, whole, "Missing comma after lower bound.")
			}
			in = in[1:]
		}
	}
	switch {
	case strings.HasPrefix(in, "]"):
		b[1].inclusive = true
	case strings.HasPrefix(in, ","):
		return nil, "", malformed(multi, whole, "Too many commas.")
	case !strings.HasPrefix(in, ")"):
		return nil, "", malformed(multi, whole, "Unexpected end of input.")
	}
	s, err = k.made(b[0], b[1])
	return s, in[1:], err
}

type endOfInput struct{}

func (endOfInput) Error() string { return "Unexpected end of input." }

// boundText reads a bound up to the comma or bracket behind it.
func boundText(in string) (text string, given bool, rest string, err error) {
	if in == "" {
		return "", false, "", endOfInput{}
	}
	if strings.IndexByte(",)]", in[0]) >= 0 {
		return "", false, in, nil
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case !quoted && strings.IndexByte(",)]", c) >= 0:
			return b.String(), true, in[i:], nil
		case c == '\\':
			if i++; i == len(in) {
				return "", false, "", endOfInput{}
			}
			b.WriteByte(in[i])
		case c == '"' && !quoted:
			quoted = true
		case c == '"' && i+1 < len(in) && in[i+1] == '"':
			b.WriteByte('"')
			i++
		case c == '"':
			quoted = false
		default:
			b.WriteByte(c)
		}
	}
	return "", false, "", endOfInput{}
}

// text writes ranges; multi with braces.
func (s set) text(multi bool) string {
	if !multi {
		if len(s) == 0 {
			return "empty"
		}
		return s[0].text()
	}
	parts := make([]string, len(s))
	for i, x := range s {
		parts[i] = x.text()
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (s span) text() string {
	var b strings.Builder
	b.WriteByte("(["[bit(s.lower.inclusive)])
	if !s.lower.infinite {
		b.WriteString(quoted(s.lower.at.text))
	}
	b.WriteByte(',')
	if !s.upper.infinite {
		b.WriteString(quoted(s.upper.at.text))
	}
	b.WriteByte(")]"[bit(s.upper.inclusive)])
	return b.String()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quoted is a bound as a range shows it.
func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\r\v\f\"\\(),[]") {
		return `"` + strings.NewReplacer(`"`, `""`, `\`, `\\`).Replace(s) + `"`
	}
	return s
}

// key is a text that orders by bytes as ranges or multiranges do, equal for equal ones.
func (s set) key(multi bool) string {
	if !multi && len(s) == 0 {
		return "0"
	}
	var b strings.Builder
	for _, x := range s {
		b.WriteByte('1')
		for _, at := range []bound{x.lower, x.upper} {
			switch {
			case at.infinite && at.lower:
				b.WriteByte('0')
			case at.infinite:
				b.WriteByte('2')
			default:
				b.WriteByte('1')
				b.WriteString(at.at.key())
				b.WriteByte("01"[bit(at.inclusive != at.lower)])
			}
		}
	}
	return b.String()
}
