package ddl

import (
	"errors"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
)

// TestMadeMeanwhile: a pipeline that another session makes while a statement looks at the
// source is replaced, or left, as the statement says; and what another session has put in
// the place of one whose start failed is not undone.
func TestMadeMeanwhile(t *testing.T) {
	const made = "FROM c FOR ALL TABLES WITH (start = false)"
	newWorld := func() (x *Executor, f *fakeController, other func(sql string)) {
		x, f = newExecutor(t)
		run(t, x, f, "CREATE CONNECTION c TO POSTGRES (HOST 'h')")
		return x, f, func(sql string) {
			discovered, started, calls := f.discovered, f.started, f.calls
			f.discovered, f.started = nil, nil // of the other statement
			if out := run(t, x, f, sql); strings.Contains(out, "ERROR") {
				t.Fatal(out)
			}
			f.discovered, f.started, f.calls = discovered, started, calls
		}
	}
	for _, c := range []struct{ sql, want string }{
		{"CREATE OR REPLACE PIPELINE p " + made, `WARNING slot "s" is left | CREATE PIPELINE | discover c | drop p false`},
		{"CREATE PIPELINE IF NOT EXISTS p " + made, `NOTICE pipeline "p" already exists, skipping | CREATE PIPELINE | discover c`},
		{"CREATE PIPELINE p " + made, `ERROR 42710 pipeline "p" already exists | discover c`},
	} {
		x, f, other := newWorld()
		f.discovered = func() { other("CREATE PIPELINE p FROM c FOR TABLE other WITH (start = false)") }
		if got := run(t, x, f, c.sql); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, got, c.want)
		}
	}

	x, f, other := newWorld()
	f.started = func() { other("CREATE OR REPLACE PIPELINE p " + made) }
	f.fail["start"] = &Problem{Kind: Unreachable, Message: "no answer", Cause: errors.New("dial")}
	if got := run(t, x, f, "CREATE PIPELINE p FROM c FOR ALL TABLES"); got != "ERROR 08001 no answer | discover c | start p" {
		t.Error(got)
	}
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	if p, err := snap.Pipeline("p"); err != nil || p.Enabled || p.State != catalog.PipelineDisabled {
		t.Errorf("what another session has made: %+v, %v", p, err)
	}
}
