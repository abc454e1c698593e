package values

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestEncodings: a database of another encoding arrives as UTF-8, its names too.
func TestEncodings(t *testing.T) {
	s := harness.New(t, t.TempDir())
	s.Start()
	for i, c := range []struct{ encoding, text string }{
		{"LATIN1", "größe ÿ£"}, {"LATIN9", "€ œ"}, {"EUC_JP", "日本語ﾃｽﾄ"}, {"EUC_KR", "한국어"}, {"WIN1251", "привет"}, {"SQL_ASCII", "größe 漢"},
	} {
		t.Run(c.encoding, func(t *testing.T) {
			source := pgtest.Start(t).CreateDatabase(t, "ENCODING '"+c.encoding+"' TEMPLATE template0 LOCALE 'C'")
			utf8 := source + " client_encoding=UTF8"
			text := quote.Literal(c.text)
			tuple := fmt.Sprintf("(%%s, %s, %s, ARRAY[%[1]s, NULL], %[1]s)", text, quote.Literal(`{"a": "`+c.text+`"}`))
			table := quote.Name("t" + c.text)
			harness.Exec(t, utf8, "CREATE TYPE mood AS ENUM ("+text+")",
				fmt.Sprintf("CREATE TABLE %s (k text PRIMARY KEY, v varchar(20), j json, a text[], %s mood)", table, quote.Name(c.text)),
				"INSERT INTO "+table+" VALUES "+fmt.Sprintf(tuple, text))
			p := fmt.Sprintf("e%d", i)
			harness.Exec(t, s.DSN, "CREATE PIPELINE "+p+" FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE "+p+" UNTIL CAUGHT UP")
			harness.Exec(t, utf8, "INSERT INTO "+table+" VALUES "+fmt.Sprintf(tuple, "''"), "UPDATE "+table+" SET k = k || k WHERE k <> ''")
			harness.Exec(t, s.DSN, "SYNC PIPELINE "+p+" UNTIL CAUGHT UP")
			rows, err := harness.EqualTables(utf8, s.DSN, p, map[string]string{table: "length(k)"})
			if err != nil || rows != 2 {
				t.Errorf("%d rows equal: %v", rows, err)
			}
			if n := agrees(t, s, p); n != 1 {
				t.Errorf("VERIFY compared %d tables", n)
			}
			harness.Exec(t, s.DSN, "DROP PIPELINE "+p)
		})
	}
}
