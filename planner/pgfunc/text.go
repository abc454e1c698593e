package pgfunc

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

func textFunctions() []scalar.Function {
	text, i32, float := scalar.Text, scalar.Int32, scalar.Float64
	return []scalar.Function{
		{Name: "skippr_format", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			list, err := parseList(a[1].Text)
			if err != nil {
				return value{}, err
			}
			s, err := format(a[0].Text, list)
			return scalar.OfText(s), err
		}},
		{Name: "skippr_split", Params: kinds(text, text, text), Result: text, Nulls: true, Call: splitText},
		{Name: "skippr_quote_literal", Params: kinds(text), Result: text, Call: func(a []value) (value, error) {
			return scalar.OfText(literalOf(a[0].Text)), nil
		}},
		{Name: "skippr_f4_range", Params: kinds(float), Result: float, Call: func(a []value) (value, error) {
			f := a[0].Float
			switch small := float64(float32(f)); {
			case math.IsInf(small, 0) && !math.IsInf(f, 0):
				return value{}, pgerr.New(codes.NumericValueOutOfRange, "value out of range: overflow")
			case small == 0 && f != 0:
				return value{}, pgerr.New(codes.NumericValueOutOfRange, "value out of range: underflow")
			}
			return a[0], nil
		}},
		{Name: "skippr_bucket_n", Params: kinds(text, text, text, i32), Result: i32, Call: bucketNumeric},
		{Name: "skippr_bucket_f", Params: kinds(float, float, float, i32), Result: i32, Call: bucketFloat},
		{Name: "skippr_overlay", Params: kinds(text, text, i32, i32), Result: text, Call: func(a []value) (value, error) {
			return overlayText(a[0].Text, a[1].Text, a[2].Int, a[3].Int)
		}},
		{Name: "skippr_upper", Params: kinds(text), Result: text, Call: func(a []value) (value, error) {
			return scalar.OfText(strings.ToUpper(a[0].Text)), nil
		}},
		{Name: "skippr_initcap", Params: kinds(text), Result: text, Call: func(a []value) (value, error) {
			return scalar.OfText(initcap(a[0].Text)), nil
		}},
		{Name: "skippr_record", Params: kinds(text), Result: text, Call: func(a []value) (value, error) {
			list, err := parseList(a[0].Text)
			return scalar.OfText(record(list)), err
		}},
		{Name: "skippr_unistr", Params: kinds(text), Result: text, Call: func(a []value) (value, error) { return unistr(a[0].Text) }},
	}
}

// literalOf is quote_literal.
func literalOf(s string) string {
	if strings.Contains(s, `\`) { // in front of it a blank, in format too
		return quote.Literal(s)
	}
	return quote.Text(s)
}

// splitText is string_to_array: by characters when there is no separator.
func splitText(a []value) (value, error) {
	if a[0].Null {
		return scalar.Null, nil
	}
	var parts []string
	switch {
	case a[0].Text == "":
	case a[1].Null:
		for _, r := range a[0].Text {
			parts = append(parts, string(r))
		}
	case a[1].Text == "":
		parts = []string{a[0].Text}
	default:
		parts = strings.Split(a[0].Text, a[1].Text)
	}
	list := make([]*string, len(parts))
	for i := range parts {
		if a[2].Null || parts[i] != a[2].Text {
			list[i] = &parts[i]
		}
	}
	out, err := listText(list)
	return scalar.OfText(out), err
}

// format is format(): %s, %I and %L with positions, widths and a minus.
func format(f string, args []*string) (string, error) {
	var b strings.Builder
	next := 0
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		if i++; i == len(f) {
			return "", invalid("unterminated format() type specifier").(*pgerr.Error).WithHint("%s", `For a single "%" use "%%".`)
		}
		if f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		s, end, err := readSpec(f, i, &next, args)
		if err != nil {
			return "", err
		}
		i = end
		b.WriteString(s)
	}
	return b.String(), nil
}

// readSpec formats the specifier at f[i] and returns where its type letter stands.
func readSpec(f string, i int, next *int, args []*string) (string, int, error) {
	number := func() int {
		n := 0
		for i < len(f) && f[i] >= '0' && f[i] <= '9' && n < math.MaxInt32/10 {
			n = n*10 + int(f[i]-'0')
			i++
		}
		return n
	}
	position, left, width := 0, false, 0
	start := i
	if n := number(); i < len(f) && f[i] == '$' && i > start {
		if n == 0 {
			return "", i, invalid("format specifies argument 0, but arguments are numbered from 1")
		}
		position = n
		i++
	} else {
		i = start
	}
	if i < len(f) && f[i] == '-' {
		left = true
		i++
	}
	if i < len(f) && f[i] == '*' {
		return "", i, unsupported("format() widths that are arguments are not supported")
	}
	width = number()
	if i == len(f) {
		return "", i, invalid("unterminated format() type specifier")
	}
	if strings.IndexByte("sIL", f[i]) < 0 {
		r, _ := utf8.DecodeRuneInString(f[i:])
		return "", i, invalid("unrecognized format() type specifier \"%c\"", r)
	}
	if position == 0 {
		*next++
		position = *next
	} else {
		*next = position
	}
	if position > len(args) {
		return "", i, invalid("too few arguments for format()")
	}
	s, err := formatArg(f[i], args[position-1])
	if err != nil {
		return "", i, err
	}
	if pad := width - utf8.RuneCountInString(s); pad > 0 {
		if left {
			s += strings.Repeat(" ", pad)
		} else {
			s = strings.Repeat(" ", pad) + s
		}
	}
	return s, i, nil
}

func formatArg(kind byte, arg *string) (string, error) {
	switch {
	case kind == 'I' && arg == nil:
		return "", pgerr.New(codes.NullValueNotAllowed, "null values cannot be formatted as an SQL identifier")
	case kind == 'L' && arg == nil:
		return "NULL", nil
	case arg == nil:
		return "", nil
	case kind == 'I':
		return quote.NameIfNeeded(*arg), nil
	case kind == 'L':
		return literalOf(*arg), nil
	}
	return *arg, nil
}

var (
	errBucketCount = pgerr.New(codes.InvalidArgumentForWidthBucketFunction, "count must be greater than zero")
	errBucketEqual = pgerr.New(codes.InvalidArgumentForWidthBucketFunction, "lower bound cannot equal upper bound")
)

func bucketNumeric(a []value) (value, error) {
	var n [3]numeric.Num
	for i := range n {
		var err error
		if n[i], err = numeric.Parse(a[i].Text); err != nil {
			return value{}, err
		}
	}
	x, lo, hi, count := n[0], n[1], n[2], a[3].Int
	switch {
	case count <= 0:
		return value{}, errBucketCount
	case x.IsNaN() || lo.IsNaN() || hi.IsNaN():
		return value{}, pgerr.New(codes.InvalidArgumentForWidthBucketFunction, "operand, lower bound, and upper bound cannot be NaN")
	case !lo.IsFinite() || !hi.IsFinite():
		return value{}, pgerr.New(codes.InvalidArgumentForWidthBucketFunction, "lower and upper bounds must be finite")
	case numeric.Cmp(lo, hi) == 0:
		return value{}, errBucketEqual
	}
	if numeric.Cmp(lo, hi) > 0 { // counted downwards
		x, lo, hi = x.Neg(), lo.Neg(), hi.Neg()
	}
	switch {
	case numeric.Cmp(x, lo) < 0:
		return scalar.OfInt(0), nil
	case numeric.Cmp(x, hi) >= 0:
		return scalar.OfInt(count + 1), nil
	}
	over, err := numeric.Sub(x, lo)
	if err != nil {
		return value{}, err
	}
	width, err := numeric.Sub(hi, lo)
	if err != nil {
		return value{}, err
	}
	if over, err = numeric.Mul(over, numeric.FromInt(count)); err != nil {
		return value{}, err
	}
	q, err := numeric.Div(over, width) // rounded, as PostgreSQL does
	if err != nil {
		return value{}, err
	}
	v, err := q.Floor().Int(32, "integer")
	return scalar.OfInt(v + 1), err
}

func bucketFloat(a []value) (value, error) {
	x, lo, hi, count := a[0].Float, a[1].Float, a[2].Float, a[3].Int
	switch {
	case count <= 0:
		return value{}, errBucketCount
	case x != x || lo != lo || hi != hi:
		return value{}, pgerr.New(codes.InvalidArgumentForWidthBucketFunction, "operand, lower bound, and upper bound cannot be NaN")
	case math.IsInf(lo, 0) || math.IsInf(hi, 0):
		return value{}, pgerr.New(codes.InvalidArgumentForWidthBucketFunction, "lower and upper bounds must be finite")
	case lo == hi:
		return value{}, errBucketEqual
	}
	if lo > hi { // counted downwards
		x, lo, hi = -x, -lo, -hi
	}
	switch {
	case x < lo:
		return scalar.OfInt(0), nil
	case x >= hi:
		return scalar.OfInt(count + 1), nil
	}
	return scalar.OfInt(int64(float64(count)*(x-lo)/(hi-lo)) + 1), nil
}

// overlayText is overlay(s placing with from start for n).
func overlayText(s, with string, start, n int64) (value, error) {
	if start <= 0 {
		return value{}, errNegativeLength
	}
	size := int64(utf8.RuneCountInString(s))
	head, _ := runeOffset(s, min(start-1, size))
	tail, _ := runeOffset(s, min(max(start+n-1, 0), size))
	return scalar.OfText(s[:head] + with + s[tail:]), nil
}

// record is record_out of fields that are text already.
func record(fields []*string) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case f == nil:
		case *f == "" || strings.ContainsAny(*f, "\"\\(), \t\n\v\f\r"):
			b.WriteString(`"` + strings.NewReplacer(`"`, `""`, `\`, `\\`).Replace(*f) + `"`)
		default:
			b.WriteString(*f)
		}
	}
	b.WriteByte(')')
	return b.String()
}

// initcap writes each word with a capital.
func initcap(s string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case word && !inside:
			r = unicode.ToUpper(r)
		case word:
			r = unicode.ToLower(r)
		}
		inside = word
		return r
	}, s)
}

// unistr reads \XXXX, \+XXXXXX, \uXXXX and \UXXXXXXXX.
func unistr(s string) (value, error) {
	if !strings.Contains(s, `\`) {
		return scalar.OfText(s), nil
	}
	bad := func() (value, error) {
		return value{}, pgerr.New(codes.Syntax, "invalid Unicode escape").
			WithHint(`Unicode escapes must be \XXXX, \+XXXXXX, \uXXXX, or \UXXXXXXXX.`)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if strings.HasPrefix(s[i+1:], `\`) {
			b.WriteByte('\\')
			i++
			continue
		}
		from, n := i+1, 4
		switch {
		case strings.HasPrefix(s[from:], "+"):
			from, n = from+1, 6
		case strings.HasPrefix(s[from:], "u"):
			from++
		case strings.HasPrefix(s[from:], "U"):
			from, n = from+1, 8
		}
		if from+n > len(s) {
			return bad()
		}
		r, err := strconv.ParseUint(s[from:from+n], 16, 32)
		if err != nil {
			return bad()
		}
		if r == 0 || r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return value{}, pgerr.New(codes.Syntax, "invalid Unicode code point: %04X", r)
		}
		b.WriteRune(rune(r))
		i = from + n - 1
	}
	return scalar.OfText(b.String()), nil
}
