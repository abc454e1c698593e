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

// TestPublicationOfOthersAltered: a table that somebody else's publication does not send any more, or that
// cannot be sent, stops alone and says what helps, and is copied anew by itself when it is
// mended, with its comments; one that was not sent for a while, while nobody looked, too.
func TestPublicationOfOthersAltered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	tables := []string{"a", "b", "quiet"}
	for _, n := range tables {
		l.at(fmt.Sprintf("CREATE TABLE %s (id int PRIMARY KEY, v text); INSERT INTO %[1]s VALUES (1, 'a'), (2, 'b')", n))
	}
	l.at("CREATE PUBLICATION named FOR TABLE a, b, quiet WITH (publish_via_partition_root = true)",
		"CREATE PUBLICATION loose FOR ALL TABLES WITH (publish_via_partition_root = true)",
		"DO $$ BEGIN IF to_regrole('others_reader') IS NULL THEN CREATE ROLE others_reader LOGIN REPLICATION; END IF; END $$",
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO others_reader")
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	write := func(table string) string {
		return fmt.Sprintf("UPDATE %s SET v = v || '!' WHERE id = 1; INSERT INTO %[1]s SELECT max(id) + 1, 'new' FROM %[1]s", table)
	}
	begin := func(publication string) {
		t.Helper()
		harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES WITH (publication = '%s')", quoted(l.as("others_reader")), publication))
		for _, n := range tables {
			l.same(n)
		}
	}
	stopped := func(table, reason, hint string) {
		t.Helper()
		l.eventually("SELECT concat_ws('|', state, reason) FROM pg_stat_pipeline_table WHERE table_name = '"+table+"'", "stopped|"+reason)
		l.eventually("SELECT position("+quoted(hint)+" in hint) > 0 FROM pg_stat_pipeline_table WHERE table_name = '"+table+"'", "t")
	}
	again := func(table string) {
		t.Helper()
		for _, n := range tables {
			l.same(n)
			l.eventually(l.stateOf(n), "ready")
		}
		l.at(write(table))
		l.same(table)
	}
	begin("named")
	harness.Exec(t, l.server.DSN, "COMMENT ON TABLE life.a IS 'kept'; COMMENT ON COLUMN life.a.v IS 'kept, too'")
	l.at("ALTER PUBLICATION named DROP TABLE a", write("a"))
	stopped("a", "publication named does not have the table any more", `ALTER PUBLICATION "named" ADD TABLE ONLY "public"."a";`)
	l.eventually(l.stateOf("quiet"), "ready")
	l.at("ALTER PUBLICATION named ADD TABLE a")
	again("a")
	l.eventually("SELECT obj_description('life.a'::regclass) || ', ' || col_description('life.a'::regclass, 2)", "kept, kept, too")
	l.at("ALTER PUBLICATION named SET TABLE a, b (id), quiet", write("b"))
	stopped("b", "publication named does not have all columns of the table any more", `ALTER PUBLICATION "named" DROP TABLE ONLY "public"."b";`)
	l.eventually("SELECT v FROM life.b WHERE id = 2", "b")
	l.at("ALTER PUBLICATION named SET TABLE a, b, quiet")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE life.b")
	again("b")
	harness.Exec(t, l.server.DSN, "DROP PIPELINE life CASCADE")

	l.at("DROP PUBLICATION named")
	begin("loose")
	l.at("ALTER TABLE a SET UNLOGGED", write("a"))
	stopped("a", "the table is unlogged at the source: what is written to it cannot be streamed", `ALTER TABLE "public"."a" SET LOGGED;`)
	l.at("ALTER TABLE a SET LOGGED")
	again("a")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life PAUSE")
	l.at("ALTER TABLE b SET UNLOGGED", write("b"), "ALTER TABLE b SET LOGGED")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESUME")
	again("b")
	harness.Exec(t, l.server.DSN, "DROP PIPELINE life CASCADE")

	// One that cannot be put back into our own publication holds nobody up.
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES", quoted(l.source)))
	again("quiet")
	l.at("ALTER PUBLICATION skippr_life DROP TABLE a", "ALTER TABLE a SET UNLOGGED", "CREATE TABLE later (id int PRIMARY KEY, v text)", write("b"))
	stopped("a", "the table is unlogged at the source: what is written to it cannot be streamed", `ALTER TABLE "public"."a" SET LOGGED;`)
	l.same("later")
	l.same("b")
	l.at(write("a"), "ALTER TABLE a SET LOGGED")
	again("a")
}
