package ddl

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// TestDroppedMeanwhile: a pipeline that somebody drops while a statement runs does not
// exist, by the name that the statement has.
func TestDroppedMeanwhile(t *testing.T) {
	for _, test := range []struct{ sql, call, want string }{
		{"DROP PIPELINE p", "drop", `pipeline "p" does not exist (SQLSTATE 42704)`},
		{"DROP PIPELINE IF EXISTS p", "drop", `NOTICE pipeline "p" does not exist, skipping`},
		{"ALTER PIPELINE p RESYNC TABLE t", "resynctable", `pipeline "p" does not exist (SQLSTATE 42704)`},
		{"ALTER PIPELINE p RESET", "reset", `pipeline "p" does not exist (SQLSTATE 42704)`},
	} {
		x, f := newExecutor(t)
		if got := run(t, x, f, "CREATE PIPELINE p FROM POSTGRES 'postgres://u@h/d' FOR ALL TABLES WITH (start = false)"); f.calls == nil {
			t.Fatal(got)
		}
		f.fail[test.call] = fmt.Errorf("reload: %w", &catalog.NotFoundError{Kind: catalog.KindPipeline, Name: "#9"})
		session := &fakeSession{}
		s, err := Parse(test.sql)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err = x.Execute(t.Context(), s, session); err != nil {
			got = err.Error()
		} else if len(session.notices) > 0 {
			got = session.notices[0]
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q; calls %q", test.sql, got, test.want, f.calls)
		}
	}
}

// TestDisabledHint: the statement of the hint can be run as it stands.
func TestDisabledHint(t *testing.T) {
	x, f := newExecutor(t)
	_ = run(t, x, f, `CREATE PIPELINE "a ""b" FROM POSTGRES 'postgres://u@h/d' FOR ALL TABLES WITH (start = false)`)
	s, err := Parse(`ALTER PIPELINE "a ""b" RESUME`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Execute(t.Context(), s, &fakeSession{})
	e, ok := pgerr.As(err)
	if want := `ALTER PIPELINE "a ""b" ENABLE; starts it.`; !ok || e.Hint != want {
		t.Errorf("%v", err)
	}
}
