package e2e

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestPublicationAltered: what somebody takes out of the pipeline's publications, for as long as one
// statement or while nobody looks, is missed by no row of it: the table is copied anew by itself, and
// no other one is.
func TestPublicationAltered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	tables := []string{"out", "back", "columns", "part", "paused", "dead", "log", "quiet"}
	for _, n := range tables {
		key := "PRIMARY KEY"
		if n == "log" {
			key = "NOT NULL"
		}
		l.at(fmt.Sprintf("CREATE TABLE %s (id int %s, v text); INSERT INTO %[1]s VALUES (1, 'a'), (2, 'b')", n, key))
	}
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES", quoted(l.source)))
	copies := map[string]int{}
	check := func(copied ...string) {
		t.Helper()
		for _, n := range copied {
			copies[n]++
			l.eventually(fmt.Sprintf("SELECT count(*) FROM skippr.events WHERE table_name = 'life.%s' AND kind = 'table replaced by its new copy'", n), fmt.Sprint(copies[n]))
		}
		for _, n := range tables {
			l.same(n)
			l.eventually(l.stateOf(n), "ready")
			l.eventually(fmt.Sprintf("SELECT count(*) FROM skippr.events WHERE table_name = 'life.%s' AND kind = 'table copied anew'", n), fmt.Sprint(copies[n]))
		}
	}
	check()
	add := func(table string) string {
		return fmt.Sprintf("INSERT INTO %s SELECT max(id) + 1, 'out' FROM %[1]s", table)
	}
	write := func(table string) string { // what is left out
		return add(table) + fmt.Sprintf("; UPDATE %s SET v = v || '!' WHERE id <= 2", table)
	}
	l.at("ALTER PUBLICATION skippr_life_append DROP TABLE log", add("log"))
	check("log")
	l.at("ALTER PUBLICATION skippr_life DROP TABLE out", write("out"))
	check("out")
	l.at("ALTER PUBLICATION skippr_life DROP TABLE back", write("back"), "ALTER PUBLICATION skippr_life ADD TABLE back", write("back"))
	check("back")
	l.at("ALTER PUBLICATION skippr_life DROP TABLE columns; ALTER PUBLICATION skippr_life ADD TABLE columns (id)", write("columns"))
	check("columns")
	l.at("ALTER PUBLICATION skippr_life DROP TABLE part; ALTER PUBLICATION skippr_life ADD TABLE part WHERE (id > 1)", write("part"))
	check("part")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life PAUSE")
	l.at("ALTER PUBLICATION skippr_life DROP TABLE paused", write("paused"))
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESUME")
	check("paused")
	l.server.Kill()
	l.at("ALTER PUBLICATION skippr_life DROP TABLE dead", write("dead"), "ALTER PUBLICATION skippr_life ADD TABLE dead")
	l.server.Start()
	check("dead")

	keyed := []string{"out", "back", "columns", "part", "paused", "dead", "quiet"}
	l.at("ALTER PUBLICATION skippr_life SET (publish = 'insert')", write("quiet"), write("out"))
	check(keyed...)
	l.server.Kill()
	l.at("ALTER PUBLICATION skippr_life SET (publish = 'insert, truncate')", write("back"),
		"ALTER PUBLICATION skippr_life SET (publish = 'insert, update, delete, truncate')", write("part"))
	l.server.Start()
	check(keyed...)
	for _, n := range keyed { // and all is followed
		l.at(fmt.Sprintf("UPDATE %s SET v = 'followed' WHERE id = 1; DELETE FROM %[1]s WHERE id = 2", n))
	}
	l.at("INSERT INTO log VALUES (9, 'followed')")
	check()
}
