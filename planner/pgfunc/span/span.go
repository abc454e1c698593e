// Package span holds PostgreSQL's ranges and multiranges, in Go: their texts, functions and
// operators. Values travel as the text that PostgreSQL writes, those of timestamptz in UTC.
// Pure; safe for concurrent use.
//
// Reading order: span (values), element (their bounds), text, operator, function.
package span

import (
	"cmp"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Kind is what a range is of, by the oid of its type; a multirange has that of its ranges.
type Kind uint32

// The kinds.
const (
	Int4 Kind = 3904
	Num  Kind = 3906
	TS   Kind = 3908
	TSTZ Kind = 3910
	Date Kind = 3912
	Int8 Kind = 3926
)

// KindOf is the kind of a range or multirange type, and whether it is the latter; ok is false
// for any other type.
func KindOf(oid uint32) (k Kind, multi, ok bool) {
	switch oid {
	case 3904, 3906, 3908, 3910, 3912, 3926:
		return Kind(oid), false, true
	case 4451:
		return Int4, true, true
	case 4532:
		return Num, true, true
	case 4533:
		return TS, true, true
	case 4534:
		return TSTZ, true, true
	case 4535:
		return Date, true, true
	case 4536:
		return Int8, true, true
	}
	return 0, false, false
}

// discrete says that between two neighbours there is nothing.
func (k Kind) discrete() bool { return k == Int4 || k == Int8 || k == Date }

// bound is where a range begins or ends.
type bound struct {
	at        element
	infinite  bool
	inclusive bool
	lower     bool
}

// span is a range that is not empty.
type span struct{ lower, upper bound }

// set is a multirange: ranges in order, with something between each two. A range is one of
// them, the empty one none.
type set []span

func (a bound) compareValues(b bound) int {
	switch {
	case a.infinite && b.infinite:
		if a.lower == b.lower {
			return 0
		}
		return side(a.lower, -1)
	case a.infinite:
		return side(a.lower, -1)
	case b.infinite:
		return side(b.lower, 1)
	}
	return a.at.compare(b.at)
}

// compare is PostgreSQL's range_cmp_bounds.
func (a bound) compare(b bound) int {
	c := a.compareValues(b)
	switch {
	case c != 0 || a.infinite:
		return c
	case !a.inclusive && !b.inclusive:
		if a.lower == b.lower {
			return 0
		}
		return side(a.lower, 1)
	case !a.inclusive:
		return side(a.lower, 1)
	case !b.inclusive:
		return side(b.lower, -1)
	}
	return 0
}

// side is n for true, -n for false.
func side(b bool, n int) int {
	if b {
		return n
	}
	return -n
}

var errOrder = pgerr.New(codes.DataException, "range lower bound must be less than or equal to range upper bound")

// made is the range of two bounds; none when it is empty.
func (k Kind) made(lower, upper bound) (set, error) {
	lower.lower, upper.lower = true, false
	lower.inclusive, upper.inclusive = lower.inclusive && !lower.infinite, upper.inclusive && !upper.infinite
	if !lower.infinite && !upper.infinite {
		c := lower.at.compare(upper.at)
		switch {
		case c > 0:
			return nil, errOrder
		case c == 0 && !(lower.inclusive && upper.inclusive):
			return nil, nil
		}
	}
	if k.discrete() {
		var err error
		if !lower.infinite && !lower.inclusive {
			if lower.at, lower.inclusive, err = k.next(lower.at); err != nil {
				return nil, err
			}
		}
		if !upper.infinite && upper.inclusive {
			var exact bool
			if upper.at, exact, err = k.next(upper.at); err != nil {
				return nil, err
			}
			upper.inclusive = !exact
		}
		if !lower.infinite && !upper.infinite && lower.at.compare(upper.at) >= 0 && !(lower.inclusive && upper.inclusive) {
			return nil, nil
		}
	}
	return set{{lower, upper}}, nil
}

// normal puts ranges in order, and those that overlap or touch together.
func normal(list []span) set {
	slices.SortFunc(list, func(a, b span) int {
		return cmp.Or(a.lower.compare(b.lower), a.upper.compare(b.upper))
	})
	var out set
	for _, s := range list {
		if n := len(out); n > 0 && (overlap(out[n-1], s) || touch(out[n-1].upper, s.lower)) {
			if out[n-1].upper.compare(s.upper) < 0 {
				out[n-1].upper = s.upper
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

func overlap(a, b span) bool {
	return a.lower.compare(b.upper) <= 0 && b.lower.compare(a.upper) <= 0
}

// touch says that there is nothing between an upper bound and a lower one, nor in both.
func touch(upper, lower bound) bool {
	return !upper.infinite && !lower.infinite && upper.at.compare(lower.at) == 0 && upper.inclusive != lower.inclusive
}
