package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/charmap"
	"github.com/skipprd/skipprd/pgwire/encname"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// converted are the encodings that PostgreSQL converts.
var converted = []string{
	"EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
	"LATIN1", "LATIN2", "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "ISO_8859_5", "ISO_8859_6",
	"ISO_8859_7", "ISO_8859_8", "KOI8R", "KOI8U", "WIN866", "WIN874", "WIN1250", "WIN1251", "WIN1252", "WIN1253", "WIN1254", "WIN1255",
	"WIN1256", "WIN1257", "WIN1258",
}

// TestCopyEncoding: COPY in other encodings does what PostgreSQL's does, errors too.
func TestCopyEncoding(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	ours, theirs := rawConn(t, s.DSN), rawConn(t, pgtest.Start(t).CreateDatabase(t))
	both := func(what, sql string, data []byte) {
		t.Helper()
		got, want := copied(t.Context(), ours, sql, data), copied(t.Context(), theirs, sql, data)
		if got != want {
			t.Errorf("%s: %s:\n%q\nPostgreSQL:\n%q", what, sql, got, want)
		}
	}
	both("", "CREATE TEMP TABLE ce (n int, v text)", nil)
	for n, name := range converted {
		c, err := charmap.Of(name)
		if err != nil || c == nil {
			t.Fatalf("%s: %v", name, err)
		}
		var all, bad []byte
		each := 0
		c.Sequences(func(code []byte) {
			line := fmt.Appendf(nil, "%d\ta%sb\n", n, code)
			switch _, as := c.Size(code); {
			case as > 0:
				if each++; len(code) == 1 || each%16 == 0 || code[len(code)-1] == '\\' {
					all = append(all, line...)
				}
			case bad == nil:
				bad = append([]byte("1\tfirst\n"), line...)
			}
		})
		both(name, fmt.Sprintf("COPY ce FROM STDIN (ENCODING '%s')", name), all)
		both(name, fmt.Sprintf("COPY (SELECT string_agg(v, ',' ORDER BY v COLLATE \"C\") FROM ce WHERE n = %d) TO STDOUT", n), nil)
		both(name, fmt.Sprintf("COPY (SELECT v FROM ce WHERE n = %d ORDER BY v COLLATE \"C\") TO STDOUT (FORMAT csv, HEADER, ENCODING '%s')", n, name), nil)
		if bad != nil {
			both(name, fmt.Sprintf("COPY ce FROM STDIN (ENCODING '%s')", name), bad)
		}
	}
	both("NUL", "COPY ce FROM STDIN (FORMAT csv, ENCODING 'koi8')", []byte("100,\"a\x00\"\n"))
	both("no equivalent", "COPY (SELECT 'ascii', U&'\\4E00') TO STDOUT (ENCODING 'iso-8859-15')", nil)
	both("all", "SELECT n, count(*) FROM ce GROUP BY n ORDER BY n", nil)
	both("old", "COPY ce FROM STDIN CSV ENCODING 'iso-8859-1'", []byte("200,\xe9\n"))
	both("old", "COPY (SELECT v AS \"é\" FROM ce WHERE n = 200) TO STDOUT (FORMAT csv, HEADER, ENCODING latin1)", nil)
	both("ascii", "COPY ce FROM STDIN (ENCODING 'sql ascii')", []byte("300\té\n"))
	both("ascii", "COPY (SELECT v FROM ce WHERE n = 300) TO STDOUT (ENCODING sql_ascii)", nil)
	both("binary", "COPY (SELECT v FROM ce WHERE n = 300) TO STDOUT (FORMAT binary, ENCODING 'latin1')", nil)
	both("no conversion", "COPY ce FROM STDIN (ENCODING 'mule_internal')", []byte("1\ta\n"))
	both("no conversion", "COPY (SELECT 'é') TO STDOUT (ENCODING 'mule_internal')", nil)
	both("cut at the end", "COPY ce FROM STDIN (ENCODING 'sjis')", []byte("1\t\x95\x5c\n2\t\x95"))
	both("cut by a delimiter", "COPY ce FROM STDIN (ENCODING 'gbk')", []byte("1\tfirst\n2\t\x81\n"))
	both("delimiter in a character", "COPY ce FROM STDIN (FORMAT csv, DELIMITER '|', QUOTE '\\', ENCODING 'sjis')", []byte("350|\\\x90\x5c|\x94\x7c\\\n"))
	both("delimiter in a character", "COPY (SELECT n, v FROM ce WHERE n = 350) TO STDOUT (FORMAT csv, DELIMITER '|', QUOTE '\\', ENCODING 'sjis')", nil)
	both("unknown", "COPY ce TO STDOUT (ENCODING 'nothing')", nil)
	both("unknown", "COPY ce FROM STDIN (ENCODING '')", nil)
	large := bytes.Repeat([]byte("400\t\xe9\xe8\xff and some more\n"), 20_000) // of many reads
	both("large", "COPY ce FROM STDIN (ENCODING 'win1252')", large)
	both("large", "SELECT n, md5(string_agg(v, ',')), count(*) FROM ce WHERE n = 400 GROUP BY n", nil)
	both("large", "COPY (SELECT n, v FROM ce WHERE n = 400) TO STDOUT (ENCODING 'win1252')", nil)

	for _, name := range []string{
		"Abc", "alt", "koi8", "mskanji", "shift-jis", "tcvn", "TCVN5712", "unicode", "vscii", "win", "win932", "win936", "win949", "win950",
		"windows-932", "windows-950", "windows-1258", "windows-866", "iso-8859-1", "iso 8859-9", "iso885910", "iso885913", "iso885914",
		"iso885915", "iso-8859-16", "iso_8859_5", "iso-8859-8", "utf-8", "gb18030", "shift_jis_2004", "euc_jis_2004", "win866", "koi8-u",
		"johab", "mule_internal", "latin11", "iso885911", "", "é",
	} {
		own, _ := encname.Own(name)
		r := theirs.ExecParams(t.Context(), "SELECT pg_encoding_to_char(pg_char_to_encoding($1))", [][]byte{[]byte(name)}, nil, nil, nil).Read()
		if r.Err != nil || string(r.Rows[0][0]) != own {
			t.Errorf("encoding %q: %q, PostgreSQL's %q, %v", name, own, r.Rows, r.Err)
		}
	}
}

func rawConn(t *testing.T, dsn string) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// copied is what comes of a statement, as a text.
func copied(ctx context.Context, c *pgconn.PgConn, sql string, data []byte) string {
	var out bytes.Buffer
	var err error
	switch {
	case bytes.Contains([]byte(sql), []byte("FROM STDIN")):
		_, err = c.CopyFrom(ctx, bytes.NewReader(data), sql)
	case bytes.HasPrefix([]byte(sql), []byte("COPY")):
		_, err = c.CopyTo(ctx, &out, sql)
	default:
		var results []*pgconn.Result
		results, err = c.Exec(ctx, sql).ReadAll()
		for _, r := range results {
			fmt.Fprintln(&out, r.CommandTag, r.Rows)
		}
	}
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return fmt.Sprintln(e.Code, e.Message, e.Where, e.Position)
	} else if err != nil {
		return err.Error()
	}
	return out.String()
}
