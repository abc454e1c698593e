package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// job is one compaction of one table.
type job struct {
	id       string
	table    *catalog.Table
	pipeline *catalog.Pipeline
	refs     []segment.SliceRef // all that go
	slices   []catalog.Slice    // the same, in log order
	shape    protocol.CompactionShape
	position change.Position
	lake     catalog.LakeState
	planned  bool // already in the catalog
}

// applied are the slices whose rows count.
func (j *job) applied() []catalog.Slice { return j.slices[j.shape.From:] }

// target is the schema that the rows get.
func (j *job) target() *schema.Table { return j.table.Current }

// next reads the catalog and decides; nil when there is nothing to do. A planned
// compaction goes first, with its own slices.
func (s *Service) next(id change.TableID, force bool) (*job, error) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	t, err := snap.TableByID(id)
	if err != nil {
		return nil, err
	}
	if t.Current == nil || snap.BeingRebuilt(t.Pipeline) {
		return nil, nil
	}
	p, err := snap.PipelineByID(t.Pipeline)
	if err != nil {
		return nil, err
	}
	live, err := snap.LiveSlices(id)
	if err != nil || len(live) == 0 {
		return nil, err
	}
	if s.rests(p.ID) != nil {
		if force {
			return nil, fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, ErrResting)
		}
		return nil, nil
	}
	j := &job{table: t, pipeline: p, lake: snap.LakeState(id)}
	if plans := snap.PlannedCompactions(id); len(plans) > 0 {
		j.id, j.planned = plans[0].ID, true
		return j, j.restrict(live, plans[0].Slices)
	}
	pick, ok := protocol.PickCompaction(s.candidates(live, p), compactionState(t, force), s.limits(p, t))
	if !ok {
		return nil, nil
	}
	if err := j.restrict(live, pick.Refs); err != nil {
		return nil, err
	}
	j.id = protocol.CompactionID(t.ID, t.Generation, j.refs)
	if mutant.On(mutant.RandomCompactionID) {
		j.id = strconv.FormatInt(s.deps.Clock.Now().UnixNano(), 16)
	}
	if len(j.refs) == len(live) { // then the lake has the table as of this position
		at, err := snap.Offset(t.Pipeline)
		if err != nil {
			return nil, err
		}
		j.position = at.Position
	}
	return j, nil
}

func (s *Service) limits(p *catalog.Pipeline, t *catalog.Table) protocol.CompactionLimits {
	lim := s.cfg.limits()
	lim.WantBytes = min(s.commitBytes(p), lim.MostBytes)
	if t.Backfill.Resumed { // then copied rows are collapsed like changes
		lim.MostBackfillBytes = lim.MostBytes
	}
	return lim
}

func compactionState(t *catalog.Table, force bool) protocol.CompactionState {
	st := protocol.CompactionState{Forced: force}
	switch t.State {
	case catalog.TableReady:
		st.Ready = true
	case catalog.TablePending, catalog.TableBackfill:
		st.BackfillOpen = true
	case catalog.TableStopped:
		// What came before the stop is consistent if no copy was under way.
		st.Ready = t.Backfill.StartedAt.IsZero() || !t.Backfill.FinishedAt.IsZero()
		st.BackfillOpen = !st.Ready
	}
	return st
}

func (s *Service) candidates(live []catalog.Slice, p *catalog.Pipeline) []protocol.CompactionSlice {
	now := s.deps.Clock.Now()
	limit := now.Add(-s.commitInterval(p))
	out := make([]protocol.CompactionSlice, len(live))
	for i := range live {
		out[i] = candidate(&live[i], limit)
		// The clock was set back since: nobody knows how long the slice has waited.
		out[i].Due = out[i].Due || live[i].PublishedAt.After(now)
	}
	return out
}

func candidate(l *catalog.Slice, limit time.Time) protocol.CompactionSlice {
	return protocol.CompactionSlice{
		Ref: l.Ref, Rows: int64(l.Rows), Bytes: int64(l.Length), Truncate: l.Truncate, Backfill: l.Backfill,
		Due: !l.PublishedAt.After(limit),
	}
}

// restrict takes the named slices out of the live ones.
func (j *job) restrict(live []catalog.Slice, refs []segment.SliceRef) error {
	want := make(map[segment.SliceRef]bool, len(refs))
	for _, r := range refs {
		want[r] = true
	}
	var shape []protocol.CompactionSlice
	for i := range live {
		if !want[live[i].Ref] {
			continue
		}
		j.refs = append(j.refs, live[i].Ref)
		j.slices = append(j.slices, live[i])
		shape = append(shape, candidate(&live[i], time.Time{}))
	}
	if len(j.refs) != len(refs) {
		return fmt.Errorf("compaction %s: %d of %d slices are live: %w", j.id, len(j.refs), len(refs), catalog.ErrStale)
	}
	j.shape = protocol.ShapeCompaction(shape)
	return nil
}

// run does the job, from the plan to the ack.
func (s *Service) run(ctx context.Context, turn *tableTurn, j *job) error {
	started := s.deps.Clock.Now()
	spec := lake.Spec{
		Ident: lake.Ident{Namespace: j.table.Schema, Name: j.table.Name}, Table: j.table.ID,
		Schema: j.target(),
	}
	tbl, err := s.deps.Warehouse.Table(ctx, spec)
	if err != nil {
		return err
	}
	if j.lake.Snapshot != 0 && tbl.Head().ID == 0 {
		return fmt.Errorf("lake table %s is empty, the catalog has its snapshot %d: %w", spec.Ident, j.lake.Snapshot,
			lake.ErrNoSnapshot)
	}
	head, done, err := s.find(ctx, tbl, j)
	if err != nil {
		return err
	}
	if done == nil && head.ID != j.lake.Snapshot && head.OfGeneration(j.table.Generation) {
		if n, err := s.adopt(ctx, tbl, head, j); err != nil || n > 0 {
			return err // with slices gone from the live side the job is another
		}
	}
	if !j.planned {
		if err := s.plan(ctx, j, nil); err != nil {
			return err
		}
	}
	if mutant.On(mutant.CompactionNotFound) && done != nil {
		done, j.id = nil, j.id+"0"
	}
	out := &output{}
	if mutant.On(mutant.MarkBeforeLake) && done == nil {
		if err := s.ack(ctx, j, out, tbl.Head()); err != nil {
			return err
		}
	}
	if done == nil {
		if done, err = s.commit(ctx, tbl, j, out); err != nil {
			return err
		}
	}
	if err := s.deps.Failpoints.Hit(env.AfterLakeCommit); err != nil {
		return err
	}
	if err := s.ack(ctx, j, out, done); err != nil {
		return err
	}
	s.log.Info("compaction acked", env.KeyPipeline, j.pipeline.Name, env.KeyTable, spec.Ident.String(),
		env.KeyCompaction, j.id, env.KeySnapshot, done.ID, "slices", len(j.refs), env.KeyRows, out.rows,
		"deletes", out.deleted, env.KeyElapsed, s.deps.Clock.Since(started))
	if err := s.deps.Failpoints.Hit(env.AfterMark); err != nil {
		return err
	}
	s.maintain(ctx, turn, j, tbl, done)
	return nil
}

// find reads the newest snapshot, and the one that the job made before, if it did.
func (s *Service) find(ctx context.Context, tbl lake.Table, j *job) (head, done *lake.Snapshot, err error) {
	for range findMost {
		if done, err = tbl.Find(ctx, j.id); err != nil {
			return nil, nil, err
		}
		head = tbl.Head()
		if head.ID == j.lake.Snapshot {
			return head, done, nil
		}
		if err := s.unsurpassed(ctx, tbl, j); err != nil {
			return nil, nil, err
		}
		if tbl.Head().ID == head.ID {
			return head, done, nil
		}
	}
	return nil, nil, fmt.Errorf("lake table %s.%s: others commit all the time: %w", j.table.Schema, j.table.Name, lake.ErrConflict)
}

// findMost bounds the looks at a lake table that others commit to.
const findMost = 4

// unsurpassed fails when another writer may have committed what this one cannot know. Others
// have compacted, and have let their older snapshots go: who has come after them knows what
// those took out of the log; who was superseded does not (F1). It holds for what was read
// before the call.
func (s *Service) unsurpassed(ctx context.Context, tbl lake.Table, j *job) error {
	if epoch := s.epoch(j); epoch > 0 {
		return tbl.Fence(ctx, epoch)
	}
	return nil
}

// output is what a job wrote.
type output struct {
	files         []lake.DataFile
	deletes       []lake.DeleteFile
	rows, deleted int64
	bytes         int64
}

// commit writes the files and brings them into the lake; on an error it removes them.
func (s *Service) commit(ctx context.Context, tbl lake.Table, j *job, out *output) (_ *lake.Snapshot, err error) {
	head := tbl.Head()
	replace := j.shape.ReplaceAll || otherGeneration(head, j.table.Generation)
	defer func() {
		if err != nil && !errors.Is(err, lake.ErrOutcomeUnknown) {
			tbl.Abort(context.WithoutCancel(ctx), out.files, out.deletes)
		}
	}()
	base := head
	if replace {
		base = &lake.Snapshot{}
	}
	if err := s.write(ctx, tbl, j, base, out); err != nil {
		return nil, err
	}
	if err := s.deps.Failpoints.Hit(env.BeforeLakeCommit); err != nil {
		return nil, err
	}
	return tbl.Commit(ctx, lake.Commit{
		Base: head.ID, CompactionID: j.id, Epoch: s.epoch(j), Pipeline: j.pipeline.Name, Generation: j.table.Generation,
		Slices: j.refs, SourcePosition: j.position, MaxToken: maxToken(j.applied()), Schema: j.target(),
		AddFiles: out.files, AddDeletes: out.deletes, ReplaceAll: replace,
	})
}

// otherGeneration says that the lake's rows are of before a reset.
func otherGeneration(head *lake.Snapshot, generation uint32) bool {
	have, ok := head.Properties[lake.KeyGeneration]
	return ok && have != strconv.FormatUint(uint64(generation), 10)
}

func maxToken(live []catalog.Slice) int64 {
	var m int64
	for i := range live {
		if live[i].Rows > 0 {
			m = max(m, live[i].Counts.MaxToken)
		}
	}
	return m
}

// row is the compaction as the catalog keeps it.
func (j *job) row(out *output) *catalog.Compaction {
	c := &catalog.Compaction{ID: j.id, Table: j.table.ID, Slices: slices.Clone(j.refs), State: catalog.CompactionPlanned}
	if out != nil {
		c.Rows, c.Deletes, c.Bytes = out.rows, out.deleted, out.bytes
	}
	return c
}

func (s *Service) plan(ctx context.Context, j *job, out *output) error {
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error { return txn.PlanCompaction(j.row(out)) })
	if err != nil {
		return fmt.Errorf("plan compaction %s: %w", j.id, err)
	}
	return nil
}

// ack gives readers the snapshot and takes the slices from the live side, at once. A
// table that was reset meanwhile takes neither: its next compaction replaces all.
func (s *Service) ack(ctx context.Context, j *job, out *output, snap *lake.Snapshot) error {
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		if err := txn.PlanCompaction(j.row(out)); err != nil {
			return err
		}
		return txn.AckCompaction(j.id, lakeState(snap, txn.Now()), j.refs)
	})
	if errors.Is(err, catalog.ErrCompactionAcked) {
		return nil // C2
	}
	if err != nil {
		return fmt.Errorf("ack compaction %s: %w", j.id, err)
	}
	return nil
}

func lakeState(snap *lake.Snapshot, now time.Time) catalog.LakeState {
	return catalog.LakeState{
		Snapshot: snap.ID, Metadata: snap.Metadata, MaxToken: snap.MaxToken, Rows: snap.Rows,
		Files: len(snap.Files), Bytes: snap.Bytes, At: now,
	}
}

// maintain rewrites files and expires snapshots now and then. What fails is tried again
// after the next commit: nothing but space and speed depends on it. A rewrite has the
// rows of the snapshot it replaces, so readers may have either. But of the job's own
// snapshot alone: when that is not the newest, another writer has committed since, and
// what it took is live here (N1).
func (s *Service) maintain(ctx context.Context, turn *tableTurn, j *job, tbl lake.Table, now *lake.Snapshot) {
	turn.commits++
	if turn.seen && turn.commits < s.cfg.MaintainEvery {
		return
	}
	if tbl.Head().ID != now.ID {
		return
	}
	p := lake.Retention{Snapshots: s.cfg.Snapshots, Protect: []int64{now.ID}, Grace: s.cfg.FileGrace, Epoch: s.epoch(j)}
	err := s.deps.Catalog.Backup(ctx) // it says what the snapshots said that expire
	if err == nil {
		err = tbl.Maintain(ctx, p)
	}
	if err == nil && tbl.Head().ID != now.ID {
		err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			if txn.LakeState(j.table.ID).Snapshot != now.ID {
				return nil // reset meanwhile
			}
			return txn.PutLakeState(j.table.ID, lakeState(tbl.Head(), txn.Now()))
		})
	}
	if err != nil {
		s.log.Warn("lake maintenance failed", env.KeyTable, j.table.Schema+"."+j.table.Name, env.KeyError, err)
		return
	}
	turn.commits, turn.seen = 0, true
}
