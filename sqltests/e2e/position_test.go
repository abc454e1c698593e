package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// sqlState is a server's error as text, its code in it.
func sqlState(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func do(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func scalar(t *testing.T, c *pgx.Conn, sql string) string {
	t.Helper()
	var out string
	if err := c.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&out); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// TestReadYourOwnWrite: who writes at the source, asks it for its position and reads here
// at that position sees the write, each time, while the lake takes what the log has.
func TestReadYourOwnWrite(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE n (id bigint PRIMARY KEY, v int)", "CREATE TABLE other (id bigint)")
	s := harness.New(t, t.TempDir(), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE own FROM POSTGRES "+quoted(source)+" FOR TABLE public.n")
	src, ours := harness.Connect(t, source), harness.Connect(t, s.DSN)
	do(t, src, "SET synchronous_commit = on") // else the position lags behind the commit
	do(t, ours, "SYNC PIPELINE own; SET skippr.read_timeout = '5min'")
	began := time.Now()
	rounds := number("SKIPPRD_OWN_WRITES", 100)
	for i := range rounds {
		do(t, src, fmt.Sprintf("INSERT INTO n VALUES (%d, %d)", i, i))
		if i%10 == 9 { // a position past what the pipeline has tables of
			do(t, src, fmt.Sprintf("INSERT INTO other VALUES (%d)", i))
		}
		at := scalar(t, src, "SELECT pg_current_wal_lsn()::text")
		do(t, ours, "SET skippr.read_position = '"+at+"'")
		if got := scalar(t, ours, fmt.Sprintf("SELECT count(*)::text FROM own.n WHERE id <= %d", i)); got != fmt.Sprint(i+1) {
			t.Fatalf("write %d at %s: %s rows", i, at, got)
		}
	}
	t.Logf("%d writes read, %v each", rounds, time.Since(began)/time.Duration(rounds))

	// A position that the source never reaches is an error that says where we are, and
	// the session goes on.
	do(t, ours, "SET skippr.read_timeout = '200ms'; SET skippr.read_position = 'own=FFFFFF/0'")
	_, err := ours.Exec(t.Context(), "SELECT count(*) FROM own.n")
	if got := sqlState(err); !strings.Contains(got, "57014") || !strings.Contains(got, "own") {
		t.Fatalf("a position that is never reached: %v", err)
	}
	if got := scalar(t, ours, "SELECT count(*)::text FROM skippr.pipelines"); got != "1" {
		t.Fatalf("system relations wait for nothing: %s", got)
	}
	for value, code := range map[string]string{"nonsense": "22023", "own=0/1, own=0/2": "22023", "=0/1": "22023"} {
		if _, err := ours.Exec(t.Context(), "SET skippr.read_position = '"+value+"'"); !strings.Contains(sqlState(err), code) {
			t.Fatalf("SET to %q: %v", value, err)
		}
	}
	do(t, ours, "SET skippr.read_position = 'nobody=0/1'")
	if _, err = ours.Exec(t.Context(), "SELECT count(*) FROM own.n"); !strings.Contains(sqlState(err), "42704") {
		t.Fatalf("a pipeline that is not there: %v", err)
	}
	do(t, ours, "RESET skippr.read_position")

	// A transaction that reads one moment: the position counts before its first query.
	do(t, src, "INSERT INTO n VALUES (1000000, 1)")
	at := scalar(t, src, "SELECT pg_current_wal_lsn()::text")
	do(t, ours, "SET skippr.read_timeout = '5min'; BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL skippr.read_position = '"+at+"'")
	if got := scalar(t, ours, "SELECT count(*)::text FROM own.n WHERE id = 1000000"); got != "1" {
		t.Fatalf("SET LOCAL in a transaction: %s rows", got)
	}
	do(t, ours, "SET LOCAL skippr.read_position = 'FFFFFF/0'")
	if _, err = ours.Exec(t.Context(), "SELECT count(*) FROM own.n"); !strings.Contains(sqlState(err), "55000") {
		t.Fatalf("a position past the transaction's moment: %v", err)
	}
	do(t, ours, "ROLLBACK")
	if got := scalar(t, ours, "SELECT current_setting('skippr.read_position')"); got != "" {
		t.Fatalf("SET LOCAL outlived its transaction: %q", got)
	}
	s.Stop()
}

// TestLag: what waits is told in bytes and seconds, from the source to the log and from the
// log to the lake, of the pipeline and of each table; when nothing waits all of it is 0.
func TestLag(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE busy (id bigint PRIMARY KEY)", "CREATE TABLE quiet (id bigint PRIMARY KEY)")
	s := harness.New(t, t.TempDir(), "--commit-interval", "1h")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE l FROM POSTGRES "+quoted(source)+" FOR ALL TABLES", "SYNC PIPELINE l")
	ours := harness.Connect(t, s.DSN)
	const pipeline = `SELECT format('lag %s %s lake %s %s %s', lag_bytes > 0, lag_seconds > 0, lake_lag_rows, lake_lag_bytes > 0, lake_lag_seconds > 0)
		FROM pg_stat_pipeline WHERE lag_bytes >= 0 AND lag_seconds >= 0 AND lake_lag_bytes >= 0 AND lake_lag_seconds >= 0`
	const table = `SELECT string_agg(format('%s lag %s lake %s %s %s', table_name, lag_bytes > 0, lake_lag_rows, lake_lag_bytes > 0, lake_lag_seconds > 0), ', ' ORDER BY table_name)
		FROM pg_stat_pipeline_table WHERE lag_bytes >= 0 AND lag_seconds >= 0 AND lake_lag_bytes >= 0 AND lake_lag_seconds >= 0`
	expect := func(when, wantPipeline, wantTables string) {
		t.Helper()
		var a, b string
		ok := harness.Until(harness.Patience, func() bool {
			a, _ = harness.Text(s.DSN, pipeline)
			b, _ = harness.Text(s.DSN, table)
			return a == wantPipeline && b == wantTables
		})
		if !ok {
			t.Errorf("%s: %s; %s\nwant %s; %s", when, a, b, wantPipeline, wantTables)
		}
	}
	const idle, idleTables = "lag f f lake 0 f f", "busy lag f lake 0 f f, quiet lag f lake 0 f f"
	expect("at first", idle, idleTables)
	harness.Exec(t, source, "INSERT INTO busy SELECT generate_series(1, 100)")
	expect("with a lake that takes nothing", "lag f f lake 100 t t", "busy lag f lake 100 t t, quiet lag f lake 0 f f")
	do(t, ours, "ALTER PIPELINE l COMPACT")
	expect("when the lake has it", idle, idleTables)
	becomes(t, s.DSN, "SELECT (position = lake_position AND position IS NOT NULL)::text FROM pg_stat_pipeline", "true")
	do(t, ours, "PAUSE PIPELINE l")
	harness.Exec(t, source, "INSERT INTO busy SELECT generate_series(101, 300)")
	s.Stop()
	s.Start() // looks at the source of what rests at once, then now and then
	ours = harness.Connect(t, s.DSN)
	expect("paused", "lag t t lake 0 f f", "busy lag t lake 0 f f, quiet lag t lake 0 f f")
	do(t, ours, "RESUME PIPELINE l; SYNC PIPELINE l; ALTER PIPELINE l COMPACT")
	expect("in the end", idle, idleTables)
	s.Stop()
}
