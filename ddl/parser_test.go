package ddl

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func TestParseAccepts(t *testing.T) {
	for _, c := range []struct{ sql, tag, want string }{
		{"CREATE SECRET pw AS 'env:PW'", "CREATE SECRET", `{"Name":"pw","Value":"env:PW","OrReplace":false,"IfNotExists":false,"Alter":false}`},
		{"create or replace secret \"My Pw\" as E'a\\'b';", "CREATE SECRET", `"Name":"My Pw","Value":"a'b","OrReplace":true`},
		{"ALTER SECRET pw AS $$x'y$$", "ALTER SECRET", `"Value":"x'y"`},
		{"DROP SECRET IF EXISTS pw", "DROP SECRET", `"IfExists":true`},
		{"CREATE CONNECTION IF NOT EXISTS c TO POSTGRES (HOST 'db', PORT 5432, PASSWORD SECRET pw, SSLMODE = require)", "CREATE CONNECTION", `{"Name":"PASSWORD","Value":"","Secret":"pw"`},
		{"CREATE CONNECTION c TO POSTGRES 'postgres://u@h/d' (PASSWORD SECRET pw)", "CREATE CONNECTION", `"URL":"postgres://u@h/d"`},
		{"ALTER CONNECTION c SET (HOST 'x')", "ALTER CONNECTION", `"Name":"HOST","Value":"x"`},
		{"CREATE PIPELINE p FROM c FOR ALL TABLES", "CREATE PIPELINE", `"Connection":"c","Inline":null`},
		{"CREATE PIPELINE p FROM POSTGRES 'host=/tmp dbname=x' FOR ALL TABLES EXCEPT public.a, b", "CREATE PIPELINE", `"Except":["public.a","public.b"]`},
		{"CREATE PIPELINE p FROM c SCHEMA s FOR TABLES IN SCHEMA public, \"Other\" WITH (copy_data = false, freshness '5s')", "CREATE PIPELINE", `"Schemas":["public","Other"]`},
		{"CREATE PIPELINE p FROM c FOR TABLE a (x, y), public.b, TABLE s.\"C\"", "CREATE PIPELINE", `{"Schema":"s","Name":"C","Columns":null}`},
		{"CREATE PIPELINE demo FROM GENERATOR (SEED 7, RATE 100)", "CREATE PIPELINE", `"AllTables":true`},
		{"/* a */ ALTER PIPELINE p -- b\n COMPACT", "ALTER PIPELINE", `"Action":"COMPACT"`},
		{"ENABLE PIPELINE p", "ENABLE PIPELINE", `"Action":"ENABLE"`},
		{"ALTER PIPELINE p ADD TABLE public.t, u", "ALTER PIPELINE", `"Action":"ADD TABLE","Tables":[{"Schema":"public","Name":"t","Columns":null},{"Schema":"public","Name":"u"`},
		{"ALTER PIPELINE p RESUME", "ALTER PIPELINE", `"Action":"RESUME"`},
		{"ALTER PIPELINE p RESUME TABLE t", "ALTER PIPELINE", `"Action":"RESUME TABLE"`},
		{"ALTER PIPELINE p RESET", "ALTER PIPELINE", `"Action":"RESET"`},
		{"ALTER PIPELINE p RESET (freshness)", "ALTER PIPELINE", `"Action":"RESET OPTIONS"`},
		{"ALTER PIPELINE p RENAME TO q", "ALTER PIPELINE", `"NewName":"q"`},
		{"DROP PIPELINE IF EXISTS p CASCADE KEEP DATA", "DROP PIPELINE", `"KeepData":true`},
		{"SYNC PIPELINE p UNTIL CAUGHT UP", "SYNC", `"For":0`},
		{"SYNC PIPELINE p FOR '1 min'", "SYNC", `"For":60000000000`},
		{"DISCOVER PIPELINE p", "DISCOVER", `"Object":"PIPELINE"`},
		{"SHOW STATS FOR p.orders", "SHOW", `"Name":"p","Table":"orders"`},
		{"SHOW PIPELINES;", "SHOW", `"What":"PIPELINES"`},
	} {
		if !IsOurs(c.sql) {
			t.Errorf("%s: is not ours", c.sql)
		}
		s, err := Parse(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		got, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if s.Tag() != c.tag || !strings.Contains(string(got), c.want) {
			t.Errorf("%s:\n got %s %s\nwant %s %s", c.sql, s.Tag(), got, c.tag, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		sql  string
		code string
		pos  int32
		text string
	}{
		{"CREATE SECRET pw", "42601", 17, "syntax error at end of input"},
		{"CREATE SECRET pw OWNER TO r", "42601", 18, `at or near "OWNER"`},
		{"CREATE SECRET pw AS env", "42601", 21, `at or near "env"`},
		{"CREATE OR REPLACE SECRET IF NOT EXISTS pw AS 'x'", "42601", 19, "cannot be used together"},
		{"CREATE PIPELINE p FROM c", "42601", 25, "end of input"},
		{"CREATE PIPELINE p FROM c FOR ALL TABLES foo", "42601", 41, `near "foo"`},
		{"CREATE PIPELINE p FROM c FOR TABLE t WHERE a > 1", "42601", 44, "syntax error"},
		{"CREATE PIPELINE p FROM c FOR TABLE t WHERE (a > 1", "42601", 44, "closing parenthesis"},
		{"CREATE PIPELINE p FROM c FOR TABLE t WHERE ()", "42601", 45, ""},
		{"CREATE PIPELINE p FROM c FOR TABLE t (a) EXCEPT (b)", "42601", 42, "either"},
		{"CREATE CONNECTION c TO POSTGRES (HOST 'a', host 'b')", "42601", 44, "given twice"},
		{"ALTER PIPELINE p FROBNICATE", "42601", 18, "FROBNICATE"},
		{"SYNC PIPELINE p FOR 'soon'", "22023", 21, "invalid interval"},
		{"CREATE SECRET \"é\" AS 'x", "42601", 22, "unterminated quoted string"},
		{"DROP PIPELINE " + strings.Repeat("x", 64), "42622", 15, "too long"},
	} {
		_, err := Parse(c.sql)
		e, ok := pgerr.As(err)
		if !ok {
			t.Errorf("%s: got %v, want an error", c.sql, err)
			continue
		}
		if string(e.Code) != c.code || e.Position != c.pos || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: got %s at %d: %s", c.sql, e.Code, e.Position, e.Message)
		}
	}
}

func TestIsOursLeavesPostgresAlone(t *testing.T) {
	for _, sql := range []string{
		"SELECT 1", "", "SHOW search_path", "RESET ALL", "ALTER TABLE t ADD c int", "CREATE TABLE pipeline (a int)",
		"GRANT SELECT ON connection TO r", "REVOKE ALL ON secret, t FROM r", "GRANT SELECT ON pipeline.t TO r",
		"DROP TABLE secret", "DISCARD ALL", "SHOW ALL", "'x'", "\"create\" pipeline", "CREATE OR REPLACE VIEW v AS SELECT 1",
	} {
		if IsOurs(sql) {
			t.Errorf("%q is taken as ours", sql)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "10 min": 10 * time.Minute, "1h30m": 90 * time.Minute, "250 ms": 250 * time.Millisecond,
		"7": 7 * time.Second, "1.5 hours": 90 * time.Minute, "2 days": 48 * time.Hour,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "5 parsecs", "-1s", "1h 5", "999999999 days 999999999 days"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q: got %v, want an error", in, got)
		}
	}
}

func TestOptionHints(t *testing.T) {
	_, err := checkOption(pipelineDocs, Option{Name: "copydata", Value: "true", Pos: 7}, "pipeline")
	e, _ := pgerr.As(err)
	if e == nil || e.Position != 7 || !strings.Contains(e.Hint, `"copy_data"`) {
		t.Fatalf("got %#v", err)
	}
	_, err = checkOption(connectionOptions["postgres"], Option{Name: "PORT", Value: "x"}, "connection")
	if e, _ = pgerr.As(err); e == nil || e.Detail != "An integer from 1 to 65535 is needed." {
		t.Fatalf("got %#v", err)
	}
}

func TestPorts(t *testing.T) {
	for in, want := range map[string]string{"5432": "5432", "1, 65535": "1,65535", "": "", "0": "", "1,": "", "1,65536": "", "a": ""} {
		if got, err := checkPorts(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestExpandURL(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:p%40@h:5433/d?sslmode=require": "HOST=h PORT=5433 DATABASE=d USER=u PASSWORD=p@ SSLMODE=require",
		"host=/tmp dbname='my db' user=x":            "HOST=/tmp DATABASE=my db USER=x",
		"postgres://u:p@a,b:5433,[::1]:7/d":          "HOST=a,b,::1 PORT=5432,5433,7 DATABASE=d USER=u PASSWORD=p",
		"postgres://a,b/d?sslmode=prefer":            "HOST=a,b PORT=5432,5432 DATABASE=d SSLMODE=prefer",
	} {
		opts, err := expandURL(ConnectionSpec{Kind: "postgres", URL: url})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		var parts []string
		for _, o := range opts {
			parts = append(parts, o.Name+"="+o.Value)
		}
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
	for _, url := range []string{"postgres://u:p@h:bad port/d", "nonsense", "host='open"} {
		if _, err := expandURL(ConnectionSpec{Kind: "postgres", URL: url}); err == nil {
			t.Errorf("%s: accepted", url)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}

// FuzzParse checks that no input crashes the parser and that positions stay inside it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"CREATE PIPELINE p FROM c FOR ALL TABLES WITH (a=1)", "/*", "E'\\", "$a$", "CREATE SECRET \"a\"\"b\" AS 'x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		IsOurs(sql)
		_, err := Parse(sql)
		if e, ok := pgerr.As(err); ok && int(e.Position) > len(sql)+1 {
			t.Fatalf("position %d in %d bytes", e.Position, len(sql))
		}
	})
}
