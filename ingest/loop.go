package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/wal/env"
)

// stream runs the parts of a session until the first of them fails.
func (s *session) stream(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	from, tables := s.progress.from(), s.streamTables()
	sink := newBatcher(ctx, batcherConfig{
		clock: s.deps.Clock, limit: s.cfg.GroupBytes, most: s.cfg.TransactionBytes, freshness: s.freshness(),
		interval: s.cfg.GroupInterval, compare: s.source.Compare, from: from, tables: tables,
	})
	s.live.attach(sink.pendingSince)
	app := &appender{
		sink: sink, progress: s.progress, source: s.source, writer: s.writer, live: s.live,
		clock: s.deps.Clock, fail: s.deps.Failpoints, advanced: s.advanced,
		idleInterval: s.cfg.IdleInterval,
	}
	g.Go(func() error {
		err := s.source.Stream(ctx, from, tables, sink)
		if err == nil {
			err = errors.New("stream ended")
		}
		var large *TransactionError
		if errors.As(err, &large) {
			return large
		}
		return sourceError("stream", err)
	})
	g.Go(func() error { return app.run(ctx) })
	g.Go(func() error { return s.copyTables(ctx) })
	g.Go(func() error { return s.keep(ctx) })
	err := g.Wait()
	s.live.attach(nil)
	sink.release()
	return err
}

// copyTables makes the initial copies that are due, then returns.
func (s *session) copyTables(ctx context.Context) error {
	if s.backfill == nil {
		return nil
	}
	c := &copier{session: s}
	g, gctx := errgroup.WithContext(ctx)
	chunks := make(chan chunk)
	g.Go(func() error {
		defer close(chunks)
		return c.plan(gctx, chunks)
	})
	for range max(1, s.backfill.Parallel()) {
		g.Go(func() error {
			for ch := range chunks {
				if err := c.read(gctx, ch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	closing := s.backfill
	s.backfill = nil
	if err := closing.Close(); err != nil { // it holds a snapshot at the source
		s.out.Warn("backfill not closed cleanly", env.KeyError, err)
	}
	return nil
}

// keep moves tables on to ready, samples rates and asks the source how it is.
func (s *session) keep(ctx context.Context) error {
	k := &keeper{session: s}
	return env.RunLoop(ctx, env.LoopConfig{
		Name: "pipeline keeper", Clock: s.deps.Clock, Step: k.step,
		Wake: s.advanced, Interval: keepInterval,
		OnError: func(err error) { s.out.Warn("pipeline keeper erred", env.KeyError, err) },
	})
}

// startHost runs a host until ctx ends; done is closed when nothing of it runs.
func startHost(ctx context.Context, h *host) (done <-chan struct{}) {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		h.run(ctx)
	}()
	return ch
}

// awaitAny waits for the first of ctx and a, or until d has passed when d > 0.
func awaitAny(ctx context.Context, clock env.Clock, d time.Duration, a <-chan struct{}) error {
	var fired <-chan time.Time
	if d > 0 {
		t, stop := clock.Timer(d)
		defer stop()
		fired = t
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", context.Cause(ctx))
	case <-a:
	case <-fired:
	}
	return nil
}
