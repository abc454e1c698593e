package e2e

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// sameValues waits until a table has the rows that it has at the source, of columns of any type.
func (l *tableLife) sameValues(table string) {
	l.t.Helper()
	sql := "SELECT string_agg(t::text, ' ' ORDER BY t::text COLLATE \"C\") FROM %s." + table + " t"
	want, err := harness.Text(l.source, fmt.Sprintf(sql, "public"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.eventually(fmt.Sprintf(sql, "life"), want)
}

// TestReworked: what a change of a column's type or expression does to older rows is found
// out by a comparison: a table whose rows differ is copied anew by itself, one with the same
// rows is not.
func TestReworked(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	source := pgtest.StartPrivate(t)
	l := &tableLife{t: t, source: source.CreateDatabase(t)}
	make := func(name, definition, rows string) {
		l.at(fmt.Sprintf("CREATE TABLE %s (%s); INSERT INTO %[1]s VALUES %[3]s", name, definition, rows))
	}
	const numbers = "(1, 10), (2, 20), (3, NULL)"
	for _, name := range []string{"silent", "told", "alike", "again", "twice", "paused", "dead", "stays", "untouched"} {
		make(name, "id int PRIMARY KEY, v int", numbers)
	}
	make("texts", "id int PRIMARY KEY, v varchar(10)", "(1, 'a'), (2, 'B')")
	make("several", "id int PRIMARY KEY, a smallint, b int, c real", "(1, 1, 1, 1.1), (2, 2, 2, 2.5)")
	make("few", "id int PRIMARY KEY, v int", "(1, 1), (2, 2)")
	l.at("INSERT INTO few SELECT i, i FROM generate_series(3, 5000) i")
	make("bare", "id int, v int", "(1, 1), (1, 1), (2, 2)")
	make("whole", "id int, v int", "(1, 1), (1, 1), (2, 2)")
	l.at("ALTER TABLE whole REPLICA IDENTITY FULL",
		"CREATE TABLE part (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)", "CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (2)",
		"CREATE TABLE part_b PARTITION OF part DEFAULT", "INSERT INTO part VALUES (1, 1), (2, 2)")
	tables := []string{"silent", "told", "alike", "again", "twice", "paused", "dead", "stays", "untouched", "texts", "several", "few", "bare", "whole", "part"}
	if source.Version(t) >= 17 {
		make("gen", "id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED", "(1), (2)")
		tables = append(tables, "gen")
	}
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES", quoted(l.source)))
	for _, n := range tables {
		l.sameValues(n)
	}
	settled := func(table string, copies int) {
		t.Helper()
		l.sameValues(table)
		l.eventually(l.stateOf(table), "ready")
		l.eventually(fmt.Sprintf("SELECT count(*) FROM skippr.events WHERE table_name = 'life.%s' AND kind = 'table copied anew'", table), fmt.Sprint(copies))
		l.at(fmt.Sprintf("INSERT INTO %s (id) VALUES (6000)", table))
		l.sameValues(table)
	}
	const double = "ALTER TABLE %s ALTER v TYPE bigint USING v * 2"

	l.at(fmt.Sprintf(double, "silent"))
	settled("silent", 1)
	l.at(fmt.Sprintf(double, "told")+"; INSERT INTO told VALUES (4, 40)", "UPDATE told SET v = 41 WHERE id = 4")
	settled("told", 1)
	l.at("ALTER TABLE again ALTER v TYPE int USING v + 1") // the same type
	settled("again", 1)
	l.at("BEGIN; "+fmt.Sprintf(double, "twice")+"; INSERT INTO twice VALUES (4, 40); ALTER TABLE twice ALTER v TYPE bigint USING v - 1; COMMIT",
		"ALTER TABLE twice ALTER v TYPE bigint USING v - 2")
	l.sameValues("twice")
	l.eventually(l.stateOf("twice"), "ready")
	l.at("ALTER TABLE texts ALTER v TYPE varchar(20) USING upper(v)")
	settled("texts", 1)
	l.at("ALTER TABLE several ALTER a TYPE int USING a + 1, ALTER b TYPE bigint, ALTER c TYPE double precision; INSERT INTO several VALUES (3, 3, 3, 3.3)")
	l.sameValues("several")
	l.at("ALTER TABLE few ALTER v TYPE bigint USING CASE WHEN id = 4321 THEN -1 ELSE v END")
	settled("few", 1)
	for _, n := range []string{"bare", "whole"} {
		l.at(fmt.Sprintf(double, n) + fmt.Sprintf("; INSERT INTO %s VALUES (7, 7)", n))
		settled(n, 1)
	}
	l.at(fmt.Sprintf(double, "part"))
	settled("part", 1)
	if source.Version(t) >= 17 {
		l.at("ALTER TABLE gen ALTER g SET EXPRESSION AS (id * 3)")
		l.sameValues("gen")
		l.at("INSERT INTO gen VALUES (8)")
		l.sameValues("gen")
	}

	// The same rows in other files are no reason to copy them.
	l.at("ALTER TABLE alike ALTER v TYPE bigint; INSERT INTO alike VALUES (4, 5000000000)", "VACUUM FULL untouched", "CLUSTER untouched USING untouched_pkey")
	settled("alike", 0)
	settled("untouched", 0)

	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life PAUSE")
	l.at(fmt.Sprintf(double, "paused"))
	l.server.Kill()
	l.server.Start()
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESUME")
	settled("paused", 1)
	l.server.Kill()
	l.at(fmt.Sprintf(double, "dead"), "INSERT INTO dead VALUES (4, 40)")
	l.server.Start()
	settled("dead", 1)

	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life SET (on_schema_change = 'stop')")
	l.at(fmt.Sprintf(double, "stays"))
	l.eventually(l.stateOf("stays"), "stopped|rows were given other values at the source as a column was changed, which are not sent|"+
		"Copy it anew: ALTER PIPELINE life RESYNC TABLE life.stays;")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE life.stays")
	settled("stays", 1)
	l.eventually("SELECT count(*) FROM pg_stat_pipeline_table WHERE state <> 'ready' OR reason IS NOT NULL", "0")
}
