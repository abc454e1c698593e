package planner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// One table's life: live only, then compacted, then both; the answer is the same
// union at every step.
func TestQueryOverLogAndLake(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	const q = `SELECT id, name, "Total" FROM shop.orders ORDER BY id`
	step := func(want string) {
		t.Helper()
		if got := simple(t, c, q); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	step("SELECT 0")
	w.put("1 ada 10.50", "2 bob 20.00")
	step("1|ada|10.50; 2|bob|20.00; SELECT 2")
	w.compactNow()
	step("1|ada|10.50; 2|bob|20.00; SELECT 2")
	w.put("1 ada 11.00", "-2", "3 cy null")
	step("1|ada|11.00; 3|cy|∅; SELECT 2")
	w.compactNow()
	step("1|ada|11.00; 3|cy|∅; SELECT 2")
	got := simple(t, c, `SELECT count(*), sum("Total"), avg("Total") FROM shop.orders WHERE id = 1`)
	if want := "1|11.00|11.0000000000000000; SELECT 1"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// Each script runs on its own connection; a line is sent and its answer compared.
func TestSessionScripts(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 10.50", "2 bob 20.00", "3 cy 1.00")
	for _, sc := range []struct{ name, script string }{
		{"settings", `
SHOW server_version => 15.8; SHOW
SET application_name = 'x' => SET
SHOW application_name => x; SHOW
RESET application_name => RESET
SHOW application_name => ; SHOW
SET statement_timeout = 1500 => SET
SHOW statement_timeout => 1500ms; SHOW
SET nonsense = 1 => ERROR 42704 unrecognized configuration parameter "nonsense"
SET server_version = '16' => ERROR 55P02 parameter "server_version" cannot be changed
SET search_path = shop, "Odd One" => SET
SHOW search_path => shop, "Odd One"; SHOW
SELECT count(*) FROM orders => 3; SELECT 1
SELECT current_schema => shop; SELECT 1
SELECT current_setting('search_path') => shop, "Odd One"; SELECT 1
SELECT set_config('application_name', 'y', false) => y; SELECT 1
SELECT pg_sleep(0.001) => ; SELECT 1
SELECT pg_cancel_backend(99999) => f; SELECT 1
SHOW application_name => y; SHOW
DISCARD ALL => DISCARD ALL
SHOW search_path => "$user", public; SHOW
SET TIME ZONE 'Europe/Paris' => SET
SELECT timestamptz '2024-01-01 00:00:00+00' => 2024-01-01 01:00:00+01; SELECT 1
SHOW TIME ZONE => Europe/Paris; SHOW`},
		{"transactions", `
COMMIT => COMMIT
BEGIN => BEGIN
BEGIN => BEGIN
SET application_name = 'tx' => SET
SELECT 1/0 => ERROR 22012 division by zero
SELECT 1 => ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block
COMMIT => ROLLBACK
SHOW application_name => ; SHOW
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY => BEGIN
SHOW transaction_isolation => repeatable read; SHOW
SAVEPOINT a => SAVEPOINT
SELECT nope => ERROR 42703 column "nope" does not exist @8
ROLLBACK TO a => ROLLBACK
SELECT 1 => 1; SELECT 1
RELEASE a => RELEASE
RELEASE a => ERROR 3B001 savepoint "a" does not exist
ROLLBACK => ROLLBACK
SHOW transaction_isolation => read committed; SHOW
SAVEPOINT x => ERROR 25P01 SAVEPOINT can only be used in transaction blocks
BEGIN; SELECT 1; COMMIT AND CHAIN; ROLLBACK => BEGIN; 1; SELECT 1; COMMIT; ROLLBACK
SET application_name = 'gone'; SELECT 1/0 => SET; ERROR 22012 division by zero
SHOW application_name => ; SHOW`},
		{"cursors", `
DECLARE c CURSOR FOR SELECT 1 => ERROR 25P01 DECLARE CURSOR can only be used in transaction blocks
BEGIN; DECLARE c CURSOR FOR SELECT id FROM shop.orders ORDER BY id; FETCH 2 FROM c => BEGIN; DECLARE CURSOR; 1; 2; FETCH 2
FETCH 2 FROM c => 3; FETCH 1
FETCH NEXT FROM c => FETCH 0
FETCH BACKWARD 1 FROM c => 3; FETCH 1
ROLLBACK => ROLLBACK
FETCH c => ERROR 34000 cursor "c" does not exist
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM shop.orders ORDER BY id => DECLARE CURSOR
MOVE 1 FROM h => MOVE 1
FETCH ALL FROM h => 2; 3; FETCH 2
CLOSE h => CLOSE CURSOR
CLOSE ALL => CLOSE CURSOR ALL`},
		{"prepared", `
PREPARE p(bigint) AS SELECT name FROM shop.orders WHERE id = $1 => PREPARE
EXECUTE p(2) => bob; SELECT 1
EXECUTE p(1, 2) => ERROR 42601 wrong number of parameters for prepared statement "p"
PREPARE p AS SELECT 1 => ERROR 42P05 prepared statement "p" already exists
DEALLOCATE p => DEALLOCATE
EXECUTE p(2) => ERROR 26000 prepared statement "p" does not exist`},
		{"errors", `
SELECT * FROM nope => ERROR 42P01 relation "nope" does not exist @15
SELECT 1; SELECT nope => 1; SELECT 1; ERROR 42703 column "nope" does not exist @18
SELECT 1; SELEC 2 => ERROR 42601 syntax error at or near "SELEC" @11
SELECT read_text('/etc/passwd') => ERROR 42883 function read_text(unknown) does not exist @8
SELECT * FROM read_csv('/etc/passwd') => ERROR 42883 function read_csv(unknown) does not exist @15
SELECT * FROM glob('/*') => ERROR 42883 function glob(unknown) does not exist @15
SELECT * FROM "/etc/passwd" => ERROR 42P01 relation "/etc/passwd" does not exist @15
INSERT INTO shop.orders VALUES (1) => ERROR 55000 table "shop.orders" is filled by a pipeline
CREATE TABLE x (a int) => ERROR 0A000 CREATE TABLE is not supported
COPY shop.orders FROM STDIN => ERROR 55000 table "shop.orders" is filled by a pipeline
SELECT * FROM shop.pending => ERROR 55000 table "shop.pending" is not ready
SELECT id, count(*) FROM shop.orders GROUP BY name => ERROR 42803 column "orders.id" must appear in the GROUP BY clause or be used in an aggregate function @8
SELECT (SELECT id FROM shop.orders) => ERROR 21000 more than one row returned by a subquery used as an expression
SELECT name::int FROM shop.orders WHERE id = 1 => ERROR 22P02 invalid input syntax for type integer: "ada"
SELECT 9223372036854775807 + id FROM shop.orders => ERROR 22003 bigint out of range
; => 
UNLISTEN * => UNLISTEN`},
		{"system relations and functions", `
SELECT nspname FROM pg_namespace ORDER BY 1 => public; shop; SELECT 2
SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = 2200 => public; SELECT 1
SELECT test_schema_name(2200::oid) => public; SELECT 1
SELECT n.test_schema_name FROM (SELECT pg_catalog.test_schema_name(oid) FROM pg_namespace) n ORDER BY 1 => public; shop; SELECT 2`},
		{"ours", `
CREATE PIPELINE p FROM shop FOR ALL TABLES => CREATE PIPELINE
BEGIN => BEGIN
DROP PIPELINE p => ERROR 25001 DROP PIPELINE cannot run inside a transaction block
ROLLBACK => ROLLBACK`},
	} {
		t.Run(sc.name, func(t *testing.T) {
			c := w.connect()
			for _, line := range strings.Split(strings.TrimSpace(sc.script), "\n") {
				sql, want, _ := strings.Cut(line, " => ")
				if got := simple(t, c, sql); got != want {
					t.Errorf("%s\ngot  %s\nwant %s", sql, got, want)
				}
			}
		})
	}
}

// A repeatable read transaction keeps seeing the moment of its first query.
func TestRepeatableRead(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 1.00")
	c := w.connect()
	const count = "SELECT count(*) FROM shop.orders"
	if got := simple(t, c, "BEGIN ISOLATION LEVEL REPEATABLE READ; "+count); got != "BEGIN; 1; SELECT 1" {
		t.Fatal(got)
	}
	w.put("2 bob 2.00")
	w.compactNow()
	if got := simple(t, c, count); got != "1; SELECT 1" {
		t.Errorf("inside: %s", got)
	}
	w.runner.lose = 1
	if got := simple(t, c, count); got != "ERROR 40001 snapshot too old" {
		t.Errorf("lost pin inside: %s", got)
	}
	if got := simple(t, c, "ROLLBACK; "+count); got != "ROLLBACK; 2; SELECT 1" {
		t.Errorf("after: %s", got)
	}
}

// Outside a query pins anew, three times at most.
func TestLostPinIsTakenAnew(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 1.00")
	c := w.connect()
	for lose, want := range map[int]string{1: "1; SELECT 1", 3: "1; SELECT 1", 4: "ERROR 40001 snapshot too old"} {
		w.runner.lose = lose
		if got := simple(t, c, "SELECT id FROM shop.orders"); got != want {
			t.Errorf("lost %d times: %s, want %s", lose, got, want)
		}
	}
}

func TestStatementTimeout(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	w.runner.slow = func(ctx context.Context) { <-ctx.Done() }
	got := simple(t, c, "SET statement_timeout = '20ms'; SELECT 1")
	if want := "SET; ERROR 57014 canceling statement due to statement timeout"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	w.runner.slow = nil
	if got := simple(t, c, "SELECT 1"); got != "1; SELECT 1" {
		t.Fatalf("after: %s", got)
	}
}

func TestIdleTimeouts(t *testing.T) {
	w := newWorld(t)
	for sql, code := range map[string]string{
		"SET idle_session_timeout = '20ms'":                       "57P05",
		"SET idle_in_transaction_session_timeout = '20ms'; BEGIN": "25P03",
	} {
		c := w.connect()
		simple(t, c, sql)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := c.PgConn().WaitForNotification(ctx) // none ever comes
		cancel()
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v, want %s", sql, err, code)
		}
	}
}

// The extended protocol: parameters, binary results, row limits, described types.
func TestExtended(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 10.50", "2 bob 20.00", "3 cy 1.00")
	c := w.connect()
	ctx := t.Context()
	var name string
	var total float64
	err := c.QueryRow(ctx, `SELECT name, "Total"::float8 FROM shop.orders WHERE id = $1 AND name LIKE $2`, 2,
		"b%").Scan(&name, &total)
	if err != nil || name != "bob" || total != 20 {
		t.Fatalf("got %q %v %v", name, total, err)
	}
	var n int
	if err := c.QueryRow(ctx, "SELECT count(*)::int FROM shop.orders WHERE id = ANY($1)",
		[]int64{1, 3, 9}).Scan(&n); err != nil || n != 2 {
		t.Fatalf("any: %d, %v", n, err)
	}
	sd, err := c.PgConn().Prepare(ctx, "s", `SELECT id, name, "Total", id + $1 FROM shop.orders LIMIT $2`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(sd.ParamOIDs) != 2 || sd.ParamOIDs[0] != 20 || sd.ParamOIDs[1] != 20 {
		t.Errorf("parameters %v", sd.ParamOIDs)
	}
	f := sd.Fields
	if f[0].DataTypeOID != 20 || f[1].DataTypeOID != 1043 || f[1].TypeModifier != 24 || f[2].DataTypeOID != 1700 ||
		f[2].TypeModifier != 10<<16+2+4 ||
		f[0].TableOID == 0 || f[0].TableAttributeNumber != 1 || f[3].Name != "?column?" || f[3].TableOID != 0 {
		t.Errorf("fields %+v", f)
	}
	pipe := c.PgConn().ExecParams(ctx, "SELECT $1::text || 'x', $2", [][]byte{[]byte("a"), nil}, nil, nil, nil).Read()
	if pipe.Err != nil || string(pipe.Rows[0][0]) != "ax" || pipe.Rows[0][1] != nil {
		t.Errorf("text parameters: %v %v", pipe.Rows, pipe.Err)
	}
	_, err = c.Exec(ctx, "SELECT id FROM shop.orders WHERE id = $1", "x")
	if err == nil || !strings.Contains(err.Error(), "invalid") && !strings.Contains(err.Error(), "22P02") &&
		!strings.Contains(err.Error(), "encode") {
		t.Errorf("bad parameter: %v", err)
	}
}

func TestCopyOut(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 10.50", "2 bob null")
	c := w.connect()
	for sql, want := range map[string]string{
		"COPY (SELECT * FROM shop.orders ORDER BY id) TO STDOUT":                                                 "1\tada\t10.50\n2\tbob\t\\N\n",
		"COPY shop.orders (name, id) TO STDOUT WITH (FORMAT csv, HEADER)":                                        "name,id\nada,1\nbob,2\n",
		"COPY (SELECT 'a,b' AS x, NULL AS y) TO STDOUT (FORMAT csv, DELIMITER ';', NULL 'nil', FORCE_QUOTE (x))": "\"a,b\";nil\n",
	} {
		var b strings.Builder
		tag, err := c.PgConn().CopyTo(t.Context(), &b, sql)
		if err != nil || b.String() != want || !strings.HasPrefix(tag.String(), "COPY ") {
			t.Errorf("%s\ngot %q %v %v", sql, b.String(), tag, err)
		}
	}
	var sink strings.Builder
	if _, err := c.PgConn().CopyTo(t.Context(), &sink, "COPY shop.orders TO STDOUT (FORMAT nonsense)"); err == nil ||
		!strings.Contains(err.Error(), "22023") {
		t.Errorf("bad format: %v", err)
	}
}

func TestExplainShowsThePin(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 10.50")
	w.compactNow()
	w.put("2 bob 1.00")
	c := w.connect()
	got := simple(t, c, "EXPLAIN SELECT * FROM shop.orders WHERE id = 2")
	for _, want := range []string{
		"Pipeline shop: log position", "source position 0/", "Table shop.orders: snapshot", "1 pruned",
		"1 live slices, 1 changes",
		`key predicate on the log: ("id" = 2)`, "Engine plan",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, strings.ReplaceAll(got, "; ", "\n"))
		}
	}
	if got := simple(t, c, "EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1"); !strings.Contains(got, `"Node Type": "Result"`) {
		t.Errorf("json: %s", got)
	}
	if got := simple(t, c, "EXPLAIN (NONSENSE) SELECT 1"); got != `ERROR 42601 unrecognized EXPLAIN option "nonsense"` {
		t.Error(got)
	}
}

// ParameterStatus follows every change of a reported setting.
func TestParameterStatus(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	is := func(want string) {
		t.Helper()
		if got := c.PgConn().ParameterStatus("DateStyle"); got != want {
			t.Errorf("DateStyle is %q, want %q", got, want)
		}
	}
	is("ISO, MDY")
	simple(t, c, "SET datestyle = 'German'")
	is("German, DMY")
	simple(t, c, "BEGIN; SET datestyle = 'SQL'; ROLLBACK")
	is("German, DMY")
	simple(t, c, "DISCARD ALL")
	is("ISO, MDY")
}

func TestUnknownDatabaseAndSetting(t *testing.T) {
	w := newWorld(t)
	for dsn, code := range map[string]string{
		"postgres://postgres@" + w.addr + "/other?sslmode=disable":              "3D000",
		"postgres://nobody@" + w.addr + "/lake?sslmode=disable":                 "28000",
		"postgres://postgres@" + w.addr + "/lake?sslmode=disable&no_such_set=1": "42704",
	} {
		_, err := pgx.Connect(t.Context(), dsn)
		var e *pgconn.PgError
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v %v", dsn, err, e)
		}
	}
}

// pg_sleep ends when the client cancels or its time is up.
func TestSleepIsInterrupted(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	got := simple(t, c, "SET statement_timeout = '20ms'; SELECT pg_sleep(60)")
	if want := "SET; ERROR 57014 canceling statement due to statement timeout"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Statements of Parse and of PREPARE are one kind: DISCARD ALL and DEALLOCATE forget
// both, EXECUTE runs both, and both can be bound. Poolers and drivers rely on it.
func TestStatementsAreOfOneKind(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	prepare := func(want string) {
		t.Helper()
		_, err := c.PgConn().Prepare(t.Context(), "p", "SELECT $1::int + 1", nil)
		var e *pgconn.PgError
		if got := ""; errors.As(err, &e) {
			if got = e.Code; got != want {
				t.Errorf("Parse: %v, want %q", err, want)
			}
		} else if want != "" || err != nil {
			t.Errorf("Parse: %v, want %q", err, want)
		}
	}
	prepare("")
	prepare("42P05")
	for _, forget := range []string{"DEALLOCATE p", "DEALLOCATE ALL", "DISCARD ALL"} {
		simple(t, c, forget)
		prepare("")
	}
	if got := simple(t, c, "EXECUTE p(41)"); got != "42; SELECT 1" {
		t.Errorf("EXECUTE of a statement of Parse: %s", got)
	}
	simple(t, c, "PREPARE q(int) AS SELECT $1 + 2")
	r := c.PgConn().ExecPrepared(t.Context(), "q", [][]byte{[]byte("40")}, nil, nil).Read()
	if r.Err != nil || string(r.Rows[0][0]) != "42" {
		t.Errorf("Bind of a statement of PREPARE: %v", r.Err)
	}
}

// TestDropHint: who drops a table or a schema as in PostgreSQL is told the statement that
// does so here, for the very table that was meant.
func TestDropHint(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	for sql, want := range map[string]string{
		"DROP TABLE shop.orders":                    "ALTER PIPELINE shop DROP TABLE shop.orders; takes it out of its pipeline, with its rows here.",
		"DROP TABLE IF EXISTS orders, shop.nosuch":  "",
		"DROP TABLE shop.nosuch, lake.shop.orders":  "ALTER PIPELINE shop DROP TABLE shop.orders; takes it out of its pipeline, with its rows here.",
		"SET search_path = shop; DROP TABLE orders": "ALTER PIPELINE shop DROP TABLE shop.orders; takes it out of its pipeline, with its rows here.",
		"DROP SCHEMA shop CASCADE":                  "DROP PIPELINE shop; drops the tables in it.",
		"DROP SCHEMA public":                        "",
		"DROP VIEW shop.orders":                     "",
		"DROP INDEX shop.orders":                    "",
	} {
		_, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
		var e *pgconn.PgError
		code := "0A000"
		if want != "" {
			code = "55000"
		}
		if !errors.As(err, &e) || e.Code != code || e.Hint != want {
			t.Errorf("%s: %v, hint %q, want %q", sql, err, e.Hint, want)
		}
	}
}
