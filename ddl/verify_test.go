package ddl

import (
	"context"
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func (f *fakeController) Verify(_ context.Context, r VerifyRequest, progress func(string)) ([]VerifyLine, error) {
	progress("half way")
	low, rows := "5", int64(3)
	return []VerifyLine{
		{Table: "a.b", High: &low, RowsSource: &rows, RowsHere: &rows, State: "equal"},
		{Table: "a.b", Low: &low, RowsSource: &rows, RowsHere: &rows, State: "differs"},
		{Table: "a.b", Low: &low, State: "different", Key: "7", Detail: "v"},
	}, f.call("verify %s %s %d %d %d %s", r.Pipeline, names(r.Tables...), r.Ranges, r.Keys, r.RowsPerSecond, r.Wait)
}

// TestVerifyStatement: what the statement asks of the controller, and what it refuses.
func TestVerifyStatement(t *testing.T) {
	for _, test := range []struct{ sql, call, code string }{
		{"VERIFY PIPELINE p", "verify p  64 100 0 5m0s", ""},
		{"verify pipeline p table t, s.u with (ranges = 8, keys 5, rows_per_second = 1000, wait = '30 s');", "verify p .t,s.u 8 5 1000 30s", ""},
		{"VERIFY PIPELINE p WITH (range = 8)", "", "22023"},
		{"VERIFY PIPELINE p WITH (ranges = 0)", "", "22023"},
		{"VERIFY PIPELINE nobody", "", "42704"},
		{"VERIFY PIPELINE p TABLE", "", "42601"},
		{"VERIFY p", "", "42601"},
		{"VERIFY PIPELINE p WITH", "", "42601"},
	} {
		x, f := newExecutor(t)
		setup := "CREATE PIPELINE p FROM POSTGRES 'postgres://u@h/d' FOR ALL TABLES WITH (start = false)"
		if got := run(t, x, f, setup); f.calls == nil && got == "" {
			t.Fatalf("set-up: %s", got)
		}
		f.calls = nil
		session := &fakeSession{}
		s, err := Parse(test.sql)
		var r *Result
		if err == nil {
			r, err = x.Execute(t.Context(), s, session)
		}
		if test.code != "" {
			if e := fmt.Sprintf("%+v", err); err == nil || codeOf(err) != test.code {
				t.Errorf("%s: %v", test.sql, e)
			}
			continue
		}
		if err != nil || len(f.calls) != 1 || f.calls[0] != test.call {
			t.Errorf("%s: %q, %v", test.sql, f.calls, err)
			continue
		}
		if len(r.Rows) != 3 || r.Rows[0][1] != nil || r.Rows[0][2] != "5" || r.Rows[1][3] != int64(3) || r.Rows[2][3] != nil || r.Rows[2][6] != "7" {
			t.Errorf("%s: %v", test.sql, r.Rows)
		}
		if len(session.notices) != 2 || session.notices[1] != `WARNING pipeline "p" differs from its source in one range` {
			t.Errorf("%s: %q", test.sql, session.notices)
		}
	}
	x, f := newExecutor(t)
	run(t, x, f, "CREATE PIPELINE p FROM POSTGRES 'postgres://u@h/d' FOR ALL TABLES WITH (start = false)")
	f.fail["verify"] = &Problem{Kind: Unreachable, Message: "no answer"}
	s, err := Parse("VERIFY PIPELINE p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Execute(t.Context(), s, &fakeSession{}); codeOf(err) != "08001" {
		t.Errorf("source down: %v", err)
	}
	if s.Transactional() || s.Tag() != "VERIFY" {
		t.Errorf("%v %s", s.Transactional(), s.Tag())
	}
}

// codeOf is the SQLSTATE of an error, "" for none.
func codeOf(err error) string {
	if e, ok := pgerr.As(err); ok {
		return string(e.Code)
	}
	return ""
}
