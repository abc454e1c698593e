package slt

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// cells renders the rows as the dialect writes them.
func (s *run) cells(rec *Record, ans *answer) [][]string {
	asGo := s.dialect == Cockroach && strings.Contains(strings.Join(rec.Expected, "\n"), " +0000")
	var out [][]string
	for _, row := range ans.rows {
		cells := make([]string, len(row))
		for i, v := range row {
			letter := byte('T')
			if i < len(rec.Types) {
				letter = rec.Types[i]
			}
			cells[i] = s.dialect.text(v, ans.oids[i], letter)
			if asGo {
				cells[i] = goTimeText(cells[i], ans.oids[i])
			}
		}
		out = append(out, cells)
	}
	return out
}

// text renders a value of a type in a column that the file calls I, R, T, ….
func (d Dialect) text(v value, oid uint32, letter byte) string {
	switch {
	case v.null:
		return "NULL"
	case v.text == "" && d == Cockroach:
		return "·"
	case v.text == "":
		return "(empty)"
	case d == SQLite:
		return sqliteText(v.text, oid, letter)
	case oid == pgtype.BoolOID && (d == DuckDB || d == Cockroach):
		return strconv.FormatBool(v.text == "t")
	}
	return v.text
}

// sqliteText is a value as sqlite's own runner prints it: integers cut, three decimals,
// text in printable ASCII.
func sqliteText(text string, oid uint32, letter byte) string {
	if oid == pgtype.BoolOID && letter != 'T' {
		text = map[string]string{"t": "1", "f": "0"}[text]
	}
	switch letter {
	case 'I':
		return sqliteInteger(text)
	case 'R':
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return text
		}
		return strconv.FormatFloat(f, 'f', 3, 64)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '@'
		}
		return r
	}, text)
}

func sqliteInteger(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f > -9e18 && f < 9e18 {
		return strconv.FormatInt(int64(f), 10)
	}
	return text
}

// values are the cells one by one. CockroachDB counts words.
func (s *run) values(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		for _, c := range r {
			if s.dialect == Cockroach {
				out = append(out, strings.Fields(c)...)
			} else {
				out = append(out, c)
			}
		}
	}
	return out
}

// lines are the rows as a file of the dialect writes them, the names first where the
// record asks for them.
func (s *run) lines(rec *Record, t *table, old []string) []string {
	rows := t.rows
	if rec.ColNames {
		rows = append([][]string{t.names}, rows...)
	}
	if s.dialect == Cockroach {
		return aligned(rows)
	}
	sep := " "
	if s.dialect == DuckDB || strings.Contains(strings.Join(old, ""), "\t") {
		sep = "\t"
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = strings.Join(r, sep)
	}
	return out
}

// aligned writes rows in columns two blanks apart.
func aligned(rows [][]string) []string {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	out := make([]string, len(rows))
	for n, r := range rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
			}
		}
		out[n] = b.String()
	}
	return out
}

// sameFloats compares rows of words, those in the columns that the file calls F as
// CockroachDB does: to 15 digits.
func sameFloats(rec *Record, want, got []string) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool {
		x, y := strings.Fields(a), strings.Fields(b)
		if len(x) != len(y) || len(x) != len(rec.Types) {
			return collapse(a) == collapse(b)
		}
		for i := range x {
			if x[i] != y[i] && (rec.Types[i] != 'F' || digits15(x[i]) != digits15(y[i])) {
				return false
			}
		}
		return true
	})
}

// digits15 is a number to 15 significant digits, or the text itself.
func digits15(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'g', 15, 64)
}

// goTime are the layouts of PostgreSQL's dates and times, and those of CockroachDB's
// files, where Go prints them.
var goTime = []struct{ pg, file string }{
	{"2006-01-02 15:04:05.999999-07", "2006-01-02 15:04:05.999999 +0000 UTC"},
	{"2006-01-02 15:04:05.999999", "2006-01-02 15:04:05.999999 +0000 +0000"},
	{"2006-01-02", "2006-01-02 15:04:05 +0000 +0000"},
	{"15:04:05.999999", "0000-01-01 15:04:05.999999 +0000 UTC"},
}

// goTimeText is a date or time as Go prints it, or the text itself.
func goTimeText(text string, oid uint32) string {
	switch oid {
	case pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.TimeOID:
	default:
		return text
	}
	for _, l := range goTime {
		if t, err := time.Parse(l.pg, text); err == nil {
			return t.UTC().Format(l.file)
		}
	}
	return text
}
