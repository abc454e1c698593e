package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// refused runs a statement that must fail with a code, and a hint that says something.
func refused(t *testing.T, dsn, sql, code, hint string) {
	t.Helper()
	_, err := harness.Connect(t, dsn).PgConn().Exec(t.Context(), sql).ReadAll()
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Hint, hint) {
		t.Fatalf("%s: %+v, want %s and a hint with %q", sql, err, code, hint)
	}
}

// TestResetAndDropUnreachable: with the source away a RESET changes nothing and a DROP
// says what stays; with it back, and with the slot gone, a RESET mends.
func TestResetAndDropUnreachable(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	source := pg.CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE n (id bigint PRIMARY KEY)", "INSERT INTO n SELECT generate_series(1, 100)")
	at, err := pgx.ParseConfig(source)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.New(t, t.TempDir())
	s.Start()
	defer s.Stop()
	port := func(p uint16) string { return fmt.Sprintf("ALTER CONNECTION c SET (PORT '%d')", p) }
	slots := "SELECT coalesce(string_agg(slot_name, ' '), 'none') FROM pg_replication_slots WHERE database = current_database()"
	expect := func(dsn, sql, want string) {
		t.Helper()
		if !harness.Until(harness.Patience, func() bool { got, err := harness.Text(dsn, sql); return err == nil && got == want }) {
			got, err := harness.Text(dsn, sql)
			t.Fatalf("%s: %q, %v, want %q", sql, got, err, want)
		}
	}
	harness.Exec(t, s.DSN, fmt.Sprintf(
		"CREATE CONNECTION c TO POSTGRES (HOST '%s', PORT %d, DATABASE '%s', USER '%s', PASSWORD '%s', SSLMODE 'disable')",
		at.Host, at.Port, at.Database, at.User, at.Password), "CREATE PIPELINE mend FROM c FOR ALL TABLES", "SYNC PIPELINE mend")
	slot, err := harness.Text(source, slots)
	if err != nil {
		t.Fatal(err)
	}

	harness.Exec(t, s.DSN, port(1))
	refused(t, s.DSN, "ALTER PIPELINE mend RESET", "08001", "HOST")
	expect(source, slots, slot)
	expect(s.DSN, "SELECT count(*) FROM mend.n", "100")

	harness.Exec(t, s.DSN, port(at.Port), "ALTER PIPELINE mend RESET", "SYNC PIPELINE mend")
	expect(s.DSN, "SELECT count(*) FROM mend.n", "100")

	harness.Exec(t, s.DSN, "ALTER PIPELINE mend PAUSE")
	expect(source, "SELECT active::text FROM pg_replication_slots WHERE database = current_database()", "false")
	harness.Exec(t, source, "SELECT pg_drop_replication_slot('"+slot+"')", "INSERT INTO n VALUES (101)")
	refused(t, s.DSN, "ALTER PIPELINE mend RESUME", "55000", "RESET")
	harness.Exec(t, s.DSN, "ALTER PIPELINE mend RESET", "SYNC PIPELINE mend")
	expect(s.DSN, "SELECT count(*) FROM mend.n", "101")

	harness.Exec(t, s.DSN, port(1))
	var said []string
	cfg, err := pgx.ParseConfig(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said = append(said, n.Message) }
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.PgConn().Exec(t.Context(), "DROP PIPELINE mend").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(said, "\n"); !strings.Contains(got, "pg_drop_replication_slot('"+slot+"')") ||
		!strings.Contains(got, "DROP PUBLICATION") {
		t.Errorf("dropped with notices %q", got)
	}
}

// TestEngineKilled: a query whose engine dies says so, and the next one runs.
func TestEngineKilled(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	defer s.Stop()
	ours := harness.Connect(t, s.DSN)
	for _, sql := range []string{
		"SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
		"SELECT a FROM generate_series(1, 1000000000) a",
		"COPY (SELECT a FROM generate_series(1, 1000000000) a) TO STDOUT",
	} {
		done := make(chan error, 1)
		go func() {
			_, err := ours.PgConn().CopyTo(context.Background(), discard{}, sql)
			done <- err
		}()
		busy := "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate%' AND query NOT LIKE '%activity%'"
		if !harness.Until(harness.Patience, func() bool { n, err := harness.Text(s.DSN, busy); return err == nil && n == "1" }) {
			t.Fatal("the query does not run")
		}
		// Until it meets the query, which may have come no further than to the session.
		var err error
		if !harness.Until(harness.Patience, func() bool {
			for _, pid := range harness.Children(s.PID()) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended
			}
			select {
			case err = <-done:
				return true
			case <-time.After(time.Second):
				return false
			}
		}) {
			t.Fatalf("%s runs without an engine", sql)
		}
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "58000" || !strings.Contains(e.Hint, "again") {
			t.Errorf("%s: %v", sql, err)
		}
		if n, err := harness.Text(s.DSN, "SELECT 1"); err != nil || n != "1" {
			t.Fatalf("after the restart: %q, %v", n, err)
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
