package compact

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Run compacts and reclaims until ctx ends, whose cause it returns when nothing runs any
// more.
func (s *Service) Run(ctx context.Context) error {
	err := env.RunLoop(ctx, env.LoopConfig{
		Name: "compact", Clock: s.deps.Clock, Step: s.Step, Interval: s.cfg.Interval,
	})
	s.mu.Lock()
	late := slices.Collect(maps.Values(s.mu.late))
	s.mu.Unlock()
	for _, w := range late {
		_ = s.deps.Tasks.Wait(context.WithoutCancel(ctx), 0, w.done) // never ends otherwise
	}
	return err
}

// Step looks at every table once, a few at a time, and at every pipeline's log. more
// says that something was done. What fails for one table is logged, tried again later
// and no reason for the others to wait; nor is a table whose work takes longer than
// Config.Patience: it goes on beside the next steps, which leave it alone.
func (s *Service) Step(ctx context.Context) (more bool, err error) {
	snap := s.deps.Catalog.Snapshot()
	tables, pipelines := snap.EveryTable(), snap.Pipelines()
	snap.Close()
	did := make([]bool, len(tables))
	g := &errgroup.Group{}
	g.SetLimit(s.cfg.Parallel)
	for i, t := range tables {
		g.Go(func() error {
			did[i] = s.stepPatiently(ctx, t.ID)
			return nil
		})
	}
	_ = g.Wait() // no function returns an error
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	for _, d := range did {
		more = more || d
	}
	for _, p := range pipelines {
		reclaimed, err := s.Reclaim(ctx, p.ID)
		if err != nil {
			s.log.Warn("reclaim failed", env.KeyPipeline, p.Name, env.KeyError, err)
		}
		more = more || reclaimed
	}
	s.forget(tables)
	s.sweep(ctx)
	return more, nil
}

// tableWork is a StepTable under way.
type tableWork struct {
	done  <-chan struct{}
	more  bool // when done
	ended bool // with Service.mu
}

// stepPatiently is StepTable, of which it says whether something was done, as long as that
// takes no longer than s.cfg.Patience, or too many take so long already: each may hold
// what one compaction may.
func (s *Service) stepPatiently(ctx context.Context, id change.TableID) (more bool) {
	s.mu.Lock()
	_, late := s.mu.late[id]
	s.mu.Unlock()
	if late {
		return false
	}
	w := &tableWork{}
	w.done = s.deps.Tasks.Go(func() {
		w.more, _ = s.StepTable(ctx, id, false) // logged, with its own back-off
		s.mu.Lock()
		defer s.mu.Unlock()
		w.ended = true
		if s.mu.late[id] == w {
			delete(s.mu.late, id)
		}
	})
	_ = s.deps.Tasks.Wait(ctx, s.cfg.Patience, w.done) // leave looks whether it has ended
	if s.leave(ctx, id, w) {
		s.log.Warn("compaction goes on while others begin", env.KeyTable, uint32(id), "after", s.cfg.Patience)
		return false
	}
	_ = s.deps.Tasks.Wait(context.WithoutCancel(ctx), 0, w.done) // as long as it takes
	return w.more
}

// leave lets the work on a table go on by itself, unless it has ended, or must be waited
// for.
func (s *Service) leave(ctx context.Context, id change.TableID, w *tableWork) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended || ctx.Err() != nil || len(s.mu.late) >= s.cfg.Parallel {
		return false
	}
	s.mu.late[id] = w
	return true
}

// sweeper is a warehouse that can find what no lake table names any more.
type sweeper interface {
	Sweep(ctx context.Context, grace time.Duration) error
}

// sweep removes what earlier processes and dropped tables left, twice per grace period.
func (s *Service) sweep(ctx context.Context) {
	w, ok := s.deps.Warehouse.(sweeper)
	if !ok {
		return
	}
	now := s.deps.Clock.Now()
	s.mu.Lock()
	due := s.mu.swept.IsZero() || now.Sub(s.mu.swept) >= s.cfg.FileGrace/2
	if due {
		s.mu.swept = now
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if err := w.Sweep(ctx, s.cfg.FileGrace); err != nil {
		s.log.Warn("sweep of the warehouse failed", env.KeyError, err)
	}
}

// forget drops the turns of tables that are gone and whose turn nobody has.
func (s *Service) forget(tables []*catalog.Table) {
	there := make(map[change.TableID]bool, len(tables))
	for _, t := range tables {
		there[t.ID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, turn := range s.mu.tables {
		if !there[id] && len(turn.token) == 1 {
			delete(s.mu.tables, id)
		}
	}
}
