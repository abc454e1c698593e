package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// partState reads a state: "part ID", "complete ID PARTS SEQ", "void", "void TABLE".
func partState(txn *catalog.Txn, pipeline change.PipelineID, state []byte) error {
	for _, line := range strings.Split(string(state), "\n") {
		var id string
		var n, seq int
		if _, err := fmt.Sscanf(line, "complete %s %d %d", &id, &n, &seq); err == nil {
			return txn.Complete(id, n, segment.Seq(seq))
		}
		if _, err := fmt.Sscanf(line, "part %s", &id); err == nil {
			return txn.PartOf(id)
		}
		if _, err := fmt.Sscanf(line, "void %d", &n); err == nil {
			if err := txn.VoidPendingOf(change.TableID(n)); err != nil {
				return err
			}
		} else if err := txn.VoidPending(pipeline); err != nil {
			return err
		}
	}
	return nil
}

func openParts(t testing.TB, store kv.Store) *catalog.Catalog {
	t.Helper()
	deps := testDeps()
	deps.ApplyState = partState
	c, err := catalog.Open(t.Context(), store, deps)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withState(g wal.CommittedGroup, format string, args ...any) wal.CommittedGroup {
	g.State = fmt.Appendf(nil, format, args...)
	if strings.HasPrefix(format, "part") || strings.HasPrefix(format, "void") {
		g.Position, g.CommittedAt = "", time.Time{}
	}
	return g
}

// logged renders what the log has: "table@ref" of live slices, "?" before pending ones,
// then per segment its live count.
func logged(t testing.TB, s *catalog.Snapshot) string {
	t.Helper()
	var out []string
	for _, x := range get[[]catalog.Slice](t)(s.Slices(1)) {
		mark := ""
		switch {
		case x.Pending:
			mark = "?"
		case x.Compacted != "":
			mark = "!"
		}
		out = append(out, fmt.Sprintf("%s%d@%s", mark, x.Table, x.Ref))
	}
	for _, x := range get[[]catalog.Segment](t)(s.Segments(1)) {
		out = append(out, fmt.Sprintf("seg%d=%d", x.Seq, x.Live))
	}
	return strings.Join(out, " ")
}

func visible(t testing.TB, s *catalog.Snapshot, table change.TableID) string {
	t.Helper()
	return strings.Join(refs(get[[]catalog.Slice](t)(s.LiveSlices(table))), " ")
}

// A transaction in parts is invisible, to every pin, until the group that completes it
// is published; then it is there whole, in all tables, in log order.
func TestParts(t *testing.T) {
	store := memkv.New()
	c := openParts(t, store)
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2), withState(group(1, 1, 1), "part x"))
	publish(t, c, withState(group(2, 0, 2), "part x"))
	open := snapshot(t, c)
	equal(t, "log", logged(t, open), "1@1:0 2@1:10 ?1@1:100 ?2@2:0 seg1=3 seg2=1")
	equal(t, "visible", visible(t, open, 1), "1:0")
	equal(t, "pending by segment", get[map[segment.Seq]int](t)(open.PendingBySegment(1)), map[segment.Seq]int{1: 1, 2: 1})
	p, _ := open.Pending(1)
	equal(t, "pending", p, catalog.PendingTxn{ID: "x", Groups: 2, Slices: 2, Rows: 4, Bytes: 20, Since: testStart})
	equal(t, "position", string(get[catalog.Offset](t)(open.Offset(1)).Position), "1.0")
	chunk := group(2, 1, 1) // of a copy, meanwhile
	chunk.Position, chunk.Slices[0].Backfill = "", true
	publish(t, c, chunk)
	equal(t, "visible with a chunk", visible(t, snapshot(t, c), 1), "1:0 2:100")
	publish(t, c, withState(group(3, 0, 1), "complete x 2 1"))
	for _, c := range []*catalog.Catalog{c, openParts(t, store)} {
		s := snapshot(t, c)
		equal(t, "log", logged(t, s), "1@1:0 2@1:10 1@1:100 2@2:0 1@2:100 1@3:0 seg1=3 seg2=2 seg3=1")
		equal(t, "visible", visible(t, s, 1), "1:0 1:100 2:100 3:0")
		equal(t, "visible", visible(t, s, 2), "1:10 2:0")
		if _, ok := s.Pending(1); ok {
			t.Error("still pending")
		}
	}
	equal(t, "visible to the old pin", visible(t, open, 1), "1:0")
	publish(t, c, group(3, 1, 1))
	equal(t, "visible", visible(t, snapshot(t, c), 1), "1:0 1:100 2:100 3:0 3:100")
}

// Pending slices keep their segments and cannot be compacted; once live, they can, even
// where everything around them was compacted before.
func TestPartsCompaction(t *testing.T) {
	c := openParts(t, memkv.New())
	shop(t, c)
	chunk := group(3, 0, 1)
	chunk.Position, chunk.Slices[0].Backfill = "", true
	publish(t, c, group(1, 0, 1), withState(group(2, 0, 1), "part x"), chunk)
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1, MaxToken: 1000})
	s := snapshot(t, c)
	equal(t, "log", logged(t, s), "!1@1:0 ?1@2:0 !1@3:0 seg1=0 seg2=1 seg3=0")
	equal(t, "reclaimable", get[[]segment.Seq](t)(s.ReclaimableSegments(1, 9)), []segment.Seq{1, 3})
	err := c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.DeleteSegment(1, 2) })
	is(t, "delete segment", err, catalog.ErrSegmentLive)
	plan := &catalog.Compaction{ID: "c2", Table: 1, Slices: []segment.SliceRef{{Seq: 2}}}
	is(t, "plan", c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.PlanCompaction(plan) }), catalog.ErrStale)
	publish(t, c, withState(group(4, 0, 1), "complete x 1 2"))
	s = snapshot(t, c)
	equal(t, "visible", visible(t, s, 1), "2:0 4:0")
	live := get[[]catalog.Slice](t)(s.LiveSlices(1))
	equal(t, "newer than the lake", s.NewerThanLake(1, live), true)
	ackAll(t, c, 1, "c2", catalog.LakeState{Snapshot: 2})
	equal(t, "log", logged(t, snapshot(t, c)), "!1@1:0 !1@2:0 !1@3:0 !1@4:0 seg1=0 seg2=0 seg3=0 seg4=0")
}

// What gives a transaction in parts up makes it void: it never becomes visible and keeps
// no segment.
func TestPartsVoid(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(t *testing.T, c *catalog.Catalog)
		want string
	}{
		{"abort", func(t *testing.T, c *catalog.Catalog) {
			publish(t, c, withState(group(3, 0), "void"))
		}, "1@1:0 seg1=1 seg2=0 seg3=0"},
		{"a session begins", func(t *testing.T, c *catalog.Catalog) {
			update(t, c, func(txn *catalog.Txn) error { return txn.VoidPending(1) })
		}, "1@1:0 seg1=1 seg2=0"},
		{"another begins", func(t *testing.T, c *catalog.Catalog) {
			publish(t, c, withState(group(3, 0, 2), "part y"))
		}, "1@1:0 ?2@3:0 seg1=1 seg2=0 seg3=1"},
		{"the stream is past it", func(t *testing.T, c *catalog.Catalog) {
			publish(t, c, group(3, 0, 2))
		}, "1@1:0 2@3:0 seg1=1 seg2=0 seg3=1"},
		{"one table stops", func(t *testing.T, c *catalog.Catalog) {
			publish(t, c, withState(group(3, 0), "void 1\ncomplete x 2 1"))
		}, "1@1:0 2@2:10 seg1=1 seg2=1 seg3=0"},
		{"one table is reset", func(t *testing.T, c *catalog.Catalog) {
			update(t, c, func(txn *catalog.Txn) error { _, err := txn.ResetTable(1); return err })
			publish(t, c, withState(group(3, 0), "complete x 2 1"))
		}, "2@2:10 seg1=0 seg2=1 seg3=0"},
		{"one table is dropped", func(t *testing.T, c *catalog.Catalog) {
			update(t, c, func(txn *catalog.Txn) error { return txn.DeleteTable(1) })
			publish(t, c, withState(group(3, 0, 1), "complete x 2 1"))
		}, "2@2:10 seg1=0 seg2=1 seg3=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memkv.New()
			cat := openParts(t, store)
			shop(t, cat)
			publish(t, cat, group(1, 0, 1), withState(group(1, 1, 1), "part x"), withState(group(2, 0, 1, 2), "part x"))
			c.act(t, cat)
			equal(t, "log", logged(t, snapshot(t, cat)), c.want)
			equal(t, "log after a restart", logged(t, snapshot(t, openParts(t, store))), c.want)
		})
	}
}

// What is void of one table is not counted as pending.
func TestPartsVoidOfATable(t *testing.T) {
	for what, act := range map[string]func(*catalog.Txn) error{
		"stops": func(txn *catalog.Txn) error { return txn.VoidPendingOf(1) },
		"reset": func(txn *catalog.Txn) error { _, err := txn.ResetTable(1); return err },
		"drop":  func(txn *catalog.Txn) error { return txn.DeleteTable(1) },
	} {
		store := memkv.New()
		c := openParts(t, store)
		shop(t, c)
		publish(t, c, withState(group(1, 0, 1, 2), "part x"), withState(group(1, 1, 1), "part x"))
		update(t, c, act)
		for _, c := range []*catalog.Catalog{c, openParts(t, store)} {
			p, _ := snapshot(t, c).Pending(1)
			equal(t, what, p, catalog.PendingTxn{ID: "x", Groups: 2, Slices: 1, Rows: 2, Bytes: 10, Since: testStart})
		}
	}
}

// The schema versions of void slices are not given again.
func TestPartsVoidVersion(t *testing.T) {
	for what, act := range map[string]func(*catalog.Txn) error{
		"void":  func(txn *catalog.Txn) error { return txn.VoidPending(1) },
		"reset": func(txn *catalog.Txn) error { _, err := txn.ResetTable(1); return err },
	} {
		store := memkv.New()
		c := openParts(t, store)
		shop(t, c)
		part := withState(group(1, 0, 1, 2), "part x")
		part.Slices[0].SchemaVersion = 2
		publish(t, c, part)
		update(t, c, act)
		for _, c := range []*catalog.Catalog{c, openParts(t, store)} {
			s := snapshot(t, c)
			for id, want := range map[change.TableID]uint32{1: 2, 2: 0} {
				equal(t, what, get[*catalog.Table](t)(s.TableByID(id)).VoidVersion, want)
			}
		}
	}
}

// A completion that does not find its parts is an error, unless the log no longer has
// the first of them.
func TestCompleteRefuses(t *testing.T) {
	c := openParts(t, memkv.New())
	shop(t, c)
	publish(t, c, withState(group(2, 0, 1), "part x"))
	for _, state := range []string{"complete y 1 2", "complete x 2 2"} {
		if err := c.Publish(context.Background(), 1, []wal.CommittedGroup{withState(group(2, 1, 1), "%s", state)}); err == nil {
			t.Errorf("%s: no error", state)
		}
	}
	publish(t, c, withState(group(2, 1, 1), "complete x 2 1"))
	equal(t, "visible", visible(t, snapshot(t, c), 1), "2:0 2:100")
}

// A pipeline that goes takes what is pending with it.
func TestPartsDeletePipeline(t *testing.T) {
	store := memkv.New()
	c := openParts(t, store)
	shop(t, c)
	publish(t, c, withState(group(1, 0, 1), "part x"))
	update(t, c, func(txn *catalog.Txn) error { return txn.DeletePipeline(1) })
	for _, c := range []*catalog.Catalog{c, openParts(t, store)} {
		if _, ok := snapshot(t, c).Pending(1); ok {
			t.Error("still pending")
		}
	}
	if keys := get[int](t)(countKeys(store, "\x24", "\x26")); keys != 0 {
		t.Errorf("%d keys are left", keys)
	}
}

func countKeys(store kv.Store, lower, upper string) (n int, err error) {
	err = store.Iterate([]byte(lower), []byte(upper), func(_, _ []byte) error { n++; return nil })
	return n, err
}

// After a crash that loses what was not synced, the log's groups published again give
// the facts that a run without a crash has.
func TestPartsCrash(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		for name, cr := range crashers(t, rng) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) { runPartsCrash(t, cr, rng) })
		}
	}
}

func runPartsCrash(t *testing.T, cr crasher, rng *rand.Rand) {
	c := openParts(t, cr.store)
	shop(t, c)
	var log []wal.CommittedGroup
	txn, parts, first := 0, 0, segment.Seq(0)
	for step := range 80 {
		seq, n := segment.Seq(1+len(log)/4), len(log)%4
		g := group(seq, n, 1, 2)
		switch k := rng.IntN(12); {
		case k < 5:
			if parts == 0 {
				txn, first = txn+1, seq
			}
			parts++
			g = withState(g, "part t%d", txn)
		case k < 7 && parts > 0:
			g, parts = withState(g, "complete t%d %d %d", txn, parts, first), 0
		case k == 7 && parts > 0:
			g, parts = withState(group(seq, n), "void"), 0
		case k == 8:
			update(t, c, func(txn *catalog.Txn) error { return txn.VoidPending(1) }) // a session begins
			parts = 0
			continue
		case k == 9 && len(live(t, c, 1)) > 0:
			ackAll(t, c, 1, fmt.Sprint("c", step), catalog.LakeState{Snapshot: int64(step)})
			continue
		case k < 11:
			left := openParts(t, cr.crash())
			publish(t, left, log...)
			equal(t, "log after recovery", logged(t, snapshot(t, left)), logged(t, snapshot(t, c)))
			equal(t, "facts after recovery", everything(t, snapshot(t, left)), everything(t, snapshot(t, c)))
			for id := change.TableID(1); id <= 2; id++ {
				equal(t, "visible", visible(t, snapshot(t, left), id), visible(t, snapshot(t, c), id))
			}
			continue
		default:
			parts = 0 // the stream is past it
		}
		log = append(log, g)
		publish(t, c, g)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}

// A transaction that is held in parts is made live by a transaction of the catalog, together with
// what else that does; one that is not what was held stays as it is.
func TestPartsHeld(t *testing.T) {
	store := memkv.New()
	c := openParts(t, store)
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2), withState(group(1, 1, 1), "part x"), withState(group(2, 0, 2), "part x"))
	complete := func(id string, parts int) (done bool) {
		t.Helper()
		update(t, c, func(txn *catalog.Txn) (err error) {
			if done, err = txn.CompleteHeld(1, id, parts); err != nil || !done {
				return err
			}
			return txn.SetPosition(1, "9.9")
		})
		return done
	}
	open := snapshot(t, c)
	equal(t, "another", complete("y", 2), false)
	equal(t, "not all of it", complete("x", 3), false)
	equal(t, "log", logged(t, snapshot(t, c)), "1@1:0 2@1:10 ?1@1:100 ?2@2:0 seg1=3 seg2=1")
	equal(t, "held", complete("x", 2), true)
	for _, c := range []*catalog.Catalog{c, openParts(t, store)} {
		s := snapshot(t, c)
		equal(t, "log", logged(t, s), "1@1:0 2@1:10 1@1:100 2@2:0 seg1=3 seg2=1")
		equal(t, "visible", visible(t, s, 1), "1:0 1:100")
		equal(t, "visible", visible(t, s, 2), "1:10 2:0")
		equal(t, "position", string(get[catalog.Offset](t)(s.Offset(1)).Position), "9.9")
		if _, ok := s.Pending(1); ok {
			t.Error("still pending")
		}
	}
	equal(t, "visible to the old pin", visible(t, open, 1), "1:0")
	equal(t, "once more", complete("x", 2), false)
	publish(t, c, group(3, 0, 1))
	equal(t, "visible", visible(t, snapshot(t, c), 1), "1:0 1:100 3:0")

	publish(t, c, withState(group(3, 1, 1), "part z"))
	update(t, c, func(txn *catalog.Txn) error { return txn.VoidPending(1) })
	equal(t, "void", complete("z", 1), false)
	equal(t, "visible", visible(t, snapshot(t, c), 1), "1:0 1:100 3:0")
}
