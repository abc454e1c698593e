package compact_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// newBackedUp is a world whose catalog has a backup.
func newBackedUp(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.backup = catalog.FileBackup(crashfs.New(), "/data")
	w.reopen()
	return w
}

// lose takes the catalog's store away, with the lake's pointers in it, and opens anew.
func (w *world) lose() {
	w.t.Helper()
	w.store = memkv.New()
	w.reopen()
}

// rebuild is what a start does.
func (w *world) rebuild() error {
	return compact.Rebuild(w.t.Context(), compact.RebuildDeps{Catalog: w.cat, Warehouse: w.wh, RecoverLog: w.recoverLog})
}

// recoverLog publishes what is in segments that are not reclaimed.
func (w *world) recoverLog(ctx context.Context, p change.PipelineID) error {
	seq, end, err := w.cat.Published(ctx, p)
	if err != nil {
		return err
	}
	var fresh []wal.CommittedGroup
	for _, g := range w.groups {
		if !slices.Contains(w.reclaimed, g.Seq) && (g.Seq > seq || g.Seq == seq && g.End > end) {
			fresh = append(fresh, g)
		}
	}
	return w.cat.Publish(ctx, p, fresh)
}

// wantOnce checks that the lake has each slice once.
func (w *world) wantOnce() {
	w.t.Helper()
	tbl, err := w.wh.Table(w.t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: w.table.ID, Schema: w.table.Current,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := tbl.Commits(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	seen := map[segment.SliceRef]string{}
	for _, c := range all {
		for _, ref := range c.Slices {
			if before, twice := seen[ref]; twice && c.Generation == w.table.Generation {
				w.t.Errorf("slice %s is in %s and in %s", ref, before, c.CompactionID)
			}
			seen[ref] = c.CompactionID
		}
	}
}

func (w *world) wantEvent(kind string) {
	w.t.Helper()
	snap := w.cat.Snapshot()
	defer snap.Close()
	events, err := snap.Events(100)
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.ContainsFunc(events, func(e catalog.Event) bool { return e.Kind == kind }) {
		w.t.Errorf("no event %q among %+v", kind, events)
	}
}

// A catalog that is lost while some changes are in the lake and some in the log, at each
// place where a compaction may die, has all of them again, each once.
func TestRebuild(t *testing.T) {
	for _, at := range []env.Failpoint{0, env.BeforeLakeCommit, env.AfterLakeCommit, env.AfterMark} {
		t.Run(at.String(), func(t *testing.T) {
			w := newBackedUp(t)
			w.append("backfill", "+1 ana", "+2 bo", "+3 cy")
			w.compact()
			w.append("", "~2 bob", "-3")
			w.append("", "+4 di")
			w.crashAt = at
			if err := w.svc.Compact(t.Context(), "p"); (err != nil) != (at != 0) {
				t.Fatal(err)
			}
			w.append("", "~1 anna", "+5 ed")
			w.lose()
			if err := w.rebuild(); err != nil {
				t.Fatal(err)
			}
			w.wantEvent("catalog rebuilt")
			if n := w.live(); at != env.BeforeLakeCommit && n != 1 || at == env.BeforeLakeCommit && n != 3 {
				t.Errorf("%d slices are live", n)
			}
			w.append("", "-4", "~5 eddy")
			w.compact()
			w.wantLake()
			w.wantOnce()
			if err := w.rebuild(); err != nil { // nothing is left to do
				t.Error(err)
			}
			w.wantLake()
		})
	}
}

// Segments that were reclaimed and snapshots that expired are not missed: the backup made
// before says what they said.
func TestRebuildAfterReclaimAndExpiry(t *testing.T) {
	w := newBackedUp(t)
	w.cfg = compact.Config{Snapshots: 2, MaintainEvery: 1}
	w.reopen()
	for i := range 40 {
		w.append("", "+1 ana", "~2 bo"+string(rune('a'+i%26)))
		w.compact()
		if i%4 == 3 {
			w.roll()
		}
	}
	w.append("", "+3 cy")
	w.lose()
	if err := w.rebuild(); err != nil {
		t.Fatal(err)
	}
	if n := w.live(); n != 1 {
		t.Errorf("%d slices are live, want 1", n)
	}
	w.clock.Advance(time.Minute)
	for range 2 {
		if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Minute)
	}
	if len(w.reclaimed) == 0 {
		t.Fatal("nothing was reclaimed")
	}
	w.lose()
	if err := w.rebuild(); err != nil {
		t.Fatal(err)
	}
	if n := w.live(); n != 1 {
		t.Errorf("%d slices are live, want 1", n)
	}
	w.compact()
	w.wantLake()
}

// A table that was begun anew, and then lost with its catalog, has nothing of before.
func TestRebuildAfterReset(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		w := newBackedUp(t)
		w.append("", "+1 ana", "+2 bo")
		w.compact()
		w.append("", "+3 cy")
		w.setTable(func(t *catalog.Table) { t.Generation++ })
		clear(w.model)
		w.append("", "+9 zoe")
		if compacted {
			w.compact()
		}
		w.lose()
		if err := w.rebuild(); err != nil {
			t.Fatal(err)
		}
		w.compact()
		w.wantLake()
	}
}

// When the lake has lost files that a query needs the table stops and says so; begun
// anew it works. Other engines' or dropped tables' files are kept.
func TestRebuildDamagedLake(t *testing.T) {
	w := newBackedUp(t)
	w.append("", "+1 ana")
	w.compact()
	if err := w.cat.Backup(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap := w.cat.Snapshot()
	files, err := w.wh.Snapshot(t.Context(), "people", snap.LakeState(w.table.ID).Metadata, snap.LakeState(w.table.ID).Snapshot)
	snap.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files.Files[0].Path); err != nil {
		t.Fatal(err)
	}
	w.lose()
	if err := w.rebuild(); err != nil {
		t.Fatal(err)
	}
	w.wantEvent("table stopped")
	snap = w.cat.Snapshot()
	tbl, err := snap.TableByID(w.table.ID)
	snap.Close()
	if err != nil || tbl.State != catalog.TableStopped || !strings.Contains(tbl.Reason, "lost snapshot") {
		t.Errorf("table is %+v, %v", tbl, err)
	}
	w.append("", "+2 bo")
	if err := w.svc.Compact(t.Context(), "p"); !errors.Is(err, lake.ErrNoSnapshot) {
		t.Errorf("compaction onto a lake that is lost: %v", err)
	}
	w.setTable(func(t *catalog.Table) { t.Generation, t.State = t.Generation+1, catalog.TableReady })
	clear(w.model)
	w.append("", "+3 cy")
	w.compact()
	w.wantLake()
}

// A pipeline whose log cannot be read stays as its backup has it, is neither written nor
// compacted, and comes back with the next start that can read it.
func TestRebuildWithoutLog(t *testing.T) {
	w := newBackedUp(t)
	w.append("", "+1 ana")
	w.compact()
	if err := w.cat.Backup(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.append("", "+2 bo")
	w.compact()
	w.append("", "+3 cy")
	w.lose()
	damaged := errors.New("segment is damaged")
	err := compact.Rebuild(t.Context(), compact.RebuildDeps{
		Catalog: w.cat, Warehouse: w.wh,
		RecoverLog: func(context.Context, change.PipelineID) error { return damaged },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.wantEvent("pipeline not rebuilt")
	snap := w.cat.Snapshot()
	if got := snap.RebuildProblem(w.pid); got != damaged.Error() {
		t.Errorf("the problem is %q", got)
	}
	snap.Close()
	if _, _, err := w.cat.Published(t.Context(), w.pid); !errors.Is(err, catalog.ErrRebuilding) || !strings.Contains(err.Error(), damaged.Error()) {
		t.Errorf("the log may be opened: %v", err)
	}
	w.wantRows("1 ana")
	w.compact()
	w.reopen()
	if err := w.rebuild(); err != nil {
		t.Fatal(err)
	}
	w.wantEvent("catalog rebuilt")
	w.compact()
	w.wantLake()
	w.wantOnce()
}

// A compactor whose plan and mark are lost, as if another had committed, takes what the
// lake names for compacted instead of committing it twice (N1).
func TestAdopt(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 ana", "+2 bo")
	w.compact()
	w.append("", "~2 bob")
	w.append("", "-1", "+3 cy")
	w.crashAt = env.AfterLakeCommit
	if err := w.svc.Compact(t.Context(), "p"); err == nil {
		t.Fatal("did not die")
	}
	w.reopen()
	w.update(func(txn *catalog.Txn) error {
		for _, c := range txn.PlannedCompactions(w.table.ID) {
			if err := txn.DropCompaction(c.ID); err != nil {
				return err
			}
		}
		return nil
	})
	w.append("", "+4 di")
	w.compact()
	w.wantLake()
	w.wantOnce()
}

// A writer that is taken over while it compacts finds the lake closed: what it was about
// to commit is not in, and the next writer brings everything in once.
func TestTakenOver(t *testing.T) {
	w := newBackedUp(t)
	w.pointers, w.epoch = memkv.New(), 1
	w.reopen()
	w.append("", "+1 ana", "+2 bo")
	w.compact()
	w.append("", "~2 bob")
	w.append("", "-1", "+3 cy")
	next := *w
	w.onRead = func() {
		if next.epoch == 2 {
			return
		}
		next.epoch, next.store = 2, memkv.New()
		next.open()
		if err := compact.FenceTables(t.Context(), next.cat, next.wh, next.pid, 2); err != nil {
			t.Fatal(err)
		}
		if err := next.rebuild(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.svc.Compact(t.Context(), "p"); !errors.Is(err, lake.ErrFenced) {
		t.Errorf("compaction of the writer that was taken over: %v", err)
	}
	if n := next.live(); n != 2 {
		t.Errorf("%d slices are live, want 2", n)
	}
	next.append("", "+4 di")
	next.compact()
	next.wantLake()
	next.wantOnce()
	// It learns nothing of that: of what the next writer brought in it would find only what
	// that one has not let go yet, and count the rest twice (N1).
	at := w.lakeState()
	if err := w.svc.Compact(t.Context(), "p"); !errors.Is(err, lake.ErrFenced) {
		t.Errorf("second compaction of the writer that was taken over: %v", err)
	}
	if n := w.live(); n != 2 || w.lakeState() != at {
		t.Errorf("the writer that was taken over has %d live slices over %+v, want 2 over %+v", n, w.lakeState(), at)
	}
	next.wantLake()
	if err := next.cat.Close(); err != nil {
		t.Error(err)
	}
}
