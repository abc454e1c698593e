package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Synced is one table's result of Sync.
type Synced struct {
	Schema, Table string
	State         string
	Rows, Bytes   int64 // taken in while Sync ran
	LagSeconds    float64
}

const (
	syncPoll     = 50 * time.Millisecond
	syncProgress = time.Second
)

// Sync waits until the pipeline has caught up with the moment of the call, all its
// tables copied or stopped, or until d has passed when d > 0, and tells progress about
// once a second. The pipeline must be enabled and not paused. It fails when the pipeline
// cannot go on (ErrLost), and waits through errors that may pass.
func (s *Supervisor) Sync(ctx context.Context, name string, d time.Duration,
	progress func(PipelineStatus),
) ([]Synced, error) {
	p, h, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if !p.Enabled || p.Paused {
		return nil, fmt.Errorf("pipeline %s: %w", quote.Name(name), ErrNotRunning)
	}
	began, told := s.deps.Clock.Now(), s.deps.Clock.Now()
	before, _ := s.Status(name)
	var target change.Position
	for {
		if target == "" {
			target = h.newest(ctx)
		}
		if d > 0 && s.deps.Clock.Since(began) >= d || d <= 0 && target != "" && h.reached(target) {
			break
		}
		select {
		case <-h.done:
			return nil, fmt.Errorf("pipeline %s: %w", quote.Name(name), ErrNotRunning)
		default:
		}
		if err := h.lost(); err != nil {
			return nil, fmt.Errorf("sync pipeline %s: %w", quote.Name(name), err)
		}
		if s.deps.Clock.Since(told) >= syncProgress {
			told = s.deps.Clock.Now()
			if st, ok := s.Status(name); ok {
				progress(st)
			}
		}
		if err := s.deps.Clock.Sleep(ctx, syncPoll); err != nil {
			return nil, fmt.Errorf("sync pipeline %s: %w", quote.Name(name), err)
		}
	}
	after, _ := s.Status(name)
	return synced(before, after), nil
}

// lost is why no session can go on, nil unless that is so.
func (h *host) lost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.lost
}

// newest asks the source for its newest position, "" when there is no session or no
// answer in time.
func (h *host) newest(ctx context.Context) change.Position {
	h.mu.Lock()
	source := h.mu.source
	h.mu.Unlock()
	if source == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := source.Status(ctx)
	if err != nil {
		return "" // asked again soon
	}
	h.live.source(status)
	return status.Current
}

// reached says whether everything up to target is here and nothing is left to copy.
func (h *host) reached(target change.Position) bool {
	h.mu.Lock()
	progress, running := h.mu.progress, h.mu.source != nil
	h.mu.Unlock()
	if !running || progress == nil || progress.compare(progress.passed(), target) < 0 {
		return false
	}
	snap := h.deps.Catalog.Snapshot()
	defer snap.Close()
	p, err := snap.PipelineByID(h.id)
	for _, t := range snap.EveryTableOf(h.id) {
		if err != nil || resyncs(p, t) && t.GaveUp == nil {
			return false
		}
		if t.CopyOf != 0 || t.State != catalog.TableReady && t.State != catalog.TableStopped {
			return false
		}
	}
	return true
}

// Target is what a reader wants to see.
type Target struct {
	Pipeline change.PipelineID
	Tables   []change.TableID // of the pipeline
	At       change.Position
	// Compare orders positions of the pipeline's source.
	Compare func(a, b change.Position) int
}

// awaitRecheck is how often a waiting reader looks for another session of its pipeline.
const awaitRecheck = time.Second

// Await returns when everything that the source had committed at a position can be seen in
// the tables. It holds nothing while it waits, and returns ctx's cause when ctx ends first.
// A table that stopped before the position is an error that wraps ErrTableStopped.
func (s *Supervisor) Await(ctx context.Context, t Target) error {
	if err := s.deps.Tasks.Wait(ctx, 0, s.began); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		h := s.mu.hosts[t.Pipeline]
		s.mu.Unlock()
		if h == nil {
			return fmt.Errorf("pipeline %d: %w", t.Pipeline, ErrNotRunning)
		}
		h.mu.Lock()
		p := h.mu.progress
		h.mu.Unlock()
		if p == nil { // no session yet: what an earlier process made durable can be seen
			p = s.durableProgress(t)
		}
		moved := p.move() // before the look
		ok, stopped := p.has(t.At, t.Tables)
		switch {
		case ok || mutant.On(mutant.AwaitNothing):
			return nil
		case stopped != 0 && !s.resyncs(stopped):
			return errTable(ErrTableStopped, stopped)
		}
		if err := s.deps.Tasks.Wait(ctx, awaitRecheck, moved, h.done); err != nil {
			return err
		}
	}
}

// resyncs says that a table which has stopped will go on by itself, or does already, under
// another id.
func (s *Supervisor) resyncs(id change.TableID) bool {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	t, err := snap.TableByID(id)
	if err != nil {
		return errors.Is(err, catalog.ErrTableNotFound)
	}
	p, err := snap.PipelineByID(t.Pipeline)
	return err == nil && resyncs(p, t) && (t.GaveUp == nil || snap.CopyFor(id) != nil)
}

// durableProgress is how far a pipeline is by the catalog alone.
func (s *Supervisor) durableProgress(t Target) *progress {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	offset, err := snap.Offset(t.Pipeline)
	if err != nil {
		offset.Position = "" // looked at again soon
	}
	return newProgress(t.Compare, offset.Position, snap.Tables(t.Pipeline))
}

// Position is up to where readers see a pipeline's tables, "" when that is not known.
func (s *Supervisor) Position(p change.PipelineID) change.Position {
	s.mu.Lock()
	h := s.mu.hosts[p]
	s.mu.Unlock()
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.progress == nil {
		return ""
	}
	return h.mu.progress.passed()
}

func synced(before, after PipelineStatus) []Synced {
	earlier := map[change.TableID]TableMetrics{}
	for _, t := range before.Tables {
		earlier[t.ID] = t.Metrics
	}
	out := make([]Synced, 0, len(after.Tables))
	for _, t := range after.Tables {
		was := earlier[t.ID]
		out = append(out, Synced{
			Schema: t.Schema, Table: t.Name, State: t.State, LagSeconds: after.LagSeconds,
			Rows:  rowsOf(t.Metrics) - rowsOf(was),
			Bytes: t.Metrics.LogBytes - was.LogBytes,
		})
	}
	return out
}

func rowsOf(m TableMetrics) int64 { return m.Inserts + m.Updates + m.Deletes + m.CopiedRows }
