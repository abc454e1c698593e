package values

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// encodings are those that a database can have, with a text that each can hold. One that has
// no conversion to UTF-8, MULE_INTERNAL, is refused; UTF8 is what all other tests have.
var encodings = []struct{ name, text string }{
	{"LATIN1", "größe ÿ£"},
	{"LATIN2", "łódź ű"},
	{"LATIN3", "ĉħ ŭ"},
	{"LATIN4", "ąķ ų"},
	{"LATIN5", "ışık ÿ"},
	{"LATIN6", "ąđ ŋ"},
	{"LATIN7", "ąķ ų"},
	{"LATIN8", "ŵ ŷ ÿ"},
	{"LATIN9", "€ œ"},
	{"LATIN10", "ț €"},
	{"ISO_8859_5", "привет №"},
	{"ISO_8859_6", "عربي"},
	{"ISO_8859_7", "ελλάς"},
	{"ISO_8859_8", "עברית"},
	{"WIN1250", "łódź €"},
	{"WIN1251", "привет"},
	{"WIN1252", "größe €"},
	{"WIN1253", "ελλάς €"},
	{"WIN1254", "ışık €"},
	{"WIN1255", "עברית ₪"},
	{"WIN1256", "عربي €"},
	{"WIN1257", "ąķ €"},
	{"WIN1258", "ơ ₫"},
	{"WIN866", "привет ░"},
	{"WIN874", "ไทย €"},
	{"KOI8R", "привет ╬"},
	{"KOI8U", "їжак"},
	{"EUC_JP", "日本語ﾃｽﾄ"},
	{"EUC_JIS_2004", "日本語 か゚"},
	{"EUC_CN", "中文 、"},
	{"EUC_KR", "한국어"},
	{"EUC_TW", "中文 一"},
	{"SQL_ASCII", "größe 漢"},
}

// encoded is a database of an encoding, and its pipeline.
type encoded struct {
	name, source, utf8, pipeline, table, tuple string
}

// few are the encodings that are always tried, one of each family.
var few = []string{"LATIN1", "LATIN9", "EUC_JP", "EUC_KR", "WIN1251", "KOI8R", "SQL_ASCII"}

// TestEncodings: a database of another encoding arrives as UTF-8, its names too. All
// encodings take SKIPPRD_VALUES_ENCODINGS=1.
func TestEncodings(t *testing.T) {
	s := harness.New(t, t.TempDir())
	s.Start()
	const atOnce = 11 // each has a slot
	tried := encodings
	if number("SKIPPRD_VALUES_ENCODINGS", 0) == 0 {
		tried = tried[:0:0]
		for _, c := range encodings {
			if slices.Contains(few, c.name) {
				tried = append(tried, c)
			}
		}
	}
	for from := 0; from < len(tried); from += atOnce {
		var all []encoded
		for i, c := range tried[from:min(from+atOnce, len(tried))] {
			all = append(all, makeEncoded(t, s, fmt.Sprintf("e%d", from+i), c.name, c.text))
		}
		for _, e := range all {
			harness.Exec(t, s.DSN, "SYNC PIPELINE "+e.pipeline+" UNTIL CAUGHT UP")
			harness.Exec(t, e.utf8, "INSERT INTO "+e.table+" VALUES "+fmt.Sprintf(e.tuple, "''"), "UPDATE "+e.table+" SET k = k || k WHERE k <> ''")
		}
		for _, e := range all {
			harness.Exec(t, s.DSN, "SYNC PIPELINE "+e.pipeline+" UNTIL CAUGHT UP")
			rows, err := harness.EqualTables(e.utf8, s.DSN, e.pipeline, map[string]string{e.table: "length(k)"})
			if err != nil || rows != 2 {
				t.Errorf("%s: %d rows equal: %v", e.name, rows, err)
			}
			if n := agrees(t, s, e.pipeline); n != 1 {
				t.Errorf("%s: VERIFY compared %d tables", e.name, n)
			}
			harness.Exec(t, s.DSN, "DROP PIPELINE "+e.pipeline)
		}
	}
}

// makeEncoded makes a database whose tables, columns, enums and values are not ASCII, and a
// pipeline of it.
func makeEncoded(t *testing.T, s *harness.Server, pipeline, encoding, text string) encoded {
	t.Helper()
	e := encoded{name: encoding, pipeline: pipeline, table: quote.Name("t" + text)}
	e.source = pgtest.Start(t).CreateDatabase(t, "ENCODING '"+encoding+"' TEMPLATE template0 LOCALE 'C'")
	e.utf8 = e.source + " client_encoding=UTF8"
	literal := quote.Literal(text)
	e.tuple = fmt.Sprintf("(%%s, %s, %s, ARRAY[%[1]s, NULL], %[1]s)", literal, quote.Literal(`{"a": "`+text+`"}`))
	harness.Exec(t, e.utf8, "CREATE TYPE mood AS ENUM ("+literal+")",
		fmt.Sprintf("CREATE TABLE %s (k text PRIMARY KEY, v varchar(20), j json, a text[], %s mood)", e.table, quote.Name(text)),
		"INSERT INTO "+e.table+" VALUES "+fmt.Sprintf(e.tuple, literal))
	harness.Exec(t, s.DSN, "CREATE PIPELINE "+pipeline+" FROM POSTGRES "+quote.Text(e.source)+" FOR ALL TABLES")
	return e
}

// TestEncodingWithoutConversion: what the server cannot convert is refused at CREATE PIPELINE.
func TestEncodingWithoutConversion(t *testing.T) {
	source := pgtest.Start(t).CreateDatabase(t, "ENCODING 'MULE_INTERNAL' TEMPLATE template0 LOCALE 'C'")
	s := harness.New(t, t.TempDir())
	s.Start()
	_, err := harness.Text(s.DSN, "CREATE PIPELINE mule FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !strings.Contains(refused.Message+refused.Detail, "MULE_INTERNAL") {
		t.Errorf("CREATE PIPELINE of a database in MULE_INTERNAL: %v %+v", err, refused)
	}
}

// TestInvalidText has texts in a database that are not UTF-8, and a table with such a name:
// the rows are dead letters, the table is not taken in, and all others arrive.
func TestInvalidText(t *testing.T) {
	const bad = `E'a\xff\xfeb'`
	source := pgtest.Start(t).CreateDatabase(t, "ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
	harness.Exec(t, source+" client_encoding=SQL_ASCII", "CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE other (k text PRIMARY KEY)",
		"INSERT INTO t VALUES (1, 'good'), (2, "+bad+"), (3, 'größe')", "CREATE TABLE \"n\xff\" (id int PRIMARY KEY)")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE ascii FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE ascii UNTIL CAUGHT UP")
	harness.Exec(t, source+" client_encoding=SQL_ASCII", "INSERT INTO t VALUES (4, 'good'), (5, "+bad+"), (6, 'good')",
		"UPDATE t SET v = 'mended' WHERE id = 2", "UPDATE t SET v = "+bad+" WHERE id = 3", "INSERT INTO other VALUES ('漢')")
	harness.Exec(t, s.DSN, "SYNC PIPELINE ascii UNTIL CAUGHT UP")
	for sql, want := range map[string]string{
		"SELECT string_agg(id || ' ' || v, ', ' ORDER BY id) FROM ascii.t":                                  "1 good, 2 mended, 3 größe, 4 good, 6 good",
		"SELECT string_agg(k, ', ') FROM ascii.other":                                                       "漢",
		"SELECT string_agg(key, ' ' ORDER BY key) FROM skippr.dead_letters WHERE state = 'open'":            `["3"] ["5"]`,
		"SELECT count(*) FROM pg_stat_pipeline_table":                                                       "2",
		"SELECT max(detail) FROM skippr.events WHERE kind = 'table not taken in' AND detail LIKE '%UTF-8%'": `its name is not UTF-8, or has what UTF-8 has no equivalent of: "n". Rename it: ALTER TABLE … RENAME TO …;`,
	} {
		if got, err := harness.Text(s.DSN, sql); err != nil || got != want {
			t.Errorf("%s: %q, want %q: %v", sql, got, want, err)
		}
	}
}
