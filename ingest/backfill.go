package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
)

// openBackfill opens the session that copies what is not copied yet, if anything, and
// records its horizon before the stream begins.
func (s *session) openBackfill(ctx context.Context) error {
	if at, ok := s.progress.ack(); ok {
		s.source.Ack(at)
	}
	if len(s.uncopied()) == 0 {
		return nil
	}
	var err error
	if s.backfill, err = s.source.Backfill(ctx); err != nil {
		return sourceError("open backfill", err)
	}
	fresh, err := s.redescribed(ctx)
	if err != nil {
		return err
	}
	var again []change.TableID
	err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		again, err = s.recordHorizon(txn, fresh)
		return err
	})
	if err != nil {
		return fmt.Errorf("record backfill: %w", err)
	}
	for _, id := range again {
		if err := s.deps.Lake.DropTable(ctx, id); err != nil {
			return fmt.Errorf("drop lake side of table %d: %w", id, err)
		}
	}
	return s.loadProgress()
}

// uncopied are the tables whose initial copy is not finished.
func (s *session) uncopied() []*catalog.Table {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	var tables []*catalog.Table
	for _, t := range snap.EveryTableOf(s.pipeline.ID) {
		if t.State == catalog.TablePending || t.State == catalog.TableBackfill {
			tables = append(tables, t)
		}
	}
	return tables
}

// recordHorizon moves the tables to be copied to backfill. A table without a key whose
// copy was begun by a session that is lost begins anew: its rows could not be told
// from those that the stream has brought since. So does a table whose copy the source
// made void. It happens here because no stream runs. again are those. fresh are tables as
// the source has them, or later than the copy's moment: then the copy finds out.
func (s *session) recordHorizon(txn *catalog.Txn, fresh map[uint32]SourceTable) (again []change.TableID, err error) {
	horizon := s.backfill.Horizon()
	for _, t := range txn.EveryTableOf(s.pipeline.ID) {
		if t.State != catalog.TablePending && t.State != catalog.TableBackfill {
			continue
		}
		if beginsAnew(t) {
			tries := t.Backfill.Tries
			restart(t)
			t.Backfill.Tries = tries
			again = append(again, t.ID)
		}
		if now, ok := fresh[t.SourceOID]; ok && t.Backfill.StartedAt.IsZero() {
			if problem := redescribe(t, now); problem != nil {
				if err := stopCopy(txn, s.pipeline.Name, t.ID, problem); err != nil {
					return nil, err
				}
				continue
			}
		}
		if t.Backfill.StartedAt.IsZero() {
			s.countFrom(t)
			t.Published = s.published[t.SourceOID]
			s.filesFrom(txn, t)
		}
		b := &t.Backfill
		if s.progress.compare(horizon, b.Horizon) > 0 {
			b.Horizon = horizon
		}
		b.Resumed = !b.StartedAt.IsZero()
		if !b.Resumed {
			b.From, b.StartedAt = b.Horizon, txn.Now()
		}
		t.State = catalog.TableBackfill
		if err := txn.PutTable(t); err != nil {
			return nil, err
		}
	}
	return again, putState(txn, s.pipeline.ID, catalog.PipelineBackfill, "")
}

// filesFrom has a table whose copy begins be watched from the session's beginning on. Looks go on
// counting its rewrites from what was known of it, or of the table whose place it is to take.
func (s *session) filesFrom(txn *catalog.Txn, t *catalog.Table) {
	now, ok := s.start.Files[t.SourceOID]
	if !ok {
		return
	}
	known := t.Files
	if of, err := txn.TableByID(t.CopyOf); err == nil && of.SourceOID == t.SourceOID {
		known = of.Files
	}
	if known != nil {
		now.Reworked = known.Reworked
	}
	t.Files, t.Compared = (*catalog.SourceFiles)(&now), now.Reworked
}

// copier makes the initial copies of a session. Its methods run on several
// goroutines; it has no state of its own but what it began with.
type copier struct{ session *session }

// chunk is one piece of a table to read.
type chunk struct {
	table  *catalog.Table
	source SourceTable
	index  int
	text   string
}

// plan hands out the chunks that are not done, table by table.
func (c *copier) plan(ctx context.Context, out *chunkQueue) error {
	for _, t := range c.session.uncopied() {
		planned, err := c.planTable(ctx, t)
		if err != nil {
			return err
		}
		for i, text := range planned.Backfill.Plan {
			if planned.Backfill.Done[i] {
				continue
			}
			ch := chunk{table: planned, source: sourceTable(planned), index: i, text: text}
			if err := out.put(ctx, ch); err != nil {
				return err
			}
		}
	}
	return nil
}

// planTable makes the table's plan durable; an empty one ends its copy.
func (c *copier) planTable(ctx context.Context, t *catalog.Table) (*catalog.Table, error) {
	s := c.session
	if len(t.Backfill.Plan) > 0 {
		return t, nil
	}
	plan, err := s.backfill.Plan(ctx, sourceTable(t))
	if err != nil {
		return nil, c.tableError(ctx, t, fmt.Errorf("plan copy of %s.%s: %w", t.SourceSchema, t.SourceName, err))
	}
	var planned *catalog.Table
	err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		next, err := txn.TableByID(t.ID)
		if err != nil {
			return err
		}
		planned = next
		next.Backfill.Plan, next.Backfill.Done = plan, make([]bool, len(plan))
		if len(plan) == 0 {
			finish(next, txn.Now(), s.consistent(next))
		}
		return txn.PutTable(next)
	})
	if err != nil {
		return nil, fmt.Errorf("record plan of %s.%s: %w", t.SourceSchema, t.SourceName, err)
	}
	return planned, nil
}

// consistent says that what is copied of the table needs no stream to agree with it.
func (s *session) consistent(t *catalog.Table) bool {
	return s.progress.compare(s.progress.durable(), t.Backfill.Horizon) >= 0
}

// read copies one chunk. Its last group carries that it is done. A chunk that was cut
// short is read again: keys make that harmless, and a table without one begins anew.
func (c *copier) read(ctx context.Context, ch chunk) error {
	w := &chunkWriter{copier: c, chunk: ch}
	defer w.release()
	c.session.refusals.begin(ch)
	t := ch.table
	err := c.session.backfill.Read(ctx, ch.source, t.Current, ch.text, t.Backfill.Token,
		func(b *change.Batch) error { return w.emit(ctx, b) })
	if err == nil {
		err = w.finish(ctx)
	}
	c.session.refusals.end(ch, err == nil)
	if err == nil && w.owed && !c.done(ch) {
		err = &TableError{Reason: "it has rows that were deleted when they could not be taken in", Hint: hintResync, Anew: true}
	}
	if err == nil {
		signal(c.session.advanced)
		return nil
	}
	return c.tableError(ctx, t, fmt.Errorf("copy %s.%s: %w", t.SourceSchema, t.SourceName, err))
}

// done says whether a chunk that is durable counts.
func (c *copier) done(ch chunk) bool {
	snap := c.session.deps.Catalog.Snapshot()
	defer snap.Close()
	t, err := snap.TableByID(ch.table.ID)
	return err != nil || t.Generation != ch.table.Generation || t.State != catalog.TableBackfill ||
		ch.index >= len(t.Backfill.Done) || t.Backfill.Done[ch.index]
}

// tableError stops the table that err is about, if it is about one, or has its copy begin
// anew, and has the session begin anew without it. The source keeps nothing for such a table: RESUME
// copies it anew.
func (c *copier) tableError(ctx context.Context, t *catalog.Table, err error) error {
	var problem *TableError
	if !errors.As(err, &problem) {
		var ours *logError
		if errors.As(err, &ours) || context.Cause(ctx) != nil {
			return err
		}
		return sourceError("backfill", err)
	}
	if tries := t.Backfill.Tries; problem.Anew && tries < triesMax {
		if tries > 0 { // others are copied, and the stream goes on, meanwhile
			if err := c.session.deps.Clock.Sleep(ctx, min(c.session.cfg.BackoffMin<<(tries-1), c.session.cfg.BackoffMax)); err != nil {
				return err
			}
		}
		return errors.Join(c.void(ctx, t, problem), errRestart)
	}
	c.session.out.Warn("table stopped", env.KeyTable, t.Schema+"."+t.Name, env.KeyReason, problem.Reason)
	stopErr := c.session.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		return stopCopy(txn, c.session.pipeline.Name, t.ID, problem)
	})
	if stopErr != nil {
		return stopErr
	}
	return errRestart
}

// triesMax is how often in turn a copy that is void begins anew, after a pause each time but
// the first.
const triesMax = 20

// stopCopy stops a table whose copy cannot go on.
func stopCopy(txn *catalog.Txn, pipeline string, id change.TableID, why *TableError) error {
	t, err := txn.TableByID(id)
	if err != nil {
		return err
	}
	t.State, t.Reason, t.StoppedAt, t.Resync = catalog.TableStopped, why.Reason, "", why.Resync
	t.Hint = exactHint(txn, cmp.Or(why.Hint, hintResync), t.ID)
	if err := txn.PutTable(t); err != nil || t.CopyOf != 0 {
		return err // that a copy is given up is told
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "error", Pipeline: pipeline, Table: t.Schema + "." + t.Name, Kind: "table stopped",
		Detail: t.Reason + hintAfter(t.Hint),
	})
}

// chunkWriter appends the rows of one chunk, one batch behind, so that it knows the
// last.
type chunkWriter struct {
	copier *copier
	chunk  chunk
	held   *change.Batch
	rows   int64
	bytes  int64
	// counted are the rows that are in the log.
	counted int64
	// owed is chunkDone's.
	owed bool
}

func (w *chunkWriter) emit(ctx context.Context, b *change.Batch) error {
	b.Table, b.Backfill = w.chunk.table.ID, true
	w.rows += b.Rows()
	if w.held != nil {
		if err := w.append(ctx, nil); err != nil {
			b.Release()
			return err
		}
	}
	w.held = b
	return nil
}

// finish appends what is held with the fact that the chunk is done.
func (w *chunkWriter) finish(ctx context.Context) error {
	s := w.copier.session
	if err := s.awaitDurable(ctx, w.chunk.table.ID, s.refusals.owedAt(w.chunk)); err != nil {
		return err
	}
	w.owed = s.refusals.owes(w.chunk.table.ID)
	state := &groupState{Chunk: &chunkDone{
		Table: w.chunk.table.ID, Generation: w.chunk.table.Generation, Chunk: w.chunk.index,
		Rows: w.rows, Bytes: w.bytes, At: s.deps.Clock.Now().UTC(),
		Consistent: s.consistent(w.chunk.table), Owed: w.owed,
	}, Letters: s.refusals.records(w.chunk)}
	encoded, err := state.encode()
	if err != nil {
		return err
	}
	return w.append(ctx, encoded)
}

// awaitDurable waits until a table has everything up to at.
func (s *session) awaitDurable(ctx context.Context, id change.TableID, at change.Position) error {
	for at != "" && !mutant.On(mutant.OwedPaidEarly) {
		moved := s.progress.move() // before the look
		if s.progress.compare(s.progress.own(id), at) >= 0 {
			break
		}
		if err := s.deps.Tasks.Wait(ctx, 0, moved); err != nil {
			return err
		}
	}
	return nil
}

func (w *chunkWriter) append(ctx context.Context, state []byte) error {
	defer w.release()
	s := w.copier.session
	g := &change.Group{State: state}
	if w.held != nil {
		g.Batches = []*change.Batch{w.held}
	}
	committed, err := s.writer.append(ctx, g)
	if err != nil {
		return err
	}
	s.live.copied(committed, w.chunk.table.ID, w.counted, state != nil)
	for _, slice := range committed.Slices {
		w.bytes, w.counted = w.bytes+int64(slice.Length), w.counted+int64(slice.Rows)
	}
	return nil
}

func (w *chunkWriter) release() {
	if w.held != nil {
		w.held.Release()
		w.held = nil
	}
}

// void records that a table's copy must begin from the start.
func (c *copier) void(ctx context.Context, t *catalog.Table, why *TableError) error {
	c.session.out.Warn("copy begins anew", env.KeyTable, t.Schema+"."+t.Name, env.KeyReason, why.Reason)
	return c.session.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		next, err := txn.TableByID(t.ID)
		if err != nil {
			return err
		}
		if next.Backfill.Anew {
			return nil // another reader was faster
		}
		next.Backfill.Anew, next.Backfill.Tries = true, next.Backfill.Tries+1
		if err := txn.PutTable(next); err != nil {
			return err
		}
		if of, err := txn.TableByID(next.CopyOf); err == nil {
			next = of
		}
		return txn.AddEvent(catalog.Event{
			At: txn.Now(), Level: "warning", Pipeline: c.session.pipeline.Name,
			Table: next.Schema + "." + next.Name, Kind: "copy begins anew", Detail: why.Reason,
		})
	})
}

// chunkQueue hands chunks from the planner of a copy to its readers: one waits in it at
// most, so that no more is planned than is read. Safe for concurrent use by one planner.
type chunkQueue struct {
	tasks env.Tasks
	// room tells the planner that the chunk was taken, more the readers that there is one.
	room, more chan struct{}
	mu         struct {
		sync.Mutex
		waiting *chunk
		closed  bool
	}
}

func newChunkQueue(tasks env.Tasks) *chunkQueue {
	return &chunkQueue{tasks: tasks, room: make(chan struct{}, 1), more: make(chan struct{}, 1)}
}

// put waits until ch can be taken by the next reader.
func (q *chunkQueue) put(ctx context.Context, ch chunk) error {
	for {
		q.mu.Lock()
		full := q.mu.waiting != nil
		if !full {
			q.mu.waiting = &ch
		}
		q.mu.Unlock()
		if !full {
			signal(q.more)
			return nil
		}
		if err := q.tasks.Wait(ctx, 0, q.room); err != nil {
			return err
		}
	}
}

// close says that no more chunks come.
func (q *chunkQueue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	signal(q.more)
}

// take waits for a chunk; nil when there are no more.
func (q *chunkQueue) take(ctx context.Context) (*chunk, error) {
	for {
		q.mu.Lock()
		ch, closed := q.mu.waiting, q.mu.closed
		q.mu.waiting = nil
		q.mu.Unlock()
		switch {
		case ch != nil:
			signal(q.room)
			return ch, nil
		case closed:
			signal(q.more) // for the next reader
			return nil, nil
		}
		if err := q.tasks.Wait(ctx, 0, q.more); err != nil {
			return nil, err
		}
	}
}
