package operate

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

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
