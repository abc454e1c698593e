package ddl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
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

// TestInUseHint: what depends on a connection or a secret is told with the statements that
// let go of it, which can be run as they stand.
func TestInUseHint(t *testing.T) {
	x, f := newExecutor(t)
	for _, sql := range []string{
		"CREATE SECRET pw AS 'x'", "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD SECRET pw)", "CREATE CONNECTION \"Odd\" TO POSTGRES (PASSWORD SECRET pw)",
		"CREATE PIPELINE a FROM c FOR ALL TABLES WITH (start = false)", "CREATE PIPELINE \"B\" FROM c FOR ALL TABLES SCHEMA s WITH (start = false)",
	} {
		if out := run(t, x, f, sql); strings.Contains(out, "ERROR") {
			t.Fatal(out)
		}
	}
	for sql, want := range map[string]string{
		"DROP CONNECTION c": `DROP PIPELINE "B"; DROP PIPELINE a; drops what depends on it; ALTER CONNECTION c SET (…); leads it elsewhere.`,
		"DROP SECRET pw": `ALTER CONNECTION "Odd" SET (PASSWORD SECRET …); ALTER CONNECTION c SET (PASSWORD SECRET …); lets go of it; ` +
			`DROP CONNECTION "Odd"; DROP CONNECTION c; drops what depends on it.`,
	} {
		s, err := Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Execute(t.Context(), s, &fakeSession{})
		if e, ok := pgerr.As(err); !ok || e.Code != "2BP01" || e.Hint != want {
			t.Errorf("%s: %v, hint %q, want %q", sql, err, e.Hint, want)
		}
	}
}

// TestAsTextNotice: another rule for exact text is told to count from the next copy on, with
// the statement that copies the tables that it is of; not when it is the same, or of none.
func TestAsTextNotice(t *testing.T) {
	x, f := newExecutor(t)
	_ = run(t, x, f, "CREATE PIPELINE p FROM POSTGRES 'postgres://u@h/d' FOR ALL TABLES WITH (start = false)")
	err := x.Catalog.Update(t.Context(), func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("p")
		if err != nil {
			return err
		}
		for name, c := range map[string]schema.NewField{
			"Days": {OID: schema.OIDDate, TypMod: -1}, "words": {OID: schema.OIDText, TypMod: -1}, "any": {OID: schema.OIDNumeric, TypMod: -1},
			"sums": {OID: schema.OIDNumeric, TypMod: (10<<16 | 2) + 4},
		} {
			c.Name, c.Type, c.AttNum = "c", schema.Type{Kind: schema.String}, 1
			s, err := schema.New([]schema.NewField{c}, nil)
			if err != nil {
				return err
			}
			if err := txn.CreateTable(&catalog.Table{Pipeline: p.ID, Schema: "p", Name: name, Current: s, State: catalog.TableReady}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const told = `NOTICE columns of pipeline "p" become exact text, or cease to be, with the next copy of their table ` +
		`(ALTER PIPELINE p RESYNC TABLE p."Days", p.sums; copies anew what has such columns.) | ALTER PIPELINE`
	for _, c := range []struct{ sql, want string }{
		{"ALTER PIPELINE p SET (out_of_range = 'text')", told},
		{"ALTER PIPELINE p SET (out_of_range = 'text', on_error = stop)", "ALTER PIPELINE"},
		{"ALTER PIPELINE p RESET (out_of_range)", told},
		{"ALTER PIPELINE p SET (out_of_range = 'clamp')", "ALTER PIPELINE"},
	} {
		if got := run(t, x, f, c.sql); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
	e := x.differs(&catalog.Pipeline{ID: 1, Name: "p"}, []string{"p.Days", "p.Days", "p.sums", "p.gone"})
	if e.Message != `pipeline "p" differs from its source in 4 ranges` || e.Hint != `ALTER PIPELINE p RESYNC TABLE p."Days", p.sums; copies anew what differs.` {
		t.Errorf("%v, hint %q", e, e.Hint)
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
