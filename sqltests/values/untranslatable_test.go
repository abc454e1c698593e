package values

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestUntranslatable has texts that UTF-8 has no equivalent of, in the copy and in the
// stream, in values, keys, arrays and rows without a key: each is a dead letter until it is
// mended at the source, and everything else arrives.
func TestUntranslatable(t *testing.T) {
	for _, c := range []struct{ encoding, bad, digits, good string }{
		{"WIN1252", `\x81`, "81", "größe €"},
		{"EUC_TW", `\x8e\xa7\xa1\xa1`, "8ea7a1a1", "中文"},
	} {
		t.Run(c.encoding, func(t *testing.T) { untranslatable(t, c.encoding, c.bad, c.digits, c.good) })
	}
}

func untranslatable(t *testing.T, encoding, bad, digits, good string) {
	bad = "E'a" + bad + "b'"
	source := pgtest.Start(t).CreateDatabase(t, "ENCODING '"+encoding+"' TEMPLATE template0 LOCALE 'C'")
	raw, utf8 := source+" client_encoding=SQL_ASCII", source+" client_encoding=UTF8"
	harness.Exec(t, utf8, "CREATE TABLE t (id int PRIMARY KEY, v text, a text[])", "CREATE TABLE k (k text PRIMARY KEY, v int)",
		"CREATE TABLE r (v text)", "ALTER TABLE r REPLICA IDENTITY FULL",
		"INSERT INTO t VALUES (1, '"+good+"', ARRAY['"+good+"'])")
	harness.Exec(t, raw, "INSERT INTO t VALUES (2, "+bad+", NULL), (3, 'x', ARRAY[NULL, "+bad+"]), (4, 'x', NULL)",
		"INSERT INTO k VALUES ("+bad+", 1), ('x', 1)", "INSERT INTO r VALUES ("+bad+"), ('x')")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE p FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE p UNTIL CAUGHT UP")
	expect := func(when string, want map[string]string) {
		t.Helper()
		for sql, want := range want {
			if got, err := harness.Text(s.DSN, sql); err != nil || got != want {
				t.Errorf("%s: %s: %q, want %q: %v", when, sql, got, want, err)
			}
		}
	}
	const (
		rows    = "SELECT string_agg(id || ' ' || v, ', ' ORDER BY id) FROM p.t"
		keys    = "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM p.k"
		others  = "SELECT string_agg(v, ', ' ORDER BY v) FROM p.r"
		letters = "SELECT string_agg(table_name || ' ' || column_name || coalesce(' ' || key, ''), ', ' ORDER BY table_name, key) FROM skippr.dead_letters WHERE state = 'open'"
	)
	hex := `\\x61` + digits + "62"
	expect("copied", map[string]string{
		rows: "1 " + good + ", 4 x", keys: "x 1", others: "x",
		letters: `k k ["` + hex + `"], r v, t v ["2"], t a ["3"]`,
		"SELECT DISTINCT code FROM skippr.dead_letters":                      "22P05",
		"SELECT reason FROM skippr.dead_letters WHERE key = '[\"2\"]'":       `column "v" has the bytes 0x` + digits + " of encoding " + encoding + ", which UTF-8 has no equivalent of",
		"SELECT raw_row FROM skippr.dead_letters WHERE key = '[\"2\"]'":      `{"id":"2","v":"` + hex + `","a":null}`,
		"SELECT count(*) FROM pg_stat_pipeline_table WHERE state <> 'ready'": "0",
	})
	harness.Exec(t, raw, "INSERT INTO t VALUES (5, "+bad+", NULL), (6, 'y', NULL)", "UPDATE t SET v = "+bad+" WHERE id = 4",
		"INSERT INTO r VALUES ("+bad+"), ('y')", "UPDATE k SET v = 2", "DELETE FROM t WHERE id = 2")
	harness.Exec(t, s.DSN, "SYNC PIPELINE p UNTIL CAUGHT UP")
	expect("streamed", map[string]string{
		rows: "1 " + good + ", 4 x, 6 y", keys: "x 2", others: "x, y",
		letters: `k k ["` + hex + `"], r v, r v, t a ["3"], t v ["4"], t v ["5"]`,
	})
	// VERIFY compares what can be, and says why the rest is left out: a key is compared as text.
	report := findings(t, s.DSN, "VERIFY PIPELINE p")
	for _, line := range []string{
		"p.t |  |  | 2 | 2 | equal |  | ", "p.t |  |  |  |  | dead letter | 3 | ", "p.t |  |  |  |  | dead letter | 5 | ",
		"p.k |  |  |  |  | skipped |  | ", "a text of it that is not taken in, has what UTF-8 has no equivalent of", "p.k |  |  |  |  | dead letter | " + strings.ReplaceAll(hex, `\\`, `\`) + " | ",
		"p.r |  |  |  |  | skipped |  | it has open dead letters (2)",
	} {
		if !strings.Contains(report, line) {
			t.Errorf("VERIFY lacks %q:\n%s", line, report)
		}
	}
	retried, err := harness.Text(s.DSN, "RETRY DEAD LETTERS FROM p WHERE key = '[\"5\"]'")
	if err != nil || retried != "0" {
		t.Errorf("RETRY: %q, %v", retried, err)
	}
	harness.Exec(t, raw, "UPDATE t SET v = 'mended' WHERE v = "+bad, "UPDATE t SET a = '{}' WHERE id = 3",
		"UPDATE k SET k = 'mended' WHERE k = "+bad, "UPDATE r SET v = 'mended' WHERE ctid = (SELECT min(ctid) FROM r WHERE v = "+bad+")", "DELETE FROM r WHERE v = "+bad)
	harness.Exec(t, s.DSN, "SYNC PIPELINE p UNTIL CAUGHT UP")
	expect("mended", map[string]string{
		rows: "1 " + good + ", 3 x, 4 mended, 5 mended, 6 y", keys: "mended 2, x 2", others: "mended, x, y", letters: "",
	})
	for line := range strings.Lines(findings(t, s.DSN, "VERIFY PIPELINE p")) {
		if !strings.Contains(line, " | equal | ") {
			t.Errorf("VERIFY after all was mended: %s", line)
		}
	}
	expect("no error", map[string]string{"SELECT coalesce(string_agg(reason, ''), '') FROM pg_stat_pipeline_table": "", "SELECT coalesce(reason, '') FROM pg_stat_pipeline": ""})
}
