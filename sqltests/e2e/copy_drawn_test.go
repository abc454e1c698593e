package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// copyColumns are those of the table that drawn copies fill, with texts of their types and texts
// that are none.
var copyColumns = []struct {
	name, sql   string
	values, bad []string
}{
	{"a", "int", []string{"1", "-7", "2147483647", " 42 ", "0"}, []string{"x", "2147483648", "1.5", ""}},
	{"b", "text", []string{"", "x", "a b", "it's", `say "so"`, `b\s`, "ä€", "N", "nil", "tab\there", "line\nend", "cr\rend", ",;|", `\N`, `\.`, "."}, nil},
	{"c", "numeric(6,2) DEFAULT 7.5", []string{"1", "1.005", "-999.99", "1e2"}, []string{"10000", "abc", "Infinity", "9999.995"}},
	{"d", "date", []string{"2024-02-29", "epoch", "Jan 5 1999", "infinity"}, []string{"2023-02-29", "yesterdayish"}},
	{"e", "bool NOT NULL DEFAULT true", []string{"t", "off", "yes", "1"}, []string{"maybe", ""}},
	{"F g", "varchar(4)", []string{"abcd", "ä", "ab   "}, []string{"abcde"}},
	{"h", "int[]", []string{"{1,2}", "{}", "{NULL}"}, []string{"{1", "1"}},
	{"i", "bytea", []string{`\x00ff`, "abc", `\\000`}, []string{`\x0`, `\1`}},
}

// drawnCopy draws a copy: a statement and its data.
type drawnCopy struct {
	*rand.Rand
	from, binary, csv bool
	delimiter, null   string
	quote, escape     string
	header            bool
	columns           []int
	options           []string
}

func oneOf[T any](r *drawnCopy, of ...T) T { return of[r.IntN(len(of))] }

func (r *drawnCopy) chance(percent int) bool { return r.IntN(100) < percent }

// statement draws the statement.
func (r *drawnCopy) statement() string {
	r.from = r.chance(65)
	r.columns = r.Perm(len(copyColumns))
	list := ""
	if r.chance(60) {
		r.columns = r.columns[:1+r.IntN(len(r.columns))]
		var names []string
		for _, i := range r.columns {
			names = append(names, `"`+copyColumns[i].name+`"`)
		}
		if r.chance(2) {
			names = append(names, oneOf(r, "a", "nosuch", "ctid"))
		}
		list = " (" + strings.Join(names, ", ") + ")"
	} else {
		for i := range r.columns {
			r.columns[i] = i
		}
	}
	r.draw()
	what, to := "cd"+list, " TO STDOUT"
	if r.from {
		to = " FROM STDIN"
	} else if r.chance(60) {
		if list == "" {
			list = r.names(r.columns...)
		}
		what = "(SELECT " + strings.Trim(list, " ()") + " FROM cd ORDER BY a)"
	}
	sql := "COPY " + what + to
	if len(r.options) > 0 {
		r.Shuffle(len(r.options), func(i, j int) { r.options[i], r.options[j] = r.options[j], r.options[i] })
		sql += oneOf(r, " (", " WITH (") + strings.Join(r.options, ", ") + ")"
	}
	if r.from && r.chance(15) {
		sql += " WHERE " + oneOf(r, "a > 1", "b IS NOT NULL", "c < 5 OR d IS NULL", "b LIKE '%x%'", "e", "a", "nosuch = 1", "count(*) > 1", "(SELECT true)", "false", "h[1] = 1")
	}
	return sql
}

func (r *drawnCopy) names(columns ...int) string {
	var names []string
	for _, i := range columns {
		names = append(names, `"`+copyColumns[i].name+`"`)
	}
	return strings.Join(names, ", ")
}

// draw draws the options.
func (r *drawnCopy) draw() {
	add := func(percent int, name string, values ...string) string {
		if !r.chance(percent) {
			return ""
		}
		v := oneOf(r, values...)
		r.options = append(r.options, strings.TrimSpace(name+" "+v))
		return v
	}
	text := func(into *string, v string) {
		if len(v) >= 2 && strings.Contains(v, "'") {
			*into = strings.ReplaceAll(v[strings.Index(v, "'")+1:len(v)-1], "''", "'")
		}
	}
	switch v := add(75, "FORMAT", "text", "csv", "csv", "csv", "binary", "'CSV'", "Text"); strings.ToLower(strings.Trim(v, "'")) {
	case "csv":
		r.csv = true
	case "binary":
		r.binary = true
	}
	r.delimiter, r.null, r.quote = "\t", `\N`, `"`
	if r.csv {
		r.delimiter, r.null = ",", ""
	}
	some := 25
	if r.binary {
		some = 4
	}
	text(&r.delimiter, add(some, "DELIMITER", "'|'", "';'", "','", "E'\\t'", "' '", "'a'", "'||'", "''", "E'\\n'", "'\\'", "'.'", "'\"'"))
	text(&r.null, add(some, "NULL", "''", "'nil'", "'N'", "'\\N'", "E'a\\nb'", "'|'", "'NULL'", "'\"'", "E'\\\\'"))
	if v := add(some, "HEADER", "", "", "true", "match", "off", "1", "MATCH", "2", "nonsense"); r.options != nil {
		r.header = strings.HasPrefix(r.options[len(r.options)-1], "HEADER") && v != "off"
	}
	only := 3
	if r.csv {
		only = 25
	}
	text(&r.quote, add(only, "QUOTE", "'\"'", "''''", "'|'", "'\\'", "'xy'", "','"))
	r.escape = r.quote
	text(&r.escape, add(only, "ESCAPE", "'\\'", "'\"'", "''''", "'xy'", "'e'"))
	column := func() string { return "(" + r.names(r.IntN(len(copyColumns))) + ")" }
	two := func() string { return "(" + r.names(r.Perm(len(copyColumns))[:2]...) + ")" }
	wrong := 2
	if r.csv {
		wrong = 10
	}
	forced := [2]int{wrong, only} // FORCE_QUOTE is of TO, others of FROM
	if r.from {
		forced = [2]int{only, wrong}
	}
	add(forced[0]/2, "FORCE_NOT_NULL", column(), two(), "(nosuch)")
	add(forced[0]/2, "FORCE_NULL", column(), two(), "(a, a)")
	add(forced[1]/2, "FORCE_QUOTE", "*", column(), two(), "(nosuch)")
	add(8, "ENCODING", "'latin1'", "'UTF8'", "'sjis'", "'nosuch'", "utf8")
	if !r.binary { // of which PostgreSQL has read the signature before it looks at the table
		add(5, "FREEZE", "", "true", "false", "off", "7")
	}
	if r.chance(2) {
		r.options = append(r.options, oneOf(r, append([]string{"NOSUCH", "FORMAT nosuch", "OIDS", "DELIMITER", "QUOTE", "NULL 5", "FORMAT"}, r.options...)...))
	}
}

// value is a value of a column as the statement's format has it.
func (r *drawnCopy) value(v string, null bool) string {
	switch {
	case null:
		return r.null
	case !r.csv:
		return strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", oneOf(r, `\r`, "\\\r"), r.delimiter, `\`+r.delimiter).Replace(v)
	case v == r.null || r.chance(30) || strings.ContainsAny(v, "\n\r"+r.delimiter+r.quote):
		if r.escape != r.quote {
			v = strings.ReplaceAll(v, r.escape, r.escape+r.escape)
		}
		return r.quote + strings.ReplaceAll(v, r.quote, r.escape+r.quote) + r.quote
	}
	return v
}

// data draws what is copied in.
func (r *drawnCopy) data() []byte {
	var out strings.Builder
	end := oneOf(r, "\n", "\n", "\n", "\r\n", "\r")
	line := func(fields []string) {
		out.WriteString(strings.Join(fields, r.delimiter))
		out.WriteString(end)
	}
	if r.header && r.chance(90) {
		var fields []string
		for _, i := range r.columns {
			fields = append(fields, r.value(copyColumns[i].name, false))
		}
		if r.chance(10) {
			fields[r.IntN(len(fields))] = oneOf(r, "wrong", r.null, "")
		}
		line(fields)
	}
	damaged := r.chance(45)
	for range r.IntN(6) {
		var fields []string
		for _, i := range r.columns {
			c := copyColumns[i]
			v, null := oneOf(r, c.values...), r.chance(15) && c.name != "e"
			if damaged && r.chance(8) {
				if null = r.chance(30); len(c.bad) > 0 {
					v = oneOf(r, c.bad...)
				}
			}
			fields = append(fields, r.value(v, null))
		}
		if damaged && r.chance(10) {
			fields = append(fields, "more")
		}
		if damaged && r.chance(10) {
			fields = fields[:r.IntN(len(fields)+1)]
		}
		line(fields)
	}
	if r.chance(15) {
		out.WriteString(`\.` + oneOf(r, end, "", "\n", "x"))
		out.WriteString(oneOf(r, "", "", "rest", "\n"))
	}
	b := []byte(out.String())
	if damaged && len(b) > 0 && r.chance(25) {
		b[r.IntN(len(b))] = oneOf[byte](r, '\n', '\r', '"', '\\', ',', '\t', 0xff, 0, 'x')
	}
	if r.chance(8) && len(b) > 0 {
		b = b[:len(b)-1]
	}
	return b
}

// TestCopyDrawn: drawn copies with drawn options, of all formats, in both directions, give what
// they give on PostgreSQL: the same bytes, the same rows, or the same error with its place.
// SKIPPRD_COPY_ROUNDS is how many (200), SKIPPRD_SEED where the random numbers begin.
func TestCopyDrawn(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	ours, theirs := rawConn(t, s.DSN), rawConn(t, pgtest.Start(t).CreateDatabase(t))
	number := func(name string, n int) uint64 {
		if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return uint64(v)
		}
		return uint64(n)
	}
	seed := number("SKIPPRD_SEED", 1)
	var definition []string
	for _, c := range copyColumns {
		definition = append(definition, `"`+c.name+`" `+c.sql)
	}
	for _, c := range []*pgconn.PgConn{ours, theirs} {
		if got := told(t.Context(), c, "CREATE TABLE cd ("+strings.Join(definition, ", ")+")"); !strings.HasPrefix(got, "CREATE") {
			t.Fatal(got)
		}
	}
	var binaries [][]byte
	for round := range number("SKIPPRD_COPY_ROUNDS", 200) {
		r := &drawnCopy{Rand: rand.New(rand.NewPCG(seed, round))}
		sql := r.statement()
		var data []byte
		if data = r.data(); r.binary && r.from && len(binaries) > 0 && r.chance(95) {
			data = bytes.Clone(oneOf(r, binaries...))
			if r.chance(30) {
				data[r.IntN(len(data))] ^= 1 << r.IntN(8)
			}
			if r.chance(10) {
				data = data[:r.IntN(len(data))]
			}
		}
		before := oneOf(r, "BEGIN", "BEGIN", "BEGIN; TRUNCATE cd")
		got, want := drawnOutcome(t.Context(), ours, before, sql, data), drawnOutcome(t.Context(), theirs, before, sql, data)
		if got != want {
			t.Errorf("seed %d, round %d: %s\n%q:\n%s\nPostgreSQL:\n%s", seed, round, sql, data, got, want)
		}
		if r.binary && !r.from && strings.HasPrefix(want, "PGCOPY") {
			binaries = append(binaries, []byte(want))
		}
	}
}

// drawnOutcome is what a copy gives, and what it leaves in the table.
func drawnOutcome(ctx context.Context, c *pgconn.PgConn, before, sql string, data []byte) string {
	defer func() { _ = told(ctx, c, "ROLLBACK") }()
	_ = told(ctx, c, before)
	if !strings.Contains(sql, "FROM STDIN") {
		_ = told(ctx, c, `INSERT INTO cd VALUES (1, 'x'), (NULL, 'a "b", c\d' || chr(9) || chr(10) || 'e', 2, '2024-01-02', false, 'ä', '{1,NULL}', '\x00ff'), (3, '', NULL, NULL, true, '''', NULL, ''), (4, '\.'), (5, 'nil,|;N')`)
	}
	var out bytes.Buffer
	var err error
	var tag pgconn.CommandTag
	if strings.Contains(sql, "FROM STDIN") {
		tag, err = c.CopyFrom(ctx, bytes.NewReader(data), sql)
	} else {
		tag, err = c.CopyTo(ctx, &out, sql)
	}
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return fmt.Sprintf("%s %s / %s / %s / %s / %d", e.Code, e.Message, e.Detail, e.Hint, e.Where, e.Position)
	} else if err != nil {
		return err.Error()
	}
	if !strings.Contains(sql, "FROM STDIN") {
		return out.String() + tag.String()
	}
	return tag.String() + "\n" + told(ctx, c, `SELECT json_agg(x::text ORDER BY x::text COLLATE "C") FROM (SELECT * FROM cd) x`)
}
