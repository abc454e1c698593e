package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Discover connects and lists the tables that sel names.
func (s *Supervisor) Discover(ctx context.Context, c *catalog.Connection, sel catalog.TableSelection,
) ([]SourceTable, error) {
	source, err := newSource(ctx, s.deps, c, nil, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }() // only read
	tables, err := source.Discover(ctx, sel)
	if err != nil {
		return nil, sourceError("discover tables", err)
	}
	return tables, nil
}

// Validate connects and returns everything that is missing for replication by a pipeline,
// which need not exist; nothing for a source that needs nothing. Without one it is about
// those that read the connection, or, when none does, one of its name for all tables.
func (s *Supervisor) Validate(ctx context.Context, c *catalog.Connection, p *catalog.Pipeline) ([]Finding, error) {
	if p != nil {
		return s.validate(ctx, c, p)
	}
	snap := s.deps.Catalog.Snapshot()
	readers := slices.DeleteFunc(snap.Pipelines(), func(p *catalog.Pipeline) bool { return p.Connection != c.Name })
	snap.Close()
	if len(readers) == 0 {
		readers = []*catalog.Pipeline{{Name: c.Name, Selection: catalog.TableSelection{AllTables: true}}}
	}
	var out []Finding
	for _, p := range readers {
		findings, err := s.validate(ctx, c, p)
		if err != nil {
			return nil, err
		}
		for _, f := range findings {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

func (s *Supervisor) validate(ctx context.Context, c *catalog.Connection, p *catalog.Pipeline) ([]Finding, error) {
	source, err := newSource(ctx, s.deps, c, p, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }() // only read
	v, ok := source.(Validator)
	if !ok {
		return nil, nil
	}
	findings, err := v.Validate(ctx)
	if err != nil {
		return nil, sourceError("validate connection", err)
	}
	return findings, nil
}

// OpenSource makes a pipeline's source for a statement that only reads there. The caller
// closes it.
func (s *Supervisor) OpenSource(ctx context.Context, p *catalog.Pipeline) (Source, error) {
	snap := s.deps.Catalog.Snapshot()
	c, err := snap.Connection(p.Connection)
	snap.Close()
	if err != nil {
		return nil, err
	}
	return newSource(ctx, s.deps, c, p, "")
}

// Start lets the pipeline work, if its catalog row says so, and returns when it
// streams, or with the error of its first attempt; it goes on trying then.
func (s *Supervisor) Start(ctx context.Context, name string) error {
	p, h, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.mu.stopped = false
	h.mu.Unlock()
	if !p.Enabled || p.Paused {
		return nil
	}
	o := h.await()
	if err := s.deps.Tasks.Wait(ctx, 0, o.told, h.done); err != nil {
		return fmt.Errorf("start pipeline %s: %w", quote.Name(name), err)
	}
	select {
	case <-o.told:
		return o.err
	default:
		return fmt.Errorf("pipeline %s: %w", quote.Name(name), ErrNotRunning)
	}
}

// Stop ends the pipeline's work until Start or the next start of the server, and
// returns when nothing of it runs. Its log stays open.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	_, h, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.mu.stopped = true
	h.mu.Unlock()
	release, err := h.hold(ctx)
	if err != nil {
		return fmt.Errorf("stop pipeline %s: %w", quote.Name(name), err)
	}
	release()
	return nil
}

// Reset forgets all data of the pipeline, sets its source up anew and begins again
// with the initial copy. While the source cannot be reached it changes nothing, and the
// error wraps ErrSourceUnavailable: a slot left there would be in the new one's way.
func (s *Supervisor) Reset(ctx context.Context, name string) error {
	return s.still(ctx, name, func(p *catalog.Pipeline, h *hosted) error {
		if err := h.openLog(ctx); err != nil {
			return err
		}
		left, err := s.teardown(ctx, p)
		if err != nil {
			return fmt.Errorf("reset pipeline %s: %w", quote.Name(name), err)
		}
		for _, l := range left {
			h.out.Warn("source side left by a reset", env.KeyReason, l)
		}
		ctx := context.WithoutCancel(ctx) // half a reset would leave the pipeline without its source's side
		var tables []*catalog.Table
		err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			next, err := txn.PipelineByID(p.ID)
			if err != nil {
				return err
			}
			next.SourceState = nil
			if err := txn.PutPipeline(next); err != nil {
				return err
			}
			tables = txn.Tables(p.ID)
			for _, t := range tables {
				if err := txn.DropCopy(t.ID); err != nil {
					return err
				}
				restart(t)
				if !copies(p) {
					t.State = catalog.TableReady
				}
				if err := txn.PutTable(t); err != nil {
					return err
				}
			}
			return txn.AddEvent(catalog.Event{
				At: txn.Now(), Level: "info", Pipeline: p.Name, Kind: "pipeline reset",
			})
		})
		if err != nil {
			return fmt.Errorf("reset pipeline %s: %w", quote.Name(name), err)
		}
		return errors.Join(s.dropLake(ctx, tables), s.removeLeftovers(ctx))
	})
}

// teardown removes what the pipeline has at its source; see Source.Teardown.
func (s *Supervisor) teardown(ctx context.Context, p *catalog.Pipeline) (left []string, err error) {
	if len(p.SourceState) == 0 {
		return nil, nil
	}
	return s.teardownOf(ctx, p)
}

func (s *Supervisor) teardownOf(ctx context.Context, p *catalog.Pipeline) (left []string, err error) {
	snap := s.deps.Catalog.Snapshot()
	c, err := snap.Connection(p.Connection)
	snap.Close()
	if err != nil {
		return nil, err
	}
	source, err := newSource(ctx, s.deps, c, p, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }() // what it had is gone or told
	left, err = source.Teardown(ctx, p.SourceState)
	if err != nil && context.Cause(ctx) == nil {
		err = sourceError("tear down", err)
	}
	return left, err
}

// leftoverTimeout bounds the look for what a pipeline that was never set up may have.
const leftoverTimeout = 3 * time.Second

// tornDown is teardown for a pipeline that goes whatever its source says: left has what
// could not be removed.
func (s *Supervisor) tornDown(ctx context.Context, p *catalog.Pipeline) (left []string, err error) {
	if len(p.SourceState) == 0 {
		// It may have died between making something there and writing that down. Most
		// often there is nothing, and whether its source answers does not matter then.
		ctx, cancel := context.WithTimeout(ctx, leftoverTimeout)
		defer cancel()
		_, _ = s.teardownOf(ctx, p)
		return nil, nil
	}
	left, err = s.teardown(ctx, p)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err != nil && len(left) == 0 {
		left = []string{fmt.Sprintf("What pipeline %s has at its source stays there: %s.", quote.Name(p.Name), reasonOf(err))}
	}
	return left, nil
}

// dropLake removes the lake side of tables.
func (s *Supervisor) dropLake(ctx context.Context, tables []*catalog.Table) error {
	for _, t := range tables {
		if err := s.deps.Lake.DropTable(ctx, t.ID); err != nil {
			return fmt.Errorf("drop lake side of %s.%s: %w", t.Schema, t.Name, err)
		}
	}
	return nil
}

// Drop stops the pipeline and removes what it has at its source, its log, its tables
// (their lake side stays with keepData) and its catalog rows. left says in sentences
// what could not be removed.
func (s *Supervisor) Drop(ctx context.Context, name string, keepData bool) (left []string, err error) {
	err = s.still(ctx, name, func(p *catalog.Pipeline, h *hosted) error {
		if left, err = s.tornDown(ctx, p); err != nil {
			return err
		}
		err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			if err := dropRows(txn, p, keepData); err != nil {
				return err
			}
			return txn.LeaveLog(p.ID)
		})
		if err != nil {
			return err
		}
		// After the rows: a host that somebody starts from now on ends before it opens
		// the log.
		s.end(h)
		return nil
	})
	if err != nil {
		return left, fmt.Errorf("drop pipeline %s: %w", quote.Name(name), err)
	}
	if err := s.removeLeftovers(ctx); err != nil { // after the rows, so that nothing compacts into the lake again
		left = append(left, fmt.Sprintf("Files stay until the next start: %v.", err))
	}
	return left, nil
}

// removeLeftovers removes what dropped tables and pipelines have in the lake and on
// disk: of the statement that asks, or of one that was killed.
func (s *Supervisor) removeLeftovers(ctx context.Context) error {
	snap := s.deps.Catalog.Snapshot()
	found, err := snap.Leftovers()
	snap.Close()
	if err != nil {
		return err
	}
	var gone catalog.Leftovers
	errs := []error{dropLeftLakes(ctx, s.deps)}
	for _, id := range found.Logs {
		if s.logOpen(id) {
			continue // another statement is about to end it, then removes it
		}
		if s.deps.RemoveLog != nil {
			if err := s.deps.RemoveLog(id); err != nil {
				errs = append(errs, fmt.Errorf("log in %s: %w", s.cfg.LogDir(id), err))
				continue
			}
		}
		gone.Logs = append(gone.Logs, id)
	}
	if len(gone.Logs) > 0 {
		errs = append(errs, s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error { return txn.ForgetLeftovers(gone) }))
	}
	return errors.Join(errs...)
}

func dropRows(txn *catalog.Txn, p *catalog.Pipeline, keepData bool) error {
	for _, t := range txn.Tables(p.ID) {
		if keepData {
			break
		}
		if err := txn.LeaveLake(t.ID); err != nil {
			return err
		}
	}
	if err := txn.DeletePipeline(p.ID); err != nil {
		return err
	}
	c, err := txn.Connection(p.Connection)
	if err == nil && c.Implicit {
		err = txn.DeleteConnection(c.Name)
	}
	if err != nil && !errors.Is(err, catalog.ErrConnectionNotFound) {
		return err
	}
	return txn.AddEvent(catalog.Event{At: txn.Now(), Level: "info", Pipeline: p.Name, Kind: "pipeline dropped"})
}

// onTable has fn change a table's row while the pipeline stands still.
func (s *Supervisor) onTable(ctx context.Context, name string, want catalog.SelectedTable,
	fn func(*catalog.Txn, *catalog.Table) error,
) (id change.TableID, err error) {
	err = s.still(ctx, name, func(p *catalog.Pipeline, h *hosted) error {
		if err := h.openLog(ctx); err != nil {
			return err
		}
		return s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			t, err := catalog.NamedTable(txn.Tables(p.ID), want)
			if err != nil {
				return err
			}
			id = t.ID
			return fn(txn, t)
		})
	})
	return id, err
}
