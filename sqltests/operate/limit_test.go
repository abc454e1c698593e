package operate

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestConnectionLimits: who finds no place is told so in PostgreSQL's words, superusers have some
// of their own, and a role may have fewer.
func TestConnectionLimits(t *testing.T) {
	s := harness.New(t, t.TempDir(), "--max-connections", "6")
	s.Start()
	as := func(role string) (*pgx.Conn, string) {
		c, err := pgx.Connect(t.Context(), strings.Replace(s.DSN, "user=postgres", "user="+role, 1))
		if err != nil {
			return nil, state(err)
		}
		return c, ""
	}
	admin := connect(t, s.DSN, "admin")
	exec(t, admin, "CREATE ROLE one LOGIN CONNECTION LIMIT 1; CREATE ROLE many LOGIN")
	if got := rows(t, admin, "SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections')"); got[0] != "6|3" {
		t.Errorf("settings: %v", got)
	}
	enter := func(role, want string) *pgx.Conn {
		t.Helper()
		c, got := as(role)
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", role, got)
		}
		return c
	}
	one := enter("one", "")
	enter("one", `53300 too many connections for role "one"`)
	many := enter("many", "")
	enter("many", "53300 remaining connection slots are reserved for non-replication superuser connections")
	var supers []*pgx.Conn
	for range 3 {
		supers = append(supers, enter("postgres", ""))
	}
	enter("postgres", "53300 sorry, too many clients already")
	for _, c := range supers[:2] {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	becomes(t, admin, "SELECT count(*) FROM pg_stat_activity", "4")
	enter("many", "53300 remaining connection slots are reserved for non-replication superuser connections")
	if err := one.Close(t.Context()); err != nil {
		t.Error(err)
	}
	becomes(t, admin, "SELECT count(*) FROM pg_stat_activity", "3")
	enter("one", "53300 remaining")
	exec(t, many, "SELECT 1")
	if err := supers[2].Close(t.Context()); err != nil {
		t.Error(err)
	}
	becomes(t, admin, "SELECT count(*) FROM pg_stat_activity", "2")
	enter("one", "")
	s.Stop()
}

// TestSettingsOfServer: values for all sessions, how they yield to those of roles and clients, what
// is logged, and what ALTER SYSTEM says.
func TestSettingsOfServer(t *testing.T) {
	s := harness.New(t, t.TempDir(), "--settings", "work_mem=8MB; log_min_duration_statement=0; statement_timeout=1h; log_disconnections=on")
	s.Start()
	admin := connect(t, s.DSN, "admin")
	exec(t, admin, "CREATE ROLE r LOGIN; ALTER ROLE r SET work_mem = '9MB'; ALTER ROLE r PASSWORD 'hush-hush'")
	see := func(dsn, want string) {
		t.Helper()
		c := harness.Connect(t, dsn)
		got := rows(t, c, "SELECT name, setting, source, reset_val FROM pg_settings WHERE name IN ('work_mem', 'statement_timeout') ORDER BY name DESC")
		if strings.Join(got, " ") != want {
			t.Errorf("%s:\ngot  %v\nwant %s", dsn, got, want)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	asRole := strings.Replace(s.DSN, "user=postgres", "user=r", 1)
	see(s.DSN, "work_mem|8192|configuration file|8192 statement_timeout|3600000|configuration file|3600000")
	see(asRole, "work_mem|9216|user|9216 statement_timeout|3600000|configuration file|3600000")
	see(asRole+" work_mem=10MB options='-c statement_timeout=5s'", "work_mem|10240|client|10240 statement_timeout|5000|client|5000")
	exec(t, admin, "SET statement_timeout = '2min'")
	if got := rows(t, admin, "RESET statement_timeout; SHOW statement_timeout"); got[0] != "1h" {
		t.Errorf("after RESET: %v", got)
	}
	hint := func(sql string) string {
		var e *pgconn.PgError
		if errors.As(try(t, admin, sql), &e) {
			return e.Code + " " + e.Hint
		}
		return ""
	}
	if got := hint("ALTER SYSTEM SET work_mem = '5MB'"); !strings.HasPrefix(got, "0A000 Start the server with --settings 'work_mem=5MB'") {
		t.Errorf("ALTER SYSTEM: %s", got)
	}
	exec(t, admin, "SELECT 'a statement to look for'")
	for _, want := range []string{"a statement to look for", "statement ended", "duration=", "disconnection", "ALTER ROLE r PASSWORD"} {
		if !harness.Until(harness.Patience, func() bool { return strings.Contains(s.Log(1000), want) }) {
			t.Errorf("the log has no %q", want)
		}
	}
	if strings.Contains(s.Log(1000), "hush-hush") {
		t.Error("the log has a password")
	}
	if got := rows(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%hush-' || 'hush%'"); got[0] != "0" {
		t.Error("pg_stat_activity has a password")
	}
	s.Stop()
}

// TestAdmission: of two queries that do not end one waits for the other, which is shown; waits end
// by statement_timeout and by cancel, and small queries do not wait.
func TestAdmission(t *testing.T) {
	s := harness.New(t, t.TempDir(), "--max-queries", "1")
	s.Start()
	watch, third := connect(t, s.DSN, "watch"), connect(t, s.DSN, "third")
	exec(t, watch, "CREATE TABLE small (id int PRIMARY KEY); INSERT INTO small SELECT i FROM generate_series(1, 10) AS g (i)")
	var outcomes []<-chan error
	for range 2 {
		outcomes = append(outcomes, start(t, connect(t, s.DSN, "heavy"), endless))
	}
	const waits = "SELECT count(*), count(wait_event) FROM pg_stat_activity WHERE application_name = 'heavy' AND state = 'active' AND " +
		"coalesce(wait_event_type || wait_event, 'ExtensionEngineSlot') = 'ExtensionEngineSlot'"
	becomes(t, watch, waits, "2|1")
	if got := rows(t, watch, "SELECT sum(id) FROM small"); got[0] != "55" {
		t.Errorf("a small query: %v", got)
	}
	exec(t, third, "SET statement_timeout = '100ms'")
	if got := state(try(t, third, endless)); got != "57014 canceling statement due to statement timeout" {
		t.Errorf("a wait with a limit: %s", got)
	}
	becomes(t, watch, waits, "2|1")
	if got := rows(t, watch, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'heavy'"); strings.Join(got, "") != "tt" {
		t.Errorf("canceled: %v", got)
	}
	for _, o := range outcomes {
		if got := state(<-o); got != "57014 canceling statement due to user request" {
			t.Errorf("a canceled query: %s", got)
		}
	}
	if got := rows(t, connect(t, s.DSN, "fourth"), "SELECT count(*) FROM generate_series(1, 100000)"); got[0] != "100000" {
		t.Errorf("a heavy query behind them: %v", got)
	}
	s.Stop()
}
