package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// one is a value that a session's query gives, as text.
func one(t *testing.T, c *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	var out string
	if err := c.QueryRow(t.Context(), sql, args...).Scan(&out); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func execAll(t *testing.T, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// TestTempSessions: a session's temporary tables are its own, whatever others have of the same
// names, commit meanwhile, or crash; they go with the session.
func TestTempSessions(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	a, b := harness.Connect(t, s.DSN), harness.Connect(t, s.DSN)
	execAll(t, a, "CREATE TABLE kept (id int PRIMARY KEY, v text)", "CREATE TEMP TABLE mine (id int PRIMARY KEY, v text)", "CREATE TEMP VIEW seen AS SELECT count(*) AS n FROM mine")
	execAll(t, b, "CREATE TEMP TABLE mine (x int)", "INSERT INTO mine VALUES (1), (2)")

	copied, err := a.PgConn().CopyFrom(t.Context(), strings.NewReader("1\tone\n2\t\\N\n3\tthree\n"), "COPY mine FROM STDIN")
	if err != nil || copied.RowsAffected() != 3 {
		t.Fatalf("%v, %v", copied, err)
	}
	_, err = a.PgConn().CopyFrom(t.Context(), strings.NewReader("4\tfour\n1\tagain\n"), "COPY mine FROM STDIN")
	if e, ok := err.(*pgconn.PgError); !ok || e.Code != "23505" {
		t.Fatalf("%v, want 23505", err)
	}
	for i := 10; i < 150; i++ { // each a transaction of its own, with a statement that is prepared once
		if _, err := a.Exec(t.Context(), "INSERT INTO mine VALUES ($1, $2)", i, fmt.Sprint("v", i)); err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, b, "INSERT INTO kept SELECT x, 'kept' FROM mine") // others' commits do not touch it
	var out strings.Builder
	if _, err := a.PgConn().CopyTo(t.Context(), &out, "COPY (SELECT m.id, k.v FROM mine m JOIN kept k USING (id) ORDER BY 1) TO STDOUT"); err != nil || out.String() != "1\tkept\n2\tkept\n" {
		t.Fatalf("%q, %v", out.String(), err)
	}
	if got := one(t, a, "SELECT concat_ws(' ', count(*), (SELECT n FROM seen), max(id), count(v)) FROM mine WHERE id <> $1", 3); got != "142 143 149 141" {
		t.Fatal(got)
	}
	if got := one(t, b, "SELECT count(*)::text || (SELECT count(*) FROM pg_class WHERE relname = 'mine') FROM mine"); got != "21" {
		t.Fatal(got)
	}
	if got, err := harness.Text(s.DSN, "SELECT count(*) FROM pg_class WHERE relname IN ('mine', 'seen') OR relnamespace = pg_my_temp_schema()"); err != nil || got != "0" {
		t.Fatal(got, err)
	}

	// The workers of the engine die: what they ran fails, and nothing else is lost.
	for _, pid := range harness.Children(s.PID()) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	sum := ""
	if !harness.Until(harness.Patience, func() bool {
		return a.QueryRow(context.Background(), "SELECT sum(id)::text FROM mine").Scan(&sum) == nil
	}) || sum != "11136" {
		t.Fatalf("sum %q after a crash of the engine", sum)
	}

	// A pooler hands the session on.
	execAll(t, b, "DISCARD ALL")
	if _, err := b.Exec(t.Context(), "SELECT * FROM mine"); err == nil {
		t.Fatal("DISCARD ALL leaves a temporary table")
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Kill() // nothing of them is durable
	s.Launch()
	s.WaitReady(harness.Patience)
	if got, err := harness.Text(s.DSN, "SELECT count(*) FROM pg_class WHERE relpersistence = 't'"); err != nil || got != "0" {
		t.Fatal(got, err)
	}
	if got, err := harness.Text(s.DSN, "SELECT count(*) FROM kept"); err != nil || got != "2" {
		t.Fatal(got, err)
	}
}

// TestTempBounds: temporary tables that take too much are refused, and the session goes on.
func TestTempBounds(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	c := harness.Connect(t, s.DSN)
	execAll(t, c, "CREATE TEMP TABLE big (id int, v text)", "INSERT INTO big VALUES (0, 'first')")
	_, err := c.Exec(t.Context(), "INSERT INTO big SELECT i, repeat('x', 1000) FROM generate_series(1, 300000) AS g(i)")
	if e, ok := err.(*pgconn.PgError); !ok || e.Code != "54000" {
		t.Fatalf("%v, want 54000", err)
	}
	if got := one(t, c, "SELECT count(*)::text FROM big"); got != "1" {
		t.Fatal(got)
	}
	execAll(t, c, "INSERT INTO big SELECT i, repeat('x', 1000) FROM generate_series(1, 50000) AS g(i)", "UPDATE big SET v = v || 'y' WHERE id < 10")
	if got := one(t, c, "SELECT concat_ws(' ', count(*), sum(length(v))) FROM big"); got != "50001 50000015" {
		t.Fatal(got)
	}
}
