package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// memBackup keeps an image in memory.
type memBackup struct {
	image  []byte
	writes int
	err    error // of the next writes
}

func (m *memBackup) Read() ([]byte, error) { return m.image, nil }

func (m *memBackup) Write(image []byte) error {
	if m.err != nil {
		return m.err
	}
	m.writes++
	m.image = slices.Clone(image)
	return nil
}

func openBackedUp(t testing.TB, b catalog.BackupStore) *catalog.Catalog {
	t.Helper()
	deps := testDeps()
	deps.Backup = b
	c, err := catalog.Open(t.Context(), memkv.New(), deps)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lakeCommit is a compaction in the lake of a loseWorld.
type lakeCommit struct {
	catalog.Committed
	generation uint32
	snapshot   int64
}

// loseWorld is a catalog with all that outlives it: its backup, its log, its lake.
type loseWorld struct {
	t       *testing.T
	rng     *rand.Rand
	cat     *catalog.Catalog
	backup  *memBackup
	log     []wal.CommittedGroup
	written int
	lake    map[change.TableID][]lakeCommit // retained, oldest first
	next    int64
}

// A catalog that is lost at any moment comes back from its backup, the groups still in
// the log and the commits still in the lake: the same tables, position and live slices,
// though segments were reclaimed, snapshots expired, tables begun anew and compactions
// committed whose mark was never made.
func TestRebuildLostCatalog(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &loseWorld{
				t: t, rng: rand.New(rand.NewPCG(seed, 7)), backup: &memBackup{}, lake: map[change.TableID][]lakeCommit{},
			}
			w.cat = openBackedUp(t, w.backup)
			shop(t, w.cat)
			for step := range 120 {
				w.step()
				if w.rng.IntN(12) == 0 {
					w.lose()
				}
				if t.Failed() {
					t.Fatalf("step %d", step)
				}
			}
		})
	}
}

func (w *loseWorld) step() {
	switch n := w.rng.IntN(20); {
	case n < 9:
		w.append()
	case n < 14:
		w.compact(change.TableID(1 + w.rng.IntN(2)))
	case n < 16:
		w.reclaim()
	case n < 17:
		w.expire(change.TableID(1 + w.rng.IntN(2)))
	case n < 18:
		update(w.t, w.cat, func(txn *catalog.Txn) error {
			_, err := txn.ResetTable(change.TableID(1 + w.rng.IntN(2)))
			return err
		})
	default:
		update(w.t, w.cat, func(txn *catalog.Txn) error {
			return txn.PutSetting("n", fmt.Sprint(w.written))
		})
	}
}

func (w *loseWorld) append() {
	g := group(segment.Seq(1+w.written/5), w.written%5, 1, 2)
	if w.rng.IntN(3) == 0 {
		g.State = []byte{1}
	}
	w.written++
	w.log = append(w.log, g)
	publish(w.t, w.cat, g)
}

// compact puts some live slices into the lake, and dies before the mark now and then.
func (w *loseWorld) compact(table change.TableID) {
	tbl := get[*catalog.Table](w.t)(snapshot(w.t, w.cat).TableByID(table))
	all := live(w.t, w.cat, table)
	if len(all) == 0 {
		return
	}
	w.next++
	c := lakeCommit{generation: tbl.Generation, snapshot: w.next}
	c.ID = fmt.Sprint("c", w.next)
	for _, s := range all[w.rng.IntN(len(all)):] {
		c.Slices = append(c.Slices, s.Ref)
	}
	plan(w.t, w.cat, table, c.ID, c.Slices...)
	w.lake[table] = append(w.lake[table], c)
	if w.rng.IntN(4) == 0 {
		w.adopt(w.cat) // the next start found it
		return
	}
	update(w.t, w.cat, func(txn *catalog.Txn) error {
		return txn.AckCompaction(c.ID, catalog.LakeState{Snapshot: c.snapshot}, c.Slices)
	})
}

// adopt does what a compactor does that comes to a lake it does not know.
func (w *loseWorld) adopt(c *catalog.Catalog) {
	update(w.t, c, func(txn *catalog.Txn) error {
		for _, id := range []change.TableID{1, 2} {
			tbl, err := txn.TableByID(id)
			if err != nil {
				return err
			}
			var commits []catalog.Committed
			var head int64
			for _, l := range w.lake[id] {
				if l.generation == tbl.Generation {
					commits, head = append(commits, l.Committed), l.snapshot
				}
			}
			if head == 0 {
				continue
			}
			if _, err := txn.AdoptCompactions(id, catalog.LakeState{Snapshot: head}, commits); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *loseWorld) backUp() {
	if err := w.cat.Backup(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *loseWorld) reclaim() {
	s := snapshot(w.t, w.cat)
	at := get[catalog.Offset](w.t)(s.Offset(1))
	due := get[[]segment.Seq](w.t)(s.ReclaimableSegments(1, at.Seq))
	if len(due) == 0 {
		return
	}
	w.backUp()
	w.log = slices.DeleteFunc(w.log, func(g wal.CommittedGroup) bool { return slices.Contains(due, g.Seq) })
	if w.rng.IntN(3) == 0 {
		return // dies before the catalog forgets them
	}
	update(w.t, w.cat, func(txn *catalog.Txn) error {
		for _, seq := range due {
			if err := txn.DeleteSegment(1, seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// expire keeps the newest snapshot only.
func (w *loseWorld) expire(table change.TableID) {
	w.backUp()
	if l := w.lake[table]; len(l) > 1 {
		w.lake[table] = l[len(l)-1:]
	}
}

func (w *loseWorld) lose() {
	w.adopt(w.cat) // so that both know the same
	lost := w.cat
	fresh := openBackedUp(w.t, w.backup)
	rebuilding, restored := snapshot(w.t, fresh).Rebuilding()
	if !restored || len(rebuilding) != 1 {
		w.t.Fatalf("a restored catalog rebuilds %v, %v", rebuilding, restored)
	}
	_, _, err := fresh.Published(w.t.Context(), 1)
	is(w.t, "publish before the rebuild", err, catalog.ErrRebuilding)
	if w.rng.IntN(2) == 0 { // a crash in the midst: the log is replayed twice
		w.replay(fresh, len(w.log)/2)
	}
	w.replay(fresh, len(w.log))
	w.adopt(fresh)
	update(w.t, fresh, func(txn *catalog.Txn) error { return errors.Join(txn.FinishRebuild(1), txn.FinishRestore()) })
	equal(w.t, "facts after the rebuild", w.facts(fresh), w.facts(lost))
	w.cat = fresh
}

// replay is what the log's recovery does.
func (w *loseWorld) replay(c *catalog.Catalog, n int) {
	err := c.Replay(w.t.Context(), 1, func(ctx context.Context) error {
		seq, end, err := c.Published(ctx, 1)
		if err != nil {
			return err
		}
		var fresh []wal.CommittedGroup
		for _, g := range w.log[:n] {
			if g.Seq > seq || g.Seq == seq && g.End > end {
				fresh = append(fresh, g)
			}
		}
		return c.Publish(ctx, 1, fresh)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// facts renders what users' data depends on.
func (w *loseWorld) facts(c *catalog.Catalog) string {
	s := snapshot(w.t, c)
	o := get[catalog.Offset](w.t)(s.Offset(1))
	out := []string{fmt.Sprint(o.Seq, o.End, o.Position, o.CommittedAt)}
	setting, _ := s.Setting("n")
	out = append(out, setting)
	for _, tbl := range s.AllTables() {
		out = append(out, fmt.Sprint(tbl.ID, tbl.Name, tbl.OID, tbl.State, tbl.Generation, tbl.Backfill.RowsDone,
			s.LakeState(tbl.ID).Snapshot, refs(live(w.t, c, tbl.ID))))
	}
	for _, seg := range get[[]catalog.Segment](w.t)(s.Segments(1)) {
		if seg.Live > 0 {
			out = append(out, fmt.Sprintf("%+v", seg))
		}
	}
	return strings.Join(out, "\n")
}

// A statement whose backup fails has not happened, and is possible again later.
func TestBackupFails(t *testing.T) {
	b := &memBackup{}
	c := openBackedUp(t, b)
	shop(t, c)
	b.err = errors.New("disk is full")
	is(t, "update", c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.DeletePipeline(1) }), b.err)
	is(t, "backup", c.Backup(t.Context()), b.err)
	equal(t, "pipelines", len(snapshot(t, c).Pipelines()), 1)
	publish(t, c, group(1, 0, 1))
	b.err = nil
	update(t, c, func(txn *catalog.Txn) error { return txn.DeletePipeline(1) })
	equal(t, "pipelines", len(snapshot(t, openBackedUp(t, b)).Pipelines()), 0)
}

// What the log and the lake tell by themselves is not backed up each time.
func TestBackupOfDefinitionsOnly(t *testing.T) {
	b := &memBackup{}
	c := openBackedUp(t, b)
	shop(t, c)
	before := b.writes
	publish(t, c, group(1, 0, 1, 2))
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1})
	update(t, c, func(txn *catalog.Txn) error { return txn.AddEvent(catalog.Event{Kind: "x"}) })
	equal(t, "images written", b.writes, before)
	update(t, c, func(txn *catalog.Txn) error { return txn.SetPosition(1, "9") })
	equal(t, "images written", b.writes, before+1)
}

// What a pipeline does is committed while no backup can be written; what was asked of it
// is not.
func TestBackupOfStates(t *testing.T) {
	b := &memBackup{}
	c := openBackedUp(t, b)
	shop(t, c)
	put := func(change func(*catalog.Pipeline)) error {
		return c.Update(t.Context(), func(txn *catalog.Txn) error {
			p, err := txn.PipelineByID(1)
			if err != nil {
				return err
			}
			change(p)
			return txn.PutPipeline(p)
		})
	}
	b.err = errors.New("no answer")
	if err := put(func(p *catalog.Pipeline) { p.State, p.Reason = catalog.PipelineError, "the source is gone" }); err != nil {
		t.Errorf("state: %v", err)
	}
	for what, change := range map[string]func(*catalog.Pipeline){
		"paused":       func(p *catalog.Pipeline) { p.Paused, p.State = true, catalog.PipelinePaused },
		"source state": func(p *catalog.Pipeline) { p.SourceState = []byte("slot") },
		"option":       func(p *catalog.Pipeline) { p.Options = map[string]string{"a": "b"} },
		"name":         func(p *catalog.Pipeline) { p.Name = "other" },
	} {
		is(t, what, put(change), b.err)
	}
	again := openBackedUp(t, b) // lost: what it does is told anew
	p := get[*catalog.Pipeline](t)(snapshot(t, again).PipelineByID(1))
	if p.State == catalog.PipelineError || p.Paused {
		t.Errorf("restored %+v", p)
	}
}

// A new store beside data of an earlier one is refused unless a backup explains it, and a
// backup made with another key, or a damaged one, is refused too.
func TestRestoreRefuses(t *testing.T) {
	deps := testDeps()
	deps.Backup, deps.Orphans = &memBackup{}, func() (string, error) { return "a log", nil }
	_, err := catalog.Open(t.Context(), memkv.New(), deps)
	is(t, "data without backup", err, catalog.ErrNoBackup)

	b := &memBackup{}
	shop(t, openBackedUp(t, b))
	deps.Backup = b
	if _, err := catalog.Open(t.Context(), memkv.New(), deps); err != nil {
		t.Errorf("data with backup: %v", err)
	}
	deps.Key = []byte("01234567890123456789012345678901")
	_, err = catalog.Open(t.Context(), memkv.New(), deps)
	is(t, "another key", err, catalog.ErrKey)
	b.image[len(b.image)/2]++
	deps = testDeps()
	deps.Backup = b
	_, err = catalog.Open(t.Context(), memkv.New(), deps)
	is(t, "damaged", err, catalog.ErrCorrupt)
}

// While a pipeline is being rebuilt nothing of it is compacted; it can be dropped.
func TestBeingRebuilt(t *testing.T) {
	b := &memBackup{}
	c := openBackedUp(t, b)
	shop(t, c)
	publish(t, c, group(1, 0, 1))
	if err := c.Backup(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = openBackedUp(t, b)
	equal(t, "being rebuilt", snapshot(t, c).BeingRebuilt(1), true)
	err := c.Update(t.Context(), func(txn *catalog.Txn) error {
		return txn.PlanCompaction(&catalog.Compaction{ID: "x", Table: 1, Slices: []segment.SliceRef{{Seq: 1}}})
	})
	is(t, "plan", err, catalog.ErrRebuilding)
	equal(t, "problem", snapshot(t, c).RebuildProblem(1), "")
	update(t, c, func(txn *catalog.Txn) error {
		return errors.Join(txn.FailRebuild(1, "no log"), txn.FailRebuild(9, "no such pipeline"))
	})
	equal(t, "problem", snapshot(t, c).RebuildProblem(1)+snapshot(t, c).RebuildProblem(9), "no log")
	again := openBackedUp(t, b) // lost once more, unfinished
	equal(t, "being rebuilt", snapshot(t, again).BeingRebuilt(1), true)
	update(t, c, func(txn *catalog.Txn) error { return txn.DeletePipeline(1) })
	pipelines, _ := snapshot(t, c).Rebuilding()
	equal(t, "being rebuilt after the drop", len(pipelines), 0)
}
