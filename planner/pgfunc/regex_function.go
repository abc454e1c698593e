package pgfunc

import (
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func regexFunctions() []scalar.Function {
	text, i32 := scalar.Text, scalar.Int32
	return []scalar.Function{
		{Name: "skippr_re_like", Params: kinds(text, text, text), Result: scalar.Bool, Call: func(a []value) (value, error) {
			p, err := compile(a[1].Text, a[2].Text)
			if err != nil {
				return value{}, err
			}
			found, err := p.matchesText(a[0].Text)
			return scalar.OfBool(found), err
		}},
		{Name: "skippr_re_replace", Params: kinds(text, text, text, text), Result: text, Call: func(a []value) (value, error) {
			n := int64(1)
			if strings.Contains(a[3].Text, "g") {
				n = 0
			}
			return replaceRegex(a[0].Text, a[1].Text, a[2].Text, a[3].Text, 1, n)
		}},
		{Name: "skippr_re_replace_at", Params: kinds(text, text, text, i32, i32, text), Result: text, Call: func(a []value) (value, error) {
			return replaceRegex(a[0].Text, a[1].Text, a[2].Text, a[5].Text, a[3].Int, a[4].Int)
		}},
		{Name: "skippr_re_part", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			p, err := compile(a[1].Text, "")
			if err != nil {
				return value{}, err
			}
			return matchedGroup(p, a[0].Text, min(p.own.Groups(), 1))
		}},
		// text, pattern, start, which match, flags, group
		{Name: "skippr_re_substr", Params: kinds(text, text, i32, i32, text, i32), Result: text, Call: substrRegex},
		{Name: "skippr_re_similar", Params: kinds(text, text, text), Result: text, Call: func(a []value) (value, error) {
			expr, err := Similar(a[1].Text, a[2].Text)
			if err != nil {
				return value{}, err
			}
			p, err := compile(expr, "")
			if err != nil {
				return value{}, err
			}
			return matchedGroup(p, a[0].Text, min(p.own.Groups(), 1))
		}},
		{Name: "skippr_re_similar_pattern", Params: kinds(text, text), Result: text, Call: func(a []value) (value, error) {
			expr, err := Similar(a[0].Text, a[1].Text)
			return scalar.OfText(expr), err
		}},
		{Name: "skippr_re_count", Params: kinds(text, text, i32, text), Result: i32, Call: func(a []value) (value, error) {
			all, _, err := searchRegex(a[0].Text, a[1].Text, a[3].Text, a[2].Int, 0, false)
			return scalar.OfInt(int64(len(all))), err
		}},
		// text, pattern, start, which match, 1 for the end, flags, group
		{Name: "skippr_re_instr", Params: kinds(text, text, i32, i32, i32, text, i32), Result: i32, Call: instrRegex},
		{Name: "skippr_re_match", Params: kinds(text, text, text), Result: text, Call: func(a []value) (value, error) {
			if strings.Contains(a[2].Text, "g") {
				return value{}, invalid("regexp_match() does not support the \"global\" option")
			}
			all, p, err := searchRegex(a[0].Text, a[1].Text, a[2].Text, 1, 1, true)
			if err != nil || len(all) == 0 {
				return scalar.Null, err
			}
			return groupsOf(p, a[0].Text, all[0])
		}},
		{Name: "skippr_re_matches", Params: kinds(text, text, text), Result: text, Call: allMatches},
		{Name: "skippr_re_split", Params: kinds(text, text, text), Result: text, Call: splitRegex},
	}
}

// Similar makes a regular expression of a SIMILAR TO pattern.
func Similar(p, escape string) (string, error) {
	esc := []rune(escape)
	if len(esc) > 1 {
		return "", pgerr.New(codes.InvalidEscapeSequence, "invalid escape string").
			WithHint("Escape string must be empty or one character.")
	}
	var b strings.Builder
	b.WriteString("^(?:")
	class, escaped, quotes := false, false, 0
	for _, c := range p {
		switch {
		case escaped && c == '"' && !class: // ends a part; what is between two of them is a group
			if quotes == len(similarParts) {
				return "", pgerr.New(codes.InvalidUseOfEscapeCharacter, "SQL regular expression may not contain more than two escape-double-quote separators")
			}
			b.WriteString(similarParts[quotes])
			quotes++
			escaped = false
		case escaped:
			b.WriteString(`\` + string(c))
			escaped = false
		case len(esc) == 1 && c == esc[0]:
			escaped = true
		case class:
			if c == '\\' {
				b.WriteByte('\\')
			}
			class = c != ']'
			b.WriteRune(c)
		case c == '[':
			class = true
			b.WriteRune(c)
		case c == '%':
			b.WriteString(".*")
		case c == '_':
			b.WriteByte('.')
		case c == '(':
			b.WriteString("(?:")
		case strings.ContainsRune(`.^$\`, c):
			b.WriteString(`\` + string(c))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteString(")$")
	return b.String(), nil
}

// similarParts stand where a pattern of substring(… SIMILAR …) is divided.
var similarParts = []string{"){1,1}?(", "){1,1}(?:"}

func matchedGroup(p *pattern, s string, group int) (value, error) {
	all, err := p.search(s, 0, 1, group > 0)
	if err != nil || len(all) == 0 || all[0][2*group] < 0 {
		return scalar.Null, err
	}
	m := all[0]
	return scalar.OfText(s[m[2*group]:m[2*group+1]]), nil
}

// searchRegex finds matches from a character on; most is 1 for the first only, 0 for all.
func searchRegex(s, expr, flags string, start int64, most int, groups bool) ([][]int, *pattern, error) {
	p, err := compile(expr, flags)
	if err != nil {
		return nil, nil, err
	}
	if start < 1 {
		return nil, nil, invalid("invalid value for parameter \"%s\": %d", "start", start)
	}
	from, ok := runeOffset(s, start-1)
	if !ok {
		return nil, p, nil
	}
	all, err := p.search(s, from, most, groups)
	return all, p, err
}

// runeOffset is where the n'th character begins; false past the end.
func runeOffset(s string, n int64) (int, bool) {
	at := 0
	for ; n > 0; n-- {
		if at >= len(s) {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at, true
}

// replaceRegex replaces the n'th match from a character on, 0 for all.
func replaceRegex(s, expr, with, flags string, start, n int64) (value, error) {
	if n < 0 {
		return value{}, invalid("invalid value for parameter \"%s\": %d", "n", n)
	}
	most := 0
	if n == 1 {
		most = 1
	}
	all, _, err := searchRegex(s, expr, flags, start, most, strings.Contains(with, `\`) && strings.ContainsAny(with, "123456789"))
	if err != nil {
		return value{}, err
	}
	var b strings.Builder
	done := 0
	for i, m := range all {
		if n > 0 && int64(i) != n-1 {
			continue
		}
		b.WriteString(s[done:m[0]])
		expandMatch(&b, s, with, m)
		done = m[1]
	}
	b.WriteString(s[done:])
	return scalar.OfText(b.String()), nil
}

// expandMatch writes a replacement: \1 to \9 are groups, \& is the whole match.
func expandMatch(b *strings.Builder, s, with string, m []int) {
	for i := 0; i < len(with); i++ {
		if with[i] != '\\' || i+1 == len(with) {
			b.WriteByte(with[i])
			continue
		}
		group := -1
		switch c := with[i+1]; {
		case c >= '1' && c <= '9':
			group = int(c - '0')
		case c == '&':
			group = 0
		case c == '\\':
			b.WriteByte('\\')
			i++
			continue
		default:
			b.WriteByte('\\')
			continue
		}
		i++
		if 2*group+1 < len(m) && m[2*group] >= 0 {
			b.WriteString(s[m[2*group]:m[2*group+1]])
		}
	}
}

// nth finds the n'th match from a character on.
func nth(s, expr, flags string, start, n, group int64) ([]int, error) {
	switch {
	case n < 1:
		return nil, invalid("invalid value for parameter \"%s\": %d", "n", n)
	case group < 0:
		return nil, invalid("invalid value for parameter \"%s\": %d", "subexpr", group)
	}
	all, p, err := searchRegex(s, expr, flags, start, 0, group > 0)
	if err != nil || int64(len(all)) < n {
		return nil, err
	}
	if p.own.Groups() == 0 && group == 1 { // the whole counts as a group when there is none
		group = 0
	}
	if group > int64(p.own.Groups()) {
		return nil, nil
	}
	m := all[n-1][2*group : 2*group+2]
	if m[0] < 0 {
		return nil, nil
	}
	return m, nil
}

func substrRegex(a []value) (value, error) {
	m, err := nth(a[0].Text, a[1].Text, a[4].Text, a[2].Int, a[3].Int, a[5].Int)
	if err != nil || m == nil {
		return scalar.Null, err
	}
	return scalar.OfText(a[0].Text[m[0]:m[1]]), nil
}

func instrRegex(a []value) (value, error) {
	if a[4].Int != 0 && a[4].Int != 1 {
		return value{}, invalid("invalid value for parameter \"%s\": %d", "endoption", a[4].Int)
	}
	m, err := nth(a[0].Text, a[1].Text, a[5].Text, a[2].Int, a[3].Int, a[6].Int)
	if err != nil || m == nil {
		return scalar.OfInt(0), err
	}
	return scalar.OfInt(int64(utf8.RuneCountInString(a[0].Text[:m[a[4].Int]])) + 1), nil
}

// groupsOf is the list of a match's groups, or of the whole match when there are none.
func groupsOf(p *pattern, s string, m []int) (value, error) {
	var list []*string
	for g := min(p.own.Groups(), 1); g <= p.own.Groups(); g++ {
		if m[2*g] < 0 {
			list = append(list, nil)
			continue
		}
		part := s[m[2*g]:m[2*g+1]]
		list = append(list, &part)
	}
	out, err := listText(list)
	return scalar.OfText(out), err
}

// allMatches is the list of the lists of groups of the first match, or of all with g.
func allMatches(a []value) (value, error) {
	most := 1
	if strings.Contains(a[2].Text, "g") {
		most = 0
	}
	all, p, err := searchRegex(a[0].Text, a[1].Text, strings.ReplaceAll(a[2].Text, "g", ""), 1, most, true)
	if err != nil {
		return value{}, err
	}
	var list []*string
	for _, m := range all {
		v, err := groupsOf(p, a[0].Text, m)
		if err != nil {
			return v, err
		}
		list = append(list, &v.Text)
	}
	out, err := listText(list)
	return scalar.OfText(out), err
}

func splitRegex(a []value) (value, error) {
	if strings.Contains(a[2].Text, "g") {
		return value{}, pgerr.New(codes.InvalidParameterValue, "regexp_split_to_array() does not support the \"global\" option")
	}
	s := a[0].Text
	p, err := compile(a[1].Text, a[2].Text)
	if err != nil {
		return value{}, err
	}
	all, err := p.search(s, 0, 0, false)
	if err != nil {
		return value{}, err
	}
	var list []*string
	done, end := 0, 0
	for _, m := range all {
		if m[0] >= len(s) || m[1] <= end { // an empty match at an end, or after another
			continue
		}
		part := s[done:m[0]]
		list = append(list, &part)
		done, end = m[1], m[1]
	}
	last := s[done:]
	out, err := listText(append(list, &last))
	return scalar.OfText(out), err
}

// matchesText reports whether a text has a match.
func (p *pattern) matchesText(s string) (bool, error) {
	if p.Regexp != nil {
		return p.MatchString(s), nil
	}
	all, err := p.searchOwn(s, 0, 1)
	return len(all) > 0, err
}

// search finds matches from a byte on, which begins a character; most is 1 for the first only, 0
// for all. Each is where it and its groups begin and end in bytes, -1 for a group that has no part.
func (p *pattern) search(s string, from, most int, groups bool) ([][]int, error) {
	groups = groups && p.own.Groups() > 0
	switch {
	case p.Regexp == nil, p.assertions && (from > 0 || p.nullable), groups && (p.choices || p.nullable):
		return p.searchOwn(s, from, most)
	case most == 1:
		m := p.FindStringSubmatchIndex(s[from:])
		if m == nil {
			return nil, nil
		}
		return shifted([][]int{m}, from), nil
	}
	all := p.FindAllStringSubmatchIndex(s[from:], -1)
	if p.nullable {
		all = withEmpty(all, len(s)-from)
	}
	return shifted(all, from), nil
}

// withEmpty adds the empty matches that follow another at once, which only PostgreSQL finds.
func withEmpty(all [][]int, size int) (out [][]int) {
	for i, m := range all {
		out = append(out, m)
		next := size + 1
		if i+1 < len(all) {
			next = all[i+1][0]
		}
		if m[1] > m[0] && next != m[1] {
			out = append(out, []int{m[1], m[1]})
		}
	}
	return out
}

func shifted(all [][]int, by int) [][]int {
	for _, m := range all {
		for i := range m {
			if m[i] >= 0 {
				m[i] += by
			}
		}
	}
	return all
}

// searchOwn is search by the engine that does as PostgreSQL's.
func (p *pattern) searchOwn(s string, from, most int) ([][]int, error) {
	text := []rune(s)
	bytes := make([]int, len(text)+1) // where characters begin
	start := 0
	for i, at := 0, 0; i < len(text); i++ {
		if at < from {
			start = i + 1
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
		bytes[i+1] = at
	}
	var out [][]int
	for start <= len(text) {
		m, err := p.own.Find(text, start)
		if err != nil {
			return nil, regexError(err)
		}
		if m == nil {
			break
		}
		if start = m[1]; m[0] == m[1] {
			start++
		}
		for i, at := range m {
			if at >= 0 {
				m[i] = bytes[at]
			}
		}
		if out = append(out, m); most == 1 {
			break
		}
	}
	return out, nil
}
