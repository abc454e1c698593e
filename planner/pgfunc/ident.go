package pgfunc

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// seriesMax bounds what generate_series of numerics makes at a time.
const seriesMax = 1_000_000

func identFunctions() []scalar.Function {
	text := scalar.Text
	return []scalar.Function{
		{Name: "skippr_parse_ident", Params: kinds(text, scalar.Bool), Result: text, Call: func(a []value) (value, error) {
			return parseIdent(a[0].Text, a[1].Int != 0)
		}},
		{Name: "skippr_size_bytes", Params: kinds(text), Result: scalar.Int64, Call: func(a []value) (value, error) {
			return sizeBytes(a[0].Text)
		}},
		{Name: "skippr_n_series", Params: kinds(text, text, text), Result: text, Call: func(a []value) (value, error) {
			return numericSeries(a[0].Text, a[1].Text, a[2].Text)
		}},
	}
}

// identStart and identPart are the bytes of identifiers that are not quoted.
func identStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func identPart(c byte) bool { return identStart(c) || c >= '0' && c <= '9' || c == '$' }

// blanks are what PostgreSQL's scanner skips.
const blanks = " \t\n\r\f\v"

// parseIdent is parse_ident.
func parseIdent(s string, strict bool) (value, error) {
	bad := func() (value, error) {
		return value{}, invalid("string is not a valid identifier: \"%s\"", strings.Clone(s))
	}
	var list []*string
	rest := strings.TrimLeft(s, blanks)
	for {
		var name string
		switch {
		case rest != "" && rest[0] == '"':
			var b strings.Builder
			i := 1
			for ; i < len(rest); i++ {
				if rest[i] == '"' {
					if i+1 == len(rest) || rest[i+1] != '"' {
						break
					}
					i++
				}
				b.WriteByte(rest[i])
			}
			if i >= len(rest) || b.Len() == 0 {
				return bad()
			}
			name, rest = b.String(), rest[i+1:]
		case rest != "" && identStart(rest[0]):
			i := 1
			for i < len(rest) && identPart(rest[i]) {
				i++
			}
			name, rest = lowerASCII(rest[:i]), rest[i:]
		default:
			return bad()
		}
		list = append(list, &name)
		rest = strings.TrimLeft(rest, blanks)
		switch {
		case rest != "" && rest[0] == '.':
			rest = strings.TrimLeft(rest[1:], blanks)
			continue
		case rest != "" && strict:
			return bad()
		}
		out, err := listText(list)
		return scalar.OfText(out), err
	}
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

var sizeText = regexp.MustCompile(`^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\n\r\f\v]*([A-Za-z]*)$`)

// sizeUnits are the units of pg_size_bytes, as powers of 1024.
var sizeUnits = map[string]int{"": 0, "b": 0, "bytes": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}

// sizeBytes is pg_size_bytes.
func sizeBytes(s string) (value, error) {
	m := sizeText.FindStringSubmatch(strings.Trim(s, blanks))
	if m == nil {
		return value{}, invalid("invalid size: \"%s\"", strings.Clone(s))
	}
	power, ok := sizeUnits[strings.ToLower(m[2])]
	if !ok {
		return value{}, invalid("invalid size: \"%s\"", strings.Clone(s))
	}
	n, err := numeric.Parse(m[1])
	if err != nil {
		return value{}, err
	}
	for range power {
		if n, err = numeric.Mul(n, numeric.FromInt(1024)); err != nil {
			return value{}, err
		}
	}
	v, err := n.Int(64, "bigint")
	return scalar.OfInt(v), err
}

// numericSeries is the list of generate_series of numerics.
func numericSeries(from, to, by string) (value, error) {
	var ends [3]numeric.Num
	for i, s := range []string{from, to, by} {
		n, err := numeric.Parse(s)
		if err != nil {
			return value{}, err
		}
		if !n.IsFinite() {
			kind := [...]string{"start", "stop", "step size"}[i]
			if n.IsNaN() {
				return value{}, invalid("%s value cannot be NaN", kind)
			}
			return value{}, invalid("%s value cannot be infinity", kind)
		}
		ends[i] = n
	}
	at, step := ends[0], ends[2]
	if step.Sign() == 0 {
		return value{}, invalid("step size cannot equal zero")
	}
	var list []*string
	for numeric.Cmp(at, ends[1])*step.Sign() <= 0 {
		if len(list) == seriesMax {
			return value{}, unsupported("generate_series of more than %d numerics is not supported", seriesMax)
		}
		text := at.Text()
		list = append(list, &text)
		var err error
		if at, err = numeric.Add(at, step); err != nil {
			return value{}, err
		}
	}
	out, err := listText(list)
	return scalar.OfText(out), err
}
