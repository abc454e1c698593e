package canon

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// The oids of geometric types.
const (
	point, lseg, path, box, polygon, line, circle = 600, 601, 602, 603, 604, 628, 718
)

// shape reads the text of a geometric value as PostgreSQL's geo_ops.c does.
type shape struct {
	rest  string
	float func(string) (string, error)
}

// Shape gives the text of a geometric value, of its type's oid, the form in which PostgreSQL
// writes it; float is that of a number.
func Shape(oid uint32, text string, float func(string) (string, error)) (string, error) {
	s := &shape{rest: text, float: float}
	s.blanks()
	switch oid {
	case point:
		p, err := s.pair()
		return p, s.end(err)
	case circle:
		return s.circle()
	case line:
		return s.line()
	case lseg:
		points, _, err := s.points(2, true)
		return "[" + points + "]", s.end(err)
	case box:
		points, _, err := s.points(2, false)
		if err = s.end(err); err != nil {
			return "", err
		}
		return corners(points)
	case polygon, path:
		return s.many(oid == path)
	}
	return "", ErrSyntax
}

// many reads the points of a path, which may be open, or of a polygon.
func (s *shape) many(open bool) (string, error) {
	commas := strings.Count(s.rest, ",")
	if commas%2 == 0 {
		return "", ErrSyntax
	}
	single := open && s.rest != "" && s.rest[0] == '(' && strings.LastIndexByte(s.rest, '(') == 0
	if single {
		s.rest = s.rest[1:]
	}
	points, isOpen, err := s.points((commas+1)/2, open)
	if err == nil && single && !s.take(')') {
		err = ErrSyntax
	}
	if err = s.end(err); isOpen {
		return "[" + points + "]", err
	}
	return "(" + points + ")", err
}

// points reads n points, and says whether they stand in brackets.
func (s *shape) points(n int, brackets bool) (points string, open bool, err error) {
	depth := 0
	s.blanks()
	if strings.HasPrefix(s.rest, "[") {
		if open = true; !brackets {
			return "", false, ErrSyntax
		}
		depth, s.rest = 1, s.rest[1:]
	} else if after, ok := strings.CutPrefix(s.rest, "("); ok {
		after = strings.TrimLeft(after, whitespace)
		if strings.HasPrefix(after, "(") || strings.LastIndexByte(s.rest, '(') == 0 {
			depth, s.rest = 1, after
		}
	}
	var list []string
	for range n {
		p, err := s.pair()
		if err != nil {
			return "", false, err
		}
		list = append(list, p)
		s.rest = strings.TrimPrefix(s.rest, ",")
	}
	if depth > 0 && !s.take(')') && (!open || !s.take(']')) {
		return "", false, ErrSyntax
	}
	return strings.Join(list, ","), open, nil
}

// pair reads a point.
func (s *shape) pair() (string, error) {
	s.blanks()
	after, delimited := strings.CutPrefix(s.rest, "(")
	s.rest = after
	x, err := s.number()
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(s.rest, ",") {
		return "", ErrSyntax
	}
	s.rest = s.rest[1:]
	y, err := s.number()
	if err != nil {
		return "", err
	}
	if delimited && !s.take(')') {
		return "", ErrSyntax
	}
	return "(" + x + "," + y + ")", nil
}

func (s *shape) circle() (string, error) {
	closing := ""
	if after, ok := strings.CutPrefix(s.rest, "<"); ok {
		closing, s.rest = ">)", after
	} else if after, ok := strings.CutPrefix(s.rest, "("); ok {
		if after = strings.TrimLeft(after, whitespace); strings.HasPrefix(after, "(") {
			closing, s.rest = ")>", after
		}
	}
	center, err := s.pair()
	if err != nil {
		return "", err
	}
	s.rest = strings.TrimPrefix(s.rest, ",")
	radius, err := s.number()
	if err != nil {
		return "", err
	}
	if f, err := strconv.ParseFloat(radius, 64); err != nil || f < 0 {
		return "", ErrSyntax
	}
	if closing != "" && !s.take(closing[0]) && !s.take(closing[1]) {
		return "", ErrSyntax
	}
	return "<" + center + "," + radius + ">", s.end(nil)
}

// line reads Ax + By + C = 0. That of two points is ErrUnsupported.
func (s *shape) line() (string, error) {
	after, ok := strings.CutPrefix(s.rest, "{")
	if !ok {
		if _, _, err := s.points(2, true); s.end(err) != nil {
			return "", ErrSyntax
		}
		return "", ErrUnsupported
	}
	s.rest = after
	var list []string
	for i := range 3 {
		n, err := s.number()
		if err != nil {
			return "", err
		}
		list = append(list, n)
		if i < 2 && !s.take(',') {
			return "", ErrSyntax
		}
	}
	if !s.take('}') || s.end(nil) != nil {
		return "", ErrSyntax
	}
	if strings.Trim(list[0]+list[1], "-0") == "" {
		return "", ErrLine
	}
	return "{" + strings.Join(list, ",") + "}", nil
}

// ErrLine is a line that is none.
var ErrLine = errors.New("invalid line specification: A and B cannot both be zero")

// corners puts the upper right corner of a box first.
func corners(points string) (string, error) {
	list := strings.Split(strings.NewReplacer("(", "", ")", "").Replace(points), ",")
	for i := range 2 {
		a, err := strconv.ParseFloat(list[i], 64)
		if err != nil {
			return "", ErrSyntax
		}
		b, err := strconv.ParseFloat(list[i+2], 64)
		if err != nil {
			return "", ErrSyntax
		}
		if a < b || math.IsNaN(b) { // NaN counts as the greatest
			list[i], list[i+2] = list[i+2], list[i]
		}
	}
	return "(" + list[0] + "," + list[1] + "),(" + list[2] + "," + list[3] + ")", nil
}

const whitespace = " \t\n\r\v\f"

func (s *shape) blanks() { s.rest = strings.TrimLeft(s.rest, whitespace) }

// take reads a delimiter and the blanks behind it.
func (s *shape) take(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = strings.TrimLeft(s.rest[1:], whitespace)
	return true
}

// end is ErrSyntax when there is more.
func (s *shape) end(err error) error {
	if err == nil && s.rest != "" {
		return ErrSyntax
	}
	return err
}

// number reads a number and the blanks around it.
func (s *shape) number() (string, error) {
	s.blanks()
	end := strings.IndexAny(s.rest, ",()[]<>{}"+whitespace)
	if end < 0 {
		end = len(s.rest)
	}
	out, err := s.float(s.rest[:end])
	s.rest = strings.TrimLeft(s.rest[end:], whitespace)
	return out, err
}
