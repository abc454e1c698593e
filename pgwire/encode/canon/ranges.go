package canon

import (
	"math/big"
	"strings"
	"time"
)

// Kind is what a range is of.
type Kind uint8

// The kinds.
const (
	Integers Kind = iota + 1 // discrete, as are Days
	Days
	Numbers
	Moments
)

// span is a range; a bound that is not given has no text.
type span struct {
	lower, upper           string
	lowerGiven, upperGiven bool
	lowerIn, upperIn       bool
	lowerRank, upRank      *big.Rat
}

// Range is a range of bounds of a kind, which bound gives their canonical form.
func Range(text string, kind Kind, bound func(string) (string, error)) (string, error) {
	s := strings.TrimSpace(text)
	if strings.EqualFold(s, "empty") {
		return "empty", nil
	}
	r, err := parseSpan(s)
	if err != nil {
		return "", err
	}
	if err := r.rank(kind, bound, false); err != nil {
		return "", err
	}
	if r.lowerGiven && r.upperGiven && r.lowerRank.Cmp(r.upRank) > 0 {
		return "", ErrOrder
	}
	if kind == Integers || kind == Days {
		if err := r.rank(kind, bound, true); err != nil {
			return "", err
		}
		r.lowerIn, r.upperIn = true, false
	}
	r.lowerIn, r.upperIn = r.lowerIn && r.lowerGiven, r.upperIn && r.upperGiven
	if r.lowerGiven && r.upperGiven {
		if c := r.lowerRank.Cmp(r.upRank); c > 0 || c == 0 && !(r.lowerIn && r.upperIn) {
			return "empty", nil
		}
	}
	return brackets(r), nil
}

// rank gives the bounds their canonical form; next has the lower one included, and the upper
// one excluded.
func (r *span) rank(kind Kind, bound func(string) (string, error), next bool) (err error) {
	if r.lowerGiven {
		if r.lower, r.lowerRank, err = ranked(r.lower, kind, bound, next && !r.lowerIn); err != nil {
			return err
		}
	}
	if r.upperGiven {
		r.upper, r.upRank, err = ranked(r.upper, kind, bound, next && r.upperIn)
	}
	return err
}

func brackets(r span) string {
	var b strings.Builder
	b.WriteByte("(["[index(r.lowerIn)])
	if r.lowerGiven {
		b.WriteString(quoted(r.lower))
	}
	b.WriteByte(',')
	if r.upperGiven {
		b.WriteString(quoted(r.upper))
	}
	b.WriteByte(")]"[index(r.upperIn)])
	return b.String()
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// parseSpan takes a range apart. Escapes in bounds are not read.
func parseSpan(s string) (r span, err error) {
	if len(s) < 3 || strings.IndexByte("([", s[0]) < 0 || strings.IndexByte(")]", s[len(s)-1]) < 0 {
		return r, ErrSyntax
	}
	r.lowerIn, r.upperIn = s[0] == '[', s[len(s)-1] == ']'
	inner := s[1 : len(s)-1]
	if strings.Contains(inner, `\`) || strings.Contains(inner, `""`) {
		return r, ErrUnsupported
	}
	lower, upper, ok := strings.Cut(inner, ",")
	if !ok || strings.ContainsAny(upper, ",()[]") || strings.ContainsAny(lower, "()[]") {
		return r, ErrSyntax
	}
	bare := func(s string) (string, bool, error) {
		if s == "" {
			return "", false, nil
		}
		if s[0] == '"' && len(s) > 1 && s[len(s)-1] == '"' {
			s = s[1 : len(s)-1]
		}
		if strings.Contains(s, `"`) {
			return "", false, ErrUnsupported
		}
		return s, true, nil
	}
	if r.lower, r.lowerGiven, err = bare(lower); err != nil {
		return r, err
	}
	r.upper, r.upperGiven, err = bare(upper)
	return r, err
}

// ranked is a bound in canonical form, and where it stands among others; next takes the one
// after it, where there is one.
func ranked(text string, kind Kind, bound func(string) (string, error), next bool) (string, *big.Rat, error) {
	s, err := bound(text)
	if err != nil {
		return "", nil, err
	}
	switch kind {
	case Integers, Numbers:
		rank, ok := new(big.Rat).SetString(s)
		if !ok || len(s) > 1000 {
			return "", nil, ErrUnsupported // NaN, infinity
		}
		if next && kind == Integers {
			rank.Add(rank, big.NewRat(1, 1))
			if s, err = bound(rank.Num().String()); err != nil {
				return "", nil, err
			}
		}
		return s, rank, nil
	case Days:
		day, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return "", nil, ErrUnsupported // BC, infinity, beyond year 9999
		}
		if next {
			day = day.AddDate(0, 0, 1)
			s = day.Format(time.DateOnly)
		}
		return s, big.NewRat(day.Unix()/86400, 1), nil
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999", s)
	if err != nil {
		return "", nil, ErrUnsupported
	}
	return s, big.NewRat(at.UnixMicro(), 1), nil
}

// quoted is a bound as a range shows it.
func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\"\\(),[]") {
		return `"` + s + `"`
	}
	return s
}
