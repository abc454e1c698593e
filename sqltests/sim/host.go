package sim

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest"
	ownsource "github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/lookup"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/own"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// logger is what processes log to: nothing is rendered unless somebody reads it.
func (w *World) logger() *slog.Logger {
	if w.out == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w.out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey { // the machine's
				return slog.Attr{}
			}
			return a
		},
	}))
}

// host is a machine: what outlives its processes.
type host struct {
	world *World
	name  string
	disk  *crashfs.FS
	kv    store
	// skew is how much its clock is off.
	skew time.Duration
	// paused: nothing of it runs, while its clock does.
	paused bool
	incs   int
	proc   *process // nil while down
	bootAt time.Time
	// image is the catalog's backup, on a disk that never loses it.
	image []byte
}

var _ catalog.BackupStore = (*host)(nil)

// Read implements catalog.BackupStore.
func (h *host) Read() ([]byte, error) { return h.image, nil }

// Write implements catalog.BackupStore.
func (h *host) Write(image []byte) error {
	h.image = bytes.Clone(image)
	return nil
}

// process is one life of a server on a host.
type process struct {
	world       *World
	host        *host
	incarnation int
	dead        bool
	// faulted: an exchange of it failed.
	faulted bool
	ids     *ids
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// store is the way to the object store, nil in the disk mode; then epoch is that of the
	// log once it was opened, and superseded says that the world knows of a later one.
	store      *faultstore.Store
	epoch      segment.Epoch
	superseded bool
	// seize: stand no longer by; ending: the process ends soon.
	seize, ending bool
	// serving: everything of it runs.
	serving bool
	// server has the sessions of clients, nil when there are none.
	server *own.Server
	wake   chan struct{}
	backup catalog.BackupStore
	// mute is until when the store answers nothing of backups.
	mute time.Time

	catalog    *catalog.Catalog // nil while it stands by
	supervisor *ingest.Supervisor
	compactor  *compact.Service
	pinner     *planner.Pinner
	logs       map[change.PipelineID]*openLog
	readers    map[change.PipelineID]*wal.Reader
	slices     *duckdb.LogReader
	// held are the lake snapshots that queries read, with how many do.
	held map[int64]int
	// holds are those on the log that the world has taken.
	holds []*holding
}

// restartAfter is how long a machine takes to start its process again.
const restartAfter = 500 * time.Millisecond

// boot starts a process.
func (h *host) boot() {
	w := h.world
	h.incs++
	p := &process{
		world: w, host: h, incarnation: h.incs, ids: &ids{random{w.cfg.Seed ^ uint64(h.incs)<<32 ^ uint64(h.name[0])<<48}},
		wake: make(chan struct{}, 1), logs: map[change.PipelineID]*openLog{}, readers: map[change.PipelineID]*wal.Reader{}, held: map[int64]int{},
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	h.proc = p
	w.say("%s boots, incarnation %d", h.name, h.incs)
	if w.objects != nil {
		p.connectStore()
		w.spawn(p, "stand by", p.stand)
		return
	}
	p.epoch = 1
	if w.cfg.backups() {
		p.backup = h
	}
	if err := p.openCatalog(); err != nil {
		w.fail("BOOT", fmt.Sprintf("%s: %v", h.name, err))
		return
	}
	if p.backup != nil && h.image == nil {
		if err := p.catalog.Backup(p.ctx); err != nil {
			w.fail("BOOT", fmt.Sprintf("%s: %v", h.name, err))
			return
		}
	}
	w.spawn(p, "start", func() {
		if err := p.serve(); err != nil {
			w.say("  %s does not start: %v", h.name, err)
			w.mark("process did not start")
			p.stepDown()
		}
	})
}

// openCatalog opens the host's catalog, or begins one with its backup.
func (p *process) openCatalog() error {
	deps := catalog.Deps{
		Clock: clock{p}, IDs: p.ids, Log: p.world.logger(), Key: catalogKey[:], ApplyState: ingest.ApplyState,
		Failpoints: failpoints{p},
	}
	if p.backup != nil {
		deps.Backup = guard{p.backup, p}
	}
	c, err := catalog.Open(p.ctx, p.host.kv, deps)
	if err == nil {
		p.catalog = c
		p.durableOwn()
	}
	return err
}

// serve makes the catalog whole again, if it is not, and starts what a server has.
func (p *process) serve() error {
	w := p.world
	var err error
	p.compactor, err = compact.New(w.cfg.compaction(), compact.Deps{
		Catalog: p.catalog, Warehouse: warehouse{p}, Searcher: p.executor(),
		Reader: func(id change.PipelineID) compact.SliceReader { return p.reader(id) },
		Log: func(id change.PipelineID) (compact.Log, bool) {
			l, ok := p.logs[id]
			return l, ok
		},
		Clock: clock{p}, Logger: w.logger(), Failpoints: failpoints{p}, Tasks: tasks{p}, Epoch: p.lakeEpoch(),
	})
	if err != nil {
		return err
	}
	p.pinner = &planner.Pinner{Catalog: p.catalog, Warehouse: warehouse{p}, Pins: warehouse{p}, LogDir: p.logDir}
	if err := p.serveOwn(); err != nil {
		return err
	}
	sources := map[string]ingest.SourceFactory{sourceKind: p.connect}
	if p.server != nil {
		sources[ownsource.Kind] = p.server.Source
	}
	p.supervisor = ingest.NewSupervisor(w.cfg.ingest(), ingest.Deps{
		Catalog: p.catalog, Sources: sources,
		Lake: p.compactor, Clock: clock{p}, IDs: p.ids, Log: w.logger(), Failpoints: failpoints{p}, Tasks: tasks{p},
		OpenLog: p.open, RemoveLog: p.remove, Rows: &lookup.Lookup{Pinner: p.pinner, Finder: finder{p}},
	})
	err = compact.Rebuild(p.ctx, compact.RebuildDeps{
		Catalog: p.catalog, Warehouse: warehouse{p}, RecoverLog: p.supervisor.RecoverLog, Logger: w.logger(),
	})
	if err != nil || p.dead {
		return err
	}
	if p.ending { // it was taken over meanwhile
		return errNoLeader
	}
	if p.server != nil {
		if err := p.server.Join(p.ctx, p.supervisor); err != nil || p.dead {
			return err
		}
	}
	p.serving = true
	w.spawn(p, "supervisor", func() { _ = p.supervisor.Run(p.ctx) })
	for i := range compactors {
		w.spawn(p, fmt.Sprintf("compactor %d", i), func() { p.compact(i) })
	}
	w.spawn(p, "reclaimer", p.reclaim)
	return nil
}

// lakeEpoch is the compact.Deps.Epoch.
func (p *process) lakeEpoch() func(change.PipelineID) segment.Epoch {
	if p.store == nil {
		return nil
	}
	return func(change.PipelineID) segment.Epoch { return p.epoch }
}

// executor answers plans and searches; each user has its own, over the one reader of a worker.
func (p *process) executor() *query.Executor {
	if p.slices == nil {
		p.slices = duckdb.NewLogReaderFS(disk{p, p.host.disk})
	}
	return &query.Executor{Slices: p.slices, Files: lakeFiles{p}}
}

// finder finds rows by key, with an executor of its own for each look.
type finder struct{ p *process }

// Find implements lookup.Finder.
func (f finder) Find(ctx context.Context, r *duckdb.Relation, keys arrow.RecordBatch, found func(arrow.RecordBatch) error,
) error {
	if _, dead := f.p.at(atQuery, "look up rows"); dead != nil {
		return dead
	}
	f.p.world.mark("unchanged values looked up")
	return f.p.executor().Find(ctx, r, keys, found)
}

func (p *process) reader(id change.PipelineID) *wal.Reader {
	r := p.readers[id]
	if r == nil {
		r = wal.OpenReaderFS(disk{p, p.host.disk}, p.logDir(id))
		p.readers[id] = r
	}
	return r
}

// connect is the ingest.SourceFactory of the world's system.
func (p *process) connect(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps,
) (ingest.Source, error) {
	if err := p.exchange(atSource, "connect", func() error { return nil }); err != nil {
		return nil, err
	}
	return p.world.db.Connect(p.hooks()), nil
}

// compactors is how many tables are compacted at once.
const compactors = 2

// compactInterval is how often tables and logs are looked at.
const compactInterval = time.Second

// compact looks after every compactors-th table.
func (p *process) compact(turn int) {
	for !p.dead {
		snap := p.catalog.Snapshot()
		tables := snap.EveryTable()
		snap.Close()
		more := false
		for i, t := range tables {
			if i%compactors != turn {
				continue
			}
			did, err := p.compactor.StepTable(p.ctx, t.ID, false)
			more = more || did && err == nil
		}
		if more {
			continue
		}
		if err := (tasks{p}).Wait(p.ctx, compactInterval); err != nil {
			return
		}
	}
}

// reclaim looks after the logs.
func (p *process) reclaim() {
	for !p.dead {
		snap := p.catalog.Snapshot()
		pipelines := snap.Pipelines()
		snap.Close()
		for _, pl := range pipelines {
			_, _ = p.compactor.Reclaim(p.ctx, pl.ID) // tried again
		}
		if err := (tasks{p}).Wait(p.ctx, compactInterval); err != nil {
			return
		}
	}
}

// updated notes a committed transaction of the catalog.
func (w *World) updated(p *process) {
	if p.catalog != nil {
		p.durableOwn()
	}
	w.emit(check.Updated{Host: p.host.name})
}

// crash ends a host's process. machine: its disk and catalog lose what was not synced.
func (w *World) crash(h *host, machine, lost bool) {
	p := h.proc
	if p == nil {
		return
	}
	w.say("%s crashes, machine %v", h.name, machine)
	p.dead = true
	p.cancel(errDead)
	h.proc = nil
	h.paused = false
	h.bootAt = w.now.Add(restartAfter)
	if p.catalog != nil {
		_ = p.catalog.Close() // refuses commits from now on
	}
	switch {
	case lost:
		w.mark("catalog lost")
		h.disk = h.disk.Kill()
		h.kv = memStore{memkv.New()}
	case machine:
		w.mark("power cut")
		keep := []float64{0, 0.5, 0.9, 1}[w.rng.n(4)]
		h.disk = h.disk.Crash(rand.New(&w.rng), keep)
		kv, err := h.kv.crash()
		if err != nil {
			w.fail("BOOT", fmt.Sprintf("%s: catalog after a power cut: %v", h.name, err))
		}
		h.kv = kv
	default:
		w.mark("kill")
		h.disk = h.disk.Kill()
	}
	w.dirty = true
	w.loseClients(p)
	w.emit(check.Crashed{Host: h.name, Machine: machine, Lost: lost})
	w.bury(p)
}

// bury has the tasks of a dead process unwind, except the one that runs.
func (w *World) bury(p *process) {
	w.graves = append(w.graves, p)
}

// reap unwinds the tasks of dead processes. It is called outside of tasks.
func (w *World) reap() {
	for len(w.graves) > 0 {
		p := w.graves[0]
		w.graves = w.graves[1:]
		for again := true; again; {
			again = false
			for _, t := range w.tasks { // unwinding may add some
				if t.p == p && !t.ended {
					w.resume(t)
					again = true
				}
			}
		}
	}
	w.sweep()
}
