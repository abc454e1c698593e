package compact

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Run compacts and reclaims until ctx ends, whose cause it returns.
func (s *Service) Run(ctx context.Context) error {
	return env.RunLoop(ctx, env.LoopConfig{
		Name: "compact", Clock: s.deps.Clock, Step: s.Step, Interval: s.cfg.Interval,
		OnError: func(err error) { s.log.Warn("compaction step failed", env.KeyError, err) },
	})
}

// Step looks at every table once, a few at a time, and at every pipeline's log. more
// says that something was done. What fails for one table is logged, tried again later
// and no reason for the others to wait.
func (s *Service) Step(ctx context.Context) (more bool, err error) {
	snap := s.deps.Catalog.Snapshot()
	tables, pipelines := snap.AllTables(), snap.Pipelines()
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
	var errs []error
	for _, p := range pipelines {
		reclaimed, err := s.Reclaim(ctx, p.ID)
		more = more || reclaimed
		errs = append(errs, err)
	}
	s.forget(tables)
	return more, errors.Join(errs...)
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
