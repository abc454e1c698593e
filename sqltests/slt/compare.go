package slt

import (
	"crypto/md5" // the format's own digest
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// differs is an expectation that did not hold, and what the file must say that it does.
type differs struct {
	text string
	fix  *edit // nil: it cannot be written down
}

func (d *differs) Error() string { return d.text }

// over names the lines that would hold.
func (d *differs) over(at span, lines []string) error {
	for _, l := range lines {
		if strings.ContainsAny(l, "\n\r") || strings.TrimSpace(l) == "" {
			return d
		}
	}
	d.fix = &edit{at: at, lines: lines}
	return d
}

// table is a query's rows as the dialect writes them, in the record's order.
type table struct {
	names []string
	oids  []uint32
	rows  [][]string
}

// compare holds a query's rows against the expected lines.
func (s *run) compare(rec *Record, ans *answer) error {
	if err := s.checkColumns(rec, ans); err != nil {
		return err
	}
	sort := rec.Sort
	if sort == "" {
		sort = s.sort
	}
	t := &table{names: ans.columns, oids: ans.oids}
	t.rows = s.cells(rec, ans)
	switch sort {
	case "rowsort":
		slices.SortStableFunc(t.rows, slices.Compare[[]string])
	case "partialsort":
		if err := sortPartly(t.rows, rec.SortColumns); err != nil {
			return err
		}
	}
	values := s.values(t.rows)
	if sort == "valuesort" {
		slices.Sort(values)
	}
	if err := s.checkLabel(rec, values); err != nil || !rec.Checked {
		return err
	}
	want, err := s.expected(rec)
	if err != nil {
		return err
	}
	if len(want) == 1 && hashLine.MatchString(want[0]) {
		return checkHash(rec, want[0], values)
	}
	if s.dialect == DuckDB && !rec.ColNames && sort != "partialsort" {
		return s.compareCells(rec, want, t, sort)
	}
	return s.compareTable(rec, want, t, values, sort)
}

func (s *run) checkColumns(rec *Record, ans *answer) error {
	n := len(rec.Types)
	if n == 0 || n == len(ans.columns) || s.dialect == Rust && !s.cfg.Strict {
		return nil
	}
	return fmt.Errorf("%d columns, %d expected (%s)", len(ans.columns), n, rec.Types)
}

// expected are the lines after ----, with the variables of loops in place.
func (s *run) expected(rec *Record) ([]string, error) {
	if len(s.turns) == 0 && s.dialect != DuckDB {
		return rec.Expected, nil
	}
	out := make([]string, len(rec.Expected))
	for i, l := range rec.Expected {
		text, err := s.expand(l)
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// sortPartly sorts the rows within each run of rows that are equal in the columns.
func sortPartly(rows [][]string, columns []int) error {
	same := func(a, b []string) bool {
		return !slices.ContainsFunc(columns, func(c int) bool { return a[c-1] != b[c-1] })
	}
	for _, r := range rows {
		if slices.Max(columns) > len(r) {
			return fmt.Errorf("partialsort names column %d of %d", slices.Max(columns), len(r))
		}
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && same(rows[from], rows[to]) {
			to++
		}
		slices.SortStableFunc(rows[from:to], slices.Compare[[]string])
		from = to
	}
	return nil
}

func (s *run) checkLabel(rec *Record, values []string) error {
	if rec.Label == "" || s.dialect == Rust && !s.cfg.Strict {
		return nil
	}
	return s.shared.label(rec.Label, strings.Join(values, "\n"))
}

var hashLine = regexp.MustCompile(`^(\d+)\s+values?\s+hashing\s+to\s+([0-9A-Fa-f]{32})$`)

// hash is the format's digest of values, as a file writes it.
func hash(values []string) string {
	h := md5.New() // the format's own digest
	for _, v := range values {
		fmt.Fprintf(h, "%s\n", v)
	}
	return strconv.Itoa(len(values)) + " values hashing to " + hex.EncodeToString(h.Sum(nil))
}

func checkHash(rec *Record, want string, values []string) error {
	got := hash(values)
	if strings.EqualFold(hashLine.ReplaceAllString(want, "$1 values hashing to $2"), got) {
		return nil
	}
	d := &differs{text: fmt.Sprintf("%s, %s expected", got, want)}
	return d.over(rec.block, []string{got})
}

// compareTable compares lines that hold rows, their white space collapsed, or values.
func (s *run) compareTable(rec *Record, want []string, t *table, values []string, sort string) error {
	valuewise := s.isValuewise(want, t, sort)
	got := values
	if !valuewise {
		got = s.lines(rec, t, want)
	}
	a, b := slices.Clone(want), slices.Clone(got)
	switch {
	case s.dialect == Cockroach && sort == "valuesort":
		a, b = strings.Fields(strings.Join(want, " ")), values
		slices.Sort(a)
	case valuewise && sort == "rowsort" && len(t.names) > 0 && len(a)%len(t.names) == 0:
		a = regroup(a, len(t.names))
	case sort == "rowsort" || sort == "valuesort":
		a, b = sorted(a, rec.ColNames), sorted(b, rec.ColNames)
	case sort == "partialsort":
		if err := sortLines(a, rec); err != nil {
			return err
		}
	}
	if sameLines(a, b, !valuewise) || s.dialect == Cockroach && sameFloats(rec, a, b) {
		return nil
	}
	if valuewise && s.threshold > 0 && len(values) > s.threshold {
		got = []string{hash(values)}
	}
	return difference(want, b).over(rec.block, got)
}

// isValuewise tells that each expected line holds one value.
func (s *run) isValuewise(want []string, t *table, sort string) bool {
	n := len(t.names)
	switch {
	case s.dialect == SQLite || s.valuewise || sort == "valuesort" && s.dialect != Cockroach:
		return true
	case s.dialect == Cockroach || sort == "partialsort" || n < 2 || len(want) != n*len(t.rows):
		return false
	}
	return slices.ContainsFunc(want, func(l string) bool {
		return len(strings.Split(l, "\t")) != n && len(strings.Fields(l)) != n
	})
}

// regroup sorts values as rows of n.
func regroup(values []string, n int) []string {
	rows := slices.Collect(slices.Chunk(values, n))
	slices.SortStableFunc(rows, slices.Compare[[]string])
	return slices.Concat(rows...)
}

// sorted collapses and sorts lines, the first one apart when it holds names.
func sorted(lines []string, names bool) []string {
	for i := range lines {
		lines[i] = collapse(lines[i])
	}
	if names && len(lines) > 0 {
		slices.Sort(lines[1:])
		return lines
	}
	slices.Sort(lines)
	return lines
}

// sortLines is partialsort on expected lines.
func sortLines(lines []string, rec *Record) error {
	if rec.ColNames && len(lines) > 0 {
		lines = lines[1:]
	}
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = strings.Fields(l)
	}
	if err := sortPartly(rows, rec.SortColumns); err != nil {
		return err
	}
	for i, r := range rows {
		lines[i] = strings.Join(r, " ")
	}
	return nil
}

func (s *run) compareLines(rec *Record, got []string) error {
	want, err := s.expected(rec)
	if err != nil || !rec.Checked || sameLines(want, got, true) {
		return err
	}
	return difference(want, got).over(rec.block, got)
}

func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }

// sameLines compares lines, in which <slt:ignore> stands for any text.
func sameLines(want, got []string, collapsed bool) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool {
		if strings.Contains(a, "<slt:ignore>") {
			return matchIgnoring(collapse(a), collapse(b))
		}
		if collapsed {
			return collapse(a) == collapse(b)
		}
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	})
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

// difference words a difference of lines.
func difference(want, got []string) *differs {
	at := 0
	for at < len(want) && at < len(got) && collapse(want[at]) == collapse(got[at]) {
		at++
	}
	return &differs{text: fmt.Sprintf("%d lines differ from the %d expected, first in line %d\n--- expected\n%s\n--- got\n%s",
		len(got), len(want), at+1, shorten(want), shorten(got))}
}

const shownLinesMax = 40

func shorten(lines []string) string {
	if len(lines) > shownLinesMax {
		return strings.Join(lines[:shownLinesMax], "\n") + fmt.Sprintf("\n… and %d more", len(lines)-shownLinesMax)
	}
	return strings.Join(lines, "\n")
}
