package loops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/objbackup"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// process is one life of a server on a host: its loops are goroutines.
type process struct {
	host        *host
	incarnation int
	dead        atomic.Bool
	ctx         context.Context
	cancel      context.CancelCauseFunc
	clock       env.Clock
	ids         env.IDs
	way         *faultstore.Store // to the object store; nil in the disk mode
	slices      *duckdb.LogReader // a worker has one

	catalog    atomic.Pointer[catalog.Catalog] // nil while it stands by
	supervisor *ingest.Supervisor
	compactor  *compact.Service
	pinner     *planner.Pinner
	// serving: everything of it runs. seize: it stands no longer by.
	serving, seize, fencedOff atomic.Bool
	running                   sync.WaitGroup
	done                      chan struct{} // closed when everything of it has ended
	err                       error         // why it ended; after done

	mu struct {
		sync.Mutex
		logs    map[change.PipelineID]*openLog
		readers map[change.PipelineID]*wal.Reader
		// pins are the lake snapshots that are read, with how many do.
		pins  map[int64]int
		epoch segment.Epoch
	}
}

const pipelineID change.PipelineID = 1

func logDir(p change.PipelineID) string { return wal.PipelineDir("/data", p) }

// errStopped is the cause of a process's orderly end.
var errStopped = errors.New("process is stopped")

// bootOnce starts the first host, when the scenario lets things go on for the first time: what
// it holds before is held in its first process.
func (w *world) bootOnce() {
	if w.booted {
		return
	}
	w.booted = true
	w.hosts[0].boot()
}

// restart starts the processes anew that have ended because another host has the log.
func (w *world) restart() {
	for _, h := range w.hosts {
		if p := h.proc; p != nil && closed(p.done) && errors.Is(p.err, wal.ErrFenced) {
			w.emit(check.Crashed{Host: h.name})
			h.boot()
		}
	}
}

// boot starts a process.
func (h *host) boot() *process {
	h.incs++
	p := &process{host: h, incarnation: h.incs, done: make(chan struct{})}
	p.clock, _ = env.System()
	p.ids = env.NewFake(time.Now(), uint64(h.incs)<<8|uint64(h.name[0]))
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.mu.logs, p.mu.readers = map[change.PipelineID]*openLog{}, map[change.PipelineID]*wal.Reader{}
	p.mu.pins = map[int64]int{}
	if h.w.objects != nil {
		p.way = faultstore.New(h.w.objects, faultstore.Hooks{Before: p.beforeRequest, After: p.afterRequest})
	} else {
		p.mu.epoch = 1
	}
	p.slices = duckdb.NewLogReaderFS(disk{p, h.disk})
	h.proc = p
	go func() {
		defer close(p.done)
		p.err = p.life()
		p.running.Wait()
	}()
	return p
}

// life is what a process does from its begin to its end.
func (p *process) life() error {
	if p.way != nil {
		if err := p.stand(); err != nil {
			return err
		}
	}
	c, err := p.openCatalog()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // what it refuses nobody asks for
	if err := p.serve(); err != nil {
		return err
	}
	p.serving.Store(true)
	var loops sync.WaitGroup
	loops.Go(func() { _ = p.compactor.Run(p.ctx) }) // ends with the context
	loops.Go(p.watch)
	err = p.supervisor.Run(p.ctx)
	loops.Wait()
	return err
}

// watch notices that another host has the log.
func (p *process) watch() {
	for p.clock.Sleep(p.ctx, time.Second) == nil {
		p.mu.Lock()
		l := p.mu.logs[pipelineID]
		p.mu.Unlock()
		if l != nil {
			p.fenced(l.Stats().Refuses)
		}
	}
}

func (p *process) openCatalog() (*catalog.Catalog, error) {
	deps := catalog.Deps{
		Clock: p.clock, IDs: p.ids, Log: p.host.w.logger(), Key: catalogKey[:], ApplyState: ingest.ApplyState,
		Failpoints: failpoints{p},
	}
	if p.way != nil {
		p.host.kv = memkv.New()
		if _, taken := p.host.w.objects.Read(backupKey); !taken {
			p.host.kv = p.host.w.template()
		}
		deps.Backup = guard{objbackup.New(p.host.w.objects, backupKey, p.ids), p}
	}
	c, err := catalog.Open(p.ctx, p.host.kv, deps)
	if err != nil {
		return nil, err
	}
	if p.way != nil {
		if err := c.Backup(p.ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	p.catalog.Store(c)
	return c, nil
}

// serve makes the catalog whole again and everything that a server runs.
func (p *process) serve() error {
	w, c := p.host.w, p.catalog.Load()
	var err error
	p.compactor, err = compact.New(w.compact, compact.Deps{
		Catalog: c, Warehouse: warehouse{p}, Searcher: searcher{p},
		Reader: func(id change.PipelineID) compact.SliceReader { return p.reader(id) },
		Log: func(id change.PipelineID) (compact.Log, bool) {
			p.mu.Lock()
			defer p.mu.Unlock()
			l, ok := p.mu.logs[id]
			return l, ok
		},
		Clock: p.clock, Logger: w.logger(), Failpoints: failpoints{p},
		Epoch: func(change.PipelineID) segment.Epoch {
			if w.objects == nil {
				return 0
			}
			return p.epoch()
		},
	})
	if err != nil {
		return err
	}
	p.pinner = &planner.Pinner{Catalog: c, Warehouse: warehouse{p}, Pins: warehouse{p}, Logs: logPins{p}, LogDir: logDir}
	p.supervisor = ingest.NewSupervisor(
		ingest.Config{DataDir: "/data", GroupBytes: orElse(w.options.groupBytes, 256), BackoffMax: 2 * time.Second},
		ingest.Deps{
			Catalog: c, Sources: map[string]ingest.SourceFactory{sourceKind: p.connect}, Lake: p.compactor,
			Clock: p.clock, IDs: p.ids, Log: w.logger(), Failpoints: failpoints{p}, OpenLog: p.openLog, RemoveLog: p.removeLog,
		})
	return compact.Rebuild(p.ctx, compact.RebuildDeps{
		Catalog: c, Warehouse: warehouse{p}, RecoverLog: p.supervisor.RecoverLog, Logger: w.logger(),
	})
}

func orElse(v, other int64) int64 {
	if v == 0 {
		return other
	}
	return v
}

// stand waits until the log is free, or the scenario says that this host is to take it.
func (p *process) stand() error {
	c, err := wal.NewCandidate(p.storeConfig(pipelineID), wal.Deps{Store: p.way, Clock: p.clock})
	if err != nil {
		return err
	}
	for !p.seize.Load() {
		if free, _, err := c.Step(p.ctx); err == nil && free {
			return nil
		}
		if err := p.clock.Sleep(p.ctx, leaseTTL/3); err != nil {
			return err
		}
	}
	return nil
}

// epoch is that of the process's log.
func (p *process) epoch() segment.Epoch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.epoch
}

func (p *process) openLogs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.logs)
}

func (p *process) reader(id change.PipelineID) *wal.Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.mu.readers[id]
	if r == nil {
		r = wal.OpenReaderFS(disk{p, p.host.disk}, logDir(id))
		p.mu.readers[id] = r
	}
	return r
}

// executor answers plans and searches; each user has its own.
func (p *process) executor() *query.Executor {
	return &query.Executor{Slices: p.slices, Files: lakeFiles{p}}
}

// guard is a backup that notices when it has been taken over.
type guard struct {
	catalog.BackupStore
	p *process
}

// Write implements catalog.BackupStore. It does not wait: the catalog is locked.
func (g guard) Write(image []byte) error {
	if g.p.dead.Load() {
		return errDead
	}
	err := g.BackupStore.Write(image)
	g.p.fenced(err)
	return err
}

// logPins has queries keep the log.
type logPins struct{ p *process }

// HoldLog implements planner.LogPins.
func (l logPins) HoldLog(pipeline change.PipelineID, from segment.Seq) (release func()) {
	return l.p.compactor.HoldLog(pipeline, from).Release
}

// fenced has a process that was told so end: its next life stands by.
func (p *process) fenced(err error) {
	if errors.Is(err, wal.ErrFenced) {
		p.fencedOff.Store(true)
		p.cancel(fmt.Errorf("process ends: %w", err))
	}
}

// stop ends a process as an operator does.
func (h *host) stop() error {
	h.w.t.Helper()
	p := h.proc
	p.cancel(errStopped)
	h.w.must(h.name+" ends", func() bool { return closed(p.done) })
	h.proc = nil
	h.w.emit(check.Crashed{Host: h.name})
	if !errors.Is(p.err, errStopped) {
		return p.err
	}
	return nil
}

// kill ends a process at once; machine: its disk and catalog lose what was not synced.
// Everything of it must end.
func (h *host) kill(machine bool) {
	h.w.t.Helper()
	p := h.proc
	p.dead.Store(true)
	p.cancel(errDead)
	if c := p.catalog.Load(); c != nil {
		_ = c.Close() // refuses commits from now on
	}
	if machine {
		h.disk = h.disk.Crash(h.w.rng, []float64{0, 0.5, 1}[h.w.rng.IntN(3)])
		h.kv = h.kv.Crash()
	} else {
		h.disk = h.disk.Kill()
	}
	h.proc = nil
	p.closeLogs()
	h.w.emit(check.Crashed{Host: h.name, Machine: machine})
	h.w.gate.free(p)
	for _, t := range h.w.held {
		if t.sprung() && t.caught.p == p {
			t.goOn()
		}
	}
	h.w.must("what the kill of "+h.name+" left ends", func() bool { return closed(p.done) })
}

// closeLogs has the logs of a dead process end. One on an object store would else wait for the
// store's answer for ever: to the dead it does not answer.
func (p *process) closeLogs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.mu.logs {
		p.running.Go(func() { _ = l.Log.Close() })
	}
}

// serves lets everything go on until the host serves and streams.
func (h *host) serves() *process {
	h.w.t.Helper()
	h.w.must(h.name+" serves", func() bool {
		return h.proc != nil && h.proc.serving.Load() && h.proc.openLogs() > 0
	})
	return h.proc
}
