package compact_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/wal/env"
)

// newWholeWorld is a world whose table has no key, and rows that are told apart by all
// columns. The search is the engine's.
func newWholeWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.searcher = compact.EngineSearcher{Pool: newPool(t)}
	w.reopen()
	w.setTable(func(t *catalog.Table) {
		s := *t.Current
		s.Key, s.WholeRow = nil, true
		t.Current, t.Versions = &s, []*schema.Table{&s}
	})
	return w
}

// Of equal rows a delete takes one away, in the log and in the lake, and Iceberg's own
// reader sees as many as there are.
func TestWholeRows(t *testing.T) {
	w := newWholeWorld(t)
	w.append("", "+1 a", "+1 a", "+2 b", "-1 a")
	w.compact()
	w.wantRows("1 a", "2 b")
	w.append("", "+1 a", "+1 a")
	w.append("", "+3")
	w.compact()
	w.wantRows("1 a", "1 a", "1 a", "2 b", "3 (null)")
	w.append("", "-1 a", "-1 a", "-3", "+3", "+3")
	w.compact()
	w.wantRows("1 a", "2 b", "3 (null)", "3 (null)")
	w.append("", "-3")
	w.compact()
	w.wantRows("1 a", "2 b", "3 (null)")
	w.append("truncate", "+2 b", "-2 b", "+2 b")
	w.compact()
	w.wantRows("2 b")
}

// Inserts alone are written slice by slice, and nothing is searched.
func TestWholeRowsAppended(t *testing.T) {
	w := newWholeWorld(t)
	w.searcher = nil // the world counts
	w.reopen()
	w.append("backfill", "+1 a", "+1 a")
	w.append("", "+1 a")
	w.compact()
	w.append("", "+1 a", "-1 a")
	w.compact()
	w.wantRows("1 a", "1 a", "1 a")
	if w.searches > 0 {
		t.Errorf("%d searches", w.searches)
	}
}

// A crash at any point of a compaction that deletes changes nothing.
func TestWholeRowsCrash(t *testing.T) {
	for _, at := range []env.Failpoint{env.BeforeLakeCommit, env.AfterLakeCommit, env.AfterMark} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			w := newWholeWorld(t)
			w.append("", "+1 a", "+1 a", "+1 a")
			w.compact()
			w.append("", "-1 a")
			w.crashAt = at
			if err := w.svc.Compact(t.Context(), "p"); err == nil {
				t.Fatal("no crash")
			}
			w.reopen()
			w.compact()
			w.wantRows("1 a", "1 a")
		})
	}
}

// A deleted row that is not there stops the table, and leaves the lake as it is.
func TestWholeRowsMissing(t *testing.T) {
	w := newWholeWorld(t)
	w.append("", "+1 a", "+2 b")
	w.compact()
	w.append("", "-2 b", "-2 b")
	if err := w.svc.Compact(t.Context(), "p"); err == nil {
		t.Error("no error")
	}
	w.wantRows("1 a", "2 b")
	w.setTable(func(tbl *catalog.Table) {
		if tbl.State != catalog.TableStopped || tbl.StoppedAt != "" || !strings.Contains(tbl.Hint, "RESYNC") {
			t.Errorf("table is %s: %q %q", tbl.State, tbl.Reason, tbl.Hint)
		}
	})
}

// beginsAnew is a search during which the table begins anew.
type beginsAnew struct {
	compact.Searcher
	w *world
}

func (b beginsAnew) Superseded(ctx context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error] {
	b.w.setTable(func(t *catalog.Table) { t.Generation, t.State = t.Generation+1, catalog.TablePending })
	return b.Searcher.Superseded(ctx, plan)
}

// A table that begins anew meanwhile is not stopped for what it had before.
func TestWholeRowsMissingBefore(t *testing.T) {
	w := newWholeWorld(t)
	w.append("", "+1 a", "+2 b")
	w.compact()
	w.append("", "-2 b", "-2 b")
	w.searcher = beginsAnew{w.searcher, w}
	w.reopen()
	if err := w.svc.Compact(t.Context(), "p"); err == nil {
		t.Error("no error")
	}
	w.setTable(func(tbl *catalog.Table) {
		if tbl.State != catalog.TablePending || tbl.Generation == 0 {
			t.Errorf("generation %d is %s: %q", tbl.Generation, tbl.State, tbl.Reason)
		}
	})
}

// Files and slices that are older than a column have its initial value in it.
func TestWholeRowsInitial(t *testing.T) {
	w := newWholeWorld(t)
	id := schema.NewField{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, NotNull: true}
	old, err := schema.New([]schema.NewField{id}, nil)
	if err != nil {
		t.Fatal(err)
	}
	old.WholeRow = true
	w.setTable(func(t *catalog.Table) { t.Current, t.Versions = old, []*schema.Table{old} })
	w.append("", "+1", "+1", "+2")
	w.compact()
	w.append("", "+2")
	text := "a"
	next, err := schema.Evolve(old, []schema.NewField{id, {
		Name: "name", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1, Initial: &text,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.setTable(func(t *catalog.Table) { t.Current, t.Versions = next, append(t.Versions, next) })
	w.append("", "-1 a", "-2 a", "-2 a", "+3 b")
	w.compact()
	if rows := w.lakeState().Rows; rows != 2 {
		t.Errorf("%d rows, want 1 and 3", rows)
	}
}

// Random histories: after each compaction Iceberg's own reader sees what a count of
// inserts less deletes says.
func TestWholeRowsRandom(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWholeWorld(t)
		have := map[string]int{}
		for range 8 {
			for range 1 + rng.IntN(3) {
				var rows []string
				for range rng.IntN(6) {
					r := fmt.Sprintf("%d %s", rng.IntN(3), []string{"", "a", "b"}[rng.IntN(3)])
					if have[r] > 0 && rng.IntN(2) == 0 {
						have[r]--
						rows = append(rows, "-"+r)
					} else {
						have[r]++
						rows = append(rows, "+"+r)
					}
				}
				w.append("", rows...)
			}
			w.compact()
			var want []string
			for r, n := range have {
				if strings.HasSuffix(r, " ") {
					r += "(null)"
				}
				for range n {
					want = append(want, r)
				}
			}
			w.wantRows(want...)
		}
	}
}
