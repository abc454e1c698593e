package e2e

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestReworded changes types at the source under rows that it has sent: they are copied
// anew, readable meanwhile, with keys and whole rows that have such values; the names that
// tables and their schema have there are followed too.
func TestReworded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	l.at("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, m mood); CREATE SCHEMA crm",
		"CREATE TABLE keyed (m mood PRIMARY KEY, v text); INSERT INTO keyed VALUES ('sad', 'a'), ('ok', 'b')",
		"CREATE TABLE whole (m mood[], p pair, v text); ALTER TABLE whole REPLICA IDENTITY FULL; "+
			"INSERT INTO whole VALUES ('{sad,ok}', '(1,sad)', 'a'), ('{ok}', '(2,ok)', 'b'), ('{ok}', '(2,ok)', 'b')",
		"CREATE TABLE crm.plain (id int PRIMARY KEY, v text); INSERT INTO crm.plain VALUES (1, 'a')")
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES WITH (commit_interval = '200ms')", quoted(l.source)))
	same := func() {
		t.Helper()
		for _, sql := range []string{
			"SELECT string_agg(m::text || v, ',' ORDER BY v, m::text) FROM %skeyed",
			"SELECT string_agg(m::text || p::text || v, ',' ORDER BY v, m::text) FROM %swhole",
		} {
			want, err := harness.Text(l.source, fmt.Sprintf(sql, "public."))
			if err != nil {
				t.Fatal(err)
			}
			l.eventually(fmt.Sprintf(sql, "life."), want)
		}
		l.eventually("SELECT count(*) FROM pg_stat_pipeline_table WHERE state = 'ready'", "3")
	}
	anew := "SELECT count(*) FROM skippr.events WHERE table_name = 'life.%s' AND kind = 'table copied anew'"
	same()
	l.at("ALTER TYPE mood ADD VALUE 'glad'", "INSERT INTO keyed VALUES ('glad', 'c'); UPDATE whole SET p.m = 'glad' WHERE v = 'a'")
	same()
	l.eventually(fmt.Sprintf(anew, "keyed"), "0")

	l.at("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", "UPDATE keyed SET v = 'B' WHERE m = 'fine'", "DELETE FROM whole WHERE v = 'b'",
		"INSERT INTO whole VALUES ('{fine}', '(3,fine)', 'd')")
	same()
	l.eventually(fmt.Sprintf(anew, "keyed"), "1")
	l.eventually("SELECT min(detail) FROM skippr.events WHERE table_name = 'life.keyed' AND kind = 'table copied anew'",
		`the source writes values of column "m" in another way now: a label or an attribute of its type, or the type, was changed`)

	l.server.Kill()
	l.at("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'; ALTER TYPE pair ADD ATTRIBUTE n int",
		"INSERT INTO whole VALUES ('{blue}', '(4,blue,7)', 'e')")
	l.server.Start()
	same()

	l.at("CREATE TYPE feeling AS ENUM ('blue', 'good', 'glad'); ALTER TABLE keyed ALTER m TYPE feeling "+
		"USING CASE WHEN m = 'fine' THEN 'good' ELSE m::text END::feeling", "UPDATE keyed SET v = 'C' WHERE m = 'good'")
	same()

	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life SET (on_type_change = 'stop')")
	l.at("ALTER TYPE feeling RENAME VALUE 'good' TO 'better'")
	l.eventually(l.stateOf("keyed"), `stopped|the source writes values of column "m" in another way now: a label or an attribute of its type, `+
		"or the type, was changed|Copy it anew: ALTER PIPELINE life RESYNC TABLE life.keyed;")
	l.eventually("SELECT count(*) FROM life.keyed", "3")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE life.keyed")
	same()

	l.at("ALTER SCHEMA crm RENAME TO sales", "INSERT INTO sales.plain VALUES (2, 'b')")
	l.eventually("SELECT count(*) FROM life.plain", "2")
	l.eventually("SELECT source_table FROM skippr.tables WHERE table_name = 'plain'", "sales.plain")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE sales.plain")
	l.eventually("SELECT count(*) FROM life.plain", "2")
	same()
}
