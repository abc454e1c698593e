package values

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestUntranslatable has texts that UTF-8 has no equivalent of: in the copy their table
// stops and the others go on, in the stream the pipeline says what helps.
func TestUntranslatable(t *testing.T) {
	source := pgtest.Start(t).CreateDatabase(t, "ENCODING 'WIN1252' TEMPLATE template0 LOCALE 'C'")
	raw := source + " client_encoding=SQL_ASCII"
	harness.Exec(t, raw, "CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE other (id int PRIMARY KEY, v text)",
		`INSERT INTO t VALUES (1, 'good'), (2, E'a\x81b')`, "INSERT INTO other VALUES (1, 'good')")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE win FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES")
	await := func(sql, want string) {
		t.Helper()
		var got string
		if !harness.Until(harness.Patience, func() bool {
			got, _ = harness.Text(s.DSN, sql)
			return strings.Contains(got, want)
		}) {
			t.Fatalf("%s: %q, want %q", sql, got, want)
		}
	}
	await("SELECT string_agg(reason, '') FROM pg_stat_pipeline_table WHERE reason LIKE '%0x81%'", "cannot be written as UTF-8")
	await("SELECT v FROM win.other", "good")
	harness.Exec(t, raw, `INSERT INTO other VALUES (2, E'a\x81b')`)
	await("SELECT reason FROM pg_stat_pipeline", "0x81 in encoding \"WIN1252\"")
	await("SELECT reason FROM pg_stat_pipeline", "correct the value at the source, then ALTER PIPELINE")
	harness.Exec(t, raw, "UPDATE t SET v = 'mended' WHERE id = 2", "UPDATE other SET v = 'mended' WHERE id = 2")
	harness.Exec(t, s.DSN, "ALTER PIPELINE win RESET")
	await("SELECT string_agg(v, ' ' ORDER BY id) FROM win.other", "good mended")
	await("SELECT string_agg(v, ' ' ORDER BY id) FROM win.t", "good mended")
}
