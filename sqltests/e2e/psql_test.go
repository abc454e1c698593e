package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// psqlSchema is made at the source and, for comparison, in a database of its own
// that no pipeline touches.
var psqlSchema = []string{
	"CREATE SCHEMA shop",
	`CREATE TABLE shop.orders (id bigint PRIMARY KEY, customer varchar(20) NOT NULL, total numeric(10,2), dropped int, at timestamptz,
		note text, tags text[], paid boolean NOT NULL, doc jsonb, u uuid, d date, f4 real, f8 float8, i2 smallint, b bytea,
		ts3 timestamp(3), t time, ch char(4), v varchar, n numeric, i interval, big int8[])`,
	`CREATE TABLE shop.lines ("order id" bigint, "No" int, "select" int, PRIMARY KEY ("No", "order id"))`,
	"ALTER TABLE shop.orders DROP COLUMN dropped",
	"INSERT INTO shop.orders (id, customer, paid) SELECT i, 'c' || i, true FROM generate_series(1, 100) i",
	`INSERT INTO shop.lines SELECT i, i % 3, 2 FROM generate_series(1, 100) i`,
}

// psqlEqual are commands whose output is PostgreSQL's, byte for byte.
var psqlEqual = []string{
	`\d`, `\d shop.*`, `\d shop.orders`, `\d+ shop.orders`, `\d shop.lines`, `\d+ shop.lines`, `\d shop.orders_pkey`, `\d+ shop.lines_pkey`,
	`\d nosuch`, `\dt`, `\dt shop.*`, `\dt shop.o*`, `\dt *.lines`, `\dt nosuch`, `\dtS pg_am*`, `\dvS pg_tab*`, `\di shop.*`, `\dv`, `\dv shop.*`,
	`\ds`, `\dm`, `\dE`, `\dn shop`, `\dn+ public`, `\du`, `\du+`, `\dg`, `\df public.*`, `\dfS now`, `\dfS+ lower`, `\daS count`,
	`\dT`, `\dT+`, `\dT shop.*`, `\dTS int4`, `\dTS+ numeric`, `\dp shop.*`, `\z`, `\db`, `\dd`, `\dD`, `\ddp`, `\dA`, `\dA+`, `\dC`, `\dc`,
	`\do`, `\doS =`, `\dO`, `\dy`, `\des`, `\deu`, `\det`, `\dew`, `\dRp`, `\dRs`, `\drds`, `\dX`, `\dP`, `\dl`, `\dconfig work_mem`,
	`\d pg_tables`, `\d information_schema.tables`, `\d information_schema.columns`, `\encoding`, `\dAc btree int4`,
	`SET search_path = shop, public; SHOW search_path`,
	"SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 2",
	`SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, character_octet_length,
		numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision, interval_type, collation_name, udt_schema, udt_name,
		dtd_identifier, is_identity, is_generated FROM information_schema.columns WHERE table_schema = 'shop' ORDER BY 1, 3`,
	`SELECT constraint_name, table_name, column_name, ordinal_position FROM information_schema.key_column_usage WHERE table_schema = 'shop' ORDER BY 1, 4`,
	`SELECT table_name, column_name, constraint_name FROM information_schema.constraint_column_usage WHERE table_schema = 'shop' ORDER BY 1, 2`,
	`SELECT constraint_name, constraint_type, is_deferrable FROM information_schema.table_constraints
		WHERE table_schema = 'shop' AND constraint_type = 'PRIMARY KEY' ORDER BY 1`,
	`SELECT attname, atttypid::regtype, attlen, attnum, attndims, atttypmod, attbyval, attalign, attstorage, attnotnull, attcollation
		FROM pg_attribute WHERE attrelid = 'shop.lines'::regclass AND attnum > 0 ORDER BY attnum`,
	`SELECT indexrelid::regclass, indrelid::regclass, indkey, indclass, indcollation, indoption, indisprimary FROM pg_index
		WHERE indrelid = 'shop.lines'::regclass`,
	`SELECT conname, contype, conkey, conindid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shop.lines'::regclass`,
	"SELECT schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'shop' ORDER BY 3",
	"SELECT relname, relkind, relnatts, relhasindex, relam, relreplident FROM pg_class WHERE relnamespace = 'shop'::regnamespace ORDER BY 1",
	"SELECT to_regclass('shop.orders'), to_regclass('orders'), 'shop.lines_pkey'::regclass, to_regclass('shop.nope')",
	"SELECT 'shop.nope'::regclass",
}

// psqlRuns are commands whose output differs by nature, and what it must say.
var psqlRuns = map[string][]string{
	`\l`: {"DATABASE", "postgres", "UTF8"}, `\l+`: {"DATABASE", "pg_default"}, `\dn`: {"public", "shop", "skippr"}, `\dn+`: {"standard public schema"},
	`\dt+ shop.*`: {"orders", "lines", "heap", "permanent"}, `\di+ shop.*`: {"orders_pkey", "btree"}, `\df`: {"get_ddl"}, `\df+`: {"get_ddl"},
	`\db+`: {"pg_default"}, `\dx`: nil, `\dL`: nil, `\dF`: nil, `\dAf`: {"integer_ops"}, `\dconfig`: {"application_name"}, `\conninfo`: {"DATABASE"},
	`\d pg_class`: {"relname", "oid"}, `\sf now`: nil, `SHOW ALL`: {"search_path"}, `\dS`: {"pg_class"}, `\d+ pg_class`: {"relname"},
	`SELECT skippr.get_ddl('pipeline', 'shop')`:                              {"CREATE PIPELINE shop"},
	`SELECT pg_size_pretty(pg_total_relation_size('shop.orders'))`:           {"(1 row)"},
	`SELECT pg_cancel_backend(2147483647), pg_terminate_backend(2147483647)`: {"f"},
}

// TestPsql runs psql's commands on skipprd and on PostgreSQL with the same tables.
func TestPsql(t *testing.T) {
	t.Parallel()
	psql := findPsql(t)
	pg := pgtest.Start(t)
	source, reference := pg.CreateDatabase(t), pg.CreateDatabase(t)
	harness.Exec(t, source, psqlSchema...)
	harness.Exec(t, reference, psqlSchema...)
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE shop FROM POSTGRES "+quoted(source)+" FOR TABLES IN SCHEMA shop")
	drain(t, s.DSN, "shop")
	version := serverVersion(t, reference)
	for _, c := range append(psqlEqual[:len(psqlEqual):len(psqlEqual)], clientStatements(t)...) {
		t.Run(c, func(t *testing.T) {
			if version != "15" && (strings.HasPrefix(c, `\`) || strings.Contains(c, "constraint")) { // NOT NULL is one from 18 on
				t.Skipf("SKIPPED: PostgreSQL %s has another catalog", version)
			}
			got, want := runPsql(t, psql, s.DSN, c), runPsql(t, psql, reference, c)
			if got != want {
				t.Errorf("skipprd says\n%s\npostgresql says\n%s", got, want)
			}
		})
	}
	for c, words := range psqlRuns {
		t.Run(c, func(t *testing.T) {
			got := runPsql(t, psql, s.DSN, c)
			if strings.Contains(got, "ERROR") {
				t.Errorf("skipprd says\n%s", got)
			}
			for _, w := range words {
				if !strings.Contains(got, w) {
					t.Errorf("%q is missing in\n%s", w, got)
				}
			}
		})
	}
}

// clientStatements are statements that drivers and tools send to look around.
func clientStatements(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/clients.sql")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			out = append(out, line)
		}
	}
	return out
}

// findPsql is the path of psql 15, whose statements fit the server that we are.
func findPsql(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/15/bin/psql")
	if p, err := exec.LookPath("psql"); err == nil {
		found = append(found, p)
	}
	for _, p := range found {
		if out, err := exec.Command(p, "--version").Output(); err == nil && strings.Contains(string(out), " 15.") {
			return p
		}
	}
	t.Skip("SKIPPED, NO PSQL 15")
	return ""
}

func serverVersion(t *testing.T, dsn string) string {
	t.Helper()
	v, err := harness.Text(dsn, "SHOW server_version")
	if err != nil {
		t.Fatal(err)
	}
	major, _, _ := strings.Cut(v, ".")
	return major
}

// caret is psql's mark under the place of an error.
var caret = regexp.MustCompile(`(?m)^(LINE \d+: .*|\s+\^)\n?`)

// runPsql returns what psql prints for a command, both streams.
func runPsql(t *testing.T, psql, dsn, command string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), psql, "-X", "-d", dsn, "-c", command)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PAGER=cat", "PGCLIENTENCODING=UTF8")
	out, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	return caret.ReplaceAllString(strings.ReplaceAll(string(out), cfg.Database, "DATABASE"), "")
}
