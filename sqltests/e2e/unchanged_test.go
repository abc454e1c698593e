package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// large is a value of each kind that PostgreSQL stores out of line, different for each
// seed; noise compresses badly.
func large(seed string) string {
	noise := "(SELECT string_agg(md5(" + seed + " || i::text), '') FROM generate_series(1, 640) i)"
	return fmt.Sprintf(`%[1]s, %[1]s, decode(%[1]s, 'hex'), jsonb_build_object('k', %[1]s),
	 (SELECT array_agg(i * 7919 %% 100003) FROM generate_series(1, 4000) i),
	 (SELECT array_agg(md5(%[2]s || i::text)) FROM generate_series(1, 500) i),
	 (SELECT array_agg(timestamptz '2026-01-01' + i * interval '1 hour') FROM generate_series(1, 2000) i),
	 (SELECT string_agg((i * 7919 %% 997)::text, '') FROM generate_series(1, 3000) i)::numeric, %[1]s`, noise, seed)
}

const largeColumns = "ext, txt, b, j, a, texts, times, num, d"

func createLarge(t *testing.T, dsn string) {
	t.Helper()
	harness.Exec(t, dsn, "CREATE DOMAIN words AS text",
		`CREATE TABLE big (id int PRIMARY KEY, n int, ext text, txt text, b bytea, j jsonb, a int[], texts text[],
		 times timestamptz[], num numeric, d words)`,
		"ALTER TABLE big ALTER ext SET STORAGE EXTERNAL",
		"CREATE TABLE pair (a text, b timestamptz, n int, doc text, PRIMARY KEY (a, b))",
		"CREATE FUNCTION fill(lo int, hi int) RETURNS void LANGUAGE sql AS $$ INSERT INTO big (id, n, "+largeColumns+
			") SELECT x, 0, "+large("x::text")+" FROM generate_series(lo, hi) x $$",
		"INSERT INTO pair SELECT 'k''\\\"' || x, timestamptz '0044-03-15 12:00:00.000001Z BC' + x * interval '1 day', 0, repeat(md5(x::text), 800) FROM generate_series(1, 20) x",
	)
}

// TestUnchanged updates rows without touching their large values, which PostgreSQL then
// does not send: they are those of before wherever the row is, and whatever happens in
// between.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	createLarge(t, source)
	harness.Exec(t, source, "SELECT fill(1, 20)")
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE u FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	tables := map[string]string{"big": "id", "pair": "a, b"}
	check := func(when string) {
		t.Helper()
		drain(t, s.DSN, "u")
		if _, err := harness.EqualTables(source, s.DSN, "u", tables); err != nil {
			t.Fatalf("%s: %v\n%s", when, err, s.Log(40))
		}
	}
	check("copied")
	for _, step := range []struct{ name, sql string }{
		{"after the copy", "UPDATE big SET n = 1; UPDATE pair SET n = 1"},
		{"again", "UPDATE big SET n = n + 1 WHERE id % 2 = 0"},
		{"inserted and updated in one transaction", "BEGIN; SELECT fill(21, 25); UPDATE big SET n = 3 WHERE id > 18; COMMIT"},
		{"updated twice in one transaction", "BEGIN; UPDATE big SET n = 4; UPDATE big SET n = 5 WHERE id < 9; COMMIT"},
		{"one large value changes, others stay", "BEGIN; UPDATE big SET ext = repeat(md5(id::text || 'x'), 700) WHERE id % 3 = 0; UPDATE big SET n = 6; COMMIT"},
		{"null and back", "BEGIN; UPDATE big SET txt = NULL WHERE id = 1; UPDATE big SET n = 7 WHERE id = 1; UPDATE big SET txt = repeat(md5('z'), 900) WHERE id = 1; UPDATE big SET n = 8 WHERE id = 1; COMMIT"},
		{"key update", "UPDATE big SET id = id + 1000 WHERE id <= 5; UPDATE pair SET a = 'm' || a WHERE n = 1"},
		{"key updates in a chain", "BEGIN; UPDATE big SET id = 5000 WHERE id = 1001; UPDATE big SET id = 5001, n = 9 WHERE id = 5000; UPDATE big SET n = 10 WHERE id = 5001; COMMIT"},
		{"a key used again", "BEGIN; UPDATE big SET id = 6000 WHERE id = 10; SELECT fill(10, 10); UPDATE big SET n = 11 WHERE id IN (10, 6000); UPDATE big SET id = 10 + id WHERE id = 6000; COMMIT"},
		{"savepoints", "BEGIN; UPDATE big SET n = 12; SAVEPOINT a; UPDATE big SET txt = repeat(md5('s'), 700), id = id + 50000; ROLLBACK TO a; SAVEPOINT b; UPDATE big SET n = 13 WHERE id > 15; RELEASE b; COMMIT"},
		{"deleted and made anew", "BEGIN; DELETE FROM big WHERE id = 12; SELECT fill(12, 12); UPDATE big SET n = 14 WHERE id = 12; COMMIT"},
		{"column renamed", "BEGIN; UPDATE big SET n = 15; ALTER TABLE big RENAME txt TO words; UPDATE big SET n = 16; ALTER TABLE big ADD more text DEFAULT 'some'; UPDATE big SET n = 17; COMMIT; UPDATE big SET n = 18"},
		{"truncated", "BEGIN; UPDATE pair SET n = 3; TRUNCATE pair; INSERT INTO pair VALUES ('x', now(), 1, repeat(md5('t'), 900)); UPDATE pair SET n = 2; COMMIT; UPDATE pair SET n = 4"},
	} {
		harness.Exec(t, source, step.sql)
		check(step.name)
	}
	harness.Exec(t, s.DSN, "ALTER PIPELINE u COMPACT")
	harness.Exec(t, source, "UPDATE big SET n = 20; UPDATE big SET n = 21, id = id + 20000 WHERE id % 2 = 1")
	check("compacted")
	for i := range 3 {
		harness.Exec(t, source, fmt.Sprintf("UPDATE big SET n = %d; UPDATE pair SET n = %d", 30+i, i))
		s.Kill()
		harness.Exec(t, source, "UPDATE big SET n = n + 100 WHERE id % 3 = 0; UPDATE big SET id = id + 1 WHERE id IN (5001, 25001)")
		s.Start()
		check("killed")
	}
	// A row that was never copied is not here: its table says so, and stops alone.
	harness.Exec(t, s.DSN, "CREATE PIPELINE w FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (copy_data = false)")
	harness.Exec(t, source, "UPDATE big SET n = 50 WHERE id = 15 OR id = 20015; INSERT INTO pair VALUES ('y', now(), 1, 'small')")
	stopped := func() string {
		text, err := harness.Text(s.DSN, "SELECT state || ': ' || reason || '. ' || hint FROM skippr.tables WHERE pipeline = 'w' AND table_name = 'big'")
		if err != nil {
			return err.Error()
		}
		return text
	}
	if !harness.Until(harness.Patience, func() bool { return strings.HasPrefix(stopped(), "stopped: ") }) ||
		!strings.Contains(stopped(), `the large value of column "`) || !strings.Contains(stopped(), "ALTER PIPELINE w RESYNC TABLE w.big") {
		t.Errorf("the table says %q", stopped())
	}
	if !harness.Until(harness.Patience, func() bool { n, _ := harness.Text(s.DSN, "SELECT count(*) FROM w.pair"); return n == "1" }) {
		t.Error("the other table does not go on")
	}
}

// moves updates rows at random without their large values, and gives them other keys,
// which others take then, until ctx ends: the last transaction is whole when it returns.
func moves(ctx context.Context, dsn string, rows int) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	r := rand.New(rand.NewPCG(3, 5))
	for i := 0; ctx.Err() == nil; i++ {
		a, b := r.IntN(rows)+1, r.IntN(rows)+1
		sql := fmt.Sprintf("UPDATE doc SET n = n + 1 WHERE id IN (%d, %d)", a, b)
		if a != b && i%3 == 0 { // the two change places
			sql = fmt.Sprintf("BEGIN; UPDATE doc SET id = -1 WHERE id = %[1]d; UPDATE doc SET id = %[1]d, n = n + 1 WHERE id = %[2]d; UPDATE doc SET id = %[2]d WHERE id = -1; COMMIT", a, b)
		}
		// A statement that is cancelled may yet be committed, after moves has returned.
		if _, err := c.PgConn().Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// TestUnchangedWhileCopied updates rows, and has them change places, while the table is
// copied, copied again, and while the server dies in the midst of it.
func TestUnchangedWhileCopied(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	const rows = 3000
	harness.Exec(t, source, "CREATE TABLE doc (id int PRIMARY KEY, n int, body text)", "ALTER TABLE doc ALTER body SET STORAGE EXTERNAL",
		fmt.Sprintf("INSERT INTO doc SELECT x, 0, repeat(md5(x::text), 100) FROM generate_series(1, %d) x", rows))
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms")
	s.Start()
	ctx, stop := context.WithCancel(t.Context())
	var load errgroup.Group
	load.Go(func() error { return moves(ctx, source, rows) })
	harness.Exec(t, s.DSN, "CREATE PIPELINE c FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (backfill_rows_per_second = 1500)")
	drain(t, s.DSN, "c")
	harness.Exec(t, s.DSN, "ALTER PIPELINE c RESYNC TABLE doc")
	drain(t, s.DSN, "c")
	harness.Exec(t, s.DSN, "ALTER PIPELINE c RESET")
	for range 2 {
		harness.Until(2*time.Second, func() bool { return s.Dead() })
		s.Kill()
		s.Start()
	}
	drain(t, s.DSN, "c")
	stop()
	if err := load.Wait(); err != nil {
		t.Fatal(err)
	}
	drain(t, s.DSN, "c")
	harness.CompareTables(t, source, s.DSN, "c", map[string]string{"doc": "id"})
	t.Logf("the copy began anew %d times", strings.Count(s.Log(100000), "could not be filled in"))
}

// TestUnchangedMany measures updates of one column of rows with a large value that is in the
// lake. SKIPPRD_UNCHANGED is how many; without it a few, for the test's sake.
func TestUnchangedMany(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	updates := number("SKIPPRD_UNCHANGED", 3000)
	rows := max(1000, updates/10)
	harness.Exec(t, source, "CREATE TABLE doc (id int PRIMARY KEY, n int, body text)", "ALTER TABLE doc ALTER body SET STORAGE EXTERNAL",
		fmt.Sprintf("INSERT INTO doc SELECT x, 0, repeat(md5(x::text), 625) FROM generate_series(1, %d) x", rows))
	s := harness.New(t, dataDir(t))
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE m FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	drain(t, s.DSN, "m")
	harness.Exec(t, s.DSN, "ALTER PIPELINE m COMPACT")
	began := time.Now()
	for done := 0; done < updates; done += rows {
		harness.Exec(t, source, "UPDATE doc SET n = n + 1")
	}
	committed := time.Since(began)
	drain(t, s.DSN, "m")
	took := time.Since(began)
	own, all := harness.OwnPeakBytes(s.PID()), harness.PeakBytes(s.PID())
	t.Logf("%d updates of rows with 20 kB: %.0f rows/s (the source took %s of %s), peak memory of the server %d MB, with its workers %d MB",
		updates, float64(updates)/took.Seconds(), committed.Round(time.Millisecond), took.Round(time.Millisecond), own>>20, all>>20)
	harness.CompareTables(t, source, s.DSN, "m", map[string]string{"doc": "id"})
}
