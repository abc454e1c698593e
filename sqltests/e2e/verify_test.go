package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// verified runs VERIFY and returns its rows as texts: table low high source here state key
// detail, "-" for null.
func verified(t *testing.T, c *pgx.Conn, sql string) []string {
	t.Helper()
	results, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out []string
	for _, row := range results[len(results)-1].Rows {
		var words []string
		for _, cell := range row {
			word := "-"
			if cell != nil {
				word = string(cell)
			}
			words = append(words, word)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// differing are the lines of a result that are not of equal ranges.
func differing(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, " equal ") })
}

var verifyTables = []string{
	"CREATE TABLE orders (id bigint PRIMARY KEY, name text, total numeric(12,2), at timestamptz, tags text[], d double precision, j jsonb, b bytea)",
	`INSERT INTO orders SELECT i, 'n "' || i || '\,(', i / 7.0, '2026-01-01'::timestamptz + i * interval '1 s', ARRAY['a', NULL, i::text],
	   i / 3.0, jsonb_build_object('i', i), decode(md5(i::text), 'hex') FROM generate_series(1, 5000) i`,
	"CREATE TABLE by_text (k text, n int, v text, PRIMARY KEY (k, n))",
	"INSERT INTO by_text SELECT chr(65 + i % 26) || chr(228) || i, i, nullif('v' || i, 'v7') FROM generate_series(1, 3000) i",
	"CREATE TABLE keyless (a int, b text)",
	"INSERT INTO keyless SELECT i % 500, 'x' FROM generate_series(1, 2000) i",
	"CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
	"CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500)",
	"CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (1000)",
	"INSERT INTO parts SELECT i, 'p' || i FROM generate_series(0, 999) i",
	"CREATE TABLE nothing (id int PRIMARY KEY)",
}

// TestVerify: while the source is written to without pause and the lake takes what the log
// has, each VERIFY finds both sides equal, at one position. What is changed behind the
// pipeline's back is named, key by key and column by column.
func TestVerify(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, verifyTables...)
	s := harness.New(t, t.TempDir(), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE v FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	config, err := pgx.ParseConfig(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { t.Logf("%s: %s", time.Now().Format("05.000"), n.Message) }
	ours, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	do(t, ours, "SYNC PIPELINE v")

	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int, 1)
	go func() { written <- writeOrders(ctx, source) }()
	for range number("SKIPPRD_VERIFY_ROUNDS", 4) {
		began := time.Now()
		lines := verified(t, ours, "VERIFY PIPELINE v WITH (ranges = 8)")
		t.Logf("compared in %v", time.Since(began).Round(time.Millisecond))
		bad := slices.DeleteFunc(differing(lines), func(l string) bool { // a TRUNCATE after the position, before its turn
			return strings.HasPrefix(l, "v.nothing ") && strings.Contains(l, "skipped - it was truncated")
		})
		if len(bad) > 0 || len(lines) != 5 {
			t.Fatalf("equal sides differ:\n%s\nall:\n%s", strings.Join(bad, "\n"), strings.Join(lines, "\n"))
		}
	}
	stop()
	t.Logf("%d transactions meanwhile", <-written)
	t.Run("changed behind the pipeline", func(t *testing.T) { changedBehind(t, source, ours) })
	s.Stop()
}

// writeOrders writes to the tables until ctx ends, a TRUNCATE among it, and returns how
// many transactions it made.
func writeOrders(ctx context.Context, dsn string) (n int) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for ; ctx.Err() == nil; n++ {
		sql := fmt.Sprintf(`BEGIN; UPDATE orders SET total = total + 1, name = name || 'x' WHERE id %% 500 = %d;
			DELETE FROM orders WHERE id = %d; INSERT INTO orders (id, total) VALUES (%d, 1.50);
			INSERT INTO keyless VALUES (%d, NULL); UPDATE parts SET id = (id + 500) %% 1000 + 10000 * (id / 10000) WHERE id = -1;
			UPDATE by_text SET v = '%d' WHERE n = %d; COMMIT`, n%500, n, 10000+n, n, n, n%3000)
		if n%1000 == 999 {
			sql = "BEGIN; TRUNCATE nothing; INSERT INTO nothing SELECT generate_series(1, 3); COMMIT"
		}
		if _, err := c.PgConn().Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil { // whole
			return n
		}
	}
	return n
}

// changedBehind changes rows at the source that the pipeline is not told of.
func changedBehind(t *testing.T, source string, ours *pgx.Conn) {
	harness.Exec(t, source, "ALTER PUBLICATION skippr_v SET (publish = '')",
		"UPDATE orders SET name = 'flipped', total = NULL WHERE id = 4001", "DELETE FROM orders WHERE id = 4002",
		"INSERT INTO orders (id) VALUES (4000000)", "UPDATE by_text SET v = 'other' WHERE n = 2222",
		"DELETE FROM keyless WHERE ctid = (SELECT min(ctid) FROM keyless WHERE a = 3 AND b = 'x')",
		"DELETE FROM parts WHERE id = 700")
	began := time.Now()
	lines := differing(verified(t, ours, "VERIFY PIPELINE v WITH (ranges = 8)"))
	t.Logf("in %v:\n%s", time.Since(began), strings.Join(lines, "\n"))
	var keys []string
	for _, l := range lines {
		f := strings.Fields(l)
		if strings.Contains(l, " missing here ") || strings.Contains(l, " extra here ") || strings.Contains(l, " different ") {
			keys = append(keys, f[0]+" "+strings.Join(f[5:], " "))
		}
	}
	for _, want := range []string{
		"v.orders different 4001 name, total", "v.orders extra here 4002 -", "v.orders missing here 4000000 -",
		"v.by_text different (Mä2222,2222) v", "v.parts extra here 700 -",
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("not named: %s", want)
		}
	}
	if len(keys) != 6 {
		t.Errorf("%d keys are named: %s", len(keys), strings.Join(keys, "; "))
	}
	only := differing(verified(t, ours, "VERIFY PIPELINE v TABLE nothing, public.parts WITH (keys = 1)"))
	if len(only) != 2 {
		t.Errorf("of two tables: %s", strings.Join(only, "; "))
	}
}

// TestVerifyPolicies: values that the lake does not hold are compared under what the
// pipeline declares for them, and are no differences; a row set aside is listed as that.
func TestVerifyPolicies(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source,
		"CREATE TABLE r (id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, n numeric(5,2))",
		`INSERT INTO r VALUES (1, 'infinity', 'infinity', 'infinity', 'NaN'), (2, '-infinity', '-infinity', '-infinity', 1.5),
		  (3, '0044-03-15 BC', '0001-01-01 BC', '294276-12-31 23:59:59.999999+00', NULL), (4, '5874897-12-31', '294246-12-31', '4714-11-24 00:00:00+00 BC', -1)`)
	s := harness.New(t, t.TempDir())
	s.Start()
	ours := harness.Connect(t, s.DSN)
	for _, rule := range []string{"dead_letter", "null", "clamp", "text"} {
		p := "p_" + rule
		harness.Exec(t, s.DSN, "CREATE PIPELINE "+p+" FROM POSTGRES "+quoted(source)+" FOR TABLE public.r WITH (out_of_range = '"+rule+"')", "SYNC PIPELINE "+p)
	}
	harness.Exec(t, source, "INSERT INTO r SELECT id + 10, d, ts, tz, n FROM r", "UPDATE r SET d = 'infinity' WHERE id = 14")
	for rule, letters := range map[string]int{"dead_letter": 7, "null": 0, "clamp": 2, "text": 0} {
		p := "p_" + rule
		do(t, ours, "SYNC PIPELINE "+p)
		lines := verified(t, ours, "VERIFY PIPELINE "+p)
		set := 0
		for _, l := range differing(lines) {
			if strings.Contains(l, " dead letter ") {
				set++
			} else {
				t.Errorf("%s: %s", rule, l)
			}
		}
		if set != letters || len(lines) != set+1 {
			t.Errorf("%s: %d rows set aside, not %d:\n%s", rule, set, letters, strings.Join(lines, "\n"))
		}
	}
	s.Stop()
}

// TestVerifyTrouble: a table that the role may not read is skipped with the grant that helps;
// a cancel, a DROP, a dead engine and a source that is gone end the statement with an error
// that says so, and the session goes on.
func TestVerifyTrouble(t *testing.T) {
	t.Parallel()
	server := pgtest.StartPrivate(t)
	source := server.CreateDatabase(t)
	harness.Exec(t, source,
		"CREATE TABLE readable (id int PRIMARY KEY)", "CREATE TABLE secret (id int PRIMARY KEY)", "INSERT INTO readable SELECT generate_series(1, 200000)",
		"CREATE ROLE cdc LOGIN REPLICATION", "GRANT SELECT ON readable, secret TO cdc", "GRANT ALL ON SCHEMA public TO cdc",
		"CREATE PUBLICATION mine FOR TABLE readable, secret")
	s := harness.New(t, t.TempDir())
	s.Start()
	for _, p := range []string{"a", "b"} {
		harness.Exec(t, s.DSN, "CREATE PIPELINE "+p+" FROM POSTGRES "+quoted(strings.Replace(source, "user=postgres", "user=cdc", 1))+
			" FOR TABLE public.readable, public.secret WITH (publication = mine)", "SYNC PIPELINE "+p)
	}
	harness.Exec(t, source, "REVOKE SELECT ON secret FROM cdc")
	ours := harness.Connect(t, s.DSN)
	lines := verified(t, ours, "VERIFY PIPELINE a")
	if len(lines) != 2 || !strings.Contains(lines[0], "readable - - 200000 200000 equal") || !strings.Contains(lines[1], "skipped") || !strings.Contains(lines[1], "GRANT SELECT") {
		t.Errorf("a role without a right: %s", strings.Join(lines, "\n"))
	}
	for sql, code := range map[string]string{
		"VERIFY PIPELINE a TABLE nothing": "42P01", "VERIFY PIPELINE nobody": "42704", "BEGIN; VERIFY PIPELINE a": "25001",
	} {
		_, err := ours.PgConn().Exec(t.Context(), sql).ReadAll()
		if !strings.Contains(sqlState(err), code) {
			t.Errorf("%s: %v", sql, err)
		}
		do(t, ours, "ROLLBACK")
	}

	// What happens while it reads slowly, for minutes: it ends at once when it is cancelled, and
	// soon after a DROP.
	slowly := func(rowsPerSecond int, during func(pid uint32)) error {
		t.Helper()
		config, err := pgx.ParseConfig(s.DSN)
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan struct{}, 100)
		config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { began <- struct{}{} }
		c, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(context.Background()) }()
		ended := make(chan error, 1)
		go func() {
			_, err := c.PgConn().Exec(t.Context(), fmt.Sprintf("VERIFY PIPELINE a TABLE readable WITH (rows_per_second = %d)", rowsPerSecond)).ReadAll()
			ended <- err
		}()
		<-began
		during(c.PgConn().PID())
		return <-ended
	}
	if err := slowly(500, func(pid uint32) { harness.Exec(t, s.DSN, fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid)) }); !strings.Contains(sqlState(err), "57014") {
		t.Errorf("cancelled: %v", err)
	}
	if err := slowly(500, func(uint32) { harness.Exec(t, s.DSN, "DROP PIPELINE a") }); !strings.Contains(sqlState(err), "55000") || !strings.Contains(sqlState(err), "dropped") {
		t.Errorf("dropped: %v", err)
	}
	becomes(t, source, "SELECT count(*) FROM pg_stat_replication WHERE state <> 'streaming'", "0")
	server.Control(t, "-m", "immediate", "stop")
	if _, err := ours.PgConn().Exec(t.Context(), "VERIFY PIPELINE b").ReadAll(); !strings.Contains(sqlState(err), "08001") {
		t.Errorf("source down: %v", err)
	}
	if got := scalar(t, ours, "SELECT count(*)::text FROM b.readable"); got != "200000" {
		t.Errorf("afterwards: %s", got)
	}
	s.Stop()
}
