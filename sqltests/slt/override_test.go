package slt

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestOverride rewrites what differs and leaves every other byte as it is. What it wrote
// passes as it stands.
func TestOverride(t *testing.T) {
	dsn := pgtest.Start(t).CreateDatabase(t)
	for _, c := range []struct{ name, file, before, after string }{
		{
			"rows", "a.slt", "# comment  \n\nquery IT rowsort\nSELECT * FROM (VALUES (2, 'b c'), (1, NULL)) v\n----\nold\n\n\n# end",
			"# comment  \n\nquery IT rowsort\nSELECT * FROM (VALUES (2, 'b c'), (1, NULL)) v\n----\n1 NULL\n2 b c\n\n\n# end",
		},
		{"equal stays", "a.slt", "query II\nSELECT 1, 2\n----\n1     2\n", "query II\nSELECT 1, 2\n----\n1     2\n"},
		{"unchecked stays", "a.slt", "query I\nSELECT 1\n", "query I\nSELECT 1\n"},
		{"from nothing", "a.slt", "query II\nSELECT 1, 2\n----\n\nhalt\n", "query II\nSELECT 1, 2\n----\n1 2\n\nhalt\n"},
		{"to nothing", "a.slt", "query I\nSELECT 1 WHERE false\n----\n1\n\nhalt\n", "query I\nSELECT 1 WHERE false\n----\n\nhalt\n"},
		{"tabs", "a.slt", "query II\nSELECT 1, 2\n----\n1\t3\n", "query II\nSELECT 1, 2\n----\n1\t2\n"},
		{"no line end", "a.slt", "query I\nSELECT 1\n----\n2", "query I\nSELECT 1\n----\n1"},
		{"nothing after the bar", "a.slt", "query I\nSELECT 1\n----", "query I\nSELECT 1\n----\n1\n"},
		{"carriage returns", "a.slt", "query I\r\nSELECT 1\r\n----\r\n2\r\n\r\nhalt\r\n", "query I\r\nSELECT 1\r\n----\r\n1\r\n\r\nhalt\r\n"},
		{"count", "a.slt", "statement count 7\nCREATE TABLE IF NOT EXISTS o (a int)\n", "statement count 0\nCREATE TABLE IF NOT EXISTS o (a int)\n"},
		{"code", "a.slt", "statement error (42601) zero\nSELECT 1/0\n", "statement error (22012) zero\nSELECT 1/0\n"},
		{"pattern", "a.slt", "query error by one\nSELECT 1/0\n", "query error division by zero\nSELECT 1/0\n"},
		{"error text", "a.slt", "statement error\nSELECT 1/0\n----\nold\ntext\n\n\nhalt\n", "statement error\nSELECT 1/0\n----\ndivision by zero\n\n\nhalt\n"},
		{"values", "a.test", "query IT nosort\nSELECT 1, 'x'\n----\n1\n", "query IT nosort\nSELECT 1, 'x'\n----\n1\nx\n"},
		{
			"hash", "a.test", "hash-threshold 1\n\nquery II nosort\nSELECT 1, 2\n----\n3\n",
			"hash-threshold 1\n\nquery II nosort\nSELECT 1, 2\n----\n" + hash([]string{"1", "2"}) + "\n",
		},
		{"tabs of duckdb", "a.test_slow", "query II\nSELECT 1, 2\n----\n1\n", "query II\nSELECT 1, 2\n----\n1\t2\n"},
		{
			"columns of cockroach", "a", "query IT colnames\nSELECT 100 AS a, '' AS long\n----\n",
			"query IT colnames\nSELECT 100 AS a, '' AS long\n----\na    long\n100  ·\n",
		},
		{"loop", "a.slt", "loop i 0 2\n\nquery I\nSELECT 5\n----\n6\n\nendloop\n", "loop i 0 2\n\nquery I\nSELECT 5\n----\n5\n\nendloop\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.file, c.before)
			cfg := Config{DSN: dsn, Override: true}
			out := NewRunner(cfg).Run(context.Background(), path)
			if out.Failure != nil {
				t.Error(out.Failure)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != c.after {
				t.Errorf("got\n%q, want\n%q", got, c.after)
			}
			if changed := c.before != c.after; changed != (out.Rewritten == 1) {
				t.Errorf("%d rewritten", out.Rewritten)
			}
			cfg.Override = false
			if out = NewRunner(cfg).Run(context.Background(), path); out.Failure != nil {
				t.Errorf("what was written does not pass: %v", out.Failure)
			}
		})
	}
}

// TestOverrideLeaves: what no file can say stays a failure, and the file stays as it is.
func TestOverrideLeaves(t *testing.T) {
	dsn := pgtest.Start(t).DSN
	for name, text := range map[string]string{
		"success is expected":   "statement ok\nSELECT 1/0\n",
		"an error is expected":  "query error\nSELECT 1\n",
		"turns of a loop":       "loop i 0 2\n\nquery I\nSELECT ${i}\n----\n0\n\nendloop\n",
		"turns of a loop again": "loop i 0 2\n\nquery I\nSELECT ${i}\n----\n1\n\nendloop\n",
		"a line end in a value": "query T\nSELECT 'a' || chr(10) || 'b'\n----\nab\n",
		"a blank row":           "query T\nSELECT ' '\n----\nab\n",
		"a word":                "frobnicate\n",
	} {
		path := write(t, "a.slt", text)
		out := NewRunner(Config{DSN: dsn, Override: true}).Run(context.Background(), path)
		if out.Failure == nil || out.Rewritten != 0 {
			t.Errorf("%s: %d rewritten, failure %v", name, out.Rewritten, out.Failure)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestOverrideIncluded: the edit goes to the file that holds the record.
func TestOverrideIncluded(t *testing.T) {
	dsn := pgtest.Start(t).DSN
	part := write(t, "a.slt.part", "query I\nSELECT 1\n----\n2\n")
	path := strings.TrimSuffix(part, ".part")
	text := "include a.slt.part\n\nquery I\nSELECT 2\n----\n3\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := NewRunner(Config{DSN: dsn, Override: true}).Run(context.Background(), path)
	if out.Failure != nil || out.Rewritten != 2 {
		t.Errorf("%d rewritten, %v", out.Rewritten, out.Failure)
	}
	for name, want := range map[string]string{part: "query I\nSELECT 1\n----\n1\n", path: "include a.slt.part\n\nquery I\nSELECT 2\n----\n2\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func report() *Report {
	return &Report{Elapsed: 1500 * time.Millisecond, Outcomes: []*Outcome{
		{File: "dir/a.slt", Records: 3, Elapsed: time.Second, Skipped: []string{"dir/a.slt:4: onlyif x"}},
		{
			File: "dir/b.slt", Records: 1, Failure: errors.New("b.slt:1: <no> \x01\nSELECT"),
			Failures: []error{errors.New("b.slt:1: <no> \x01\nSELECT")},
		},
		{File: "c.test", Records: 1, Rest: "c.test:3: require json: not provided"},
		{File: "d.test", Skipped: []string{"d.test:1: onlyif x"}},
	}}
}

// TestJUnit reads the report back: well-formed whatever a message holds.
func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := report().JUnit(&b, "suite"); err != nil {
		t.Fatal(err)
	}
	var got junitSuite
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	if got.Tests != 4 || got.Failures != 1 || got.Skipped != 2 || len(got.Cases) != 4 || got.Time != "1.500" {
		t.Errorf("got %+v", got)
	}
	if c := got.Cases[1]; c.ClassName != "dir" || c.Name != "b.slt" || !strings.Contains(c.Failures[0].Message, "<no>") {
		t.Errorf("got %+v", c)
	}
	if got.Cases[2].Skipped == nil || got.Cases[3].Skipped.Message != "no record ran" {
		t.Errorf("got %+v", got.Cases[2:])
	}
}

func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		p    Progress
		want []string
		not  string
	}{
		"plain":    {Progress{}, []string{"ok   dir/a.slt (3 records, 1 skipped, 1s)\n", "FAIL dir/b.slt", "skip c.test"}, "\r"},
		"quiet":    {Progress{Quiet: true}, []string{"FAIL dir/b.slt"}, "ok "},
		"verbose":  {Progress{Verbose: true}, []string{"skipped dir/a.slt:4: onlyif x\n"}, "\r"},
		"terminal": {Progress{Terminal: true}, []string{"0/4 files, 0 failed, now dir/a.slt", "3/4 files, 1 failed, now d.test"}, "\t"},
	} {
		var b strings.Builder
		p := c.p
		p.Out, p.Files = &b, 4
		r := report()
		for _, o := range r.Outcomes {
			p.Started(o.File)
			p.Done(o)
		}
		r.Summary(&b)
		c.want = append(c.want, "records: 5 run, 2 skipped\nfiles: 1 passed, 1 failed, 2 skipped in 1.5s\n")
		for _, w := range c.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%s", name, w, &b)
			}
		}
		if strings.Contains(b.String(), c.not) {
			t.Errorf("%s: %q in\n%s", name, c.not, &b)
		}
	}
}

// TestSuiteInterrupted: files that did not start are named, and are no passes.
func TestSuiteInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := (&Suite{Files: []string{"a", "b"}, Jobs: 4}).Run(ctx)
	if r.Count(Skipped) != 2 || !strings.Contains(r.Outcomes[0].Rest, "not started") || r.Outcomes[1].File != "b" {
		t.Errorf("got %+v", r.Outcomes)
	}
}

// TestFailFast: after a failure no file starts.
func TestFailFast(t *testing.T) {
	s := &Suite{Files: []string{write(t, "a.slt", "frobnicate\n"), write(t, "b.slt", "frobnicate\n")}, FailFast: true}
	if r := s.Run(context.Background()); r.Count(Failed) != 1 || r.Count(Skipped) != 1 {
		t.Errorf("got %d failed, %d skipped", r.Count(Failed), r.Count(Skipped))
	}
	s.FailFast = false
	if r := s.Run(context.Background()); r.Count(Failed) != 2 {
		t.Errorf("without it: got %d failed", r.Count(Failed))
	}
}

func TestCollect(t *testing.T) {
	got, err := Collect([]string{"testdata/risingwave", "testdata/risingwave/*.slt", "testdata/cockroach/basics"}, "")
	want := "testdata/cockroach/basics testdata/risingwave/basics.slt testdata/risingwave/system.slt"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = Collect([]string{"testdata"}, "lock*"); err != nil || len(got) != 1 {
		t.Errorf("matching: got %v, %v", got, err)
	}
	for _, arg := range []string{"testdata/cockroach", "no/such/dir", "[", "no*such"} {
		if got, err := Collect([]string{arg}, ""); err == nil {
			t.Errorf("%s: got %v", arg, got)
		}
	}
}
