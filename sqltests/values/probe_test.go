package values

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// What other products got wrong: the tables, what is written to them, and what then
// happens to them.
const (
	probeTables = `CREATE TABLE t_toast (id int PRIMARY KEY, n int, big text);
ALTER TABLE t_toast ALTER big SET STORAGE EXTERNAL;
CREATE TABLE t_num (id int PRIMARY KEY, a numeric, b numeric(20,5), c numeric(50,0));
CREATE TABLE t_time (id int PRIMARY KEY, ts timestamp, tz timestamptz, d date, t time, tt timetz, iv interval);
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE comp AS (x int, y text);
CREATE TABLE t_types (id int PRIMARY KEY, e mood, c comp, r int4range, ia int[], ia2 int[][], j jsonb, u uuid, by bytea, ip inet, f8 float8, ge point);
CREATE TABLE t_nopk (a int, b text);
CREATE TABLE t_gen (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE t_trunc (id int PRIMARY KEY, v text);
CREATE TABLE t_part (id int, d date, v text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d);
CREATE TABLE t_part_1 PARTITION OF t_part FOR VALUES FROM ('2026-01-01') TO ('2026-07-01');
CREATE TABLE t_part_2 PARTITION OF t_part FOR VALUES FROM ('2026-07-01') TO ('2027-01-01');
CREATE TABLE t_alter (id int PRIMARY KEY, a int);
CREATE TABLE t_pkupd (id int PRIMARY KEY, v text)`

	probeRows = `INSERT INTO t_toast VALUES (1, 1, repeat('x', 20000));
INSERT INTO t_num VALUES (1, 12345678901234567890.123456789, 1.5, 12345678901234567890123456789012345678901234567890), (2, 'NaN', 2, 3);
INSERT INTO t_time VALUES (1, 'infinity', '-infinity', 'infinity', '12:00', '12:00+02', '1 mon 2 days'), (2, '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456+09', '2026-01-02', '03:04:05.123456', '03:04:05+09', '1 hour'), (3, '0044-03-15 BC', '0044-03-15 BC', '0044-03-15 BC', '0:0', '0:0+0', '0');
INSERT INTO t_types VALUES (1, 'ok', ROW(1, 'a,b'), '[1,5)', '{1,2,NULL}', '{{1,2},{3,4}}', '{"a":1}', '11111111-1111-1111-1111-111111111111', '\xdeadbeef', '10.0.0.1', 'NaN', '(1,2)');
INSERT INTO t_nopk VALUES (1, 'a'), (1, 'a'), (2, 'b');
INSERT INTO t_gen (id, a) VALUES (1, 21);
INSERT INTO t_trunc VALUES (1, 'a'), (2, 'b');
INSERT INTO t_part VALUES (1, '2026-02-01', 'a'), (2, '2026-08-01', 'b');
INSERT INTO t_alter VALUES (1, 1);
INSERT INTO t_pkupd VALUES (1, 'a'), (2, 'b')`

	probeChanges = `UPDATE t_toast SET n = 2 WHERE id = 1;
TRUNCATE t_trunc;
INSERT INTO t_trunc VALUES (3, 'c');
UPDATE t_part SET d = '2026-09-01' WHERE id = 1;
ALTER TABLE t_alter ADD COLUMN b text DEFAULT 'dflt';
INSERT INTO t_alter VALUES (2, 2, 'x');
ALTER TABLE t_alter RENAME COLUMN a TO aa;
INSERT INTO t_alter VALUES (3, 3, 'y');
ALTER TABLE t_alter ALTER aa TYPE bigint;
INSERT INTO t_alter VALUES (4, 40000000000, 'z');
UPDATE t_pkupd SET id = 10 WHERE id = 1`
)

// probeQueries are what must be equal: all, but for values that only a policy lets in.
var probeQueries = map[string]string{
	"t_toast": "*", "t_num": "*", "t_time WHERE id > 1": "*", "t_types": "*", "t_nopk": "*", "t_gen": "*",
	"t_trunc": "*", "t_part": "*", "t_alter": "*", "t_pkupd": "*",
}

// TestProbes: the rows that hurt users of other products, copied or streamed, each change
// taken in before the next.
func TestProbes(t *testing.T) {
	for _, copied := range []bool{true, false} {
		source := pgtest.Start(t).CreateDatabase(t)
		s := harness.New(t, t.TempDir(), "--commit-interval", "1h")
		s.Start()
		statements := strings.Split(probeRows, ";\n")
		harness.Exec(t, source, probeTables)
		if copied {
			harness.Exec(t, source, statements...)
		}
		harness.Exec(t, s.DSN, "CREATE PIPELINE probe FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE probe UNTIL CAUGHT UP")
		if !copied {
			harness.Exec(t, source, statements...)
		}
		probe(t, source, s.DSN)
		for _, sql := range strings.Split(probeChanges, ";\n") {
			harness.Exec(t, source, sql)
			harness.Exec(t, s.DSN, "SYNC PIPELINE probe UNTIL CAUGHT UP") // what comes too fast may stop a table
		}
		probe(t, source, s.DSN)
		harness.Exec(t, s.DSN, "ALTER PIPELINE probe COMPACT")
		probe(t, source, s.DSN)
		harness.Exec(t, s.DSN, "DROP PIPELINE probe")
	}
}

// TestProbesAtOnce: the changes are made while nothing is taken in. A default that rows got
// and that a rewrite then took out of the source's catalog has its table copied anew, or, if
// so declared, stop, with a hint that is the statement which helps.
func TestProbesAtOnce(t *testing.T) {
	server := pgtest.Start(t)
	s := harness.New(t, t.TempDir(), "--commit-interval", "1h")
	s.Start()
	for _, with := range []string{"", " WITH (on_schema_change = 'stop')"} {
		source := server.CreateDatabase(t)
		harness.Exec(t, source, probeTables)
		harness.Exec(t, source, strings.Split(probeRows, ";\n")...)
		harness.Exec(t, s.DSN, "CREATE PIPELINE probe FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES"+with,
			"SYNC PIPELINE probe UNTIL CAUGHT UP", "PAUSE PIPELINE probe")
		harness.Exec(t, source, strings.Split(probeChanges, ";\n")...)
		harness.Exec(t, s.DSN, "RESUME PIPELINE probe", "SYNC PIPELINE probe UNTIL CAUGHT UP")
		if with != "" {
			const reason = "SELECT string_agg(table_name || ' ' || state || ': ' || reason || ' '|| hint, '; ') FROM pg_stat_pipeline_table WHERE state <> 'ready'"
			stopped, err := harness.Text(s.DSN, reason)
			if err != nil || !strings.HasPrefix(stopped, `t_alter stopped: column "b" was added, and the table rewritten`) ||
				!strings.Contains(stopped, "ALTER PIPELINE probe RESYNC TABLE probe.t_alter") {
				t.Errorf("stopped: %q, %v", stopped, err)
			}
			harness.Exec(t, s.DSN, "ALTER PIPELINE probe SET (on_schema_change = 'resync')") // at once
		}
		probe(t, source, s.DSN)
		harness.Exec(t, s.DSN, "ALTER PIPELINE probe COMPACT")
		probe(t, source, s.DSN)
		anew, err := harness.Text(s.DSN, "SELECT string_agg(table_name, ', ') FROM skippr.events WHERE pipeline = 'probe' AND kind = 'table copied anew'")
		if err != nil || !strings.HasPrefix(anew, "probe.t_alter") {
			t.Errorf("copied anew: %q, %v", anew, err)
		}
		harness.Exec(t, s.DSN, "DROP PIPELINE probe")
	}
}

func probe(t *testing.T, source, dsn string) {
	t.Helper()
	harness.Exec(t, dsn, "SYNC PIPELINE probe UNTIL CAUGHT UP")
	a, b := connect(t, source), connect(t, dsn)
	for from, columns := range probeQueries {
		want, err := ask(t.Context(), a, "SELECT "+columns+" FROM public."+from)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ask(t.Context(), b, "SELECT "+columns+" FROM probe."+from)
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		if w, g := strings.Join(lines(want), "\n"), strings.Join(lines(got), "\n"); w != g {
			t.Errorf("%s:\n got %.500s\nwant %.500s", from, g, w)
		}
	}
}
