package compact_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

func TestUpdatesAndDeletes(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 ana", "+2 bo", "+3 cy")
	w.append("", "~2 bob")
	w.compact()
	w.wantLake()
	w.append("", "~1 anna", "-3")
	w.append("", "+4 di", "~4 dia", "-4") // comes and goes within one compaction
	w.compact()
	w.wantLake()
	w.append("", "-1", "-2")
	w.compact()
	w.wantLake()
	if st := w.lakeState(); st.MaxToken != w.token {
		t.Errorf("max token is %d, want %d", st.MaxToken, w.token)
	}
}

// Rows of the copy need no search, and neither do keys that no file can have.
func TestSearchIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableBackfill })
	w.append("backfill", "+1 a", "+2 b")
	w.append("backfill", "+3 c")
	w.compact()
	w.append("backfill", "+4 d")
	w.compact()
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableReady })
	w.append("", "+10 x", "+11 y")
	w.compact()
	if w.searches != 0 {
		t.Errorf("%d searches", w.searches)
	}
	w.append("", "~2 bb")
	w.compact()
	if w.searches != 1 {
		t.Errorf("%d searches after an update, want 1", w.searches)
	}
	w.wantLake()
}

// Streamed changes wait for the copy: they are newer than its rows, wherever these
// stand in the log.
func TestBackfillBeforeStream(t *testing.T) {
	w := newWorld(t)
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableBackfill })
	w.append("", "-1", "~2 new")
	w.append("backfill", "+1 old", "+2 old", "+3 c")
	w.compact()
	w.wantRows("1 old", "2 old", "3 c")
	if n := w.live(); n != 1 {
		t.Fatalf("%d slices are live, want the streamed one", n)
	}
	w.append("backfill", "+4 d")
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableReady })
	w.compact()
	w.wantRows("2 new", "3 c", "4 d")
}

func TestThresholds(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a")
	if _, err := w.svc.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.lakeState().Snapshot != 0 {
		t.Fatal("compacted before the commit interval")
	}
	w.clock.Advance(time.Minute)
	if _, err := w.svc.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantLake()
}

func TestTruncate(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a", "+2 b")
	w.compact()
	w.append("", "~1 aa")
	w.compact()
	w.append("", "+3 gone")
	w.append("truncate", "+9 new")
	w.append("", "+10 more", "-9")
	before := w.searches
	w.compact()
	w.wantLake()
	if w.searches != before {
		t.Error("searched rows that a truncate takes away")
	}
	w.append("truncate")
	w.compact()
	w.wantLake()
}

func TestCompactionWithoutRows(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a", "-1")
	w.compact()
	w.wantLake()
	w.append("", "-1")
	w.compact()
	w.wantLake()
}

// Wherever a compaction ends early, with an error or a crash, the next one finishes it
// and changes nothing else.
func TestCrashes(t *testing.T) {
	for _, at := range []env.Failpoint{env.BeforeLakeCommit, env.AfterLakeCommit, env.AfterMark} {
		for _, reopen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reopen=%v", at, reopen), func(t *testing.T) {
				w := newWorld(t)
				w.append("", "+1 a", "+2 b")
				w.compact()
				w.append("", "~1 aa", "-2", "+3 c")
				w.crashAt = at
				if err := w.svc.Compact(t.Context(), "p"); !errors.Is(err, errCrash) {
					t.Fatalf("compact: %v", err)
				}
				w.crashAt = 0
				if reopen {
					w.reopen()
				}
				w.append("", "+4 d") // must not join the planned compaction
				w.compact()
				w.wantLake()
				w.wantNoOrphans()
			})
		}
	}
}

// wantNoOrphans expects, after maintenance, no files but those of snapshots.
func (w *world) wantNoOrphans() {
	w.t.Helper()
	tbl, err := w.wh.Table(w.t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"},
		Table: w.table.ID, Schema: w.table.Current,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for range 2 {
		if err := tbl.Maintain(w.t.Context(), lake.Retention{Snapshots: 1000, Grace: time.Minute}); err != nil {
			w.t.Fatal(err)
		}
		w.clock.Advance(time.Hour)
	}
	ice, err := w.wh.Catalog().LoadTable(w.t.Context(), table.Identifier{"public", "people"})
	if err != nil {
		w.t.Fatal(err)
	}
	named := map[string]bool{}
	for _, s := range ice.Metadata().Snapshots() {
		snap, err := w.wh.Snapshot(w.t.Context(), "people", ice.MetadataLocation(), s.SnapshotID)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range snap.Files {
			named[f.Path] = true
		}
		for _, d := range snap.PositionDeletes {
			named[d.Path] = true
		}
	}
	files, _ := filepath.Glob(filepath.Join(w.dir, "*", "*", "data", "*"))
	if len(files) != len(named) {
		w.t.Errorf("%d files on disk, the snapshots name %d", len(files), len(named))
	}
}

// A crash in the same compaction again and again.
func TestCrashesRandomly(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 40 {
				var rows []string
				flags := ""
				if rng.IntN(12) == 0 {
					flags = "truncate"
				}
				for range rng.IntN(6) {
					id := rng.IntN(20)
					rows = append(rows, []string{
						fmt.Sprintf("+%d n%d", id, rng.IntN(1000)), fmt.Sprintf("~%d n%d", id, rng.IntN(1000)), fmt.Sprintf("-%d", id),
					}[rng.IntN(3)])
				}
				w.append(flags, rows...)
				if rng.IntN(4) == 0 {
					w.roll()
				}
				if rng.IntN(3) != 0 {
					continue
				}
				w.crashAt = []env.Failpoint{0, env.BeforeLakeCommit, env.AfterLakeCommit, env.AfterMark}[rng.IntN(4)]
				_ = w.svc.Compact(t.Context(), "p") // a crash, or not
				w.crashAt = 0
				if rng.IntN(2) == 0 {
					w.reopen()
				}
				w.clock.Advance(time.Minute)
				for range 3 {
					if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.compact()
			w.wantLake()
			w.wantNoOrphans()
		})
	}
}

// A segment goes when all its slices are in the lake, it is not the last, and the delay
// is over.
func TestReclaim(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a")
	w.roll()
	w.append("", "+2 b")
	w.roll()
	w.append("", "+3 c")
	step := func(want int) {
		t.Helper()
		for range 2 {
			if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.reclaimed) != want {
			t.Fatalf("reclaimed %v, want %d segments", w.reclaimed, want)
		}
	}
	step(0) // live
	w.compact()
	step(0) // the delay
	w.clock.Advance(time.Minute)
	step(2) // not the active one
	w.clock.Advance(time.Hour)
	step(2)
	snap := w.cat.Snapshot()
	defer snap.Close()
	segs, err := snap.Segments(w.pid)
	if err != nil || len(segs) != 1 || segs[0].Seq != 3 {
		t.Errorf("segments left: %+v, %v", segs, err)
	}
}

// A log on an object store goes from its beginning. What it let go is forgotten, what it
// keeps is not (P4).
func TestReclaimAsFarAsTheLogGoes(t *testing.T) {
	w := newWorld(t)
	for _, row := range []string{"+1 a", "+2 b", "+3 c", "+4 d"} {
		w.append("", row)
		w.roll()
	}
	w.append("", "+5 e")
	w.compact()
	step := func(left ...segment.Seq) {
		t.Helper()
		for range 2 {
			if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(time.Minute)
		}
		snap := w.cat.Snapshot()
		defer snap.Close()
		segs, err := snap.Segments(w.pid)
		if err != nil {
			t.Fatal(err)
		}
		var got []segment.Seq
		for _, s := range segs {
			got = append(got, s.Seq)
		}
		if !slices.Equal(got, left) {
			t.Fatalf("the catalog has segments %v, want %v", got, left)
		}
	}
	w.heldFrom = 1
	step(1, 2, 3, 4, 5)
	w.heldFrom = 3
	step(3, 4, 5)
	w.heldFrom = 0
	step(5)
}

// After a reset the first compaction takes the old rows out and the new ones in.
func TestReset(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 old", "+2 old")
	w.compact()
	w.update(func(txn *catalog.Txn) error {
		_, err := txn.ResetTable(w.table.ID)
		return err
	})
	clear(w.model)
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableReady })
	w.append("", "+2 new")
	w.compact()
	w.wantLake()
}

// A reset while a compaction stands between lake and ack leaves nothing of it.
func TestResetDuringCompaction(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 old")
	w.crashAt = env.AfterLakeCommit
	_ = w.svc.Compact(t.Context(), "p") // crashes
	w.crashAt = 0
	w.update(func(txn *catalog.Txn) error {
		_, err := txn.ResetTable(w.table.ID)
		return err
	})
	clear(w.model)
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableReady })
	w.append("", "+2 new")
	w.compact()
	w.wantLake()
}

func TestDropTable(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a")
	w.compact()
	if err := w.svc.DropTable(t.Context(), w.table.ID); err != nil {
		t.Fatal(err)
	}
	w.wantLake() // still in use
	w.update(func(txn *catalog.Txn) error { return txn.DeleteTable(w.table.ID) })
	for range 2 {
		if err := w.svc.DropTable(t.Context(), w.table.ID); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := w.wh.Sweep(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Hour)
	}
	if dirs, _ := filepath.Glob(filepath.Join(w.dir, "*", "*")); len(dirs) != 0 {
		t.Errorf("left: %v", dirs)
	}
}

// Slices of several schema versions in one compaction: a column added, one dropped.
func TestSchemaChange(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a", "+2 b")
	w.compact()
	w.append("", "+3 c")
	w.setTable(func(t *catalog.Table) {
		s := *t.Current
		s.Version++
		s.LastFieldID++
		s.Fields = append(append([]schema.Field{}, s.Fields...),
			schema.Field{ID: s.LastFieldID, Name: "age", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1})
		t.Current = &s
	})
	w.append("", "~1 aa", "+4 d")
	w.compact()
	w.wantRows("1 aa (null)", "2 b (null)", "3 c (null)", "4 d (null)")
	w.setTable(func(t *catalog.Table) {
		s := *t.Current
		s.Version++
		s.Fields = []schema.Field{s.Fields[0], s.Fields[2]}
		t.Current = &s
	})
	w.append("", "+5")
	w.compact()
	w.wantRows("1 (null)", "2 (null)", "3 (null)", "4 (null)", "5 (null)")
}

// Many small compactions: the lake's files are merged on the way, and the rows stay.
func TestMaintenance(t *testing.T) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 90 {
		w.append("", fmt.Sprintf("~%d n%d", rng.IntN(30), i), fmt.Sprintf("-%d", rng.IntN(30)))
		w.compact()
		if i%7 == 0 {
			w.wantLake()
		}
	}
	w.wantLake()
	if st := w.lakeState(); st.Files > 45 {
		t.Errorf("lake has %d data files after 90 compactions", st.Files)
	}
	w.reopen()
	w.append("", "+1 last")
	w.compact()
	w.wantLake()
	w.wantNoOrphans()
}

// A copy that was interrupted reads a chunk again whose first rows are in the lake.
func TestResumedBackfill(t *testing.T) {
	w := newWorld(t)
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableBackfill })
	w.append("backfill", "+1 a", "+2 b", "+3 c")
	w.compact()
	w.setTable(func(t *catalog.Table) { t.Backfill.Resumed = true })
	w.append("backfill", "+1 a", "+2 later")
	w.append("backfill", "+3 c", "+4 d")
	w.compact()
	w.append("backfill", "+4 d", "+5 e")
	w.compact()
	w.wantRows("1 a", "2 later", "3 c", "4 d", "5 e")
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableReady })
	w.append("", "~2 bb", "-3")
	w.compact()
	w.wantLake()
}

// A forced compaction ends though changes keep coming.
func TestForcedCompactionEnds(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a")
	w.onRead = func() { w.append("", "~1 b") }
	w.compact()
	w.onRead = nil
	if n := w.live(); n != 1 {
		t.Errorf("%d slices are live, want the one that came meanwhile", n)
	}
	w.compact()
	w.wantLake()
}

// Parts of a transaction go into the lake when it is complete, in the order of the log:
// deletes and updates of later parts meet the rows of earlier ones and of the lake,
// however the compactions cut them.
func TestTransactionInParts(t *testing.T) {
	for cut := range 4 {
		w := newWorld(t)
		w.append("", "+1 a", "+2 b", "+3 c")
		w.append("part", "~1 a2", "+4 d", "+5 e")
		w.append("part", "-4", "-2", "+6 f")
		w.compact()
		w.wantRows("1 a", "2 b", "3 c")
		if n := w.live(); n != 0 {
			t.Fatalf("%d slices are live", n)
		}
		w.append("part", "~6 f2", "+4 again", "-5")
		w.append("complete", "+7 g", "-7", "~1 a3")
		w.append("", "~3 last")
		w.cfg.MostSlices = int64(cut) // 0: all at once
		w.reopen()
		w.compact()
		w.wantLake()
		w.wantRows("1 a3", "3 last", "4 again", "6 f2")
	}
}

// Rows of the copy stand between parts, and are compacted before these become live: the
// parts go into the lake after them all the same.
func TestCopyBetweenParts(t *testing.T) {
	w := newWorld(t)
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableBackfill })
	w.append("part", "~1 new", "-2")
	w.append("backfill", "+1 old", "+2 old", "+3 old")
	w.append("part", "~3 new")
	w.roll()
	w.append("backfill", "+4 old")
	w.compact()
	w.wantRows("1 old", "2 old", "3 old", "4 old")
	w.roll()
	w.append("part", "~4 soon")
	for range 2 {
		if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Hour)
	}
	w.append("complete", "-4")
	w.setTable(func(t *catalog.Table) { t.State = catalog.TableReady })
	w.compact()
	w.wantRows("1 new", "3 new")
	if fmt.Sprint(w.reclaimed) != "[2]" {
		t.Errorf("reclaimed %v before the parts were in the lake", w.reclaimed)
	}
}
