package slt

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// differsCase is a file and the text of the failure it must give; "" is none.
type differsCase struct{ name, text, failure string }

// runCases runs each case in both protocols, after a table t was made.
func runCases(t *testing.T, cfg Config, file string, cases []differsCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, extended := range []bool{false, true} {
				cfg.Extended = extended
				r := NewRunner(cfg)
				prepared := r.Run(context.Background(), write(t, "p.slt",
					"statement ok\nDROP TABLE IF EXISTS t\n\nstatement ok\nCREATE TABLE t (a int)\n"))
				if prepared.Failure != nil {
					t.Fatal(prepared.Failure)
				}
				out := r.Run(context.Background(), write(t, file, c.text))
				switch {
				case c.failure == "" && out.Failure != nil:
					t.Errorf("extended %v: %v", extended, out.Failure)
				case c.failure != "" && (out.Failure == nil || !strings.Contains(out.Failure.Error(), c.failure)):
					t.Errorf("extended %v: got %v, want a failure with %q", extended, out.Failure, c.failure)
				}
			}
		})
	}
}

// TestAgainstPostgres runs files that must pass and files that must fail, so that the
// runner is known to see a difference.
func TestAgainstPostgres(t *testing.T) {
	cfg := Config{DSN: pgtest.Start(t).CreateDatabase(t), Labels: []string{"postgres"}, Strict: true}
	runCases(t, cfg, "a.slt", []differsCase{
		{"rows", "query IT\nSELECT 1, 'a b'\n----\n1  a b\n", ""},
		{"wrong row", "query I\nSELECT 1\n----\n2\n", "differ"},
		{"missing row", "query I\nSELECT 1\n----\n", "differ"},
		{"unchecked", "query I\nSELECT 1\n", ""},
		{"values", "query II\nSELECT 1, 2\n----\n1\n2\n", ""},
		{"wrong values", "query II\nSELECT 1, 2\n----\n1\n3\n", "differ"},
		{"valuewise", "control resultmode valuewise\n\nquery II\nSELECT 1, 2\n----\n1 2\n", "differ"},
		{"rowsort", "query I rowsort\nSELECT * FROM (VALUES (10),(9)) v\n----\n10\n9\n", ""},
		{"rowsort differs", "query I rowsort\nSELECT * FROM (VALUES (10),(9)) v\n----\n10\n10\n", "differ"},
		{"nosort", "query I nosort\nSELECT * FROM (VALUES (10),(9)) v\n----\n9\n10\n", "differ"},
		{"partialsort differs", "query II partialsort(1)\nSELECT * FROM (VALUES (2,1),(1,1)) v\n----\n1 1\n2 1\n", "differ"},
		{"partialsort of no column", "query I partialsort(2)\nSELECT 1\n----\n1\n", "column 2"},
		{"colnames differ", "query I colnames\nSELECT 1 AS a\n----\nb\n1\n", "differ"},
		{"null and empty", "query TT\nSELECT NULL, ''\n----\nNULL (empty)\n", ""},
		{"hash", "query I\nSELECT 1\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1\n", ""},
		{"hash of one value", "query I\nSELECT 1\n----\n1 value hashing to B026324C6904B2A9CB4B88D6D61C81D1\n", ""},
		{"bad hash", "query I\nSELECT 2\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1\n", "hashing"},
		{"error code", "statement error (22012)\nSELECT 1/0\n", ""},
		{"wrong code", "statement error (22013)\nSELECT 1/0\n", "22012"},
		{"error word of five letters", "statement error ERROR\nSELECT 1/0\n", ""},
		{"error text", "statement error division by\nSELECT 1/0\n", ""},
		{"wrong error text", "statement error division of\nSELECT 1/0\n", "does not match"},
		{"error block", "query error\nSELECT 1/0\n----\ndivision by zero\n", ""},
		{"wrong error block", "query error\nSELECT 1/0\n----\ndivision by one\n", "expected"},
		{"error block holds the message", "query error\nSELECT 1/0\n----\ndivision by zero and more\n", "expected"},
		{"error block ends with two blank lines", "query error\nSELECT 1/0\n----\ndivision by zero\n\nhalt\n", "expected"},
		{"missing error", "statement error\nSELECT 1\n", "an error is expected"},
		{"unexpected error", "statement ok\nSELECT 1/0\n", "22012"},
		{"count", "statement count 2\nINSERT INTO t VALUES (1),(2)\n", ""},
		{"wrong count", "statement count 3\nINSERT INTO t VALUES (1),(2)\n", "2 rows"},
		{"copy in has no rows", "statement count 0\nCOPY t FROM STDIN\n\nstatement error (42P01)\nCOPY none FROM STDIN\n", ""},
		{"copy out", "statement count 0\nCOPY t TO STDOUT\n", ""},
		{"no such notice", "statement notice exists\nSELECT 1\n", "no notice"},
		{"loop", "loop i 0 3\n\nquery I\nSELECT ${i} + 1 - ${i}\n----\n1\n\nendloop\n", ""},
		{"foreach", "foreach v a b\n\nquery T\nSELECT '${v}'\n----\na\n\nendloop\n", "with v = b"},
		{"loop variable ends", "loop i 0 1\n\nstatement ok\nSELECT ${i}\n\nendloop\n\nstatement error (42601)\nSELECT ${i}\n", ""},
		{"concurrentloop", "concurrentloop i 0 3\n\nquery I\nSELECT ${i}\n----\n1\n\nendloop\n", "with i = "},
		{"let", "control substitution on\n\nlet x\nSELECT 7\n\nquery I\nSELECT $x\n----\n7\n", ""},
		{"let of two rows", "let x\nSELECT 7 UNION SELECT 8\n", "2 rows"},
		{"not defined", "control substitution on\n\nstatement ok\nSELECT $nothing\n", "variable nothing is not defined"},
		{"skipif", "skipif postgres\nstatement ok\nSELECT nonsense\n\nstatement ok\nSELECT 1\n", ""},
		{"onlyif", "onlyif other\nstatement ok\nSELECT nonsense\n", ""},
		{"both onlyif", "onlyif postgres\nonlyif other\nstatement ok\nSELECT nonsense\n", ""},
		{"halt", "halt\n\nstatement ok\nSELECT nonsense\n", ""},
		{"skipped halt", "onlyif other\nhalt\n\nstatement ok\nSELECT nonsense\n", "nonsense"},
		{
			"connection",
			"statement ok\nBEGIN\n\nstatement ok\nCREATE TABLE c (a int)\n\nconnection two\nstatement error (42P01)\nSELECT * FROM c\n", "",
		},
		{"ignore", "query T\nSELECT 'x 12 y'\n----\nx <slt:ignore> y\n", ""},
		{"ignore differs", "query T\nSELECT 'x 12 z'\n----\nx <slt:ignore> y\n", "differ"},
		{"label differs", "query I nosort l\nSELECT 1\n\nquery I nosort l\nSELECT 2\n", "labelled"},
		{"column mismatch", "query II\nSELECT 1\n----\n1\n", "columns"},
		{"no rows", "query IT\nSELECT 1, 'a' WHERE false\n----\n", ""},
		{"no rows, column mismatch", "query I\nSELECT 1, 'a' WHERE false\n----\n", "2 columns"},
		{"async", "statement async a ok\nSELECT 1\n\nawaitstatement a\n", ""},
		{"async fails", "statement async a ok\nSELECT 1/0\n\nawaitstatement a\n", "22012"},
		{"never awaited", "statement async a ok\nSELECT 1\n", "never awaited"},
		{"awaited unknown", "awaitstatement a\n", "no statement named a"},
		{"busy connection", "statement async a ok\nSELECT 1\n\nstatement ok\nSELECT 1\n", "still runs"},
	})
}

// TestDialectsDiffer runs what the dialects read in different ways.
func TestDialectsDiffer(t *testing.T) {
	cfg := Config{DSN: pgtest.Start(t).CreateDatabase(t), Labels: []string{"postgresql"}}
	t.Run("sqlite", func(t *testing.T) {
		cfg.Dialect = SQLite
		runCases(t, cfg, "a.test", []differsCase{
			{"a row on a line", "query II nosort\nSELECT 1, 2\n----\n1 2\n", "differ"},
			{"three decimals", "query R nosort\nSELECT 1.5\n----\n1.5\n", "differ"},
			{"columns", "query II nosort\nSELECT 1\n----\n1\n", "columns"},
			{"label differs", "query I nosort l\nSELECT 1\n\nquery I nosort l\nSELECT 2\n", "labelled"},
			{"blank line of spaces", "statement ok\nSELECT 1\n  \nquery I nosort\nSELECT 1\n----\n1\n", ""},
		})
	})
	t.Run("duckdb", func(t *testing.T) {
		cfg.Dialect = DuckDB
		runCases(t, cfg, "a.test", []differsCase{
			{"tab in a row", "query TT\nSELECT 'a b', 'c'\n----\na b\tc\n", ""},
			{"blanks in a row", "query TT\nSELECT 'a b', 'c'\n----\na b c\n", "differ"},
			{"number", "query R\nSELECT 1.50\n----\n1.5\n", ""},
			{"another number", "query R\nSELECT 1.50\n----\n1.51\n", "differ"},
			{"near number", "query R\nSELECT 1.5::float8\n----\n1.501\n", ""},
			{"far number", "query R\nSELECT 1.5::float8\n----\n1.6\n", "differ"},
			{"text is no number", "query T\nSELECT '1.50'\n----\n1.5\n", "differ"},
			{"false", "query B\nSELECT false\n----\ntrue\n", "differ"},
			{"pattern is of the whole", "query T\nSELECT 'abc'\n----\n<REGEX>:ab\n", "differ"},
			{"not the pattern", "query T\nSELECT 'abc'\n----\n<!REGEX>:a.c\n", "differ"},
			{"error differs", "statement error\nSELECT 1/0\n----\nno such\n", "expected"},
			{"error pattern", "statement error\nSELECT 1/0\n----\n<REGEX>:.*by one.*\n", "does not match"},
			{"maybe with another error", "statement maybe\nSELECT 1/0\n----\nno such\n", "expected"},
			{"comment ends a record", "query I\nSELECT 1\n# no\n----\n1\n", "unknown directive"},
			{"skip in skip", "mode skip\n\nmode skip\n\nmode unskip\n\nstatement ok\nno\n\nmode unskip\n\nstatement ok\nSELECT 1\n", ""},
			{"unskip alone", "mode unskip\n", "without mode skip"},
			{"row count", "query II\nSELECT 1, 2\n----\n1\t2\n1\t2\n", "differ"},
		})
	})
	t.Run("cockroach", func(t *testing.T) {
		cfg.Dialect = Cockroach
		runCases(t, cfg, "a", []differsCase{
			{"empty", "query T\nSELECT ''\n----\n(empty)\n", "differ"},
			{"true", "query B\nSELECT true\n----\nt\n", "differ"},
			{"another day", "query T\nSELECT DATE '2020-01-02'\n----\n2020-01-01 00:00:00 +0000 +0000\n", "differ"},
			{"wrong code", "query error pgcode 22013 division\nSELECT 1/0\n", "22012"},
			{"words are values", "query T nosort\nSELECT '1 2'\n----\n2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0\n", ""},
			{"float", "query F\nSELECT 0.1::float8 + 0.2::float8\n----\n0.3\n", ""},
			{"another float", "query F\nSELECT 0.1::float8 + 0.2::float8\n----\n0.3000001\n", "differ"},
			{"decimal", "query R\nSELECT 0.1 + 0.2\n----\n0.30\n", "differ"},
			{"retry", "retry\nquery I\nSELECT 1\n----\n1\n", ""},
		})
	})
	t.Run("risingwave", func(t *testing.T) {
		cfg.Dialect = Rust
		runCases(t, cfg, "a.slt", []differsCase{
			{"columns are not checked", "query III\nSELECT 1\n----\n1\n", ""},
			{"labels are not checked", "query I nosort l\nSELECT 1\n\nquery I nosort l\nSELECT 2\n", ""},
		})
	})
}

// corpus runs the files written in each dialect.
func corpus(t *testing.T, cfg Config) []*Outcome {
	t.Helper()
	files, err := Collect([]string{"testdata/sqlite", "testdata/duckdb", "testdata/risingwave", "testdata/cockroach/*"}, "")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Env = func(name string) (string, bool) { return "from the environment", name == "SLT_TEST_ENV" }
	s := &Suite{Config: cfg, Files: files, Jobs: 2}
	return s.Run(context.Background()).Outcomes
}

// TestCorpora runs a file of each dialect, unchanged, in both protocols, two at a time.
func TestCorpora(t *testing.T) {
	pg := pgtest.Start(t)
	for _, extended := range []bool{false, true} {
		cfg := Config{DSN: pg.CreateDatabase(t), Labels: []string{"postgres", "postgresql"}, Extended: extended, System: true}
		for _, o := range corpus(t, cfg) {
			want := Passed
			if strings.HasSuffix(o.File, "require.test") {
				want = Skipped
			}
			if extended && strings.HasSuffix(o.File, "locks") {
				continue // its statements come two in one
			}
			if o.Status() != want {
				t.Errorf("extended %v: %s %s: %v %s", extended, o.File, o.Status(), o.Failure, o.Rest)
			}
		}
	}
}

func TestSystemIsOptIn(t *testing.T) {
	dsn := pgtest.Start(t).DSN
	marker := filepath.Join(t.TempDir(), "ran")
	file := write(t, "a.slt", "query I\nSELECT 1\n\nsystem ok\ntouch "+marker+"\n\nquery I\nSELECT 1/0\n")
	out := NewRunner(Config{DSN: dsn}).Run(context.Background(), file)
	if out.Status() != Skipped || !strings.Contains(out.Rest, "system is not allowed") {
		t.Errorf("got %v %q", out.Status(), out.Rest)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran")
	}
	out = NewRunner(Config{DSN: dsn, System: true}).Run(context.Background(), file)
	if _, err := os.Stat(marker); err != nil || out.Status() != Failed {
		t.Errorf("allowed: got %v, %v", out.Status(), err)
	}
	file = write(t, "b.slt", "system ok\necho one\n----\ntwo\n")
	if out = NewRunner(Config{DSN: dsn, System: true}).Run(context.Background(), file); out.Status() != Failed {
		t.Errorf("another output: got %v", out.Status())
	}
}

func TestRetryWaits(t *testing.T) {
	dsn := pgtest.Start(t).DSN
	var waits []time.Duration
	r := NewRunner(Config{DSN: dsn, Sleep: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}})
	out := r.Run(context.Background(), write(t, "a.slt", "query I retry 2 backoff 3s\nSELECT 1\n----\n2\n"))
	if out.Failure == nil || len(waits) != 2 || waits[0] != 3*time.Second {
		t.Fatalf("got %v after %v", out.Failure, waits)
	}
}

func TestKeepGoing(t *testing.T) {
	dsn := pgtest.Start(t).DSN
	file := write(t, "a.slt", "query I\nSELECT 1\n----\n2\n\nquery I\nSELECT 2\n----\n3\n\nquery I\nSELECT 3\n----\n3\n")
	out := NewRunner(Config{DSN: dsn, KeepGoing: true}).Run(context.Background(), file)
	if len(out.Failures) != 2 || out.Records != 3 {
		t.Errorf("got %d failures of %d records", len(out.Failures), out.Records)
	}
	if out = NewRunner(Config{DSN: dsn}).Run(context.Background(), file); len(out.Failures) != 1 || out.Records != 1 {
		t.Errorf("without it: got %d failures of %d records", len(out.Failures), out.Records)
	}
}

func TestRecordTimeout(t *testing.T) {
	dsn := pgtest.Start(t).DSN
	r := NewRunner(Config{DSN: dsn, RecordTimeout: 50 * time.Millisecond})
	out := r.Run(context.Background(), write(t, "a.slt", "statement ok\nSELECT pg_sleep(600)\n"))
	if out.Failure == nil || !strings.Contains(out.Failure.Error(), "no answer within 50ms") {
		t.Errorf("got %v", out.Failure)
	}
}

// TestIsolation runs one file twice at once, which makes the same table.
func TestIsolation(t *testing.T) {
	pg := pgtest.Start(t)
	dsn := pg.CreateDatabase(t)
	text := "statement ok\nCREATE TABLE iso (a int)\n\nstatement count 1\nINSERT INTO iso VALUES (1)\n\nquery I\nSELECT * FROM iso\n----\n1\n"
	for name, isolation := range map[string]Isolation{"schema": OwnSchema, "database": OwnDatabase} {
		t.Run(name, func(t *testing.T) {
			s := &Suite{
				Config: Config{DSN: dsn, Isolation: isolation}, Jobs: 2,
				Files: []string{write(t, "a.slt", text), write(t, "b.slt", text)},
			}
			for _, o := range s.Run(context.Background()).Outcomes {
				if o.Status() != Passed {
					t.Error(o.Failure)
				}
			}
			left := "query I\nSELECT count(*) FROM pg_namespace WHERE nspname LIKE 'slt%'\n----\n0\n\n" +
				"query I\nSELECT count(*) FROM pg_database WHERE datname LIKE 'slt%'\n----\n0\n"
			if o := NewRunner(Config{DSN: dsn}).Run(context.Background(), write(t, "c.slt", left)); o.Failure != nil {
				t.Error(o.Failure)
			}
		})
	}
}
