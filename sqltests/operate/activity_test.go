// Package operate tests what operators of PostgreSQL do: who runs what and waits for what, ending
// it, limits, and what becomes of sessions when the engine dies.
package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// both runs a test on PostgreSQL and on a server of ours.
func both(t *testing.T, args []string, f func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) { f(t, pgtest.Start(t).CreateDatabase(t)) })
	t.Run("skipprd", func(t *testing.T) {
		s := harness.New(t, t.TempDir(), args...)
		s.Start()
		f(t, s.DSN)
		s.Stop()
	})
}

// connect opens a session under a name of its own.
func connect(t *testing.T, dsn, name string) *pgx.Conn {
	t.Helper()
	c := harness.Connect(t, dsn)
	exec(t, c, fmt.Sprintf("SET application_name = '%s'", name))
	return c
}

func exec(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if err := try(t, c, sql); err != nil {
		t.Fatalf("%.100s: %v", sql, err)
	}
}

func try(t *testing.T, c *pgx.Conn, sql string) error {
	_, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
	return err
}

// start runs statements that take their time; the channel has their outcome.
func start(t *testing.T, c *pgx.Conn, sql string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- try(t, c, sql) }()
	return done
}

// rows are the rows of a query, their values parted by bars.
func rows(t *testing.T, c *pgx.Conn, sql string) []string {
	t.Helper()
	res, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%.200s: %v", sql, err)
	}
	var out []string
	for _, r := range res[len(res)-1].Rows {
		parts := make([]string, len(r))
		for i, v := range r {
			parts[i] = "∅"
			if v != nil {
				parts[i] = string(v)
			}
		}
		out = append(out, strings.Join(parts, "|"))
	}
	return out
}

// becomes waits until a query has one row, which is want.
func becomes(t *testing.T, c *pgx.Conn, sql, want string) {
	t.Helper()
	var got []string
	if !harness.Until(harness.Patience, func() bool {
		got = rows(t, c, sql)
		return len(got) == 1 && got[0] == want
	}) {
		t.Errorf("%s:\ngot  %q\nwant %q", sql, got, want)
	}
}

func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code + " " + e.Message
	}
	return fmt.Sprint(err)
}

func TestActivity(t *testing.T) {
	both(t, nil, func(t *testing.T, dsn string) {
		watch := connect(t, dsn, "watch")
		see := func(name, want string) {
			t.Helper()
			becomes(t, watch, `SELECT datname = current_database(), usename, client_addr, client_port IS NOT NULL, backend_start <= now(),
				xact_start IS NULL, query_start >= backend_start, state_change >= query_start, wait_event_type, wait_event, state,
				leader_pid, query_id, query, backend_type FROM pg_stat_activity WHERE application_name = '`+name+"'",
				"t|postgres|127.0.0.1|t|t|"+want+"|client backend")
		}
		idle := connect(t, dsn, "idle")
		exec(t, idle, "SELECT 'idle'")
		see("idle", "t|t|t|Client|ClientRead|idle|∅|∅|SELECT 'idle'")

		open := connect(t, dsn, "open")
		exec(t, open, "BEGIN; SELECT pg_advisory_lock(4711)")
		see("open", "f|t|t|Client|ClientRead|idle in transaction|∅|∅|BEGIN; SELECT pg_advisory_lock(4711)")

		aborted := connect(t, dsn, "aborted")
		exec(t, aborted, "BEGIN")
		if err := try(t, aborted, "SELECT nothing"); err == nil {
			t.Error("it did not fail")
		}
		see("aborted", "t|t|t|Client|ClientRead|idle in transaction (aborted)|∅|∅|SELECT nothing")

		locked, asleep := connect(t, dsn, "locked"), connect(t, dsn, "asleep")
		waits, sleeps := start(t, locked, "SELECT pg_advisory_lock(4711)"), start(t, asleep, "SELECT pg_sleep(3600)")
		see("locked", "f|t|t|Lock|advisory|active|∅|∅|SELECT pg_advisory_lock(4711)")
		see("asleep", "f|t|t|Timeout|PgSleep|active|∅|∅|SELECT pg_sleep(3600)")

		long := connect(t, dsn, "long")
		exec(t, long, "SELECT '"+strings.Repeat("ä", 1000)+"'")
		becomes(t, watch, "SELECT octet_length(query), right(query, 1) FROM pg_stat_activity WHERE application_name = 'long'", "1022|ä")

		cancel := `SELECT application_name, pg_cancel_backend(pid) FROM pg_stat_activity
			WHERE application_name IN ('locked', 'asleep', 'idle') ORDER BY application_name DESC LIMIT 2`
		if got := strings.Join(rows(t, watch, cancel), " "); got != "locked|t idle|t" {
			t.Errorf("canceled: %s", got)
		}
		if got := state(<-waits); got != "57014 canceling statement due to user request" {
			t.Errorf("a canceled wait: %s", got)
		}
		terminate := `SELECT pg_terminate_backend(pid, 180000), application_name AS a FROM pg_stat_activity
			WHERE application_name = ANY (ARRAY['asleep', 'open', 'aborted']) ORDER BY a`
		if got := strings.Join(rows(t, watch, terminate), " "); got != "t|aborted t|asleep t|open" {
			t.Errorf("terminated: %s", got)
		}
		becomes(t, watch, "SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('asleep', 'open', 'aborted')", "0")
		if got := state(<-sleeps); got != "57P01 terminating connection due to administrator command" {
			t.Errorf("a terminated statement: %s", got)
		}
		exec(t, idle, "SELECT 1")
		exec(t, locked, "SELECT pg_advisory_lock(4711)") // its owner is gone
	})
}

// TestSignalArguments are calls with arguments of all kinds.
func TestSignalArguments(t *testing.T) {
	both(t, nil, func(t *testing.T, dsn string) {
		notices := 0
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			if n.Severity == "WARNING" && n.Message == "PID 2147483647 is not a PostgreSQL backend process" {
				notices++
			}
		}
		c, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(context.Background()) }()
		for sql, want := range map[string]string{
			"SELECT pg_cancel_backend(NULL), pg_terminate_backend(NULL), pg_terminate_backend(1, NULL)":            "∅|∅|∅",
			"SELECT pg_cancel_backend(2147483647) AS a, 1 AS b":                                                    "f|1",
			"SELECT *, pg_cancel_backend(x) FROM (VALUES (2147483647)) AS v (x)":                                   "2147483647|f",
			"SELECT pg_cancel_backend(2147483646 + x) FROM generate_series(1, 3) AS g (x) WHERE x = 1":             "f",
			"SELECT pg_terminate_backend(x, 5) FROM (VALUES (2147483647)) AS v (x) GROUP BY x HAVING count(*) = 1": "f",
			"WITH v AS (SELECT 2147483647 AS x) SELECT pg_terminate_backend(x) FROM v":                             "f",
			"PREPARE p AS SELECT pg_cancel_backend($1); EXECUTE p(2147483647)":                                     "f",
		} {
			if got := strings.Join(rows(t, c, sql), " "); got != want {
				t.Errorf("%s: %s", sql, got)
			}
		}
		if notices != 6 {
			t.Errorf("%d warnings", notices)
		}
		var done bool
		if err := c.QueryRow(t.Context(), "SELECT pg_cancel_backend($1)", 2147483647).Scan(&done); err != nil || done || notices != 7 {
			t.Errorf("with a parameter: %v, %v, %d warnings", done, err, notices)
		}
		for sql, want := range map[string]string{
			"SELECT pg_terminate_backend(1, -1)":                                                  "22003 \"timeout\" must not be negative",
			"SELECT pg_cancel_backend(99999999999)":                                               "42883 function pg_cancel_backend(bigint) does not exist",
			"SELECT pg_cancel_backend('x')":                                                       "22P02 invalid input syntax for type integer: \"x\"",
			"SELECT pg_cancel_backend(pg_backend_pid())":                                          "57014 canceling statement due to user request",
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = pg_backend_pid()": "57P01 terminating connection due to administrator command",
		} {
			other := harness.Connect(t, dsn)
			if sql == "SELECT pg_terminate_backend(1, -1)" {
				sql = fmt.Sprintf("SELECT pg_terminate_backend(%d, -1)", c.PgConn().PID())
			}
			if got := state(try(t, other, sql)); got != want {
				t.Errorf("%s: %s", sql, got)
			}
		}
	})
}
