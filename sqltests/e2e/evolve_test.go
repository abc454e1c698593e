package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// changing is a table at the source whose columns change.
type changing struct {
	name    string
	columns []changingColumn
	next    int // id of the next row
	made    int // columns so far
}

type changingColumn struct{ name, typ string }

// widening are the types that a column may be given next.
var widening = map[string]string{
	"smallint": "integer", "integer": "bigint", "real": "double precision", "numeric(8,2)": "numeric(20,2)",
	"varchar(20)": "text",
}

// literals are values of each type.
var literals = map[string][]string{
	"smallint": {"-1", "32767"}, "integer": {"7", "-2147483648"}, "bigint": {"9000000000", "0"},
	"real": {"0.1", "1e30"}, "double precision": {"0.1", "-1e300"}, "numeric(8,2)": {"1.50", "-999999.99"},
	"numeric(20,2)": {"123456789012345678.25", "0"}, "varchar(20)": {"'it''s'", "''"}, "text": {"'wörld'", "'a,b'"},
	"timestamptz": {"'2026-01-02 03:04:05.123456+09'", "'1969-12-31 23:59:59Z'"}, "bool": {"true", "false"},
	"int[]": {"'{1,NULL,3}'", "'{}'"}, "uuid": {"'00112233-4455-6677-8899-aabbccddeeff'"}, "date": {"'2026-02-03'"},
	"jsonb": {`'{"a": 1}'`, "'null'"}, "bytea": {`'\x00ff'`},
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// alter is one random change of the columns, as SQL.
func (c *changing) alter(r *rand.Rand) string {
	table := "ALTER TABLE " + c.name + " "
	at := 0
	if len(c.columns) > 0 {
		at = r.IntN(len(c.columns))
	}
	switch kind := r.IntN(8); {
	case kind < 3 || len(c.columns) < 2:
		types := make([]string, 0, len(literals))
		for typ := range literals {
			types = append(types, typ)
		}
		slices.Sort(types)
		c.made++
		col := changingColumn{fmt.Sprintf("c%d", c.made), pick(r, types)}
		c.columns = append(c.columns, col)
		sql := table + "ADD " + col.name + " " + col.typ
		if r.IntN(2) == 0 {
			sql += " DEFAULT " + pick(r, literals[col.typ])
		}
		return sql
	case kind == 3:
		col := c.columns[at]
		c.columns = slices.Delete(c.columns, at, at+1)
		return table + "DROP " + col.name
	case kind == 4: // another under the same name
		col := c.columns[at]
		c.columns = append(slices.Delete(c.columns, at, at+1), changingColumn{col.name, "text"})
		return table + "DROP " + col.name + "; " + table + "ADD " + col.name + " text"
	case kind == 5:
		c.made++
		old := c.columns[at].name
		c.columns[at].name = fmt.Sprintf("c%d", c.made)
		return table + "RENAME " + old + " TO " + c.columns[at].name
	case kind == 6: // two names swapped
		other := (at + 1) % len(c.columns)
		a, b := c.columns[at].name, c.columns[other].name
		c.columns[at].name, c.columns[other].name = b, a
		return table + "RENAME " + a + " TO swap; " + table + "RENAME " + b + " TO " + a + "; " + table + "RENAME swap TO " + b
	}
	if wider, ok := widening[c.columns[at].typ]; ok {
		c.columns[at].typ = wider
		return table + "ALTER " + c.columns[at].name + " TYPE " + wider
	}
	return table + "ALTER " + c.columns[at].name + " SET STATISTICS 100"
}

// write is one random change of rows, as SQL.
func (c *changing) write(r *rand.Rand) string {
	id := 1
	if c.next > 1 {
		id += r.IntN(c.next - 1)
	}
	switch kind := r.IntN(6); {
	case kind == 0:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", c.name, id)
	case kind < 3 && len(c.columns) > 0:
		col := pick(r, c.columns)
		value := pick(r, append(literals[col.typ], "NULL"))
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE id >= %d", c.name, col.name, value, id)
	}
	return c.insert(r)
}

func (c *changing) insert(r *rand.Rand) string {
	names, values := []string{"id"}, []string{fmt.Sprint(c.next)}
	c.next++
	for _, col := range c.columns {
		if r.IntN(3) > 0 {
			names, values = append(names, col.name), append(values, pick(r, literals[col.typ]))
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", c.name, strings.Join(names, ", "), strings.Join(values, ", "))
}

// TestEvolve changes columns and rows of a source at random, in transactions and between
// them, and kills the server at random moments: at each drained moment every table that
// goes on is the source's, column by column and row by row. One whose changes cannot be
// told apart stops, and is the source's again once it is copied anew.
func TestEvolve(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	rounds, seed := number("SKIPPRD_EVOLVE_ROUNDS", 4), uint64(number("SKIPPRD_SEED", 1))
	r := rand.New(rand.NewPCG(seed, 12))
	var tables []*changing
	for i := range 4 {
		c := &changing{name: fmt.Sprintf("t%d", i), next: 1}
		tables = append(tables, c)
		harness.Exec(t, source, "CREATE TABLE "+c.name+" (id int PRIMARY KEY)", c.alter(r), c.insert(r))
	}
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE e FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (commit_bytes = 65536)")
	drain(t, s.DSN, "e")
	stops := 0
	for round := range rounds {
		for range 20 {
			harness.Exec(t, source, burst(r, pick(r, tables)))
		}
		how := "not"
		if r.IntN(3) > 0 {
			how, _ = dieOnce(s, r, pick(r, failpoints))
			for range 10 { // while it is down
				harness.Exec(t, source, burst(r, pick(r, tables)))
			}
			s.Start()
		}
		for _, c := range tables { // columns follow with the next row
			harness.Exec(t, source, c.insert(r))
		}
		drain(t, s.DSN, "e")
		for _, c := range tables {
			stops += compareChanging(t, source, s.DSN, c)
		}
		if t.Failed() {
			t.Fatalf("round %d of seed %d, died %s", round, seed, how)
		}
	}
	// How many depends on how far the stream lags behind the changes, hence on the machine.
	t.Logf("%d of %d times a table had stopped", stops, rounds*len(tables))
	for _, c := range tables { // one change of columns at a time can always be told
		harness.Exec(t, source, "ALTER TABLE "+c.name+" ADD last int DEFAULT 7", c.insert(r))
	}
	drain(t, s.DSN, "e")
	for _, c := range tables {
		if compareChanging(t, source, s.DSN, c) > 0 {
			t.Errorf("%s did not follow a change", c.name)
		}
	}
	harness.Exec(t, s.DSN, "DROP PIPELINE e")
	s.Stop()
}

// burst is some changes of one table, sometimes as one transaction.
func burst(r *rand.Rand, c *changing) string {
	var all []string
	for range 1 + r.IntN(5) {
		if r.IntN(3) == 0 {
			all = append(all, c.alter(r))
		} else {
			all = append(all, c.write(r))
		}
	}
	if r.IntN(2) == 0 {
		return "BEGIN; " + strings.Join(all, "; ") + "; COMMIT"
	}
	return strings.Join(all, "; ")
}

// compareChanging compares a table with the source, after a new copy if it has stopped.
func compareChanging(t *testing.T, source, ours string, c *changing) (stopped int) {
	t.Helper()
	state, err := harness.Text(ours, "SELECT state || ': ' || coalesce(reason, '') FROM pg_stat_pipeline_table WHERE table_name = '"+c.name+"'")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(state, "stopped") {
		t.Logf("%s %s", c.name, state)
		stopped = 1
		harness.Exec(t, ours, "ALTER PIPELINE e RESYNC TABLE "+c.name)
		drain(t, ours, "e")
	}
	rows, err := harness.Compare(t.Context(), source, "SELECT * FROM "+c.name+" ORDER BY id", ours, "SELECT * FROM e."+c.name+" ORDER BY id")
	if err != nil {
		t.Errorf("%s (%v): %v", c.name, c.columns, err)
	}
	t.Logf("%s: %d rows of %d columns", c.name, rows, len(c.columns)+1)
	return stopped
}
