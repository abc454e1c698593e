package compact

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Run compacts and reclaims until ctx ends, whose cause it returns.
func (s *Service) Run(ctx context.Context) error {
	return env.RunLoop(ctx, env.LoopConfig{
		Name: "compact", Clock: s.deps.Clock, Step: s.Step, Interval: s.cfg.Interval,
	})
}

// Step looks at every table once, a few at a time, and at every pipeline's log. more
// says that something was done. What fails for one table is logged, tried again later
// and no reason for the others to wait.
func (s *Service) Step(ctx context.Context) (more bool, err error) {
	snap := s.deps.Catalog.Snapshot()
	tables, pipelines := snap.EveryTable(), snap.Pipelines()
	snap.Close()
	did := make([]bool, len(tables))
	g := &errgroup.Group{}
	g.SetLimit(s.cfg.Parallel)
	for i, t := range tables {
		g.Go(func() error {
			did[i], _ = s.StepTable(ctx, t.ID, false) // logged, with its own back-off
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
