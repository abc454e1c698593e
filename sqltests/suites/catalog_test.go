package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// side is a server whose catalog is looked at, with the oids of what the test made.
type side struct {
	conn *pgconn.PgConn
	oids map[string]string // by name
}

func newSide(t *testing.T, dsn, database string, statements []string) *side {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	s := &side{conn: conn, oids: map[string]string{"database": database}}
	for _, sql := range statements {
		if _, err := s.run(t, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	rows, err := s.run(t, `SELECT oid::int8, relname FROM pg_class WHERE relnamespace IN ('public'::regnamespace, 'shop'::regnamespace)
		UNION ALL SELECT oid::int8, 'con:' || conname FROM pg_constraint WHERE connamespace IN ('public'::regnamespace, 'shop'::regnamespace)
		UNION ALL SELECT oid::int8, 'type:' || typname FROM pg_type WHERE typnamespace IN ('public'::regnamespace, 'shop'::regnamespace)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows.values {
		oid, name, _ := strings.Cut(r, "|")
		s.oids[name] = oid
	}
	return s
}

// answer is what a query gives: its columns' names and types, and its rows as text.
type answer struct {
	columns []string
	values  []string
	cells   [][]string
}

func (s *side) run(t *testing.T, sql string) (*answer, error) {
	t.Helper()
	results, err := s.conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		return nil, err
	}
	out := &answer{}
	for _, r := range results {
		for _, f := range r.FieldDescriptions {
			out.columns = append(out.columns, fmt.Sprintf("%s %d %d", f.Name, f.DataTypeOID, f.TypeModifier))
		}
		for _, row := range r.Rows {
			cells := make([]string, len(row))
			for i, c := range row {
				cells[i] = string(c)
				if c == nil {
					cells[i] = "∅"
				}
			}
			out.cells = append(out.cells, cells)
			out.values = append(out.values, strings.Join(cells, "|"))
		}
	}
	return out, nil
}

var placeholder = regexp.MustCompile(`\{(database|(?:con:|type:)?[A-Za-z_][A-Za-z_ ]*)\}`)

// ask runs a query of the list: the oids in it are this server's, those of the answer
// are shown as names, and the order of the rows is nothing that is compared.
func (s *side) ask(t *testing.T, query string) string {
	t.Helper()
	sql := placeholder.ReplaceAllStringFunc(query, func(m string) string {
		if v, ok := s.oids[strings.Trim(m, "{}")]; ok {
			return v
		}
		return m
	})
	got, err := s.run(t, sql)
	if err != nil {
		if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) {
			return "error " + pgErr.Code
		}
		return err.Error()
	}
	names := map[string]string{}
	for name, oid := range s.oids {
		names[oid] = name
	}
	var rows []string
	for _, row := range got.cells {
		for i, c := range row {
			if name, ok := names[c]; ok {
				row[i] = "{" + name + "}"
			}
		}
		rows = append(rows, strings.Join(row, "|"))
	}
	slices.Sort(rows)
	return strings.Join(got.columns, ", ") + "\n" + strings.Join(rows, "\n")
}

// catalogSides makes the same tables on a PostgreSQL 15 and on us.
func catalogSides(t *testing.T) (postgres, ours *side) {
	t.Helper()
	text, err := os.ReadFile("catalog/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	for sql := range strings.Lines(string(text)) {
		if strings.TrimSpace(sql) != "" {
			statements = append(statements, sql)
		}
	}
	dsn := pgtest.Start(t).CreateDatabase(t)
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	postgres = newSide(t, dsn, cfg.Database, statements)
	if v := postgres.conn.ParameterStatus("server_version"); !strings.HasPrefix(v, "15.") {
		t.Skipf("SKIPPED, the catalog is that of PostgreSQL 15, not %s", v)
	}
	s := harness.New(t, t.TempDir())
	s.Start()
	return postgres, newSide(t, s.DSN, "lake", statements)
}

// TestCatalogAsPostgres: every relation of pg_catalog and information_schema has
// PostgreSQL's columns, in name, type and order, and what clients ask of them has
// PostgreSQL's answers.
func TestCatalogAsPostgres(t *testing.T) {
	postgres, ours := catalogSides(t)
	relations, err := postgres.run(t, `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range relations.values {
		query := "SELECT * FROM " + name + " LIMIT 0"
		if want, got := postgres.ask(t, query), ours.ask(t, query); got != want {
			t.Errorf("%s\n  PostgreSQL: %s\n  ours:       %s", name, want, got)
		}
	}
	text, err := os.ReadFile("catalog/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for query := range strings.Lines(string(text)) {
		query = strings.TrimSpace(query)
		if query == "" || strings.HasPrefix(query, "--") {
			continue
		}
		count++
		if want, got := postgres.ask(t, query), ours.ask(t, query); got != want {
			t.Errorf("%s\n  PostgreSQL: %.1500s\n  ours:       %.1500s", query, want, got)
		}
	}
	t.Logf("%d relations, %d queries", len(relations.values), count)
}
