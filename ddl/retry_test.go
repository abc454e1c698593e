package ddl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// retrier is a controller whose letters are those that were asked for.
type retrier struct {
	*fakeController
	only map[uint64]bool
}

func (r *retrier) RetryLetters(_ context.Context, _ string, only map[uint64]bool, tell func(string)) (RetriedLetters, error) {
	r.only = only
	tell("dead letter 7 of s.t stays: no reason")
	return RetriedLetters{Retried: 2, Superseded: 1, Failing: 3}, nil
}

// asked is a session that answers queries with ids.
type asked struct {
	sql     string
	notices []string
}

func (a *asked) Notice(e *pgerr.Error) error { a.notices = append(a.notices, e.Message); return nil }
func (a *asked) User() string                { return "u" }
func (a *asked) Role() uint32                { return 10 }

func (a *asked) Query(_ context.Context, sql string) ([][]string, error) {
	a.sql = sql
	return [][]string{{"7"}, {"9"}}, nil
}

// TestRetryLetters: the condition is what was written, of any syntax, and its letters are
// those that are retried.
func TestRetryLetters(t *testing.T) {
	for _, c := range []struct{ sql, query, ids string }{
		{"RETRY DEAD LETTERS FROM p;", "", "all"},
		{
			"retry dead letters from p where code >= '22' AND \"key\"->>0 <> $x$;$x$ ; ",
			"SELECT id FROM skippr.dead_letters WHERE pipeline = 'p' AND (\ncode >= '22' AND \"key\"->>0 <> $x$;$x$\n)", "[7 9]",
		},
	} {
		st, err := Parse(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		x, _ := newExecutor(t)
		if err := x.Catalog.Update(t.Context(), func(txn *catalog.Txn) error {
			return txn.CreatePipeline(&catalog.Pipeline{Name: "p", Connection: "c"})
		}); err != nil {
			t.Fatal(err)
		}
		r, a := &retrier{}, &asked{}
		x.Controller = r
		res, err := x.Execute(t.Context(), st, a)
		if err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		ids := "all"
		if r.only != nil {
			ids = fmt.Sprint(slices.Sorted(maps.Keys(r.only)))
		}
		if a.sql != c.query || ids != c.ids || res.Tag != "RETRY 2" || fmt.Sprint(res.Rows) != "[[2 1 3]]" || len(a.notices) != 1 {
			t.Errorf("%s: query %q, letters %s, %s %v, notices %q", c.sql, a.sql, ids, res.Tag, res.Rows, a.notices)
		}
	}
	for _, bad := range []string{"RETRY", "RETRY DEAD LETTERS", "RETRY DEAD LETTERS FROM p WHERE", "RETRY DEAD LETTERS FROM p WHERE ;", "RETRY DEAD LETTERS FROM p x"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}

// TestAsText: columns of a table that are kept as exact text, and the statement that
// makes them so again.
func TestAsText(t *testing.T) {
	for from, want := range map[string]string{
		"t (a, b AS text)":                 `public.t (a, b AS text)`,
		"t (a AS text, \"As\" AS text, c)": `public.t (a AS text, "As" AS text, c)`,
		"t (*, b AS text)":                 `public.t (*, b AS text)`,
		"t (*), u":                         `public.t, public.u`,
		"t (as AS text)":                   `public.t ("as" AS text)`,
	} {
		for _, sql := range []string{"CREATE PIPELINE p FROM c FOR TABLE " + from, "CREATE PIPELINE p FROM c FOR TABLE " + want} {
			st, err := Parse(sql)
			if err != nil {
				t.Errorf("%s: %v", sql, err)
				continue
			}
			if got := selectionDDL(st.(*CreatePipeline).Selection); got != " FOR TABLE "+want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
	}
	for _, bad := range []string{"t (*, b)", "t (a AS int)", "t (*", "t (a AS text b)", "t (,a)"} {
		if _, err := Parse("CREATE PIPELINE p FROM c FOR TABLE " + bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}
