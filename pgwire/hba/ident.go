package hba

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Maps say which roles names of certificates are for. A nil one has none.
type Maps struct{ lines []mapLine }

// mapLine is a line: MAP  NAME  ROLE. A name that begins with a slash is a regular expression,
// whose first group takes the place of \1 in the role.
type mapLine struct {
	name, system, role string
	pattern            *regexp.Regexp
}

// ParseMaps reads maps from the text of the file of that name.
func ParseMaps(file, text string) (*Maps, error) {
	m := &Maps{}
	err := eachLine(file, text, func(_ int, _ string, fields []field) error {
		l, err := parseMap(fields)
		if err == nil {
			m.lines = append(m.lines, l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// MapEntries are all lines of the text of a file of maps that have anything, in order.
func MapEntries(text string) []Entry {
	return entries(text, func(e *Entry, fields []field) error {
		l, err := parseMap(fields)
		e.Map = &[3]string{l.name, l.system, l.role}
		return err
	})
}

func parseMap(fields []field) (l mapLine, err error) {
	if len(fields) != 3 || slices.ContainsFunc(fields, func(f field) bool { return len(f) != 1 }) {
		return l, errors.New("a line has the name of a map, a certificate's name, and a role")
	}
	l = mapLine{name: fields[0][0].Text, system: fields[1][0].Text, role: fields[2][0].Text}
	text, ok := strings.CutPrefix(l.system, "/")
	if !ok {
		return l, nil
	}
	if l.pattern, err = regexp.Compile(text); err != nil {
		return l, fmt.Errorf("invalid regular expression \"%s\"", text)
	}
	if strings.Contains(l.role, `\1`) && l.pattern.NumSubexp() < 1 {
		return l, fmt.Errorf("regular expression \"%s\" has no subexpressions as requested by backreference in \"%s\"", text, l.role)
	}
	return l, nil
}

func (m *Maps) has(name string) bool {
	return m != nil && slices.ContainsFunc(m.lines, func(l mapLine) bool { return l.name == name })
}

// Admits says whether a map lets a certificate's name be a role; without a map they must be the
// same.
func (m *Maps) Admits(name, system, role string) bool {
	if name == "" {
		return system == role
	}
	if m == nil {
		return false
	}
	return slices.ContainsFunc(m.lines, func(l mapLine) bool {
		if l.name != name {
			return false
		}
		if l.pattern == nil {
			return l.system == system && l.role == role
		}
		groups := l.pattern.FindStringSubmatch(system)
		if groups == nil {
			return false
		}
		want := l.role
		if len(groups) > 1 {
			want = strings.Replace(want, `\1`, groups[1], 1)
		}
		return want == role
	})
}
