package e2e

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// generatedTables have columns that the server does not send before version 18.
var generatedTables = []string{
	"CREATE SCHEMA f",
	"CREATE FUNCTION f.words(t text) RETURNS tsvector IMMUTABLE LANGUAGE sql AS $$ SELECT to_tsvector('pg_catalog.english', coalesce(t, '')) $$",
	`CREATE TABLE doc (id int PRIMARY KEY, a int, title text, body text, at timestamptz,
	 twice int GENERATED ALWAYS AS (a * 2) STORED, loud text GENERATED ALWAYS AS (upper(title) || length(body)) STORED,
	 words tsvector GENERATED ALWAYS AS (setweight(f.words(title), 'A') || f.words(left(body, 500))) STORED,
	 day date GENERATED ALWAYS AS ((at AT TIME ZONE 'Asia/Tokyo')::date) STORED, n bigint GENERATED ALWAYS AS IDENTITY)`,
	"ALTER TABLE doc ALTER body SET STORAGE EXTERNAL",
	"CREATE TABLE whole (a int, b text, c int GENERATED ALWAYS AS (a + length(b)) STORED, d text)",
	"ALTER TABLE whole REPLICA IDENTITY FULL; ALTER TABLE whole ALTER d SET STORAGE EXTERNAL",
	"CREATE TABLE part (c text GENERATED ALWAYS AS (v || id) STORED, id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
	"CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100)",
	"CREATE TABLE part2 (v text, id int NOT NULL, c text GENERATED ALWAYS AS (v || id) STORED)",
	"ALTER TABLE part ATTACH PARTITION part2 FOR VALUES FROM (100) TO (1000)",
	"CREATE FUNCTION fill(lo int, hi int) RETURNS void LANGUAGE sql AS $$ INSERT INTO doc (id, a, title, body, at) " +
		"SELECT x, x, 'The running foxes ' || x, repeat(md5(x::text) || ' ', 300), timestamptz '2026-01-01' + x * interval '7 hours' FROM generate_series(lo, hi) x $$",
}

var generatedKeys = map[string]string{"doc": "id", "whole": "a, b, c, d", "part": "id"}

// TestGenerated: columns that the source computes and does not send have the values that it
// has, wherever their rows come from and whatever an update leaves out.
func TestGenerated(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, generatedTables...)
	harness.Exec(t, source, "SELECT fill(1, 20)", "INSERT INTO whole VALUES (1, 'x'), (1, 'x'), (NULL, NULL)", "INSERT INTO part (id, v) VALUES (1, 'a'), (101, 'b')")
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE u FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	check := func(when string) {
		t.Helper()
		drain(t, s.DSN, "u")
		if _, err := harness.EqualTables(source, s.DSN, "u", generatedKeys); err != nil {
			t.Fatalf("%s: %v\n%s", when, err, s.Log(40))
		}
	}
	check("copied")
	for _, step := range [][]string{
		{"inserted", "SELECT fill(21, 40); INSERT INTO part (id, v) VALUES (2, 'c'), (102, NULL); INSERT INTO whole (a, b, d) VALUES (5, 'five', repeat('d', 3000))"},
		{"nulls", "UPDATE doc SET a = NULL WHERE id = 1; UPDATE doc SET title = NULL WHERE id = 2; INSERT INTO doc (id) VALUES (0)"},
		{"an input that was left out, and one that was not", "UPDATE doc SET title = 'Jumps' || id WHERE id < 10"},
		{"all that is large was left out", "UPDATE doc SET a = a + 1"},
		{"the large one changes", "BEGIN; UPDATE doc SET body = repeat('new ' || id || ' ', 900) WHERE id % 3 = 0; UPDATE doc SET title = 'again'; COMMIT"},
		{"key update", "UPDATE doc SET id = id + 1000 WHERE id < 5; UPDATE part SET id = 103 WHERE id = 1"},
		{"deleted", "DELETE FROM doc WHERE id % 7 = 0; DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole WHERE a = 1); DELETE FROM whole WHERE a IS NULL"},
		{"whole rows", "UPDATE whole SET a = a + 1, d = 'y' WHERE b = 'x'; UPDATE whole SET a = 7 WHERE b = 'five'"},
		{"savepoints", "BEGIN; UPDATE doc SET a = 12; SAVEPOINT a; UPDATE doc SET a = 13, id = id + 50000; ROLLBACK TO a; SAVEPOINT b; UPDATE doc SET title = 'b' WHERE id > 15; RELEASE b; COMMIT"},
		{"truncated", "BEGIN; UPDATE part SET v = 'z'; TRUNCATE part; INSERT INTO part (id, v) VALUES (9, 'q'); COMMIT"},
		{"large transaction", "BEGIN; SELECT fill(2000, 3500); UPDATE doc SET title = 'big' WHERE id > 1990; COMMIT"},
		{"columns renamed", "BEGIN; UPDATE doc SET a = 15; ALTER TABLE doc RENAME a TO \"A 1\"; ALTER TABLE doc RENAME twice TO \"double\"; UPDATE doc SET \"A 1\" = 16 WHERE id > 20; ALTER FUNCTION f.words(text) RENAME TO terms; COMMIT; UPDATE doc SET title = 'x' WHERE id > 20"},
		{"another column", "ALTER TABLE doc RENAME \"A 1\" TO a; ALTER TABLE doc ADD more text DEFAULT 'some'; UPDATE doc SET more = 'm' WHERE id > 20; ALTER TABLE doc DROP more; UPDATE doc SET title = 'y'"},
		{"expression dropped", "UPDATE doc SET title = 'before' WHERE id > 30; ALTER TABLE doc ALTER loud DROP EXPRESSION; UPDATE doc SET title = 'after', loud = 'own' WHERE id > 35; SELECT fill(4000, 4002)"},
		{"column dropped", "UPDATE doc SET title = 'before' WHERE id > 30; ALTER TABLE doc DROP words; UPDATE doc SET title = 'after' WHERE id > 35", "UPDATE doc SET title = 'later' WHERE id > 35"},
	} {
		harness.Exec(t, source, step[1:]...)
		check(step[0])
	}
	s.Kill()
	harness.Exec(t, source, "SELECT fill(5000, 5100)", "UPDATE doc SET title = 'while dead' WHERE id > 20")
	s.Start()
	check("after kill -9")
	harness.Exec(t, s.DSN, "ALTER PIPELINE u RESYNC TABLE u.doc")
	harness.Exec(t, source, "UPDATE doc SET title = 'while copied'", "SELECT fill(6000, 6010)")
	if !harness.Until(harness.Patience, func() bool {
		got, err := harness.Text(s.DSN, "SELECT state FROM pg_stat_pipeline_table WHERE table_name = 'doc'")
		return err == nil && got == "ready"
	}) {
		t.Fatalf("no copy\n%s", s.Log(40))
	}
	check("copied anew")
}

// TestGeneratedLetters: a computed value that the type here does not hold makes its row a
// dead letter, in its place among the changes of its key, and RETRY computes it again.
func TestGeneratedLetters(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE t (id int PRIMARY KEY, at text, note text, n numeric(6,2))",
		"CREATE FUNCTION moment(t text) RETURNS timestamp IMMUTABLE LANGUAGE sql AS $$ SELECT t::timestamp $$",
		"ALTER TABLE t ADD d timestamp GENERATED ALWAYS AS (public.moment(at)) STORED, ADD e numeric GENERATED ALWAYS AS (n * 2) STORED",
		"INSERT INTO t VALUES (1, '2026-01-01', 'copied', 1), (2, 'infinity', 'copied', 1)")
	s := harness.New(t, dataDir(t))
	s.Start()
	l := &letters{t: t, server: s, source: source}
	l.ours("CREATE PIPELINE shop FROM POSTGRES " + quoted(source) + " FOR TABLE t")
	l.drain()
	const rows = "SELECT id, d, e, note FROM shop.t ORDER BY id"
	const open = "SELECT key, column_name FROM skippr.dead_letters WHERE state = 'open' ORDER BY key"
	l.want(rows, "1 2026-01-01 00:00:00 2.00 copied")
	l.want(open, "[\"2\"] d")
	l.at("UPDATE t SET at = '-infinity', note = 'refused' WHERE id = 1",
		"BEGIN; INSERT INTO t VALUES (3, 'infinity', 'refused', 3); INSERT INTO t VALUES (4, '2026-04-04', 'good', 4); COMMIT",
		"INSERT INTO t VALUES (5, 'infinity', 'refused', 5)", "UPDATE t SET at = '2026-05-05', note = 'mended' WHERE id = 5",
		"INSERT INTO t VALUES (6, '2026-06-06', 'not a number', 'NaN')")
	l.drain()
	l.want(rows, "1 2026-01-01 00:00:00 2.00 copied; 4 2026-04-04 00:00:00 8.00 good; 5 2026-05-05 00:00:00 10.00 mended")
	l.want(open, "[\"1\"] d; [\"2\"] d; [\"3\"] d; [\"6\"] n")
	l.ours("RETRY DEAD LETTERS FROM shop")
	l.want("SELECT count(*) FROM skippr.dead_letters WHERE state = 'open'", "4")
	l.ours("ALTER PIPELINE shop SET (out_of_range = 'clamp')")
	l.ours("RETRY DEAD LETTERS FROM shop")
	l.drain()
	l.want(rows, "1 4714-11-24 00:00:00 BC 2.00 refused; 2 294246-12-31 23:59:59.999999 2.00 copied; 3 294246-12-31 23:59:59.999999 6.00 refused; "+
		"4 2026-04-04 00:00:00 8.00 good; 5 2026-05-05 00:00:00 10.00 mended")
	l.want(open, "[\"6\"] n")
}

// TestGeneratedStops: what cannot be computed any more stops its table alone, and says what
// helps; while the source cannot be asked nothing is made up.
func TestGeneratedStops(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	if v, err := harness.Text(source, "SELECT (current_setting('server_version_num')::int >= 180000)::text"); err != nil || v == "true" {
		t.Skipf("the server sends such columns, and they need not be computed: %v, %v", v, err)
	}
	harness.Exec(t, source, "CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE other (id int PRIMARY KEY)",
		"CREATE FUNCTION f(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN n / 2; END $$",
		"ALTER TABLE t ADD h int GENERATED ALWAYS AS (public.f(a)) STORED")
	s := harness.New(t, dataDir(t))
	s.Start()
	l := &letters{t: t, server: s, source: source}
	l.ours("CREATE PIPELINE shop FROM POSTGRES " + quoted(source) + " FOR ALL TABLES")
	l.at("INSERT INTO t VALUES (1, 10)")
	l.drain()
	l.want("SELECT * FROM shop.t", "1 10 5")
	l.ours("ALTER PIPELINE shop PAUSE")
	l.at("INSERT INTO t VALUES (2, 20)", "ALTER TABLE t DROP h; DROP FUNCTION f", "INSERT INTO other VALUES (1)")
	l.ours("ALTER PIPELINE shop RESUME")
	if !harness.Until(harness.Patience, func() bool {
		got, err := harness.Text(s.DSN, "SELECT reason FROM pg_stat_pipeline_table WHERE table_name = 't' AND state = 'stopped'")
		return err == nil && got == `generated column "h" cannot be computed any more, the source says: function public.f(integer) does not exist`
	}) {
		got, err := harness.Text(s.DSN, "SELECT string_agg(concat_ws(' ', table_name, state, reason), '; ') FROM pg_stat_pipeline_table")
		t.Fatalf("%s %v\n%s", got, err, s.Log(40))
	}
	l.drain()
	l.want("SELECT * FROM shop.other", "1")
	l.want("SELECT * FROM shop.t", "1 10 5")
	l.ours(fmt.Sprintf("ALTER PIPELINE shop RESYNC TABLE %s", "shop.t"))
	l.drain()
	l.want("SELECT * FROM shop.t ORDER BY 1", "1 10; 2 20")
}
