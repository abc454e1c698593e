package clients

import (
	"context"
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
	// mixed clients say on their standard error what belongs among the sections.
	mixed bool
	// inside is a client that runs in this process, in place of a command.
	inside func(ctx context.Context, dsn string) string
	// gaps are the sections that differ, and why.
	gaps map[string]string
	// after removes what it leaves behind, from both servers.
	after []string
}

// What .ci/clients makes its sets of.
var (
	ofPython    = []string{"../../.ci/clients.d/python.txt"}
	ofNode      = []string{"../../.ci/clients.d/package.json", "../../.ci/clients.d/package-lock.json"}
	ofJava      = []string{"../../.ci/clients.d/java.txt"}
	ofJavaTools = []string{"../../.ci/clients.d/java-tools.txt"}
	ofLibpq     = []string{"testdata/libpq/go.mod", "testdata/libpq/go.sum", "testdata/libpq/main.go"}
)

// python runs a script of testdata in the environment that .ci/clients makes.
func python(script string, more ...string) func(*testing.T, *rig) []string {
	return func(t *testing.T, _ *rig) []string {
		t.Helper()
		path := installed(t, "python", ofPython, "bin", "python")
		return append([]string{path, filepath.Join("testdata", "python", script)}, more...)
	}
}

// node runs a script beside its modules: that is where node looks for them.
func node(script string) func(*testing.T, *rig) []string {
	return func(t *testing.T, _ *rig) []string {
		t.Helper()
		modules := installed(t, "node", ofNode, "node_modules")
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
		onPath(t, "java"), "-XX:TieredStopAtLevel=1", "-cp", installed(t, "java", ofJava, "postgresql.jar"),
		filepath.Join("testdata", "java", "Clients.java"),
	}
}

// javaTool runs a class of testdata with the tools that .ci/clients gets: compiled first, as they
// look for classes by name.
func javaTool(class string, arguments ...string) func(*testing.T, *rig) []string {
	return func(t *testing.T, _ *rig) []string {
		t.Helper()
		jars := filepath.Join(filepath.Dir(installed(t, "java-tools", ofJavaTools, "postgresql.jar")), "*")
		path, classes := onPath(t, "java"), t.TempDir()
		works(t, onPath(t, "javac"), "-nowarn", "-d", classes, "-cp", jars, filepath.Join("testdata", "java", class+".java"))
		return append([]string{path, "-XX:TieredStopAtLevel=1", "-cp", classes + ":" + jars, class}, arguments...)
	}
}

// ruby is ActiveRecord of the system's, in the version that the gaps were found with.
func ruby(t *testing.T, _ *rig) []string {
	t.Helper()
	path := onPath(t, "ruby")
	works(t, path, "-e", `require "active_record"; require "pg"; exit ActiveRecord::VERSION::MAJOR == 6`)
	return []string{path, "-W0", filepath.Join("testdata", "ruby", "with_activerecord.rb")}
}

var all = []client{
	{
		name:    "psql",
		command: func(_ *testing.T, r *rig) []string { return []string{r.bin + "/psql", "-X", "-f", "-"} },
		stdin:   func(t *testing.T) string { return script(t, "testdata/psql.txt") },
		mixed:   true, gaps: psqlGaps,
	},
	{name: "pgx", inside: withPgx, gaps: pgxGaps},
	{name: "lib-pq", command: func(t *testing.T, _ *rig) []string { return []string{installed(t, "libpq", ofLibpq, "libpq")} }, gaps: libpqGaps},
	{name: "psycopg2", command: python("with_psycopg2.py"), gaps: psycopg2Gaps},
	{name: "psycopg3", command: python("with_psycopg3.py")},
	{name: "asyncpg", command: python("with_asyncpg.py"), gaps: asyncpgGaps},
	{name: "sqlalchemy", command: python("with_sqlalchemy.py")},
	{name: "django", command: python("with_django.py")},
	{
		name: "dbt", command: python("with_dbt.py"), gaps: dbtGaps,
		after: []string{"DROP SCHEMA IF EXISTS dbt CASCADE"},
	},
	{name: "odbc", command: odbc},
	{name: "node-postgres", command: node("with_pg.mjs")},
	{name: "prisma", command: node("with_prisma.mjs")},
	{name: "sequelize", command: node("with_sequelize.mjs"), after: []string{"DROP SCHEMA IF EXISTS seq CASCADE"}},
	{name: "typeorm", command: node("with_typeorm.mjs"), after: []string{"DROP SCHEMA IF EXISTS orm CASCADE"}},
	{name: "knex", command: node("with_knex.mjs"), after: []string{"DROP SCHEMA IF EXISTS kn CASCADE"}},
	{
		name: "drizzle", command: node("with_drizzle.mjs"),
		after: []string{"DROP SCHEMA IF EXISTS dz CASCADE", "DROP SCHEMA IF EXISTS drizzle CASCADE"},
	},
	{name: "jdbc", command: java},
	{
		name: "flyway", command: javaTool("Migrations", "testdata/flyway"),
		after: []string{"DROP SCHEMA IF EXISTS fly CASCADE", "DROP SCHEMA IF EXISTS fly2 CASCADE"},
	},
	{
		name: "liquibase", command: javaTool("Changes", "testdata/liquibase"),
		after: []string{"DROP SCHEMA IF EXISTS liq CASCADE"},
	},
	{
		name: "hibernate", command: javaTool("Entities"),
		after: []string{"DROP SCHEMA IF EXISTS hib CASCADE"},
	},
	{
		name: "alembic", command: python("with_alembic.py"),
		after: []string{"DROP SCHEMA IF EXISTS alb CASCADE"},
	},
	{name: "activerecord", command: ruby, gaps: activeRecordGaps},
	{
		name:    "pg_dump",
		command: func(_ *testing.T, r *rig) []string { return []string{"bash", "testdata/pg_dump.sh", r.bin} },
		mixed:   true, gaps: pgDumpGaps,
		after: []string{"DROP VIEW IF EXISTS shop.totals", "DROP TABLE IF EXISTS public.kept"},
	},
	{
		name:    "pg_reload",
		command: func(_ *testing.T, r *rig) []string { return []string{"bash", "testdata/pg_reload.sh", r.bin} },
		mixed:   true,
		after:   []string{"DROP SCHEMA IF EXISTS reload CASCADE"},
	},
}

// TestClients runs every client on skipprd and on PostgreSQL, one after another: they
// write to the same tables.
func TestClients(t *testing.T) {
	r := newRig(t)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			var command []string
			if c.command != nil {
				command = c.command(t, r)
			}
			clean := append([]string{"TRUNCATE loads", "TRUNCATE notes"}, c.after...)
			for _, s := range []target{r.ours, r.theirs} {
				harness.Exec(t, s.dsn(), "TRUNCATE loads", "TRUNCATE notes")
				t.Cleanup(func() { harness.Exec(t, s.dsn(), clean...) })
			}
			r.same(t, c, command)
		})
	}
}
