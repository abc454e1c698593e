package slt

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// compareCells compares as DuckDB does: cell by cell, numbers by value. Expected lines
// hold rows, split at tabs, or values.
func (s *run) compareCells(rec *Record, want []string, t *table, sort string) error {
	n := len(t.names)
	rowwise := n > 1 && (len(want) == len(t.rows) || !slices.ContainsFunc(want, func(l string) bool {
		return !strings.Contains(l, "\t")
	}))
	var a []string
	for _, l := range want {
		if rowwise {
			a = append(a, strings.Split(l, "\t")...)
		} else {
			a = append(a, l)
		}
	}
	b := slices.Concat(t.rows...)
	switch {
	case sort == "valuesort":
		slices.Sort(a)
		slices.Sort(b)
	case sort == "rowsort" && n > 0 && len(a)%n == 0:
		a = regroup(a, n)
	}
	same := len(a) == len(b)
	for i := 0; same && i < len(a); i++ {
		same = sameCell(a[i], b[i], t.oids[i%n])
	}
	if same {
		return nil
	}
	got := make([]string, len(t.rows))
	for i, r := range t.rows {
		got[i] = strings.Join(r, "\t")
	}
	if sort == "valuesort" {
		got = b
	}
	fix := got
	if s.threshold > 0 && len(b) > s.threshold {
		fix = []string{hash(b)}
	}
	return difference(want, got).over(rec.block, fix)
}

// sameCell compares an expected cell, which may be a pattern, with one of a type.
func sameCell(want, got string, oid uint32) bool {
	switch {
	case want == got:
		return true
	case strings.HasPrefix(want, "<REGEX>:"):
		return matches(want[len("<REGEX>:"):], got)
	case strings.HasPrefix(want, "<!REGEX>:"):
		return !matches(want[len("<!REGEX>:"):], got)
	case strings.Contains(want, "<slt:ignore>"):
		return matchIgnoring(want, got)
	}
	switch oid {
	case pgtype.BoolOID:
		return isTrue[want] == got
	case pgtype.Float4OID, pgtype.Float8OID:
		return near(want, got)
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID:
		return sameNumber(want, got)
	}
	return false
}

// isTrue spells what files write for booleans.
var isTrue = map[string]string{"t": "true", "1": "true", "True": "true", "f": "false", "0": "false", "False": "false"}

// matches tells that a pattern matches all of the text. A broken one matches nothing.
func matches(pattern, text string) bool {
	re, err := regexp.Compile(`(?s)^(?:` + pattern + `)$`)
	return err == nil && re.MatchString(text)
}

// near is DuckDB's tolerance of floating point numbers: one per cent.
func near(want, got string) bool {
	a, err1 := strconv.ParseFloat(want, 64)
	b, err2 := strconv.ParseFloat(got, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= math.Abs(a)*0.01+1e-8
}

var plainNumber = regexp.MustCompile(`^[+-]?\d{1,400}(\.\d{0,400})?$`)

func sameNumber(want, got string) bool {
	if !plainNumber.MatchString(want) || !plainNumber.MatchString(got) {
		return false
	}
	a, ok1 := new(big.Rat).SetString(want)
	b, ok2 := new(big.Rat).SetString(got)
	return ok1 && ok2 && a.Cmp(b) == 0
}
