package slt

import (
	"crypto/md5" // the format's own digest
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// compare holds a query's rows against the expected lines.
func (s *run) compare(rec *Record, res *result) error {
	if n := len(rec.Types); n > 0 && len(res.rows) > 0 && len(res.rows[0]) != n {
		return fmt.Errorf("%d columns, %d expected (%s)", len(res.rows[0]), n, rec.Types)
	}
	sort := rec.Sort
	if sort == "" {
		sort = s.sort
	}
	rows := res.rows
	if sort == "rowsort" {
		slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(strings.Join(a, " "), strings.Join(b, " ")) })
	}
	values := flatten(rows)
	if sort == "valuesort" {
		slices.Sort(values)
	}
	if err := s.checkLabel(rec, values); err != nil || !rec.Checked {
		return err
	}
	if len(rec.Expected) == 1 {
		if m := hashLine(rec.Expected[0]); m != nil {
			return checkHash(m, values)
		}
	}
	valuewise := s.valuewise || sort == "valuesort" ||
		len(rows) > 0 && len(rows[0]) > 1 && len(rec.Expected) == len(values) && !looksRowwise(rec.Expected, len(rows[0]))
	if valuewise {
		return diff(rec.Expected, values, false)
	}
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = strings.Join(r, " ")
	}
	expected := rec.Expected
	if sort == "rowsort" {
		expected = slices.Clone(expected)
		for i := range expected {
			expected[i] = collapse(expected[i])
		}
		slices.Sort(expected)
		for i := range lines {
			lines[i] = collapse(lines[i])
		}
		slices.Sort(lines)
	}
	return diff(expected, lines, true)
}

// looksRowwise tells that lines hold whole rows of n columns: each has n fields.
func looksRowwise(lines []string, n int) bool {
	for _, l := range lines {
		if len(strings.Split(l, "\t")) != n && len(strings.Fields(l)) != n {
			return false
		}
	}
	return true
}

func flatten(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

func (s *run) checkLabel(rec *Record, values []string) error {
	if rec.Label == "" {
		return nil
	}
	all := strings.Join(values, "\n")
	if old, ok := s.labels[rec.Label]; ok && old != all {
		return fmt.Errorf("the result differs from an earlier one labelled %s", rec.Label)
	}
	s.labels[rec.Label] = all
	return nil
}

// hashLine splits "N values hashing to MD5".
func hashLine(line string) []string {
	w := strings.Fields(line)
	if len(w) == 5 && w[1] == "values" && w[2] == "hashing" && w[3] == "to" {
		return []string{w[0], w[4]}
	}
	return nil
}

func checkHash(want, values []string) error {
	h := md5.New() // the format's own digest
	for _, v := range values {
		fmt.Fprintf(h, "%s\n", v)
	}
	got := hex.EncodeToString(h.Sum(nil))
	if strconv.Itoa(len(values)) != want[0] || got != want[1] {
		return fmt.Errorf("%d values hashing to %s, %s values hashing to %s expected", len(values), got, want[0], want[1])
	}
	return nil
}

func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }

func diff(want, got []string, rowwise bool) error {
	equal := func(a, b string) bool {
		if strings.Contains(a, "<slt:ignore>") {
			return matchIgnoring(collapse(a), collapse(b))
		}
		if rowwise {
			return collapse(a) == collapse(b)
		}
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	if slices.EqualFunc(want, got, equal) {
		return nil
	}
	return fmt.Errorf("%d lines differ from the %d expected\n--- expected\n%s\n--- got\n%s",
		len(got), len(want), shorten(want), shorten(got))
}

// matchIgnoring compares with <slt:ignore> standing for any text.
func matchIgnoring(pattern, s string) bool {
	parts := strings.Split(pattern, "<slt:ignore>")
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for i, p := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(s, p)
		}
		at := strings.Index(s, p)
		if at < 0 {
			return false
		}
		s = s[at+len(p):]
	}
	return s == ""
}

const shownLinesMax = 40

func shorten(lines []string) string {
	if len(lines) > shownLinesMax {
		return strings.Join(lines[:shownLinesMax], "\n") + fmt.Sprintf("\n… and %d more", len(lines)-shownLinesMax)
	}
	return strings.Join(lines, "\n")
}
