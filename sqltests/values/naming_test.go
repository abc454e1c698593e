package values

import (
	"bytes"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestNames has names, defaults and labels in a database's catalog that UTF-8 has no
// equivalent of. Each keeps only its own table from being taken in, with a reason that says
// what helps, and others go on; those that UTF-8 has arrive as they are.
func TestNames(t *testing.T) {
	for _, c := range []struct{ encoding, bad, good string }{
		{"WIN1252", `81`, "größe €"},
		{"EUC_TW", `8ea7a1a1`, "中文"},
	} {
		t.Run(c.encoding, func(t *testing.T) { names(t, c.encoding, c.bad, c.good) })
	}
}

func names(t *testing.T, encoding, bad, good string) {
	source := pgtest.Start(t).CreateDatabase(t, "ENCODING '"+encoding+"' TEMPLATE template0 LOCALE 'C'")
	// The statements are bytes of the database's own encoding where they have BAD.
	raw := func(statements ...string) {
		t.Helper()
		for i, sql := range statements {
			statements[i] = "DO $do$ BEGIN EXECUTE convert_from(convert_to($a$" + strings.ReplaceAll(sql, "BAD", "$a$, getdatabaseencoding()) || '\\x"+bad+
				"'::bytea || convert_to($a$") + "$a$, getdatabaseencoding()), getdatabaseencoding()); END $do$"
		}
		harness.Exec(t, source+" client_encoding=UTF8", statements...)
	}
	harness.Exec(t, source+" client_encoding=UTF8", `CREATE TABLE "`+good+`" (id int PRIMARY KEY, "`+good+`" text)`, `INSERT INTO "`+good+`" VALUES (1, 'x')`,
		"CREATE TABLE plain (id int PRIMARY KEY, v text)", "INSERT INTO plain VALUES (1, 'x')", "CREATE SCHEMA other",
		"CREATE TABLE other.t (id int PRIMARY KEY)", "INSERT INTO other.t VALUES (1)", "CREATE TABLE listed (id int PRIMARY KEY, v text)")
	raw(`CREATE TABLE "aBADb" (id int PRIMARY KEY)`, `CREATE TABLE badcolumn (id int PRIMARY KEY, "cBAD" int)`, `INSERT INTO badcolumn VALUES (1, 2)`, `CREATE TABLE badkey ("kBAD" int PRIMARY KEY)`,
		`CREATE SCHEMA "sBAD"`, `CREATE TABLE "sBAD".t (id int PRIMARY KEY)`, `CREATE TYPE "eBAD" AS ENUM ('x', 'yBAD')`,
		`CREATE DOMAIN "dBAD" AS int DEFAULT 7`, `CREATE TABLE typed (id int PRIMARY KEY, e "eBAD", d "dBAD", v text DEFAULT 'zBAD')`,
		`INSERT INTO typed VALUES (1, 'x', 2, 'y')`, `COMMENT ON TABLE typed IS 'BAD'`,
		`CREATE TABLE computed (id int PRIMARY KEY, v text, g text GENERATED ALWAYS AS (v || 'BAD') STORED)`, `INSERT INTO computed VALUES (1, 'x')`,
		`CREATE TABLE still (id int PRIMARY KEY)`, `CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)`, `CREATE TABLE "pBAD" PARTITION OF parts DEFAULT`)
	s := harness.New(t, t.TempDir())
	s.Start()
	defer s.Stop()
	harness.Exec(t, s.DSN, "CREATE PIPELINE p FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE p UNTIL CAUGHT UP")
	expect := func(when string, want map[string]string) {
		t.Helper()
		for sql, want := range want {
			if got, err := harness.Text(s.DSN, sql); err != nil || got != want {
				t.Errorf("%s: %s: %q, want %q: %v", when, sql, got, want, err)
			}
		}
	}
	harness.Exec(t, s.DSN, "CREATE PIPELINE q FROM POSTGRES "+quote.Text(source)+` FOR TABLE badcolumn (id) WITH (slot_name = 'skippr_q')`, "SYNC PIPELINE q UNTIL CAUGHT UP")
	names := `SELECT string_agg(id || "` + good + `", ' ' ORDER BY id) FROM p."` + good + `"`
	expect("copied", map[string]string{
		names:                         "1x",
		"SELECT id || v FROM p.plain": "1x",
		"SELECT id || e::text || d || v FROM p.typed":                        "1x2y",
		"SELECT id || v FROM p.computed":                                     "1x",
		"SELECT id FROM q.badcolumn":                                         "1",
		"SELECT coalesce(string_agg(reason, ' '), '') FROM pg_stat_pipeline": "",
		"SELECT count(*) FROM pg_stat_pipeline_table WHERE pipeline = 'p' AND table_name IN ('computed', 'listed', 'plain', 'still', 't', 'typed', '" + good + "')": "7",
		"SELECT count(*) FROM pg_stat_pipeline_table WHERE pipeline = 'p' AND state = 'ready'":                                                                      "7",
	})
	report := findings(t, s.DSN, "CREATE PIPELINE r FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES WITH (dry_run, slot_name = 'skippr_r')")
	for _, want := range []string{
		`its name is not UTF-8, or has what UTF-8 has no equivalent of: "a\uFFFDb". Rename it`,
		`the name of a column is not UTF-8, or has what UTF-8 has no equivalent of: "c\uFFFD"`, `"k\uFFFD"`, `the name of its schema is not UTF-8, or has what UTF-8 has no equivalent of: "s\uFFFD"`,
		`its expression has what UTF-8 has no equivalent of`,
	} {
		if want = strings.ReplaceAll(want, `\uFFFD`, "\uFFFD"); !strings.Contains(report, want) {
			t.Errorf("the report lacks %s:\n%s", want, report)
		}
	}
	if report := findings(t, s.DSN, "CREATE PIPELINE r FROM POSTGRES "+quote.Text(source)+` FOR TABLE plain, "ꓘ" WITH (dry_run, slot_name = 'skippr_r')`); !strings.Contains(report, "the table does not exist at the source") {
		t.Errorf("a name that the encoding lacks: %s", report)
	}
	raw(`ALTER TABLE typed ADD COLUMN n text DEFAULT 'nBAD'`, `INSERT INTO typed VALUES (2, 'x', 2, 'y')`, `ALTER TABLE plain RENAME TO "plainBAD"`,
		`INSERT INTO "plainBAD" VALUES (2, 'y')`, `CREATE TABLE "newBAD" (id int PRIMARY KEY)`, `ALTER TABLE listed ADD COLUMN "lBAD" int`,
		`INSERT INTO listed VALUES (1, 'x', 1)`, `ALTER TABLE other.t RENAME TO u`, `INSERT INTO other.u VALUES (2)`)
	raw(`ALTER TABLE still RENAME TO "stillBAD"`)
	harness.Exec(t, source+" client_encoding=UTF8", `INSERT INTO "`+good+`" VALUES (2, 'y')`)
	harness.Exec(t, s.DSN, "SYNC PIPELINE p UNTIL CAUGHT UP")
	const stopped = "SELECT string_agg(table_name || ': ' || reason, '; ' ORDER BY table_name) FROM pg_stat_pipeline_table WHERE state = 'stopped'"
	expect("streamed", map[string]string{
		names:                           "1x 2y",
		"SELECT count(*) FROM p.t":      "2",
		"SELECT id FROM p.plain":        "1",
		"SELECT count(*) FROM p.listed": "0",
		stopped: `listed: the name of a column is not UTF-8, or has what UTF-8 has no equivalent of: "l` + "\uFFFD" + `"; ` +
			`parts: its name, or that of a partition, is not UTF-8, or has what UTF-8 has no equivalent of: public."p` + "\uFFFD" + `"; ` +
			`plain: its name is not UTF-8, or has what UTF-8 has no equivalent of: "plain` + "\uFFFD" + `"; ` +
			`typed: column "n" was added with a default that cannot be taken in at the source`,
	})
	if report := findings(t, s.DSN, "VERIFY PIPELINE p"); !strings.Contains(report, "p.still |  |  |  |  | skipped |  | its name, or that of a partition of it") {
		t.Errorf("VERIFY: %s", report)
	}
	raw(`ALTER TABLE "stillBAD" RENAME TO still`, `ALTER TABLE "pBAD" RENAME TO p`)
	harness.Exec(t, s.DSN, "ALTER PIPELINE p RESYNC TABLE p.parts")
	raw(`ALTER TABLE "plainBAD" RENAME TO plain`, `ALTER TABLE listed RENAME "lBAD" TO l`)
	harness.Exec(t, s.DSN, "ALTER PIPELINE p RESYNC TABLE p.plain", "ALTER PIPELINE p RESYNC TABLE p.listed", "ALTER PIPELINE p RESYNC TABLE p.typed",
		"SYNC PIPELINE p UNTIL CAUGHT UP")
	expect("mended", map[string]string{
		"SELECT string_agg(id || v, ' ' ORDER BY id) FROM p.plain":                                  "1x 2y",
		"SELECT id || v || l FROM p.listed":                                                         "1x1",
		"SELECT count(*) FROM skippr.dead_letters WHERE table_name = 'typed' AND column_name = 'n'": "2", // a value like any other
		"SELECT count(*) FROM pg_stat_pipeline_table WHERE state = 'stopped'":                       "0",
	})
}

// findings are the rows of a report, as text.
func findings(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn := harness.Connect(t, dsn)
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, r := range results {
		for _, row := range r.Rows {
			out.Write(bytes.Join(row, []byte(" | ")))
			out.WriteByte('\n')
		}
	}
	return out.String()
}
