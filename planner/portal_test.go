package planner_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// frames is a Runner whose every query has rows 1…n in frames of the given sizes.
type frames struct {
	sizes []int
	fail  error // after the frames
	open  int
	plan  *duckdb.Plan
}

func (f *frames) Query(_ context.Context, p *duckdb.Plan) (planner.Rows, error) {
	f.open++
	f.plan = p
	return &frameRows{f: f, sizes: f.sizes}, nil
}

type frameRows struct {
	f     *frames
	sizes []int
	n     int
}

func (r *frameRows) Next(context.Context) (duckdb.Frame, error) {
	if len(r.sizes) == 0 {
		if r.f.fail != nil {
			return duckdb.Frame{}, r.f.fail
		}
		return duckdb.Frame{}, io.EOF
	}
	fr := duckdb.Frame{Rows: r.sizes[0]}
	for range r.sizes[0] {
		r.n++
		columns, values := []encode.Column{{TypeOID: 25}}, []any{fmt.Sprint(r.n)}
		if r.f.plan.Output.Kind == duckdb.OutputRowPairs {
			columns, values = append(columns, columns...), append(values, values...)
		}
		fr.Data = encode.AppendDataRow(fr.Data, columns, values)
	}
	r.sizes = r.sizes[1:]
	return fr, nil
}

func (r *frameRows) Close() { r.f.open-- }

// recorder is a sink that writes down what it gets.
type recorder struct{ got []string }

func (r *recorder) Rows(b []byte, n int) error {
	seen := 0
	for len(b) > 0 {
		end := 1 + int(binary.BigEndian.Uint32(b[1:]))
		r.got = append(r.got, string(b[11:end]))
		b = b[end:]
		seen++
	}
	if seen != n {
		return fmt.Errorf("%d messages, told %d", seen, n)
	}
	return nil
}

func (r *recorder) Notice(e *pgerr.Error) error {
	r.got = append(r.got, e.Severity+" "+string(e.Code))
	return nil
}

func (r *recorder) ParameterStatus(name, value string) error {
	r.got = append(r.got, name+"="+value)
	return nil
}
func (r *recorder) CopyOut(int16, int) error                     { return nil }
func (r *recorder) CopyData([]byte, int) error                   { return nil }
func (r *recorder) CopyDone() error                              { return nil }
func (r *recorder) CopyIn(int16, int) (pgwire.CopyReader, error) { return nil, io.ErrUnexpectedEOF }

// openSession opens a session on an empty catalog and the given runner.
func openSession(t *testing.T, r planner.Runner) pgwire.Session {
	t.Helper()
	clock, ids := env.System()
	cat, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: ids, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	e := planner.New(planner.Deps{
		Catalog: cat, Runner: r, DDL: noDDL{}, System: oneRelation{}, Clock: clock, Version: "15.8", Database: "lake",
		LogDir: func(change.PipelineID) string { return "" },
	})
	s, err := e.Open(t.Context(), pgwire.Startup{User: "postgres", Database: "lake", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Parameters() // what the client was told
	return s
}

func bind(t *testing.T, s pgwire.Session, sql string) pgwire.Portal {
	t.Helper()
	st, err := s.Prepare(t.Context(), sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := st.Bind(t.Context(), nil, nil, make([]int16, len(st.Columns())))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A row limit suspends the portal in the middle of a frame, at its end and at the
// end of the rows; the tag counts the rows of the call.
func TestRowLimit(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		limit int
		want  string
	}{
		{[]int{3, 2}, 0, "1 2 3 4 5 SELECT 5 done"},
		{[]int{3, 2}, 2, "1 2 SELECT 2 more, 3 4 SELECT 2 more, 5 SELECT 1 done"},
		{[]int{3, 2}, 3, "1 2 3 SELECT 3 more, 4 5 SELECT 2 done"},
		{[]int{3, 2}, 5, "1 2 3 4 5 SELECT 5 more, SELECT 0 done"},
		{nil, 2, "SELECT 0 done"},
	} {
		t.Run(fmt.Sprint(c.sizes, c.limit), func(t *testing.T) {
			r := &frames{sizes: c.sizes}
			p := bind(t, openSession(t, r), "SELECT 'x'")
			var calls []string
			for done := false; !done; {
				sink := &recorder{}
				tag, d, err := p.Execute(t.Context(), sink, c.limit)
				if err != nil {
					t.Fatal(err)
				}
				done = d
				word := "more"
				if done {
					word = "done"
				}
				calls = append(calls, strings.Join(append(sink.got, tag, word), " "))
			}
			if got := strings.Join(calls, ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if r.open != 0 {
				t.Errorf("%d streams left open", r.open)
			}
		})
	}
}

// Closing a suspended portal closes its stream; so does an error in the middle,
// which is 40001 when the pin was lost after rows had left.
func TestStreamIsClosed(t *testing.T) {
	r := &frames{sizes: []int{2, 2}}
	s := openSession(t, r)
	p := bind(t, s, "SELECT 'x'")
	if _, _, err := p.Execute(t.Context(), &recorder{}, 1); err != nil || r.open != 1 {
		t.Fatalf("suspended: %v, %d open", err, r.open)
	}
	p.Close()
	p.Close()
	if r.open != 0 {
		t.Errorf("%d open after close", r.open)
	}
	r.fail = fmt.Errorf("test: %w", duckdb.ErrSliceLost)
	_, _, err := bind(t, s, "SELECT 'x'").Execute(t.Context(), &recorder{}, 0)
	if e, ok := pgerr.As(err); !ok || e.Code != "40001" {
		t.Errorf("lost after rows: %v", err)
	}
	if r.open != 0 {
		t.Errorf("%d open after the error", r.open)
	}
}

// now() is the transaction's time in every statement of it.
func TestNowIsTheTransactions(t *testing.T) {
	r := &frames{}
	s := openSession(t, r)
	run := func(sql string) string {
		t.Helper()
		if _, _, err := bind(t, s, sql).Execute(t.Context(), &recorder{}, 0); err != nil {
			t.Fatal(err)
		}
		if r.plan == nil {
			return ""
		}
		return r.plan.SQL
	}
	run("BEGIN")
	first := run("SELECT now()")
	if second := run("SELECT now()"); first != second || !strings.Contains(first, "TIMESTAMPTZ") {
		t.Errorf("%s\n%s", first, second)
	}
}

// Warnings and changed settings reach the client.
func TestNotices(t *testing.T) {
	s := openSession(t, &frames{})
	for sql, want := range map[string]string{
		"COMMIT":                           "WARNING 25P01",
		"SET LOCAL application_name = 'x'": "WARNING 25P01 application_name=x",
		"SET TRANSACTION READ ONLY":        "WARNING 25P01",
		"SET DateStyle = 'German'":         "DateStyle=German, DMY",
		"SELECT set_config('IntervalStyle', 'iso_8601', false)": "IntervalStyle=iso_8601",
	} {
		sink := &recorder{}
		if _, _, err := bind(t, s, sql).Execute(t.Context(), sink, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(sink.got, " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
}
