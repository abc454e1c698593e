package pgsql

import (
	"regexp"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgfunc"
)

// like analyses LIKE and ILIKE with their negations. The pattern's escape is the
// backslash; LIKE … ESCAPE comes as a call of like_escape.
func (a *analyzer) like(op string, l, r expr, loc int32) (expr, error) {
	op, l, r = foldedMatch(op, l, r)
	out := expr{typ: plain(OIDBool), loc: loc, scale: -1, con: l.con && r.con}
	if l.typ.OID == OIDBytea && !strings.HasSuffix(op, "*") {
		return a.likeBytes(op, l, r, out)
	}
	for i, e := range []*expr{&l, &r} {
		if i == 0 && !e.undecided() && e.typ.OID == OIDBpchar {
			continue // char(n) keeps its blanks in LIKE
		}
		if !e.undecided() && !isString(e.typ.OID) {
			return out, a.noOperator(op, &l, r, loc)
		}
		c, err := a.coerce(*e, plain(OIDText), implicit)
		if err != nil {
			return out, err
		}
		*e = c
	}
	word := "LIKE"
	if strings.HasSuffix(op, "*") {
		word = "ILIKE"
		ascii, err := asciiMatch(l, r, "ILIKE")
		if err != nil {
			return out, a.errAt(loc, err)
		}
		if ascii {
			word, l.sql, r.sql = "LIKE", foldASCII(l.sql, false), foldASCII(r.sql, false)
		}
	}
	if strings.HasPrefix(op, "!") {
		word = "NOT " + word
	}
	out.sql = "(" + l.sql + " " + word + " " + r.sql + " ESCAPE '\\')"
	return out, nil
}

// likeBytes analyses LIKE of bytea.
func (a *analyzer) likeBytes(op string, l, r, out expr) (expr, error) {
	if r.undecided() {
		d, err := a.coerce(r, plain(OIDBytea), implicit)
		if err != nil {
			return d, err
		}
		r = d
	}
	if r.typ.OID != OIDBytea {
		return out, a.noOperator(op, &l, r, out.loc)
	}
	out.sql = "skippr_b_like(" + l.sql + ", " + r.sql + ")"
	if strings.HasPrefix(op, "!") {
		out.sql = "(NOT " + out.sql + ")"
	}
	return out, nil
}

// regex analyses ~ and its kin. A constant pattern becomes one of the engine's.
func (a *analyzer) regex(op string, l, r expr, loc int32) (expr, error) {
	op, l, r = foldedMatch(op, l, r)
	out := expr{typ: plain(OIDBool), loc: loc, scale: -1, con: l.con && r.con}
	ascii, err := asciiMatch(l, r, "regular expression")
	if err == nil && ascii && (strings.HasSuffix(op, "*") || r.lit == nil || letterClass.MatchString(*r.lit)) {
		err = unsupported("such a regular expression of strings of collation \"C\" is not supported").
			WithHint("COLLATE \"default\" has the cases and letters of all scripts.")
	}
	if err != nil {
		return out, a.errAt(loc, err)
	}
	flags := ""
	if strings.HasSuffix(op, "*") {
		flags = "i"
	}
	source := ""
	if r.lit != nil {
		var err error
		if source, err = pgfunc.RegexSource(*r.lit, flags); err != nil {
			return out, a.errAt(r.loc, err)
		}
	}
	for _, e := range []*expr{&l, &r} {
		if !e.undecided() && !isString(e.typ.OID) {
			return out, a.noOperator(op, &l, r, loc)
		}
		c, err := a.coerce(*e, plain(OIDText), implicit)
		if err != nil {
			return out, err
		}
		*e = c
	}
	out.sql = "skippr_re_like(" + l.sql + ", " + r.sql + ", " + quote.Text(flags) + ")"
	if source != "" {
		out.sql = "regexp_matches(" + l.sql + ", " + quote.Text(source) + ")"
	}
	if strings.HasPrefix(op, "!") {
		out.sql = "(NOT " + out.sql + ")"
	}
	return out, nil
}

// likeEscape analyses the pattern of LIKE … ESCAPE 'c': it becomes one whose escape
// is the backslash.
func (a *analyzer) likeEscape(args []expr, loc int32) (expr, error) {
	if args[0].lit == nil || args[1].lit == nil {
		if args[1].lit != nil && *args[1].lit == `\` {
			return a.settled(args[0])
		}
		if args[1].lit != nil {
			return a.likeRewritten(args[0], []rune(*args[1].lit), loc)
		}
		return expr{}, a.errAt(loc, unsupported("LIKE … ESCAPE needs a constant escape character"))
	}
	esc := []rune(*args[1].lit)
	if len(esc) > 1 {
		return expr{}, a.errAt(loc, pgerr.New(codes.InvalidEscapeSequence, "invalid escape string").
			WithHint("Escape string must be empty or one character."))
	}
	var b strings.Builder
	in := []rune(*args[0].lit)
	for i := 0; i < len(in); i++ {
		switch {
		case len(esc) == 1 && in[i] == esc[0] && i+1 < len(in):
			i++
			b.WriteString(`\` + string(in[i]))
		case in[i] == '\\' && (len(esc) == 0 || esc[0] != '\\'):
			b.WriteString(`\\`)
		default:
			b.WriteRune(in[i])
		}
	}
	s := b.String()
	out := args[0]
	out.lit = &s
	return out, nil
}

// likeRewritten is likeEscape of a pattern that is not constant.
func (a *analyzer) likeRewritten(pattern expr, esc []rune, loc int32) (expr, error) {
	if len(esc) > 1 {
		return expr{}, a.errAt(loc, pgerr.New(codes.InvalidEscapeSequence, "invalid escape string").
			WithHint("Escape string must be empty or one character."))
	}
	out, err := a.coerce(pattern, plain(OIDText), implicit)
	if err != nil {
		return out, err
	}
	out.col = nil
	out.sql = `replace(` + out.sql + `, '\', '\\')`
	if len(esc) == 1 { // what it escapes may be a backslash, which is two by now
		out.sql = "regexp_replace(" + out.sql + ", " + quote.Text(regexp.QuoteMeta(string(esc))+`\\?(.)`) + `, '\\\1', 'gs')`
	}
	return out, nil
}

// similarPattern turns a SIMILAR TO pattern into a regular expression.
func (a *analyzer) similarPattern(args []expr, loc int32) (expr, error) {
	escape := `\`
	if len(args) > 1 && args[1].lit != nil {
		escape = *args[1].lit
	}
	if args[0].lit != nil && (len(args) == 1 || args[1].lit != nil) {
		s, err := pgfunc.Similar(*args[0].lit, escape)
		if err != nil {
			return expr{}, a.errAt(loc, err)
		}
		out := args[0]
		out.lit = &s
		return out, nil
	}
	p, err := a.coerce(args[0], plain(OIDText), implicit)
	if err != nil {
		return p, err
	}
	e := quote.Text(escape)
	if len(args) > 1 {
		esc, err := a.coerce(args[1], plain(OIDText), implicit)
		if err != nil {
			return esc, err
		}
		e = esc.sql
	}
	return expr{typ: plain(OIDText), scale: -1, loc: loc, sql: "skippr_re_similar_pattern(" + p.sql + ", " + e + ")"}, nil
}
