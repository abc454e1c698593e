package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// stream runs the parts of a session until the first of them fails.
func (s *session) stream(ctx context.Context) error {
	from, tables := s.progress.from(), s.streamTables()
	s.streamed = make(map[change.TableID]bool, len(tables))
	for _, t := range tables {
		s.streamed[t.ID] = true
	}
	letters, loadErr := s.loadLetters()
	if loadErr != nil {
		return loadErr
	}
	sink := newBatcher(ctx, batcherConfig{
		clock: s.deps.Clock, tasks: s.deps.Tasks, limit: s.cfg.GroupBytes,
		part: s.cfg.PartBytes, session: fmt.Sprintf("%016x", s.deps.IDs.Uint64()), freshness: s.freshness(),
		interval: s.groupInterval(), compare: s.source.Compare, from: from, tables: tables,
		letters: letters, onErrorStop: onErrorStop(s.pipeline),
	})
	s.live.attach(sink.pendingSince)
	app := &appender{
		sink: sink, progress: s.progress, source: s.source, writer: s.writer, live: s.live,
		clock: s.deps.Clock, tasks: s.deps.Tasks, fail: s.deps.Failpoints, advanced: s.advanced,
		idleInterval: s.cfg.IdleInterval, unchanged: s,
	}
	stream := func(ctx context.Context) error {
		sink.ctx = ctx // ours: only this part waits in the sink
		err := s.source.Stream(ctx, from, tables, sink)
		if err == nil {
			err = errors.New("stream ended")
		}
		return sourceError("stream", err)
	}
	s.copying.Store(s.backfill != nil)
	err := s.deps.Tasks.Run(ctx, stream, app.run, s.copyTables, s.keep)
	s.live.attach(nil)
	sink.release()
	var large *TransactionError
	if r, ok := s.source.(Rejecter); ok && errors.As(err, &large) {
		r.Reject(large)
		return errRestart
	}
	return err
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
