package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// stream runs the parts of a session until the first of them fails.
func (s *session) stream(ctx context.Context) error {
	tables := s.streamTables()
	s.streamed = make(map[change.TableID]bool, len(tables))
	for _, t := range tables {
		s.streamed[t.ID] = true
	}
	letters, err := s.loadLetters()
	if err != nil {
		return err
	}
	s.copying.Store(s.backfill != nil)
	first, ended := s.newStream(ctx, tables, letters, &stream{}), make(chan struct{})
	deliver := func(ctx context.Context) error {
		defer close(ended)
		if err := first.deliver(ctx); !errors.Is(err, errRefused) {
			return err
		}
		return nil
	}
	appendAll := func(ctx context.Context) error {
		err := first.appender.run(ctx)
		if !errors.Is(err, errRefused) {
			return err
		}
		first.stop(err)
		if err := s.deps.Tasks.Wait(ctx, 0, ended); err != nil {
			return err
		}
		return s.streamAgain(ctx, first, letters)
	}
	err = s.deps.Tasks.Run(ctx, deliver, appendAll, s.copyTables, s.keep)
	s.live.attach(nil)
	first.sink.release()
	var large *TransactionError
	if r, ok := s.source.(Rejecter); ok && errors.As(err, &large) {
		r.Reject(large)
		return errRestart
	}
	return err
}

// errRefused ends a stream so that the next one begins at once, and sets rows aside.
var errRefused = errors.New("rows are refused that were delivered")

// streamAgain streams after last, which has ended since rows were refused that it had
// delivered: from what is durable on, so that they are set aside at their place. What else
// the session does goes on meanwhile: the copy of a table without a key would begin anew
// with the next session.
func (s *session) streamAgain(ctx context.Context, last *stream, letters *deadletter.Open) error {
	last.undo()
	for {
		next := s.newStream(ctx, s.streamTables(), letters, last)
		err := s.deps.Tasks.Run(ctx, next.deliver, next.appender.run)
		s.live.attach(nil)
		again := errors.Is(err, errRefused)
		if again {
			next.undo()
		}
		next.sink.release()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if !again {
			return err
		}
		last = next
	}
}

// stream is one stream of a session.
type stream struct {
	session  *session
	from     change.Position
	tables   []StreamTable
	sink     *batcher
	appender *appender
	// stop ends deliver, once that has delivered something.
	stop context.CancelCauseFunc
}

// newStream makes a stream that begins at what is durable, after last.
func (s *session) newStream(ctx context.Context, tables []StreamTable, letters *deadletter.Open, last *stream) *stream {
	st := &stream{session: s, from: s.progress.from(), tables: tables}
	until, voids := last.left()
	st.sink = newBatcher(ctx, batcherConfig{
		clock: s.deps.Clock, tasks: s.deps.Tasks, limit: s.cfg.GroupBytes,
		part: s.cfg.PartBytes, session: fmt.Sprintf("%016x", s.deps.IDs.Uint64()), freshness: s.freshness(),
		interval: s.groupInterval(), compare: s.source.Compare, from: st.from, tables: tables,
		letters: letters, onErrorStop: onErrorStop(s.pipeline), until: until,
	})
	s.live.attach(st.sink.pendingSince)
	st.appender = &appender{
		sink: st.sink, progress: s.progress, source: s.source, writer: s.writer, live: s.live,
		clock: s.deps.Clock, tasks: s.deps.Tasks, fail: s.deps.Failpoints, advanced: s.advanced,
		idleInterval: s.cfg.IdleInterval, unchanged: s, voids: voids,
	}
	return st
}

// deliver has the source deliver changes until ctx ends or something fails.
func (st *stream) deliver(ctx context.Context) error {
	ctx, st.stop = context.WithCancelCause(ctx)
	defer st.stop(nil)
	st.sink.ctx = ctx // ours: only this part waits in the sink
	err := st.session.source.Stream(ctx, st.from, st.tables, st.sink)
	if err == nil {
		err = errors.New("stream ended")
	}
	return sourceError("stream", err)
}

// left is what a stream that was refused leaves to the next: the end of the group that was
// refused, "" when it had none, and whether parts of a transaction are durable that comes
// again.
func (st *stream) left() (until change.Position, voids bool) {
	if st.appender == nil {
		return "", false
	}
	return st.appender.refused.position, st.appender.voids || st.appender.parts.Parts > 0
}

// undo takes back what a stream that was refused has done with letters and is not durable.
func (st *stream) undo() {
	st.sink.takeLetters(st.appender.refused)
}

// copyTables makes the initial copies that are due, then returns.
func (s *session) copyTables(ctx context.Context) error {
	if s.backfill == nil {
		return nil
	}
	defer s.copying.Store(false)
	c := &copier{session: s}
	if r, ok := s.backfill.(CopyRefuser); ok {
		r.OnRefused(s.refusals)
	}
	q := newChunkQueue(s.deps.Tasks)
	parts := []func(context.Context) error{func(ctx context.Context) error {
		defer q.close()
		return c.plan(ctx, q)
	}}
	for range max(1, s.backfill.Parallel()) {
		parts = append(parts, func(ctx context.Context) error {
			for {
				ch, err := q.take(ctx)
				if err != nil || ch == nil {
					return err
				}
				if err := c.read(ctx, *ch); err != nil {
					return err
				}
			}
		})
	}
	if err := s.deps.Tasks.Run(ctx, parts...); err != nil {
		return err
	}
	if err := s.deps.Tasks.Wait(ctx, 0, s.fetching); err != nil {
		return err
	}
	closing := s.backfill
	s.backfill = nil
	s.fetching <- struct{}{}
	if err := closing.Close(); err != nil { // it holds a snapshot at the source
		s.out.Warn("backfill not closed cleanly", env.KeyError, err)
	}
	return nil
}

// keep moves tables on to ready, samples rates and asks the source how it is.
func (s *session) keep(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	k := &keeper{session: s, end: end}
	return env.RunLoop(ctx, env.LoopConfig{
		Name: "pipeline keeper", Clock: s.deps.Clock, Tasks: s.deps.Tasks, Step: k.step,
		Wake: s.advanced, Interval: min(keepInterval, s.cfg.LookInterval),
		OnError: func(err error) { s.out.Warn("pipeline keeper erred", env.KeyError, err) },
	})
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
				return committed, &TableError{Reason: rowReason(RowBytesMax), Hint: hintSmallerRow}
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
