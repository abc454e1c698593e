package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// appender takes groups from a batcher, makes them durable and acknowledges what is.
// It is the only one that does so for the stream; owned by its goroutine.
type appender struct {
	sink     *batcher
	progress *progress
	source   Source
	writer   *writer
	live     *live
	clock    env.Clock
	tasks    env.Tasks
	fail     env.Failpoints
	// advanced is told after each durable step.
	advanced chan struct{}

	idleInterval time.Duration
	// idlePending is an idle position that is not durable yet; savedAt is when a
	// position became durable last.
	idlePending change.Position
	savedAt     time.Time
	// parts are those of the open transaction that are durable; no position is saved
	// between them.
	parts partsDone
	// pieced is how many groups went into the log in pieces.
	pieced int
	// unchanged finds values that the source leaves out.
	unchanged unchangedValues
	// voids says that parts are durable of a transaction that comes again.
	voids bool
	// refused is the group that run ended at with errRefused.
	refused *group
}

// run appends until ctx ends or the log fails.
func (a *appender) run(ctx context.Context) error {
	a.savedAt = a.clock.Now()
	a.acknowledge()
	if a.voids { // before anything of this stream
		if err := a.appendWhole(ctx, &group{voids: true}); err != nil {
			a.sink.fail(err)
			return err
		}
		a.voids = false
	}
	for {
		more, wait, err := a.step(ctx)
		if err != nil {
			a.sink.fail(err)
			return err
		}
		if more {
			continue
		}
		if err := a.tasks.Wait(ctx, wait, a.sink.wake); err != nil {
			return err
		}
	}
}

// step does one thing, if there is one to do; else wait says how long to wait at
// most, 0 meaning until woken.
func (a *appender) step(ctx context.Context) (more bool, wait time.Duration, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, 0, err
	}
	g, idle, wait := a.sink.take()
	switch {
	case g != nil:
		return true, 0, a.append(ctx, g)
	case idle != "":
		return true, 0, a.idle(ctx, idle)
	case a.idlePending == "" || a.parts.Parts > 0:
		return false, wait, nil
	}
	rest := a.idleRest()
	if rest <= 0 {
		return true, 0, a.save(ctx)
	}
	if wait == 0 || rest < wait {
		wait = rest
	}
	return false, wait, nil
}

// idleRest is how long the pending idle position may still wait for company: until
// idleInterval after the last one that became durable, and not so long where the source has
// written much since, which it keeps for as long.
func (a *appender) idleRest() time.Duration {
	wait := a.idleInterval
	if a.progress.distance(a.progress.durable(), a.idlePending) >= idleBytes {
		wait = min(wait, idleSoon)
	}
	return wait - a.clock.Since(a.savedAt)
}

// append makes a group durable, then acknowledges it.
func (a *appender) append(ctx context.Context, g *group) error {
	defer g.release()
	if g.leavesOut() {
		err := a.appendFilled(ctx, g)
		if errors.Is(err, errRefused) {
			a.refused = g
		}
		return err
	}
	return a.appendWhole(ctx, g)
}

// unchangedValues finds values that the source leaves out. Implemented by session.
type unchangedValues interface {
	lookup() fill.Lookup
	// fillTable is what is known of a table with changes to be filled in; schemas are the
	// versions that begin with them.
	fillTable(id change.TableID, schemas []tableSchema) (*fill.Table, error)
	// unfilled deals with changes that could not be filled in, and says how the session
	// ends.
	unfilled(ctx context.Context, err error) error
	// compute computes columns of batches, as compute.Group; schemas as with fillTable. An
	// error says how the session ends.
	compute(ctx context.Context, batches []*change.Batch, schemas []tableSchema) ([][]*change.Batch, error)
}

// appendFilled makes a group durable after it has filled in, and computed, what its source
// left out: in pieces, when that makes it large, which are parts of one transaction and
// become visible with the last. Nothing of it is acknowledged before that.
func (a *appender) appendFilled(ctx context.Context, g *group) error {
	schemas := slices.Concat(g.schemas, g.known)
	table := func(id change.TableID) (*fill.Table, error) { return a.unchanged.fillTable(id, schemas) }
	txn := cmp.Or(g.part, g.completes)
	f := fill.New(a.unchanged.lookup(), table, a.sink.sizes, g.batches, txn != "" && a.parts.Txn == txn)
	defer f.Close()
	last := *g
	for {
		batches, more, err := f.Next(ctx)
		if err != nil {
			return a.unchanged.unfilled(ctx, err)
		}
		pieces := [][]*change.Batch{batches}
		if compute.Any(batches) {
			if pieces, err = a.unchanged.compute(ctx, batches, schemas); err != nil {
				return err
			}
		}
		for i, batches := range pieces {
			err = a.appendPiece(ctx, &last, &txn, batches, more || i < len(pieces)-1)
			if err != nil {
				releaseAll(pieces[i+1:])
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// appendPiece makes a piece of a group durable, which it takes over; txn is the transaction
// that its pieces are parts of, once there are several.
func (a *appender) appendPiece(ctx context.Context, last *group, txn *string, batches []*change.Batch, more bool) error {
	piece := &group{batches: batches, part: *txn, oldest: last.oldest}
	defer piece.release()
	switch {
	case !more:
		whole := *last
		whole.batches = batches
		if whole.part == "" {
			whole.completes = *txn
		}
		return a.appendWhole(ctx, &whole)
	case *txn == "":
		a.pieced++
		*txn = fmt.Sprintf("%s+%d", a.sink.session, a.pieced)
		piece.part = *txn
		if last.voids { // before the first piece, not with the last
			if err := a.appendWhole(ctx, &group{voids: true}); err != nil {
				return err
			}
			last.voids = false
		}
	}
	return a.appendWhole(ctx, piece)
}

func releaseAll(pieces [][]*change.Batch) {
	for _, batches := range pieces {
		for _, b := range batches {
			b.Release()
		}
	}
}

// appendWhole makes a group durable that has all its values, then acknowledges it.
func (a *appender) appendWhole(ctx context.Context, g *group) error {
	state := &groupState{Stops: g.stops, Schemas: g.schemas, Letters: letterRecords(g.letters), Part: g.part, Voids: g.voids}
	out := &change.Group{Batches: g.batches, CommittedAt: g.newest}
	if g.part == "" {
		out.Position = a.progress.plan(g.position, state)
	}
	if g.completes != "" {
		done := a.parts
		state.Completes = &done
	}
	var err error
	if out.State, err = state.encode(); err != nil {
		return err
	}
	a.live.appending(g.oldest)
	committed, err := a.writer.append(ctx, out)
	a.live.appending(time.Time{})
	if err != nil {
		return fmt.Errorf("append group: %w", err)
	}
	a.settle(out, state)
	a.countPart(g, committed.Seq)
	a.live.committed(committed, g)
	for _, s := range g.stops {
		a.live.stopped(s)
		a.writer.out.Warn("table stopped", env.KeyTable, uint32(s.Table), env.KeyReason, s.Reason)
	}
	if err := a.fail.Hit(env.BeforeAck); err != nil {
		return err
	}
	a.acknowledge()
	return nil
}

// countPart counts a part that became durable, or forgets them with the group that ends
// their transaction.
func (a *appender) countPart(g *group, at segment.Seq) {
	if g.part == "" {
		a.parts = partsDone{}
		return
	}
	if a.parts.Parts == 0 {
		a.parts = partsDone{Txn: g.part, First: at}
	}
	a.parts.Parts++
}

// settle records that a group is durable.
func (a *appender) settle(g *change.Group, state *groupState) {
	a.progress.record(g.Position, state)
	if g.Position != "" {
		a.savedAt, a.idlePending = a.clock.Now(), ""
	}
	signal(a.advanced)
}

// idle notes a position at which nothing is pending. It becomes durable, and is
// acknowledged then, with the next group or by save.
func (a *appender) idle(ctx context.Context, at change.Position) error {
	a.live.idle()
	if a.progress.compare(at, a.progress.durable()) > 0 {
		a.idlePending = at
	}
	if a.progress.idle(at) {
		a.idlePending = at
		return a.save(ctx)
	}
	signal(a.advanced)
	return nil
}

// save makes the pending idle position durable by a group without rows.
func (a *appender) save(ctx context.Context) error {
	state := &groupState{}
	out := &change.Group{Position: a.progress.plan(a.idlePending, state)}
	var err error
	if out.State, err = state.encode(); err != nil {
		return err
	}
	if out.Position != "" || out.State != nil {
		if _, err := a.writer.append(ctx, out); err != nil {
			return fmt.Errorf("append idle position: %w", err)
		}
	}
	a.settle(out, state)
	a.idlePending, a.savedAt = "", a.clock.Now()
	a.acknowledge()
	return nil
}

// acknowledge tells the source what is durable, if that has grown.
func (a *appender) acknowledge() {
	if at, ok := a.progress.ack(); ok {
		a.source.Ack(at)
	}
}

// lookup implements unchangedValues.
func (s *session) lookup() fill.Lookup { return s.deps.Rows }

// fillTable implements unchangedValues.
func (s *session) fillTable(id change.TableID, schemas []tableSchema) (*fill.Table, error) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	t, err := snap.TableByID(id)
	if err != nil {
		return nil, err
	}
	f := &fill.Table{}
	for i := range schemas {
		if schemas[i].Table == id {
			f.Versions = append(f.Versions, schemas[i].Schema)
		}
	}
	all := slices.Concat(f.Versions, t.Versions, []*schema.Table{t.Current})
	f.Version = func(n uint32) *schema.Table {
		i := slices.IndexFunc(all, func(v *schema.Table) bool { return v.Version == n })
		if i < 0 {
			return nil
		}
		return all[i]
	}
	// A copy that was read later than the change may have the key for another row by then.
	at := s.progress.reached(id)
	if s.progress.compare(t.Backfill.From, at) > 0 {
		at = t.Backfill.From
	}
	f.Exact = t.State == catalog.TableReady || s.progress.compare(at, t.Backfill.Horizon) >= 0
	if t.State == catalog.TablePending || t.State == catalog.TableBackfill {
		f.Copied = func(ctx context.Context, q *fill.Query, found fill.Found) (bool, error) {
			return s.fetch(ctx, t, q, found)
		}
	}
	return f, nil
}

// fetch reads rows of a table as they were at the moment that its copy reads. ok is false
// when the copies of the session are complete.
func (s *session) fetch(ctx context.Context, t *catalog.Table, q *fill.Query, found fill.Found) (ok bool, err error) {
	if err := s.deps.Tasks.Wait(ctx, 0, s.fetching); err != nil {
		return false, err
	}
	defer func() { s.fetching <- struct{}{} }()
	if s.backfill == nil {
		return false, nil
	}
	f, ok := s.backfill.(Fetcher)
	if !ok {
		return true, nil
	}
	err = f.Fetch(ctx, sourceTable(t), q, found)
	var problem *TableError
	switch {
	case errors.As(err, &problem):
		return true, fmt.Errorf("%w: %w", &fill.UnknownError{Table: t.ID}, err)
	case err != nil:
		return true, sourceError("fetch unchanged values", err)
	}
	return true, nil
}

// compute implements unchangedValues.
func (s *session) compute(ctx context.Context, batches []*change.Batch, schemas []tableSchema) ([][]*change.Batch, error) {
	pieces, err := compute.Group(ctx, sessionComputer{s}, func(b *change.Batch) (*schema.Table, error) {
		t, err := s.fillTable(b.Table, schemas)
		if err != nil {
			return nil, err
		}
		if v := t.Version(b.SchemaVersion); v != nil {
			return v, nil
		}
		return nil, fmt.Errorf("schema version %d of table %d is not known", b.SchemaVersion, b.Table)
	}, batches)
	if err == nil {
		return pieces, nil
	}
	var refused *compute.GroupError
	var stop *computeStop
	switch {
	case errors.As(err, &refused):
		s.live.uncomputed.Add(refused)
		s.out.Warn("rows have a computed value that cannot be taken in", env.KeyReason, err)
		return nil, errRefused
	case errors.As(err, &stop):
		return nil, s.stopUncomputed(ctx, stop)
	}
	return nil, fmt.Errorf("compute columns: %w", err)
}

// sessionComputer computes columns at the session's source.
type sessionComputer struct{ *session }

// Compute implements compute.Source.
func (s sessionComputer) Compute(ctx context.Context, id change.TableID, v *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error) {
	c, ok := s.source.(Computer)
	if !ok {
		return nil, fmt.Errorf("table %d: %w: its source computes nothing", id, ErrBadSource)
	}
	snap := s.deps.Catalog.Snapshot()
	t, err := snap.TableByID(id)
	snap.Close()
	if err != nil {
		return nil, err
	}
	columns, err := c.Compute(ctx, t.SourceOID, v, rec)
	var problem *TableError
	var refused *compute.RefusedError
	switch {
	case err == nil || errors.As(err, &refused):
		return columns, err
	case errors.As(err, &problem):
		return nil, &computeStop{table: id, problem: problem}
	}
	return nil, sourceError("compute columns", err)
}

// computeStop stops a table of which no row can be computed any more.
type computeStop struct {
	table   change.TableID
	problem *TableError
}

// Error is the reason.
func (e *computeStop) Error() string { return e.problem.Error() }

// stopUncomputed stops a table that has everything before the group. Nothing of that is in
// the log.
func (s *session) stopUncomputed(ctx context.Context, e *computeStop) error {
	at := s.progress.own(e.table)
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		t, err := txn.TableByID(e.table)
		if err != nil || t.State == catalog.TableStopped {
			return err
		}
		stop := tableStop{Table: t.ID, At: at, Reason: e.problem.Reason, Hint: exactHint(txn, e.problem.Hint, t.ID), Resync: e.problem.Resync}
		stop.apply(t)
		if err := txn.PutTable(t); err != nil {
			return err
		}
		return stop.addEvent(txn, t.Pipeline)
	})
	if err != nil {
		return errors.Join(e, err)
	}
	s.out.Warn("table could not be computed", env.KeyTable, uint32(e.table), env.KeyReason, e)
	return errRestart
}

// unfilled implements unchangedValues: the table whose value is not known stops, or its
// copy begins anew. Nothing of the group is in the log; the source sends it again, and a
// new session knows the dead letters that have come with the copy.
func (s *session) unfilled(ctx context.Context, err error) error {
	var unknown *fill.UnknownError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("look up values that an update left unchanged: %w", err)
	}
	var problem *TableError
	errors.As(err, &problem) // the source has the value, and the copy would not take it in either
	at := s.progress.own(unknown.Table)
	again := s.live.unfilled(unknown.Table, at)
	updateErr := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		t, err := txn.TableByID(unknown.Table)
		if err != nil || t.State == catalog.TableStopped {
			return err
		}
		if problem != nil || !unknown.Copying {
			letters, err := copiedLetters(txn, t)
			if err != nil || problem == nil && letters && !again {
				return err // the copy may have set the row aside since it was left out
			}
			if problem != nil || !letters {
				return stopUnfilled(txn, t, unknown, problem, at)
			}
		}
		// It may have become ready since.
		t.State, t.Backfill.Anew, t.Backfill.Skip = catalog.TableBackfill, true, true
		if err := txn.PutTable(t); err != nil {
			return err
		}
		return txn.AddEvent(catalog.Event{
			At: txn.Now(), Level: "info", Pipeline: s.pipeline.Name, Table: t.SourceSchema + "." + t.SourceName, Kind: "copy begins anew",
			Detail: fmt.Sprintf("an update left the large value of column %s unchanged, and the copy, read later, may have it of another row", quote.Name(unknown.Column)),
		})
	})
	if updateErr != nil {
		return errors.Join(err, updateErr)
	}
	s.out.Warn("table could not be filled in", env.KeyTable, uint32(unknown.Table), env.KeyReason, err)
	return errRestart
}

// copiedLetters says whether a table's copy has set rows aside, of which an update can be
// that is the first of its row here.
func copiedLetters(txn *catalog.Txn, t *catalog.Table) (bool, error) {
	all, err := txn.DeadLetters(t.ID)
	return slices.ContainsFunc(all, func(l *catalog.DeadLetter) bool { return l.Copied && l.Generation == t.Generation }), err
}

const hintUnchanged = "Copy the table anew with ALTER PIPELINE … RESYNC TABLE …; ALTER TABLE … REPLICA IDENTITY FULL at the source has " +
	"updates carry all values."

// stopUnfilled stops a table that has everything up to at, and then a change of a row that
// is not here; with problem because the row cannot be taken in.
func stopUnfilled(txn *catalog.Txn, t *catalog.Table, unknown *fill.UnknownError, problem *TableError, at change.Position) error {
	stop := tableStop{
		Table: t.ID, At: at, Hint: exactHint(txn, hintUnchanged, t.ID),
		Reason: fmt.Sprintf("an update left the large value of column %s unchanged, and %s", quote.Name(unknown.Column), ReasonRowUnknown),
	}
	if problem != nil {
		stop.At, stop.Reason, stop.Hint = "", problem.Reason, exactHint(txn, problem.Hint, t.ID)
	}
	stop.apply(t)
	if err := txn.PutTable(t); err != nil {
		return err
	}
	return stop.addEvent(txn, t.Pipeline)
}
