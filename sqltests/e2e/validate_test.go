package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// missing runs VALIDATE CONNECTION, or a dry run, and returns the SQL that mends what is
// not well.
func missing(t *testing.T, dsn, sql string) (fixes, failed []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f["ok"] == true {
			continue
		}
		failed = append(failed, fmt.Sprint(f["check"], f["name"], ": ", f["detail"]))
		if fix, ok := f["fix"].(string); ok {
			fixes = append(fixes, fix)
		}
	}
	return fixes, failed
}

// A role with nothing but LOGIN: one report names everything, its SQL mends everything,
// and then the pipeline runs, without a superuser, with a filter.
func TestValidateThenRun(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	source := server.CreateDatabase(t)
	role := "login_only_" + strings.ReplaceAll(dbName(t, source), "-", "_")
	harness.Exec(t, source, "CREATE SCHEMA app", "CREATE TABLE app.orders (id int PRIMARY KEY, v text)", "INSERT INTO app.orders SELECT i, 'v' || i FROM generate_series(1, 10) i",
		"CREATE TABLE app.hidden (id int PRIMARY KEY)", "INSERT INTO app.hidden VALUES (1), (2)", "ALTER TABLE app.hidden ENABLE ROW LEVEL SECURITY",
		"CREATE TABLE app.notes (n int)", "CREATE UNLOGGED TABLE app.cache (id int PRIMARY KEY)", "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { harness.Exec(t, source, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	s := harness.New(t, dataDir(t))
	s.Start()
	harness.Exec(t, s.DSN, fmt.Sprintf("CREATE CONNECTION shop TO POSTGRES (HOST '%s', PORT %d, DATABASE '%s', USER '%s', SSLMODE 'disable')",
		server.Host, server.Port, dbName(t, source), role))
	const plan = "CREATE PIPELINE shop FROM shop FOR ALL TABLES WITH (dry_run = true)"
	fixes, failed := missing(t, s.DSN, "VALIDATE CONNECTION shop")
	if _, planned := missing(t, s.DSN, plan); len(fixes) < 6 || len(fixes) != len(failed) || len(planned) < len(failed) {
		t.Fatalf("fixes %q\nof %q\nplan %q", fixes, failed, planned)
	}
	harness.Exec(t, source, fixes...)
	for _, sql := range []string{"VALIDATE CONNECTION shop", plan} {
		if _, failed := missing(t, s.DSN, sql); len(failed) > 0 {
			t.Fatalf("%s: still missing %q", sql, failed)
		}
	}
	harness.Exec(t, s.DSN, "CREATE PIPELINE shop FROM shop FOR ALL TABLES")
	harness.Exec(t, source, "UPDATE app.orders SET v = 'new' WHERE id < 3", "INSERT INTO app.notes VALUES (1), (1)", "INSERT INTO app.hidden VALUES (3)", "INSERT INTO app.cache VALUES (1)")
	drain(t, s.DSN, "shop")
	const all = "SELECT id, v FROM %s.orders UNION ALL SELECT id, '' FROM %[1]s.hidden UNION ALL SELECT n, 'n' FROM %[1]s.notes UNION ALL SELECT id, 'c' FROM %[1]s.cache ORDER BY 1, 2"
	if n, err := harness.Compare(t.Context(), source, fmt.Sprintf(all, "app"), s.DSN, fmt.Sprintf(all, "shop")); err != nil || n != 16 {
		t.Fatalf("%d rows, %v\n%s", n, err, s.Log(30))
	}
}

func dbName(t *testing.T, dsn string) string {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c.Database
}

// VERIFY compares the part of a table that is taken in: rows that satisfy the condition,
// by the columns that there are.
func TestVerifyPart(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE p (id int PRIMARY KEY, v text, ssn text) PARTITION BY RANGE (id)", "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (500)",
		"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (2000)", "INSERT INTO p SELECT i, 'v' || i, 's' || i FROM generate_series(0, 999) i")
	s := harness.New(t, dataDir(t))
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE part FROM POSTGRES "+quoted(source)+" FOR TABLE p EXCEPT (ssn) WHERE (id % 3 = 0 AND p.id < 900)")
	harness.Exec(t, source, "UPDATE p SET v = 'new', ssn = 'new' WHERE id % 2 = 0", "UPDATE p SET id = id + 1000 WHERE id IN (0, 3, 600, 601)", "UPDATE p SET id = 603 WHERE id = 602 AND false", "DELETE FROM p WHERE id BETWEEN 30 AND 40")
	drain(t, s.DSN, "part")
	conn, err := pgx.Connect(t.Context(), s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	lines := verified(t, conn, "VERIFY PIPELINE part")
	if bad := differing(lines); len(lines) == 0 || len(bad) > 0 {
		t.Fatalf("%d lines, differing %q", len(lines), bad)
	}
	const rows = "SELECT id, v FROM %s.p WHERE id %% 3 = 0 AND id < 900 ORDER BY id"
	if n, err := harness.Compare(t.Context(), source, fmt.Sprintf(rows, "public"), s.DSN, fmt.Sprintf(rows, "part")); err != nil || n < 280 {
		t.Fatalf("%d rows, %v", n, err)
	}
	if n, err := harness.Text(s.DSN, "SELECT count(*) FROM part.p WHERE id % 3 <> 0 OR id >= 900"); err != nil || n != "0" {
		t.Fatalf("%s rows outside of the part, %v", n, err)
	}
}
