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

func write(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "a.slt")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAgainstPostgres runs files that must pass and files that must fail, so that the
// runner is known to see a difference.
func TestAgainstPostgres(t *testing.T) {
	dsn := pgtest.Start(t).CreateDatabase(t)
	for name, c := range map[string]struct{ text, failure string }{
		"rows":            {"query IT\nSELECT 1, 'a b'\n----\n1  a b\n", ""},
		"wrong row":       {"query I\nSELECT 1\n----\n2\n", "differ"},
		"values":          {"query II\nSELECT 1, 2\n----\n1\n2\n", ""},
		"rowsort":         {"query I rowsort\nSELECT * FROM (VALUES (10),(9)) v\n----\n10\n9\n", ""},
		"null and empty":  {"query TT\nSELECT NULL, ''\n----\nNULL (empty)\n", ""},
		"hash":            {"query I\nSELECT 1\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1\n", ""},
		"bad hash":        {"query I\nSELECT 2\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1\n", "hashing"},
		"error code":      {"statement error (22012)\nSELECT 1/0\n", ""},
		"wrong code":      {"statement error (22013)\nSELECT 1/0\n", "22012"},
		"error text":      {"statement error division by\nSELECT 1/0\n", ""},
		"error block":     {"query error\nSELECT 1/0\n----\ndivision by zero\n", ""},
		"missing error":   {"statement error\nSELECT 1\n", "an error is expected"},
		"count":           {"statement count 2\nINSERT INTO t VALUES (1),(2)\n", ""},
		"wrong count":     {"statement count 3\nINSERT INTO t VALUES (1),(2)\n", "2 rows"},
		"loop":            {"loop i 0 3\n\nquery I\nSELECT ${i} + 1 - ${i}\n----\n1\n\nendloop\n", ""},
		"foreach":         {"foreach v a b\n\nquery T\nSELECT '${v}'\n----\na\n\nendloop\n", "with v = b"},
		"let":             {"control substitution on\n\nlet x\nSELECT 7\n\nquery I\nSELECT $x\n----\n7\n", ""},
		"skipif":          {"skipif postgres\nstatement ok\nSELECT nonsense\n", ""},
		"onlyif":          {"onlyif other\nstatement ok\nSELECT nonsense\n", ""},
		"halt":            {"halt\n\nstatement ok\nSELECT nonsense\n", ""},
		"unknown":         {"frobnicate\n", "unknown directive"},
		"connection":      {"statement ok\nBEGIN\n\nstatement ok\nCREATE TABLE c (a int)\n\nconnection two\nstatement error (42P01)\nSELECT * FROM c\n", ""},
		"ignore":          {"query T\nSELECT 'x 12 y'\n----\nx <slt:ignore> y\n", ""},
		"label differs":   {"query I nosort l\nSELECT 1\n\nquery I nosort l\nSELECT 2\n", "labelled"},
		"column mismatch": {"query II\nSELECT 1\n----\n1\n", "columns"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, extended := range []bool{false, true} {
				r := NewRunner(Config{DSN: dsn, Labels: []string{"postgres"}, Extended: extended})
				prepared := r.Run(context.Background(), write(t, "statement ok\nDROP TABLE IF EXISTS t\n\nstatement ok\nCREATE TABLE t (a int)\n"))
				if prepared.Failure != nil {
					t.Fatal(prepared.Failure)
				}
				out := r.Run(context.Background(), write(t, c.text))
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

func TestRetryWaits(t *testing.T) {
	dsn := pgtest.Start(t).CreateDatabase(t)
	var waits []time.Duration
	r := NewRunner(Config{DSN: dsn, Sleep: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}})
	out := r.Run(context.Background(), write(t, "query I retry 2 backoff 3s\nSELECT 1\n----\n2\n"))
	if out.Failure == nil || len(waits) != 2 || waits[0] != 3*time.Second {
		t.Fatalf("got %v after %v", out.Failure, waits)
	}
}

func TestSkippedIsCounted(t *testing.T) {
	dsn := pgtest.Start(t).CreateDatabase(t)
	out := NewRunner(Config{DSN: dsn}).Run(context.Background(), write(t, "require parquet\n\nsystem ok\ntrue\n"))
	if out.Failure != nil || len(out.Skipped) != 2 {
		t.Fatalf("got %+v", out)
	}
}

// FuzzParse checks that no file crashes the reader.
func FuzzParse(f *testing.F) {
	f.Add("query IT rowsort l\nSELECT 1\n----\n1\n\nloop i 0 2\nstatement ok\nx\n\nendloop\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parse(strings.NewReader(text), "fuzz", 0)
	})
}
