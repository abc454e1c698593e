package querylog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/setting"
)

func TestWhatIsLogged(t *testing.T) {
	const secret, insert = "CREATE CONNECTION c TYPE POSTGRES (password = 'hush')", "/* a */ -- b\n insert into t values (1)"
	for _, c := range []struct {
		settings map[string]string
		want     string // words of the one line, "" for none
		do       func(s Session)
	}{
		{nil, "", func(s Session) {
			s.Opened()
			s.Began("statement", "SELECT 1")
			s.Ended("statement", "SELECT 1", time.Hour)
			s.Closed(1)
		}},
		{nil, "", func(s Session) { s.Failed("statement", "SELECT 1", pgerr.New("42601", "bad")) }},
		{map[string]string{"log_connections": "on"}, "connection authorized", Session.Opened},
		{map[string]string{"log_disconnections": "on"}, "disconnection session_time=2s", func(s Session) { s.Closed(2 * time.Second) }},
		{map[string]string{"log_statement": "all"}, "statement began step=execute", func(s Session) { s.Began("execute", "SELECT 1") }},
		{map[string]string{"log_statement": "all"}, "", func(s Session) { s.Began("parse", "SELECT 1") }},
		{map[string]string{"log_statement": "mod"}, "", func(s Session) { s.Began("statement", "SELECT 1; BEGIN") }},
		{map[string]string{"log_statement": "mod"}, "insert", func(s Session) { s.Began("statement", "SELECT 1;"+insert) }},
		{map[string]string{"log_statement": "mod"}, "delete", func(s Session) { s.Began("statement", "WITH d AS (delete from t) SELECT 1") }},
		{map[string]string{"log_statement": "ddl"}, "", func(s Session) { s.Began("statement", insert) }},
		{map[string]string{"log_statement": "ddl"}, "CONNECTION", func(s Session) { s.Began("statement", secret) }},
		{map[string]string{"log_min_duration_statement": "0"}, "statement ended step=bind duration=1ms SELECT", func(s Session) { s.Ended("bind", "SELECT 1", time.Millisecond) }},
		{map[string]string{"log_min_duration_statement": "2s"}, "", func(s Session) { s.Ended("statement", "SELECT 1", 1999*time.Millisecond) }},
		{map[string]string{"log_min_duration_statement": "2s"}, "duration=2s", func(s Session) { s.Ended("statement", secret, 2*time.Second) }},
		{map[string]string{"log_statement": "ddl"}, "ROLE", func(s Session) { s.Began("statement", "ALTER ROLE r PASSWORD 'hush'") }},
		{map[string]string{"log_duration": "on"}, "duration=3s", func(s Session) { s.Ended("statement", "x", 3*time.Second) }},
		{map[string]string{"log_min_error_statement": "error"}, "sqlstate=42601 bad CONNECTION", func(s Session) { s.Failed("statement", secret, pgerr.New("42601", "bad")) }},
		{map[string]string{"log_min_error_statement": "error"}, "unterminated PASSWORD", func(s Session) {
			s.Failed("statement", "ALTER ROLE r PASSWORD 'hush", pgerr.New("42601", "unterminated quoted string at or near \"'hush\""))
		}},
		{map[string]string{"log_min_error_statement": "fatal"}, "", func(s Session) { s.Failed("statement", secret, pgerr.New("42601", "bad")) }},
	} {
		v, err := setting.NewValues(c.settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		c.do(Session{Log: slog.New(slog.NewTextHandler(&out, nil)), Values: v})
		got := out.String()
		for w := range strings.FieldsSeq(c.want) {
			if !strings.Contains(got, w) {
				t.Errorf("%v: %q lacks %s", c.settings, got, w)
			}
		}
		if strings.Contains(got, "hush") || strings.Count(got, "\n") > 1 || (got == "") != (c.want == "") {
			t.Errorf("%v: %q", c.settings, got)
		}
	}
}

func TestFirstWord(t *testing.T) {
	for sql, want := range map[string]string{"": "", " ((SELECT 1))": "select", "--": "", "/* */ /* x */Drop": "drop", "éa": ""} {
		if got := firstWord(sql); got != want {
			t.Errorf("%q begins with %q", sql, got)
		}
	}
}
