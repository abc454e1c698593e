package ruleutils_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/syscat/ruleutils"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// facts reads the catalog's files.
func facts(t testing.TB) *ruleutils.Facts {
	t.Helper()
	columns := map[string][]string{}
	for _, f := range lines(t, "../data/shapes.tsv") {
		p := strings.Split(f, "\t")
		if p[0] == "pg_catalog" {
			columns[p[1]] = append(columns[p[1]], p[4])
		}
	}
	out, err := ruleutils.NewFacts(func(name string) ([]string, [][]*string, error) {
		var rows [][]*string
		for _, l := range lines(t, "../data/"+name+".tsv") {
			var row []*string
			for _, c := range strings.Split(l, "\t") {
				if c == `\N` {
					row = append(row, nil)
				} else {
					row = append(row, &c)
				}
			}
			rows = append(rows, row)
		}
		return columns[name], rows, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// names are the relations of a database.
type names map[[2]string][]ruleutils.Column

func (n names) Relation(schema, name string) (string, []ruleutils.Column, bool) {
	path := []string{schema}
	if schema == "" {
		path = []string{"pg_catalog", "public"}
	}
	for _, s := range path {
		if c, ok := n[[2]string{s, name}]; ok {
			return s, c, true
		}
	}
	return "", nil, false
}

func (names) TypeName(n *pg.TypeName) (uint32, int32, error) {
	t, err := pgsql.ResolveTypeName(n)
	return t.OID, t.Mod, err
}

func (names) EnumName(uint32) string { return "" }

// database makes the tables of the corpus on a PostgreSQL.
func database(t *testing.T) (*pgx.Conn, *ruleutils.Deparser) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Start(t).CreateDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	for _, sql := range append(lines(t, "testdata/schema.sql"), "SET timezone = 'UTC'") {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	found := names{}
	rows, err := conn.Query(t.Context(), `SELECT n.nspname, c.relname, a.attname, a.atttypid, a.atttypmod FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v') ORDER BY c.oid, a.attnum`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var k [2]string
		var c ruleutils.Column
		if err := rows.Scan(&k[0], &k[1], &c.Name, &c.Type, &c.Mod); err != nil {
			t.Fatal(err)
		}
		found[k] = append(found[k], c)
	}
	return conn, &ruleutils.Deparser{Facts: facts(t), Names: found, Path: []string{"pg_catalog", "public"}, Zone: "UTC"}
}

// TestViewsAsPostgres: the definition of a view is shown as PostgreSQL does. What begins with "~"
// is refused, and shown as it was written.
func TestViewsAsPostgres(t *testing.T) {
	conn, d := database(t)
	equal, refused := 0, 0
	for _, sql := range lines(t, "testdata/views.sql") {
		sql, gap := strings.CutPrefix(sql, "~ ")
		want := [2]string{}
		columns := viewOn(t, conn, sql, &want)
		if columns == nil {
			continue
		}
		tree, err := pg.Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		for i, pretty := range []bool{false, true} {
			got, err := d.View(tree.Stmts[0].Stmt.GetSelectStmt(), columns, pretty)
			switch {
			case err != nil && gap:
				refused++
			case err != nil:
				t.Errorf("%s: %v", sql, err)
			case gap:
				t.Errorf("%s is shown by now:\n%s", sql, got)
			case got != want[i]:
				t.Errorf("%s (pretty %v)\n-- PostgreSQL:\n%s\n-- ours:\n%s", sql, pretty, want[i], got)
			default:
				equal++
				again(t, d, got, columns, pretty)
			}
		}
	}
	t.Logf("%d equal, %d refused", equal, refused)
}

// viewOn makes a view on PostgreSQL, and returns the names of its columns.
func viewOn(t *testing.T, conn *pgx.Conn, sql string, want *[2]string) (columns []string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), "CREATE VIEW v AS "+sql); err != nil {
		t.Errorf("%s: %v", sql, err)
		return nil
	}
	err := conn.QueryRow(t.Context(), `SELECT pg_get_viewdef('v'::regclass), pg_get_viewdef('v'::regclass, true),
		(SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'v'::regclass)`).Scan(&want[0], &want[1], &columns)
	if err == nil {
		_, err = conn.Exec(t.Context(), "DROP VIEW v")
	}
	if err != nil {
		t.Fatal(err)
	}
	return columns
}

// again checks that what is shown can be read, and is in the end shown as it is read: PostgreSQL,
// too, writes some things otherwise when it reads what it wrote.
func again(t *testing.T, d *ruleutils.Deparser, text string, columns []string, pretty bool) {
	t.Helper()
	for range 3 {
		tree, err := pg.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		got, err := d.View(tree.Stmts[0].Stmt.GetSelectStmt(), columns, pretty)
		if err != nil || got == text {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			return
		}
		text = got
	}
	t.Errorf("%s\n-- is shown otherwise each time", text)
}

// TestExpressionsAsPostgres: defaults and conditions of checks are shown as PostgreSQL does. A line
// has the type of a column, "|", and an expression: the default of the column, or, for the type
// "check", a condition.
func TestExpressionsAsPostgres(t *testing.T) {
	conn, d := database(t)
	_, columns, _ := d.Names.Relation("public", "c")
	for _, line := range lines(t, "testdata/expressions.txt") {
		typ, sql, _ := strings.Cut(line, "|")
		typ, gap := strings.CutPrefix(typ, "~ ")
		var want [2]string
		var to ruleutils.Column
		of := columns
		tree, err := pg.Parse("SELECT " + sql)
		if err != nil {
			t.Fatal(err)
		}
		if typ == "check" {
			_, err = conn.Exec(t.Context(), "CREATE TABLE x (LIKE c); ALTER TABLE x ADD CONSTRAINT k CHECK ("+sql+")")
			if err == nil {
				err = conn.QueryRow(t.Context(), "SELECT pg_get_expr(conbin, conrelid), pg_get_expr(conbin, conrelid, true) FROM pg_constraint WHERE conname = 'k'").Scan(&want[0], &want[1])
			}
		} else {
			of = nil
			_, err = conn.Exec(t.Context(), "CREATE TABLE x (a "+typ+" DEFAULT "+sql+")")
			if err == nil {
				err = conn.QueryRow(t.Context(), `SELECT pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true), a.atttypid, a.atttypmod FROM pg_attrdef d
					JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = 'x'::regclass`).Scan(&want[0], &want[1], &to.Type, &to.Mod)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, err := conn.Exec(t.Context(), "DROP TABLE x"); err != nil {
			t.Fatal(err)
		}
		for i, pretty := range []bool{false, true} {
			got, err := d.Expression(tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val, of, to, pretty)
			switch {
			case gap && err == nil:
				t.Errorf("%s is shown by now: %s", line, got)
			case gap:
			case err != nil || got != want[i]:
				t.Errorf("%s (pretty %v)\n-- PostgreSQL: %s\n-- ours:       %s %v", line, pretty, want[i], got, err)
			}
		}
	}
}
