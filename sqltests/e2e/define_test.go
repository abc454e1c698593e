package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// definedState says what there is of the transaction of TestDefineKills: all of it, or
// nothing.
const definedState = `SELECT concat_ws('|',
	(SELECT count(*) FROM pg_namespace WHERE nspname = 'made'), (SELECT count(*) FROM pg_class WHERE relname = 'filled'),
	(SELECT count(*) FROM pg_views WHERE viewname = 'seen'), (SELECT count(*) FROM pg_attribute WHERE attname = 'z' AND attrelid = 'old'::regclass),
	(SELECT count(*) FROM pg_class WHERE relname = 'gone'))`

// TestDefineKills: a transaction that makes, fills, changes and drops tables takes place
// whole or not at all, wherever the server dies in it: before its rows are in the log,
// between the log and the catalog, and after both.
func TestDefineKills(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE old (a int PRIMARY KEY)", "INSERT INTO old VALUES (1)", "CREATE TABLE gone (a int)")
	points := []string{"AfterBody:1", "BeforeAck:1", "BeforeUpdate:10", "BeforeUpdate:11", "AfterUpdate:11", ""}
	if number("SKIPPRD_KILL_ROUNDS", 6) > len(points) {
		for n := 1; n <= 14; n++ {
			points = append(points, fmt.Sprintf("BeforeUpdate:%d", n), fmt.Sprintf("AfterUpdate:%d", n))
		}
	}
	for _, point := range points {
		s.Kill()
		if point != "" {
			s.Setenv("SKIPPRD_FAILPOINT=" + point)
		}
		s.Launch()
		s.Unsetenv()
		if !harness.Until(harness.Patience, func() bool { return s.Dead() || s.TryReady(harness.Patience) == nil || s.Dead() }) {
			t.Fatalf("%s: neither ready nor dead", point)
		}
		told := defineAll(t, s.DSN)
		s.Kill()
		s.Launch()
		s.WaitReady(harness.Patience)
		state, err := harness.Text(s.DSN, definedState)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case state == "1|1|1|1|0":
			rows, err := harness.Text(s.DSN, "SELECT concat_ws('|', (SELECT count(*) FROM seen), (SELECT sum(a) FROM made.filled), (SELECT sum(a + z) FROM old))")
			if err != nil || rows != "10|55|8" {
				t.Fatalf("%s: rows %s, %v", point, rows, err)
			}
			harness.Exec(t, s.DSN, "DROP SCHEMA made CASCADE", "ALTER TABLE old DROP COLUMN z", "CREATE TABLE gone (a int)")
		case state != "0|0|0|0|1", told:
			t.Fatalf("%s: %s is there, told %v", point, state, told)
		}
	}
}

// defineAll runs the transaction, and says whether it was told that it is committed.
func defineAll(t *testing.T, dsn string) bool {
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return false
	}
	defer conn.Close(t.Context())
	for _, sql := range []string{
		"BEGIN", "CREATE SCHEMA made", "CREATE TABLE made.filled AS SELECT generate_series(1, 10) AS a",
		"CREATE VIEW seen AS SELECT * FROM made.filled", "ALTER TABLE old ADD z int DEFAULT 7", "DROP TABLE gone", "COMMIT",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			return false
		}
	}
	return true
}

// TestDefineAwaited: who waits for a transaction that alters a table changes it as it is
// then: its columns of the same names, and within its checks.
func TestDefineAwaited(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE awaited (a int PRIMARY KEY, b text, c text)", "INSERT INTO awaited VALUES (1, 'b', 'c')")
	first := harness.Connect(t, s.DSN)
	_, err := first.Exec(t.Context(), "BEGIN; ALTER TABLE awaited RENAME b TO x; ALTER TABLE awaited RENAME c TO b; ALTER TABLE awaited ADD CHECK (b <> 'bad')")
	if err != nil {
		t.Fatal(err)
	}
	waits := []string{
		"INSERT INTO awaited (a, b) VALUES (2, 'new')", "UPDATE awaited SET b = 'changed' WHERE a = 1", "INSERT INTO awaited (a, b) VALUES (4, 'bad')",
		"COPY awaited (a, b) FROM STDIN",
	}
	ended := make([]chan error, len(waits))
	for i, sql := range waits {
		c := harness.Connect(t, s.DSN)
		ended[i] = make(chan error, 1)
		go func() {
			if i == len(waits)-1 {
				_, err := c.PgConn().CopyFrom(context.Background(), strings.NewReader("3\tcopied\n"), sql)
				ended[i] <- err
				return
			}
			_, err := c.Exec(context.Background(), sql)
			ended[i] <- err
		}()
	}
	if !harness.Until(harness.Patience, func() bool {
		n, err := harness.Text(s.DSN, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '% awaited %' AND query NOT LIKE 'SELECT%'")
		return err == nil && n == "4"
	}) {
		t.Error("those who wait are not seen")
	}
	if _, err := first.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	for i, sql := range waits {
		err := <-ended[i]
		var told *pgconn.PgError
		if bad := strings.Contains(sql, "bad"); bad != (errors.As(err, &told) && told.Code == "23514") || !bad && err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	const rows = "SELECT string_agg(concat_ws('|', a, coalesce(x, '-'), b), ' ' ORDER BY a) FROM awaited"
	if got, err := harness.Text(s.DSN, rows); got != "1|b|changed 2|-|new 3|-|copied" || err != nil {
		t.Errorf("rows %s, %v", got, err)
	}
}

// TestDefineNameTaken: a filled table whose name another transaction takes first is refused
// by the name.
func TestDefineNameTaken(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	conn := harness.Connect(t, s.DSN)
	if _, err := conn.Exec(t.Context(), "BEGIN; CREATE TABLE taken AS SELECT 1 AS a"); err != nil {
		t.Fatal(err)
	}
	harness.Exec(t, s.DSN, "CREATE TABLE taken AS SELECT 2 AS a")
	var told *pgconn.PgError
	if _, err := conn.Exec(t.Context(), "COMMIT"); !errors.As(err, &told) || told.Code != "42P07" {
		t.Errorf("a name that is taken: %v", err)
	}
	if got, err := harness.Text(s.DSN, "SELECT a FROM taken"); got != "2" || err != nil {
		t.Errorf("rows %s, %v", got, err)
	}
}
