package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/spill"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// Supervisor runs the pipelines of a server: one host each. Its other methods are the
// statements that act on pipelines; they may be called from any goroutine while Run
// runs, and on one pipeline they take turns.
type Supervisor struct {
	cfg  Config
	deps Deps
	// began is closed when Run has begun; statements wait for it.
	began chan struct{}

	mu struct {
		sync.Mutex
		ctx   context.Context // of Run, nil before
		hosts map[change.PipelineID]*hosted
	}
}

// hosted is a host that runs.
type hosted struct {
	*host
	cancel context.CancelFunc
	done   <-chan struct{}
	// turn holds a token while no statement acts on the pipeline.
	turn chan struct{}
}

// NewSupervisor returns a supervisor that runs nothing until Run. It panics on settings
// that Config.Validate refuses.
func NewSupervisor(cfg Config, deps Deps) *Supervisor {
	cfg = cfg.withDefaults()
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Failpoints == nil {
		deps.Failpoints = env.NoFailpoints
	}
	if deps.Tasks == nil {
		deps.Tasks = env.Goroutines(deps.Clock)
	}
	if deps.Lake == nil {
		deps.Lake = noLake{}
	}
	if deps.OpenLog == nil {
		deps.OpenLog = walOpener(cfg, deps)
		if deps.ScratchFS == nil {
			deps.ScratchFS = wal.DiskFS()
		}
		if deps.RemoveLog == nil {
			deps.RemoveLog = func(p change.PipelineID) error { return removeLog(wal.DiskFS(), cfg.LogDir(p)) }
		}
	}
	s := &Supervisor{cfg: cfg, deps: deps, began: make(chan struct{})}
	s.mu.hosts = map[change.PipelineID]*hosted{}
	return s
}

// noLake is a server without lake.
type noLake struct{}

func (noLake) DropTable(context.Context, change.TableID) error { return nil }

// walOpener opens logs on disk.
func walOpener(cfg Config, deps Deps) func(context.Context, change.PipelineID) (Log, error) {
	return func(ctx context.Context, p change.PipelineID) (Log, error) {
		return wal.Open(ctx, wal.Config{
			Dir: cfg.LogDir(p), Pipeline: p, SegmentBytes: cfg.SegmentBytes,
			GroupBytes: cfg.GroupBytes, QuotaBytes: cfg.QuotaBytes,
		}, wal.Deps{
			Publisher: deps.Catalog, Clock: deps.Clock, IDs: deps.IDs,
			Log: deps.Log, Failpoints: deps.Failpoints,
		})
	}
}

// removeLog deletes a log that nobody has open, durably: whoever asked for it forgets it
// then. An attempt before may have got as far as removing the directory.
func removeLog(fsys wal.FS, dir string) error {
	files, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list log: %w", err)
	}
	for _, f := range files {
		if err := fsys.Remove(filepath.Join(dir, f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove log: %w", err)
		}
	}
	if err == nil {
		if err := fsys.SyncDir(dir); err != nil {
			return fmt.Errorf("remove log: %w", err)
		}
		if err := fsys.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove log: %w", err)
		}
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove log: %w", err)
	}
	return nil
}

// Run opens the logs of all pipelines and runs those that are enabled, until ctx ends
// and everything has stopped. It returns ctx's cause. It runs once.
func (s *Supervisor) Run(ctx context.Context) error {
	s.mu.Lock()
	s.mu.ctx = ctx
	s.mu.Unlock()
	if err := s.removeLeftovers(ctx); err != nil {
		s.deps.Log.Warn("leftovers of dropped tables stay", env.KeyError, err)
	}
	if s.deps.ScratchFS != nil { // of sources that a crash ended
		if err := spill.Empty(s.deps.ScratchFS, s.cfg.scratchDir(), ""); err != nil {
			s.deps.Log.Warn("files of large transactions stay", env.KeyError, err)
		}
	}
	close(s.began)
	snap := s.deps.Catalog.Snapshot()
	pipelines := snap.Pipelines()
	snap.Close()
	for _, p := range pipelines {
		if _, err := s.host(p); err != nil {
			return err
		}
	}
	_ = s.deps.Tasks.Wait(ctx, 0) // for the end of ctx
	s.mu.Lock()
	hosts := make([]*hosted, 0, len(s.mu.hosts))
	for _, h := range s.mu.hosts {
		hosts = append(hosts, h)
	}
	s.mu.Unlock()
	late := s.deps.Clock.Now().Add(s.cfg.StopWait) // for all: they have ended at once
	for _, h := range hosts {
		s.awaitEnd(h, late)
	}
	return context.Cause(ctx)
}

// awaitEnd waits until a host whose context has ended has. A group that is being appended
// is not cut short; when it takes until late, because an object store does not answer, the
// log is closed over it: opening it finds out whether the group is durable.
func (s *Supervisor) awaitEnd(h *hosted, late time.Time) {
	ctx := context.Background() // never ends
	_ = s.deps.Tasks.Wait(ctx, max(late.Sub(s.deps.Clock.Now()), time.Nanosecond), h.done)
	select {
	case <-h.done:
		return
	default:
	}
	s.deps.Log.Warn("log closed while a group was appended", env.KeyPipeline, uint32(h.id))
	h.closeLog()
	_ = s.deps.Tasks.Wait(ctx, 0, h.done)
}

// host returns the pipeline's host, started if there was none.
func (s *Supervisor) host(p *catalog.Pipeline) (*hosted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.mu.hosts[p.ID]; h != nil {
		return h, nil
	}
	if s.mu.ctx == nil || s.mu.ctx.Err() != nil {
		return nil, fmt.Errorf("pipeline %s: %w", quote.Name(p.Name), ErrNotRunning)
	}
	ctx, cancel := context.WithCancel(s.mu.ctx)
	h := &hosted{
		host: newHost(p.ID, p.Name, s.cfg, s.deps), cancel: cancel, turn: make(chan struct{}, 1),
	}
	h.turn <- struct{}{}
	h.done = s.deps.Tasks.Go(func() { h.run(ctx) })
	s.mu.hosts[p.ID] = h
	return h, nil
}

// end stops a pipeline's host for good, its log closed.
func (s *Supervisor) end(h *hosted) {
	h.cancel()
	_ = s.deps.Tasks.Wait(context.Background(), 0, h.done) // never ends otherwise
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.hosts, h.id)
}

// logOpen says whether a pipeline's log is open.
func (s *Supervisor) logOpen(p change.PipelineID) bool {
	s.mu.Lock()
	h := s.mu.hosts[p]
	s.mu.Unlock()
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.log != nil
}

// find returns a pipeline and its host.
func (s *Supervisor) find(ctx context.Context, name string) (*catalog.Pipeline, *hosted, error) {
	if err := s.deps.Tasks.Wait(ctx, 0, s.began); err != nil {
		return nil, nil, fmt.Errorf("pipeline %s: %w", quote.Name(name), err)
	}
	snap := s.deps.Catalog.Snapshot()
	p, err := snap.Pipeline(name)
	snap.Close()
	if err != nil {
		return nil, nil, err
	}
	h, err := s.host(p)
	return p, h, err
}

// still has fn run while the pipeline stands still and no other statement acts on it.
// The pipeline goes on afterwards.
func (s *Supervisor) still(ctx context.Context, name string, fn func(*catalog.Pipeline, *hosted) error) error {
	_, h, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	if err := s.deps.Tasks.Wait(ctx, 0, h.turn); err != nil {
		return fmt.Errorf("pipeline %s: %w", quote.Name(name), err)
	}
	defer func() { h.turn <- struct{}{} }()
	release, err := h.hold(ctx)
	if err != nil {
		return fmt.Errorf("pipeline %s: %w", quote.Name(name), err)
	}
	defer release()
	p, err := h.pipeline() // it may have changed while we waited
	if err != nil {
		return err
	}
	return fn(p, h)
}

// Still has fn run while a pipeline stands still and no other statement acts on it, and
// removes what tables that it dropped have left. The pipeline goes on afterwards, in a new
// session.
func (s *Supervisor) Still(ctx context.Context, name string, fn func(*catalog.Pipeline) error) error {
	return s.still(ctx, name, func(p *catalog.Pipeline, _ *hosted) error {
		if err := fn(p); err != nil {
			return err
		}
		return s.removeLeftovers(ctx)
	})
}

// recoverMax is how long a statement waits for a log that is being opened.
const recoverMax = 20 * time.Second

// Recovered waits until the catalog has everything that the pipeline's log had when the
// server started. It wraps ErrNotRunning, with the reason, when that takes too long.
func (s *Supervisor) Recovered(ctx context.Context, id change.PipelineID) error {
	if err := s.deps.Tasks.Wait(ctx, 0, s.began); err != nil {
		return err
	}
	snap := s.deps.Catalog.Snapshot()
	p, err := snap.PipelineByID(id)
	snap.Close()
	if err != nil {
		return err
	}
	h, err := s.host(p)
	if err != nil {
		return err
	}
	if err := s.deps.Tasks.Wait(ctx, recoverMax, h.recovered, h.done); err != nil {
		return err
	}
	select {
	case <-h.recovered:
		return nil
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Errorf("log of pipeline %s is not open: %s: %w", quote.Name(p.Name), cmp.Or(h.mu.reason, "it is being opened"), ErrNotRunning)
}

// RecoverLog opens a pipeline's log, which publishes what the catalog has not, and closes
// it again: for the rebuild of a lost catalog, before Run.
func (s *Supervisor) RecoverLog(ctx context.Context, p change.PipelineID) error {
	log, err := s.deps.OpenLog(ctx, p)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	return log.Close()
}

// Reclaim has a pipeline's log delete segments that the catalog no longer needs.
func (s *Supervisor) Reclaim(ctx context.Context, p change.PipelineID, seqs []segment.Seq) error {
	r, err := s.openLogOf(p)
	if err != nil {
		return err
	}
	return r.Reclaim(ctx, seqs)
}

// SealActive has a pipeline's log seal the segment it writes, so that it can be
// reclaimed.
func (s *Supervisor) SealActive(ctx context.Context, p change.PipelineID) error {
	r, err := s.openLogOf(p)
	if err != nil {
		return err
	}
	return r.SealActive(ctx)
}

// reclaimer is the part of *wal.Log that reclaim needs.
type reclaimer interface {
	Reclaim(ctx context.Context, seqs []segment.Seq) error
	SealActive(ctx context.Context) error
}

var errNoReclaim = errors.New("log cannot reclaim")

func (s *Supervisor) openLogOf(p change.PipelineID) (reclaimer, error) {
	s.mu.Lock()
	h := s.mu.hosts[p]
	s.mu.Unlock()
	if h == nil {
		return nil, fmt.Errorf("log of pipeline %d: %w", p, ErrNotRunning)
	}
	h.mu.Lock()
	log := h.mu.log
	h.mu.Unlock()
	if log == nil {
		return nil, fmt.Errorf("log of pipeline %d: %w", p, ErrNotRunning)
	}
	r, ok := log.(reclaimer)
	if !ok {
		return nil, fmt.Errorf("log of pipeline %d: %w", p, errNoReclaim)
	}
	return r, nil
}
