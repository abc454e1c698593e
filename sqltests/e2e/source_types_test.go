package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// answerOf is what a server says to a query: its rows as text, or the code of its error.
func answerOf(t *testing.T, conn *pgx.Conn, sql string) (rows, code string) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return "", e.Code
	} else if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var b strings.Builder
	for _, r := range results {
		for _, row := range r.Rows {
			for _, v := range row {
				if v == nil {
					b.WriteString("null|")
				} else {
					fmt.Fprintf(&b, "%q|", v)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String(), ""
}

// announcedOf are the columns that a query returns: the names of their types, sizes, modifiers.
func announcedOf(t *testing.T, conn *pgx.Conn, sql string) (out []string) {
	t.Helper()
	d, err := conn.PgConn().Prepare(t.Context(), "", sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d.Fields {
		var name string
		if err := conn.QueryRow(t.Context(), "SELECT typname FROM pg_type WHERE oid = $1", f.DataTypeOID).Scan(&name); err != nil {
			t.Fatalf("type %d of column %s: %v", f.DataTypeOID, f.Name, err)
		}
		oid := f.DataTypeOID
		if oid >= 16384 {
			oid = 0
		}
		out = append(out, fmt.Sprint(f.Name, " ", oid, " ", name, " ", f.DataTypeSize, " ", f.TypeModifier))
	}
	return out
}

// TestSourceTypes: values of enums, of citext, and of other types of a source's own compare here
// as they do there, or are refused; and they are announced as they are there.
func TestSourceTypes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	source := pgtest.Start(t).CreateDatabase(t)
	script, err := os.ReadFile("testdata/source_types.sql")
	if err != nil {
		t.Fatal(err)
	}
	harness.Exec(t, source, strings.Split(strings.TrimSpace(string(script)), ";\n")...)
	server := harness.New(t, t.TempDir())
	server.Start()
	harness.Exec(t, server.DSN, fmt.Sprintf("CREATE PIPELINE shop FROM POSTGRES %s FOR ALL TABLES", quoted(source)), "SYNC PIPELINE shop")
	there, here := harness.Connect(t, source), harness.Connect(t, server.DSN)
	if _, err := here.Exec(t.Context(), "SET search_path = shop"); err != nil {
		t.Fatal(err)
	}

	if want, got := announcedOf(t, there, "SELECT * FROM people"), announcedOf(t, here, "SELECT * FROM people"); fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("announced\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	list, err := os.ReadFile("testdata/source_types.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		expect, sql, _ := strings.Cut(strings.TrimSpace(line), " ")
		if expect == "#" {
			continue
		}
		rows, code := answerOf(t, here, sql)
		if expect != "same" {
			if code != expect {
				t.Errorf("%s:\n got %s %s\nwant %s", sql, code, rows, expect)
			}
			continue
		}
		if wantRows, wantCode := answerOf(t, there, sql); rows != wantRows || code != wantCode {
			t.Errorf("%s:\n got %s %s\nwant %s %s", sql, code, rows, wantCode, wantRows)
		}
	}
}

// TestSourceTypesChange follows types of a source that change while their pipeline runs, and over
// restarts: labels added and renamed, types renamed, moved, dropped; what stays when the pipeline
// goes.
func TestSourceTypesChange(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	l.at("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE SCHEMA crm", "CREATE TABLE one (id int PRIMARY KEY, v mood); INSERT INTO one VALUES (1, 'sad'), (2, 'ok')")
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, "CREATE TYPE public.mood AS ENUM ('x')",
		fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s SCHEMA 'public' FOR ALL TABLES", quoted(l.source)), "SYNC PIPELINE life")
	const order = "SELECT string_agg(v::text, ',' ORDER BY v DESC) FROM public.one"
	oid := func() string {
		t.Helper()
		got, err := harness.Text(l.server.DSN, "SELECT atttypid::text FROM pg_attribute WHERE attrelid = 'public.one'::regclass AND attname = 'v'")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	l.eventually(order, "ok,sad")
	l.eventually("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'public.one'::regclass AND attname = 'v'", "mood_life")
	known := oid()

	l.at("ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'", "ALTER TYPE mood ADD VALUE 'low' BEFORE 'sad'", "INSERT INTO one VALUES (3, 'meh'), (4, 'low')")
	l.eventually(order, "ok,meh,sad,low")
	l.at("ALTER TYPE mood RENAME VALUE 'meh' TO 'fine'")
	l.eventually(order, "ok,fine,sad,low")
	l.server.Kill()
	l.at("ALTER TYPE mood RENAME TO feeling; ALTER TYPE feeling SET SCHEMA crm", "ALTER TYPE crm.feeling ADD VALUE 'best'", "INSERT INTO one VALUES (5, 'best')")
	l.server.Start()
	l.eventually(order, "best,ok,fine,sad,low")
	l.eventually("SELECT string_agg(typname, ',' ORDER BY typname) FROM pg_type WHERE typtype = 'e'", "feeling,mood")
	if now := oid(); now != known {
		t.Errorf("the type was %s, and is %s", known, now)
	}

	harness.Exec(t, l.server.DSN, "CREATE VIEW seen AS SELECT v FROM public.one WHERE v > 'sad'", "CREATE MATERIALIZED VIEW kept AS SELECT v FROM public.one")
	l.at("ALTER TYPE crm.feeling RENAME TO sense")
	l.eventually("SELECT string_agg(v::text, ',' ORDER BY v) FROM seen", "fine,ok,best")
	for _, refused := range []string{
		"ALTER TYPE public.feeling ADD VALUE 'mine'", "DROP TYPE public.feeling", "COMMENT ON TYPE public.feeling IS 'x'",
		"CREATE TABLE mine (v public.feeling)", "CREATE TABLE mine AS SELECT v FROM public.one",
	} {
		if _, err := harness.Text(l.server.DSN, refused); err == nil {
			t.Errorf("%s: is not refused", refused)
		}
	}
	harness.Exec(t, l.server.DSN, "DROP VIEW seen")
	l.at("ALTER TABLE one ALTER v TYPE text", "UPDATE one SET v = v WHERE id = 1")
	l.eventually("SELECT state FROM pg_stat_pipeline_table WHERE table_name = 'one'", "stopped")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE public.one")
	l.eventually("SELECT string_agg(v, ',' ORDER BY v) FROM public.one", "best,fine,low,ok,sad")
	l.eventually("SELECT string_agg(v::text, ',' ORDER BY v DESC) FROM kept", "best,ok,fine,sad,low")
	harness.Exec(t, l.server.DSN, "DROP PIPELINE life CASCADE")
	l.eventually("SELECT count(*) FROM pg_class WHERE relname IN ('one', 'kept')", "0")
}
