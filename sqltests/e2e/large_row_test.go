package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestLargeRow has texts of nearly 1 GB, which is as much as PostgreSQL has, in the copy
// and in the stream, and one that is nearly too long. It takes SKIPPRD_LARGE_ROW=1;
// ingest/postgres has the same with a small limit.
func TestLargeRow(t *testing.T) {
	if os.Getenv("SKIPPRD_LARGE_ROW") == "" {
		t.Skip("SKIPPRD_LARGE_ROW is not set")
	}
	const huge = "repeat('x', 1000000000)"
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE w (id int, v text)",
		"ALTER TABLE w REPLICA IDENTITY FULL", "CREATE TABLE b (id int PRIMARY KEY, v bytea)", "CREATE TABLE other (id int PRIMARY KEY)",
		"INSERT INTO t VALUES (1, 'small'), (2, "+huge+"), (3, 'small')", "INSERT INTO w VALUES (1, 'small'), (2, "+huge+")",
		"INSERT INTO b VALUES (1, ''), (2, decode(repeat('00', 450000000), 'hex'))",
		"INSERT INTO other VALUES (1)")
	s := harness.New(t, t.TempDir())
	s.Start()
	l := letters{t: t, server: s, source: source}
	peak := func(when string) {
		t.Logf("peak %s: %d MiB", when, harness.PeakBytes(s.PID())>>20)
	}
	peak("idle")
	l.ours(fmt.Sprintf("CREATE PIPELINE shop FROM POSTGRES '%s' FOR ALL TABLES", source))
	l.drain()
	peak("after the copy")
	l.at("INSERT INTO t VALUES (4, 'small'), (5, "+huge+"), (6, 'small')", "INSERT INTO w VALUES (3, 'small')",
		"UPDATE t SET v = 'mended' WHERE id = 2", "UPDATE t SET v = "+huge+" WHERE id = 3", "INSERT INTO other VALUES (2)")
	l.drain()
	peak("after the stream")
	if most := harness.PeakBytes(s.PID()) >> 20; most > 400 {
		t.Errorf("the server took %d MiB: it holds values that it does not take in", most)
	}
	l.want("SELECT id, v FROM shop.t ORDER BY id", "1 small; 2 mended; 3 small; 4 small; 6 small")
	l.want("SELECT id, v FROM shop.w ORDER BY id", "1 small; 3 small")
	l.want("SELECT id FROM shop.b ORDER BY id", "1")
	l.want("SELECT id FROM shop.other ORDER BY id", "1; 2")
	l.want("SELECT table_name, key, code FROM skippr.dead_letters WHERE state = 'open' ORDER BY table_name, key",
		`b ["2"] 54000; t ["3"] 54000; t ["5"] 54000; w - 54000`)
	l.want("SELECT DISTINCT reason FROM skippr.dead_letters", "a row has more than the 400 MiB that can be made durable at once")
	l.want("SELECT DISTINCT state FROM pg_stat_pipeline_table", "ready")
}
