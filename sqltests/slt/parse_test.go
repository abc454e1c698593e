package slt

import (
	"strings"
	"testing"
	"time"
)

// TestUnknownFailsClosed: a file with a word that is not understood gives an error that
// names the line, and nothing of it runs.
func TestUnknownFailsClosed(t *testing.T) {
	for text, want := range map[string]string{
		"statement ok\nSELECT 1\n\nfrobnicate\n":      "f:4: unknown directive \"frobnicate\"",
		"statement fine\nSELECT 1\n":                  "unknown statement",
		"statement ok con1\nSELECT 1\n":               "unexpected \"con1\"",
		"statement ok\n\nquery I\nSELECT 1\n":         "statement without SQL",
		"statement ok\nSELECT 1\n----\n1\n":           "use query",
		"statement error (a\nSELECT 1\n":              "error pattern",
		"statement count many\nSELECT 1\n":            "needs a number",
		"query I sorted\nSELECT 1\n":                  "unknown query option \"sorted\"",
		"query I rowsort a b\nSELECT 1\n":             "unexpected \"b\"",
		"query 1\nSELECT 1\n":                         "one letter per column",
		"query I\n":                                   "query without SQL",
		"query error a b\nSELECT 1\n----\na b\n":      "exclude each other",
		"control sortmode byname\n":                   "unknown control",
		"control colour on\n":                         "unknown control",
		"mode fast\n":                                 "unknown mode",
		"set seed 1\n":                                "unknown directive \"set seed 1\"",
		"hash-threshold many\n":                       "needs a number",
		"sleep soon\n":                                "no duration",
		"sleep 100h\n":                                "longer than a day",
		"endloop\n":                                   "endloop without a loop",
		"loop i 0 3\n\nstatement ok\nSELECT 1\n":      "loop without endloop",
		"loop i 0 1000000000\n\nendloop\n":            "apart",
		"foreach a,b 1,2 3\n\nendloop\n":              "has 1 values",
		"foreach t <compression>\n\nendloop\n":        "does not know the list",
		"continue\n":                                  "outside of a loop",
		"skipif\nstatement ok\nSELECT 1\n":            "needs a name",
		"skipif a b\nstatement ok\nSELECT 1\n":        "takes one name",
		"statement ok\nSELECT 1\n\nskipif postgres\n": "without a record",
		"connection\n":                                "needs a name",
		"include nothing*.slt\n":                      "no such file",
		"system fail\nfalse\n":                        "followed by ok",
		"user\n":                                      "needs a name",
		"user root fast\n":                            "unknown option",
		"query I retry many backoff 1s\nSELECT 1\n":   "retry needs a number",
		"let\nSELECT 1\n":                             "needs a name",
		"----\n1\n":                                   "unknown directive \"----\"",
	} {
		_, err := parseText(text, "f", Rust, 0)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		path, text string
		want       Dialect
	}{
		{"select1.test", "hash-threshold 8\n\nstatement ok\nCREATE TABLE t1(a INTEGER)\n", SQLite},
		{"test/sql/a.test", "# name: test/sql/a.test\n\nstatement ok\nSELECT 1\n", DuckDB},
		{"a.test", "loop i 0 3\n\nendloop\n", DuckDB},
		{"a.test", "statement maybe\nSELECT 1\n", DuckDB},
		{"a.test_slow", "statement ok\nSELECT 1\n", DuckDB},
		{"logic_test/array", "statement ok\nSELECT 1\n", Cockroach},
		{"a.slt", "# LogicTest: local\n", Cockroach},
		{"a.slt", "query I\nSELECT 1\n", Rust},
		{"a.slt.part", "query I\nSELECT 1\n", Rust},
	} {
		s, err := parseText(c.text, c.path, Auto, 0)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
		} else if s.Dialect != c.want {
			t.Errorf("%s: got %v, want %v", c.path, s.Dialect, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2s": 2 * time.Second, "1m30s": 90 * time.Second, "100 milliseconds": 100 * time.Millisecond,
		"1 second": time.Second, "2min": 2 * time.Minute, "1.5s": 1500 * time.Millisecond, "500ms": 500 * time.Millisecond,
		"3 secs": 3 * time.Second, "1hour": time.Hour, "7us": 7 * time.Microsecond,
	} {
		if got, err := duration(strings.Fields(text)); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2", "s", "2x", "-1s", "2s!", "99999999999999999999h", "25h"} {
		if got, err := duration(strings.Fields(text)); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// TestConditions covers labels, loop variables and CockroachDB's configurations.
func TestConditions(t *testing.T) {
	s := newRun(&Config{Labels: []string{"postgres"}}, DuckDB, newShared(&Outcome{}))
	s.vars["i"], s.vars["t"] = "10", "int"
	for line, runs := range map[string]bool{
		"skipif postgres": false, "skipif other": true, "onlyif postgres": true, "onlyif other": false,
		"onlyif i=10": true, "onlyif i=9": false, "skipif i>9": false, "skipif i<9": true, "onlyif i>=10": true,
		"onlyif i<=9": false, "onlyif i<>10": false, "onlyif t=int": true, "skipif t<>int": true, "onlyif none=1": false,
		"skipif config local": true, "onlyif config local": false,
	} {
		p := &parser{dialect: DuckDB}
		c, err := p.condition(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.excluded(&Record{Conditions: []Condition{c}}) == ""; got != runs {
			t.Errorf("%s: runs %v, want %v", line, got, runs)
		}
	}
}

func TestExpand(t *testing.T) {
	env := func(name string) (string, bool) { return "env", name == "E" }
	for _, c := range []struct {
		on         bool
		text, want string
	}{
		{false, "${i} $i ${none} $E", "7 $i ${none} $E"},
		{false, "$m and $more", "42 and $more"},
		{true, "${i} $i $E ${E}", "7 7 env env"},
		{true, "${none:other} ${none:}", "other "},
		{true, `\$i \\ \n`, `$i \ \n`},
		{true, "$1 $$a$$ $q$ $i $q$", "$1 $$a$$ $q$ 7 $q$"},
		{true, "$ ${ {i} a_b", "$ ${ {i} a_b"},
		{true, "$i$i", "77"},
		{true, "${none:$i-${none:${E}}}", "7-env"},
	} {
		s := newRun(&Config{Env: env}, Rust, newShared(&Outcome{}))
		s.subst = c.on
		s.vars["i"], s.vars["m"], s.dollar["m"] = "7", "42", true
		if got, err := s.expand(c.text); err != nil || got != c.want {
			t.Errorf("%v %q: got %q, %v, want %q", c.on, c.text, got, err, c.want)
		}
	}
}

// FuzzParse checks that no file crashes the reader, in any dialect.
func FuzzParse(f *testing.F) {
	f.Add("query IT rowsort l\nSELECT 1\n----\n1\n\nloop i 0 2\nstatement ok\nx\n\nendloop\n")
	f.Add("statement error pgcode 22012 x\nSELECT 1\n\nquery II partialsort(1,2),colnames\nx\n----\n\nsleep 1s\n")
	f.Add("skipif i<3\nforeach a,b 1,2\nstatement maybe\nx\n----\n<REGEX>:.*\n\nendloop\n")
	f.Fuzz(func(_ *testing.T, text string) {
		if strings.Contains(text, "include") {
			return // reads files
		}
		for _, d := range []Dialect{Auto, SQLite, DuckDB, Cockroach, Rust} {
			_, _ = parseText(text, "fuzz.slt", d, 0)
		}
	})
}
