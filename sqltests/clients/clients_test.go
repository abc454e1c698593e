package clients

import (
	"path/filepath"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// client is one of those that print sections.
type client struct {
	name string
	// command is what to run, or ends the test where something is missing.
	command func(t *testing.T, r *rig) []string
	stdin   func(t *testing.T) string
}

// python runs a script of testdata in the environment that .ci/clients makes.
func python(script string, more ...string) func(*testing.T, *rig) []string {
	return func(t *testing.T, _ *rig) []string {
		t.Helper()
		return append([]string{installed(t, "python", "bin", "python"), filepath.Join("testdata", "python", script)}, more...)
	}
}

// node runs a script beside its modules: that is where node looks for them.
func node(script string) func(*testing.T, *rig) []string {
	return func(t *testing.T, _ *rig) []string {
		t.Helper()
		modules := installed(t, "node", "node_modules")
		top := t.TempDir()
		for _, name := range []string{"matrix.mjs", script} {
			link(t, filepath.Join("testdata", "node", name), filepath.Join(top, name))
		}
		link(t, modules, filepath.Join(top, "node_modules"))
		return []string{onPath(t, "node"), "--preserve-symlinks", "--preserve-symlinks-main", filepath.Join(top, script)}
	}
}

func odbc(t *testing.T, r *rig) []string {
	t.Helper()
	drivers, _ := filepath.Glob("/usr/lib/*/odbc/psqlodbcw.so") // the pattern is well formed
	if len(drivers) == 0 {
		skip(t, "psqlODBC is not here; .ci/clients installs it")
	}
	return python("with_odbc.py", drivers[0])(t, r)
}

func java(t *testing.T, _ *rig) []string {
	t.Helper()
	return []string{
		onPath(t, "java"), "-XX:TieredStopAtLevel=1", "-cp", installed(t, "java", "postgresql.jar"),
		filepath.Join("testdata", "java", "Clients.java"),
	}
}

func ruby(t *testing.T, r *rig) []string {
	t.Helper()
	path := onPath(t, "ruby")
	if _, err := r.ours.run(t, "", path, "-e", `require "active_record"; require "pg"`); err != nil {
		skip(t, "ActiveRecord is not here; .ci/clients installs it")
	}
	return []string{path, "-W0", filepath.Join("testdata", "ruby", "with_activerecord.rb")}
}

var all = []client{
	{
		name:    "psql",
		command: func(_ *testing.T, r *rig) []string { return []string{r.psql, "-X", "-f", "-"} },
		stdin:   func(t *testing.T) string { return script(t, "testdata/psql.txt") },
	},
	{name: "lib-pq", command: func(t *testing.T, _ *rig) []string { return []string{installed(t, "libpq", "libpq")} }},
	{name: "psycopg2", command: python("with_psycopg2.py")},
	{name: "psycopg3", command: python("with_psycopg3.py")},
	{name: "asyncpg", command: python("with_asyncpg.py")},
	{name: "sqlalchemy", command: python("with_sqlalchemy.py")},
	{name: "django", command: python("with_django.py")},
	{name: "dbt", command: python("with_dbt.py")},
	{name: "odbc", command: odbc},
	{name: "node-postgres", command: node("with_pg.mjs")},
	{name: "prisma", command: node("with_prisma.mjs")},
	{name: "jdbc", command: java},
	{name: "activerecord", command: ruby},
}

// TestClients runs every client on skipprd and on PostgreSQL, one after another: they
// write to the same tables.
func TestClients(t *testing.T) {
	r := newRig(t)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			command := c.command(t, r)
			for _, s := range []target{r.ours, r.theirs} {
				harness.Exec(t, s.dsn(), "TRUNCATE loads", "TRUNCATE notes")
			}
			stdin := ""
			if c.stdin != nil {
				stdin = c.stdin(t)
			}
			gaps := clientGaps[c.name]
			if c.name == "psql" {
				gaps = psqlGaps
			}
			r.same(t, gaps, stdin, command...)
		})
	}
}
