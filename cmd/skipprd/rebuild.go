package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/objstore"
)

// orphans says what data of an earlier catalog a directory and a warehouse have, "" if
// none. backup is where its backup should be.
func orphans(dir, lakeDir, backup string) (string, error) {
	for _, o := range []struct{ what, dir, pattern string }{
		{"a log", dir, "wal/*/*.seg"}, {"lake tables", lakeDir, "*/*/metadata"},
	} {
		found, err := filepath.Glob(filepath.Join(o.dir, filepath.FromSlash(o.pattern)))
		if err != nil {
			return "", fmt.Errorf("look into %s: %w", o.dir, err)
		}
		if len(found) > 0 {
			return fmt.Sprintf("%s has %s, but neither a catalog nor %s. Bring one of them back, or begin anew in another "+
				"directory: nothing was changed", o.dir, o.what, backup), nil
		}
	}
	return "", nil
}

// rebuild finishes what a lost catalog lacks, before anybody reads or writes.
func (n *node) rebuild(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return compact.Rebuild(ctx, compact.RebuildDeps{
		Catalog: n.catalog, Warehouse: n.warehouse, Logger: n.log,
		RecoverLog: func(ctx context.Context, p change.PipelineID) error { return n.recoverLog(ctx, cancel, p) },
	})
}

// recoverLog recovers a pipeline's log. While an object store does not answer it waits,
// since the pipeline would stand still until the next start; a node that was taken over
// ends the rebuild.
func (n *node) recoverLog(ctx context.Context, end context.CancelCauseFunc, p change.PipelineID) error {
	for {
		err := n.supervisor.RecoverLog(ctx, p)
		switch {
		case n.leader == nil:
			return err
		case errors.Is(err, wal.ErrFenced):
			if lost := n.leader.check(ctx); errors.Is(lost, wal.ErrFenced) {
				end(lost)
				return lost
			}
		case err == nil || !objstore.IsRetryable(err):
			return err
		}
		n.health.wait(n.log, fmt.Sprintf("log of pipeline %d: %v", p, err))
		if err := n.clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}
