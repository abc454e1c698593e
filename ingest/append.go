package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal"
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
}

// run appends until ctx ends or the log fails.
func (a *appender) run(ctx context.Context) error {
	a.savedAt = a.clock.Now()
	a.acknowledge()
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
	rest := a.idleInterval - a.clock.Since(a.savedAt)
	if rest <= 0 {
		return true, 0, a.save(ctx)
	}
	if wait == 0 || rest < wait {
		wait = rest
	}
	return false, wait, nil
}

// append makes a group durable, then acknowledges it.
func (a *appender) append(ctx context.Context, g *group) error {
	defer g.release()
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

// writer appends to a log, and waits when it is full. Safe for concurrent use.
type writer struct {
	log   Log
	clock env.Clock
	out   *slog.Logger
	live  *live
	// stuck says that the log has nothing that could go, since all of it is a transaction
	// that has not ended; bytes is how much.
	stuck func() (bytes int64, err error)
	// failed says that an append's fate is open.
	failed atomic.Bool
}

const (
	fullWaitMin = 50 * time.Millisecond
	fullWaitMax = 2 * time.Second
)

// append makes g durable. The append itself is not cut short by ctx, since a group
// whose fate is open must not be sent again; only the wait for room is.
func (w *writer) append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error) {
	wait, was := fullWaitMin, false
	for {
		committed, err := w.log.Append(context.WithoutCancel(ctx), g)
		if !errors.Is(err, wal.ErrFull) {
			w.live.throttled(false)
			if errors.Is(err, segment.ErrTooLarge) { // nothing was written
				return committed, &TableError{Reason: rowReason(rowBytesMax), Hint: hintSmallerRow}
			}
			if err != nil {
				w.failed.Store(true)
				return committed, &logError{err}
			}
			return committed, nil
		}
		var bytes int64
		if errors.Is(err, wal.ErrQuota) { // a disk may be full of others, who make room
			var stuckErr error
			if bytes, stuckErr = w.stuck(); stuckErr != nil {
				return committed, stuckErr
			}
		}
		if was && bytes > 0 {
			return committed, &TransactionError{Bytes: bytes}
		}
		was = bytes > 0 // not believed yet: the rest may have gone since the append failed
		if w.live.throttled(true) {
			w.out.Warn("log is full, source throttled", env.KeyError, err)
		}
		if err := w.clock.Sleep(ctx, wait); err != nil {
			return wal.CommittedGroup{}, err
		}
		wait = min(2*wait, fullWaitMax)
	}
}

// stuck says that nothing but pending slices keeps the log of a pipeline full, and how
// many bytes they are; 0 when something else may still go.
func stuck(c *catalog.Catalog, pipeline change.PipelineID) (bytes int64, err error) {
	snap := c.Snapshot()
	defer snap.Close()
	pending, ok := snap.Pending(pipeline)
	if !ok {
		return 0, nil
	}
	for _, t := range snap.EveryTableOf(pipeline) {
		live, err := snap.LiveSlices(t.ID)
		if err != nil || len(live) > 0 {
			return 0, err
		}
	}
	at, err := snap.Offset(pipeline)
	if err != nil {
		return 0, err
	}
	idle, err := snap.ReclaimableSegments(pipeline, at.Seq)
	if err != nil {
		return 0, fmt.Errorf("look for segments to reclaim: %w", err)
	}
	if len(idle) > 0 {
		return 0, nil
	}
	return pending.Bytes, nil
}
