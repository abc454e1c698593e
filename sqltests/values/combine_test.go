package values

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// combined is a table to which two changes happen that are followed.
type combined struct {
	name          string // here
	schema, table string // at the source
	next          int    // id of the next row
}

func (c *combined) at() string { return c.schema + "." + c.table }

// create makes the table with some rows.
func (c *combined) create() string {
	return "CREATE TABLE " + c.at() + " (id int NOT NULL, k int NOT NULL DEFAULT 1, x text DEFAULT 'x', y text DEFAULT 'y', w smallint DEFAULT 7, " +
		"z int NOT NULL DEFAULT 1, q int NOT NULL DEFAULT 1, PRIMARY KEY (id)); " + c.insert() + c.insert()
}

func (c *combined) insert() string {
	c.next++
	return fmt.Sprintf("INSERT INTO %s (id) VALUES (%d); ", c.at(), c.next)
}

// write inserts a row and updates another one, which the table has under whatever key.
func (c *combined) write() string {
	return c.insert() + fmt.Sprintf("UPDATE %s SET z = z + 1 WHERE id = 1; ", c.at())
}

// combinable are the changes, in any two of which a table goes on by itself. Each can be made
// again: n is 1, and then 2.
var combinable = []struct {
	name string
	sql  func(c *combined, n int) string
}{
	{"add", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %s ADD n%d text DEFAULT 'it''s';", c.at(), n)
	}},
	{"plain", func(c *combined, n int) string { return fmt.Sprintf("ALTER TABLE %s ADD p%d int;", c.at(), n) }},
	{"spent", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %[1]s ADD s%[2]d int DEFAULT 5; ALTER TABLE %[1]s ALTER s%[2]d DROP DEFAULT;", c.at(), n)
	}},
	{"using", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %[1]s ADD u%[2]d int; ALTER TABLE %[1]s ALTER u%[2]d TYPE bigint USING id * 3;", c.at(), n)
	}},
	{"drop", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %s DROP %s;", c.at(), []string{"x", "y"}[n-1])
	}},
	{"again", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %[1]s ADD a%[2]d int DEFAULT 1; ALTER TABLE %[1]s DROP a%[2]d; ALTER TABLE %[1]s ADD a%[2]d int DEFAULT 2;", c.at(), n)
	}},
	{"rename", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %s RENAME %s TO %s;", c.at(), []string{"k", "kk"}[n-1], []string{"kk", "k"}[n-1])
	}},
	{"widen", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %s ALTER w TYPE %s;", c.at(), []string{"int", "bigint"}[n-1])
	}},
	{"null", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %s ALTER z %s NOT NULL;", c.at(), []string{"DROP", "SET"}[n-1])
	}},
	{"key", func(c *combined, n int) string {
		return fmt.Sprintf("ALTER TABLE %[1]s DROP CONSTRAINT IF EXISTS %[2]s_pkey; ALTER TABLE %[1]s ADD CONSTRAINT %[2]s_pkey PRIMARY KEY (%[3]s);",
			c.at(), c.name, []string{"id, q", "id"}[n-1])
	}},
	{"move", func(c *combined, n int) string {
		from := c.at()
		c.schema = []string{"other", "public"}[n-1]
		return fmt.Sprintf("ALTER TABLE %s SET SCHEMA %s;", from, c.schema)
	}},
	{"call", func(c *combined, n int) string {
		from := c.at()
		c.table = []string{c.name + "_b", c.name}[n-1]
		return fmt.Sprintf("ALTER TABLE %s RENAME TO %s;", from, c.table)
	}},
	{"remake", func(c *combined, n int) string {
		return fmt.Sprintf("DROP TABLE %s; ", c.at()) + c.create()
	}},
}

// pair is a table with its two changes, as texts that are sent one after the other.
type pair struct {
	combined
	sql []string
	// remade says that it is made anew after or before it got another name: then what has that
	// name is another table, if the stream has not told of the name.
	remade bool
}

// pairs are all of them, each with one of three ways to make the changes.
func pairs(way int) (out []*pair) {
	for i, a := range combinable {
		for j, b := range combinable {
			n := 1
			if a.name == b.name {
				n = 2
			}
			name := a.name + "_" + b.name
			p := &pair{combined: combined{name: name, schema: "public", table: name}}
			p.remade = a.name == "remake" && p.named(b.name) || b.name == "remake" && p.named(a.name)
			p.sql = []string{p.create()}
			first := a.sql(&p.combined, 1)
			switch (i*len(combinable) + j + way) % 3 {
			case 0: // each by itself, with rows between
				p.sql = append(p.sql, first, p.write(), b.sql(&p.combined, n), p.write())
			case 1: // one transaction, with rows between
				p.sql = append(p.sql, first+p.write()+b.sql(&p.combined, n)+p.write())
			case 2: // one transaction, without
				p.sql = append(p.sql, first+b.sql(&p.combined, n)+p.write())
			}
			out = append(out, p)
		}
	}
	return out
}

func (p *pair) named(change string) bool { return change == "move" || change == "call" }

// TestCombined: of any two changes of a table that are followed, made while nothing is taken
// in, or as quickly as they can be, the table goes on by itself: as the source sends it, or by
// a new copy. The server is killed meanwhile. It takes a part of them, or, with SKIPPRD_COMBINED,
// all.
func TestCombined(t *testing.T) {
	server := pgtest.Start(t)
	s := harness.New(t, t.TempDir(), "--commit-interval", "1h")
	s.Start()
	for way, pipeline := range []string{"paused", "quick"} {
		source := server.CreateDatabase(t)
		a, all := connect(t, source), pairs(way)
		if every := 2 + 2*way; os.Getenv("SKIPPRD_COMBINED") == "" { // else all of them
			n := 0
			all = slices.DeleteFunc(all, func(p *pair) bool { n++; return n%every != 0 && p.name != "spent_widen" })
		}
		run := func(sql string) {
			t.Helper()
			if _, err := a.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		run("CREATE SCHEMA other")
		for _, p := range all {
			run(p.sql[0])
		}
		harness.Exec(t, s.DSN, "CREATE PIPELINE "+pipeline+" FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
		if pipeline == "paused" {
			harness.Exec(t, s.DSN, "PAUSE PIPELINE paused")
		}
		for _, p := range all {
			for _, sql := range p.sql[1:] {
				run(sql)
			}
		}
		if pipeline == "paused" {
			harness.Exec(t, s.DSN, "RESUME PIPELINE paused")
			s.Kill()
			s.Start()
		}
		harness.Exec(t, s.DSN, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
		b := connect(t, s.DSN)
		for _, p := range all {
			p.compare(t, a, b, pipeline)
		}
	}
	// What the source no longer knows is said.
	why, err := harness.Text(s.DSN, "SELECT detail FROM skippr.events WHERE table_name = 'paused.spent_widen' AND kind = 'table copied anew'")
	if err != nil || !strings.Contains(why, `column "s1" was added, and the table rewritten before the change was seen`) {
		t.Errorf("said of a table that was copied anew: %q, %v", why, err)
	}
}

func (p *pair) compare(t *testing.T, source, ours *pgx.Conn, pipeline string) {
	t.Helper()
	var state, reason string
	err := ours.QueryRow(t.Context(), "SELECT state, coalesce(reason, '') FROM pg_stat_pipeline_table WHERE table_name = $1 AND pipeline = $2", p.name, pipeline).Scan(&state, &reason)
	if err != nil {
		t.Fatal(err)
	}
	if p.remade && state == "gone" {
		return
	}
	want, err := ask(t.Context(), source, "SELECT * FROM "+p.at())
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask(t.Context(), ours, "SELECT * FROM "+pipeline+"."+p.name)
	if err != nil {
		t.Errorf("%s.%s: %v", pipeline, p.name, err)
		return
	}
	if w, g := strings.Join(lines(want), "\n"), strings.Join(lines(got), "\n"); w != g || state != "ready" {
		t.Errorf("%s.%s is %s: %s\n%s\n got %.500s\nwant %.500s", pipeline, p.name, state, reason, strings.Join(p.sql, "\n"), g, w)
	}
}
