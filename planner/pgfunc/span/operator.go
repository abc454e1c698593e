package span

import (
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// predicates are the operators that compare two ranges or multiranges.
var predicates = map[string]func(a, b set) bool{
	"contains": contains, "overlaps": overlaps, "adjacent": adjacent,
	"before":   func(a, b set) bool { return both(a, b) && a.last().compare(b[0].lower) < 0 },
	"after":    func(a, b set) bool { return both(a, b) && a[0].lower.compare(b.last()) > 0 },
	"notright": func(a, b set) bool { return both(a, b) && a.last().compare(b.last()) <= 0 },
	"notleft":  func(a, b set) bool { return both(a, b) && a[0].lower.compare(b[0].lower) >= 0 },
}

func (s set) last() bound { return s[len(s)-1].upper }

func both(a, b set) bool { return len(a) > 0 && len(b) > 0 }

// contains says that every range of b is in one of a.
func contains(a, b set) bool {
	for _, x := range b {
		in := false
		for _, y := range a {
			in = in || y.lower.compare(x.lower) <= 0 && y.upper.compare(x.upper) >= 0
		}
		if !in {
			return false
		}
	}
	return true
}

func overlaps(a, b set) bool {
	for _, x := range a {
		for _, y := range b {
			if overlap(x, y) {
				return true
			}
		}
	}
	return false
}

func adjacent(a, b set) bool {
	return both(a, b) && (touch(a.last(), b[0].lower) || touch(b.last(), a[0].lower))
}

// holds says that an element is in a range.
func holds(a set, e element) bool {
	for _, x := range a {
		low, high := x.lower, x.upper
		if (low.infinite || low.at.compare(e) < 0 || low.inclusive && low.at.compare(e) == 0) &&
			(high.infinite || high.at.compare(e) > 0 || high.inclusive && high.at.compare(e) == 0) {
			return true
		}
	}
	return false
}

func (k Kind) intersection(a, b set) (set, error) {
	var out []span
	for _, x := range a {
		for _, y := range b {
			if !overlap(x, y) {
				continue
			}
			z := x
			if x.lower.compare(y.lower) < 0 {
				z.lower = y.lower
			}
			if x.upper.compare(y.upper) > 0 {
				z.upper = y.upper
			}
			out = append(out, z)
		}
	}
	return normal(out), nil
}

// difference is what of a is not in b.
func (k Kind) difference(a, b set) (set, error) {
	rest := append([]span(nil), a...)
	for _, y := range b {
		var next []span
		for _, x := range rest {
			if !overlap(x, y) {
				next = append(next, x)
				continue
			}
			if x.lower.compare(y.lower) < 0 {
				end := bound{at: y.lower.at, inclusive: !y.lower.inclusive}
				left, err := k.made(x.lower, end)
				if err != nil {
					return nil, err
				}
				next = append(next, left...)
			}
			if x.upper.compare(y.upper) > 0 {
				begin := bound{at: y.upper.at, inclusive: !y.upper.inclusive, lower: true}
				right, err := k.made(begin, x.upper)
				if err != nil {
					return nil, err
				}
				next = append(next, right...)
			}
		}
		rest = next
	}
	return normal(rest), nil
}

// combine is one of the operators that make a range or multirange of two.
func (k Kind) combine(op string, multi bool, a, b set) (out set, err error) {
	word := "union"
	switch op {
	case "intersect":
		return k.intersection(a, b)
	case "minus":
		word = "difference"
		out, err = k.difference(a, b)
	case "merge":
		if both(a, b) {
			return set{hull(append(append(set{}, a...), b...))}, nil
		}
		return append(append(set{}, a...), b...), nil
	default:
		out = normal(append(append([]span(nil), a...), b...))
	}
	if err == nil && !multi && len(out) > 1 {
		return nil, pgerr.New(codes.DataException, "result of range %s would not be contiguous", word)
	}
	return out, err
}

// hull is the smallest range that has all of some.
func hull(s set) span {
	out := s[0]
	for _, x := range s[1:] {
		if x.lower.compare(out.lower) < 0 {
			out.lower = x.lower
		}
		if x.upper.compare(out.upper) > 0 {
			out.upper = x.upper
		}
	}
	return out
}
