package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// loginOnly makes a role that may log in and nothing else, and returns an address for it.
func (r *rig) loginOnly() string {
	r.Helper()
	role := "Cdc_" + r.name
	r.exec(`DROP ROLE IF EXISTS "`+role+`"`, `CREATE ROLE "`+role+`" LOGIN`)
	r.Cleanup(func() { r.exec(`DROP OWNED BY "`+role+`"`, `DROP ROLE "`+role+`"`) })
	return strings.Replace(r.dsn, "user=postgres", "user="+role, 1)
}

// findings is a report.
func (r *rig) findings() []ingest.Finding {
	r.Helper()
	out, err := r.src.Validate(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// mend runs the SQL of a report and returns the checks that had failed, each once.
func (r *rig) mend() []string {
	r.Helper()
	var failed []string
	for _, f := range r.findings() {
		if f.OK {
			if f.Fix != "" {
				r.Errorf("%s is well and has a fix: %s", f.Check, f.Fix)
			}
			continue
		}
		if f.Detail == "" || f.Fix == "" {
			r.Errorf("%s: detail %q, fix %q", f.Check, f.Detail, f.Fix)
		}
		if !slices.Contains(failed, f.Check) {
			failed = append(failed, f.Check)
		}
		r.exec(f.Fix)
	}
	return failed
}

// Everything that a schema may have in the way is in one report, each with the SQL
// that mends it.
func TestValidateMendsEverything(t *testing.T) {
	r := newRig(t,
		`CREATE SCHEMA "Odd"`, `CREATE TABLE "Odd"."T" (id int PRIMARY KEY)`, "CREATE UNLOGGED TABLE u (id int PRIMARY KEY)",
		"CREATE TABLE silent (id int PRIMARY KEY)", "ALTER TABLE silent REPLICA IDENTITY NOTHING",
		"CREATE UNLOGGED TABLE both_ (id int PRIMARY KEY)", "ALTER TABLE both_ REPLICA IDENTITY NOTHING",
		"CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)", "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
		"CREATE UNLOGGED TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)", "ALTER TABLE p1 REPLICA IDENTITY NOTHING",
		"CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30)", "ALTER TABLE p3 REPLICA IDENTITY USING INDEX p3_pkey",
		"CREATE TABLE q (id int NOT NULL, k int NOT NULL, PRIMARY KEY (id, k)) PARTITION BY RANGE (id)", "CREATE UNIQUE INDEX q_id ON q (id)",
		"CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (0) TO (10)", "ALTER TABLE q REPLICA IDENTITY USING INDEX q_id",
		"CREATE TABLE q2 PARTITION OF q FOR VALUES FROM (10) TO (20)", "ALTER TABLE q2 REPLICA IDENTITY NOTHING",
		"CREATE TABLE rls (id int PRIMARY KEY)", "INSERT INTO rls VALUES (1), (2)", "ALTER TABLE rls ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY one ON rls USING (id = 1)", "CREATE TABLE part (id int PRIMARY KEY, secret text)",
		"CREATE FUNCTION public.half(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 / 2; END'", "REVOKE EXECUTE ON FUNCTION public.half(int) FROM public",
		"CREATE TABLE halves (id int PRIMARY KEY, h int GENERATED ALWAYS AS (half(id)) STORED, plain int)",
		"CREATE TABLE keyless (id int, g int GENERATED ALWAYS AS (id * 2) STORED, n numeric)", "CREATE VIEW v AS SELECT 1", "CREATE TABLE heir () INHERITS (keyless)",
		"CREATE EXTENSION postgres_fdw", "CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw", "CREATE FOREIGN TABLE f (id int) SERVER s")
	dsn := r.loginOnly()
	role := `"Cdc_` + r.name + `"`
	r.exec("GRANT SELECT (id) ON part TO "+role, "GRANT SELECT ON rls TO "+role)
	r.src = r.openAs(dsn)
	want := []string{
		"replication right", "schema", "table Odd.T", "table public.both_", "table public.halves", "table public.heir", "table public.keyless", "table public.p", "table public.part", "table public.q",
		"table public.rls", "table public.silent", "table public.u", "publication",
	}
	if got := r.mend(); !slices.Equal(got, want) {
		t.Fatalf("missing\n%v\nwant\n%v", got, want)
	}
	if got := r.mend(); len(got) > 0 {
		t.Fatalf("still missing: %v", got)
	}
	var said []string
	for _, f := range r.findings() {
		if f.Check == "table public.keyless" || strings.HasPrefix(f.Check, "table public.f") {
			said = append(said, f.Detail)
		}
	}
	if len(said) != 2 || !strings.Contains(said[0], "left out: it is a foreign table") || !strings.Contains(said[1], "no key") ||
		!strings.Contains(said[1], "generated") || !strings.Contains(said[1], "its own rows only") || !strings.Contains(said[1], "exact text: n") {
		t.Errorf("warnings %q", said)
	}
	r.sel = catalog.TableSelection{AllTables: true, Except: []string{"f"}}
	r.begin()
	if rows := r.copy(r.backfill(), "rls"); !slices.Equal(rows, []string{"1", "2"}) {
		t.Errorf("under row security: %v", rows)
	}
}

// Rows that row security hides are never left out silently.
func TestRowSecurityHidesNothing(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", "ALTER TABLE a ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY one ON a USING (id = 1)")
	dsn := r.loginOnly()
	r.exec(`GRANT SELECT ON a TO "Cdc_` + r.name + `"`)
	src := r.openAs(dsn)
	tables, err := src.Discover(t.Context(), catalog.TableSelection{AllTables: true})
	if err != nil || len(tables) != 1 || !strings.Contains(tables[0].Unsupported, "row security") || !strings.Contains(tables[0].Hint, "BYPASSRLS") {
		t.Fatalf("%+v, %v", tables, err)
	}
	for name, value := range map[string]string{"row_security": "off"} {
		if sessionSettings[name] != value {
			t.Errorf("sessions have %s = %s", name, sessionSettings[name])
		}
	}
}

// A role that cannot even get in is told what it lacks.
func TestValidateWithoutConnect(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	dsn := r.loginOnly()
	role := `"Cdc_` + r.name + `"`
	database := r.ask("SELECT current_database()::text")
	for _, sql := range []string{"REVOKE CONNECT ON DATABASE " + database + " FROM PUBLIC", "ALTER ROLE " + role + " NOLOGIN"} {
		r.exec(sql)
		r.src = r.openAs(dsn)
		if got := r.mend(); !slices.Equal(got, []string{"connect"}) {
			t.Errorf("after %s: %v", sql, got)
		}
		if got := r.findings(); len(got) < 5 {
			t.Errorf("after the fix of %s: %v", sql, got)
		}
	}
	r.src = r.openAs("host=127.0.0.1 port=1 user=postgres dbname=gone password=secret connect_timeout=2")
	if got := r.findings(); len(got) != 1 || got[0].OK || strings.Contains(got[0].Detail, "secret") {
		t.Errorf("nobody there: %+v", got)
	}
}

// A publication of somebody else's is completed by one report's SQL.
func TestValidateForeignPublication(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v int)", "CREATE TABLE b (id int PRIMARY KEY)", "CREATE TABLE n (id int)")
	name := "skippr_" + r.name
	r.exec("CREATE PUBLICATION " + name + " FOR TABLE a (id) WITH (publish = 'insert')")
	if got := r.mend(); !slices.Equal(got, []string{"publication"}) {
		t.Fatalf("missing: %v", got)
	}
	if got := r.mend(); len(got) > 0 {
		t.Fatalf("still missing: %v", got)
	}
	r.begin()
	if n := r.ask("SELECT count(*)::text FROM pg_publication"); n != "2" {
		t.Errorf("%s publications", n)
	}
}

// Settings are mended by the report's SQL and a restart.
func TestValidateSettings(t *testing.T) {
	server := pgtest.StartPrivate(t, "wal_level = replica", "max_replication_slots = 0", "max_wal_senders = 0", "max_slot_wal_keep_size = '1GB'")
	r := newRig(t)
	r.server, r.dsn = server.Server, server.DSN
	r.src = r.openAs(r.dsn)
	if got := r.mend(); !slices.Equal(got, []string{"wal_level", "max_replication_slots", "max_wal_senders"}) {
		t.Fatalf("missing: %v", got)
	}
	server.Control(t, "restart", "-m", "fast")
	r.src = r.openAs(r.dsn)
	if got := r.mend(); len(got) > 0 {
		t.Fatalf("still missing: %v", got)
	}
	if !slices.ContainsFunc(r.findings(), func(f ingest.Finding) bool {
		return f.OK && strings.Contains(f.Detail, "max_slot_wal_keep_size is 1GB")
	}) {
		t.Error("no word of max_slot_wal_keep_size")
	}
}
