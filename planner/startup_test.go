package planner_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestRoleOfSameName: a session that became a role is not another one that takes its name.
func TestRoleOfSameName(t *testing.T) {
	w := newWorld(t)
	admin := w.connect()
	simple(t, admin, "CREATE ROLE ana LOGIN; CREATE ROLE team; GRANT team TO ana")
	cfg, err := pgx.ParseConfig("postgres://ana@" + w.addr + "/lake?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	simple(t, c, "SET ROLE team")
	if got := simple(t, admin, "DROP ROLE team; CREATE ROLE team SUPERUSER"); got != "DROP ROLE; CREATE ROLE" {
		t.Fatal(got)
	}
	const sql = "CREATE ROLE eve"
	if got, want := simple(t, c, sql), "ERROR 42501 permission denied to create role"; got != want {
		t.Errorf("as the role that is gone: %s, want %s", got, want)
	}
	simple(t, admin, "SET ROLE team")
	if got := simple(t, admin, sql); got != "CREATE ROLE" {
		t.Errorf("as the new role: %s", got)
	}
}

// TestStartupRole: a client becomes another role at its start only if it may, however it writes
// the setting's name.
func TestStartupRole(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	simple(t, c, "CREATE ROLE ana LOGIN; CREATE ROLE team; GRANT team TO ana")
	for _, name := range []string{"role", "Role", "ROLE"} {
		cfg, err := pgx.ParseConfig("postgres://ana@" + w.addr + "/lake?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams[name] = "postgres"
		if bad, err := pgx.ConnectConfig(t.Context(), cfg); err == nil {
			t.Errorf("%s=postgres: became %s", name, simple(t, bad, "SELECT current_user"))
			_ = bad.Close(t.Context())
		}
		cfg.RuntimeParams[name] = "team"
		good, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := simple(t, good, "SELECT current_user, session_user"); got != "team|ana; SELECT 1" {
			t.Errorf("%s=team: %s", name, got)
		}
		_ = good.Close(t.Context())
	}
}

// TestBeginnings: a session begins with the value of all roles, the database, the role, the role
// in the database, of which the last one counts.
func TestBeginnings(t *testing.T) {
	w := newWorld(t)
	admin := w.connect()
	simple(t, admin, "CREATE ROLE ana LOGIN")
	for _, step := range []struct{ sql, want string }{
		{"ALTER ROLE ALL SET work_mem = '1MB'", "1MB"},
		{"ALTER DATABASE lake SET work_mem = '2MB'", "2MB"},
		{"ALTER ROLE ana SET work_mem = '3MB'", "3MB"},
		{"ALTER ROLE ana IN DATABASE lake SET work_mem = '4MB'", "4MB"},
		{"ALTER ROLE ana RESET work_mem", "4MB"},
		{"ALTER ROLE ana IN DATABASE lake RESET ALL", "2MB"},
		{"ALTER DATABASE lake RESET work_mem", "1MB"},
		{"ALTER ROLE ALL RESET ALL", "4MB"},
	} {
		simple(t, admin, step.sql)
		cfg, err := pgx.ParseConfig("postgres://ana@" + w.addr + "/lake?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		c, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := simple(t, c, "SHOW work_mem"); got != step.want+"; SHOW" {
			t.Errorf("%s: %s, want %s", step.sql, got, step.want)
		}
		_ = c.Close(t.Context())
	}
}
