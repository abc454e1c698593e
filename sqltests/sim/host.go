package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
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

	catalog    *catalog.Catalog
	supervisor *ingest.Supervisor
	compactor  *compact.Service
	pinner     *planner.Pinner
	logs       map[change.PipelineID]*openLog
	readers    map[change.PipelineID]*wal.Reader
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
		world: w, host: h, incarnation: h.incs, ids: &ids{random{w.cfg.Seed ^ uint64(h.incs)<<32}},
		logs: map[change.PipelineID]*openLog{}, readers: map[change.PipelineID]*wal.Reader{}, held: map[int64]int{},
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	h.proc = p
	w.say("%s boots, incarnation %d", h.name, h.incs)
	if err := p.start(); err != nil {
		w.fail("BOOT", fmt.Sprintf("%s: %v", h.name, err))
	}
}

// start opens the catalog and starts what a server has.
func (p *process) start() error {
	w := p.world
	var err error
	p.catalog, err = catalog.Open(p.ctx, p.host.kv, catalog.Deps{
		Clock: clock{p}, IDs: p.ids, Log: w.logger(), Key: catalogKey[:], ApplyState: ingest.ApplyState,
		Failpoints: failpoints{p},
	})
	if err != nil {
		return err
	}
	p.compactor, err = compact.New(w.cfg.compaction(), compact.Deps{
		Catalog: p.catalog, Warehouse: warehouse{p}, Searcher: p.executor(),
		Reader: func(id change.PipelineID) compact.SliceReader { return p.reader(id) },
		Log: func(id change.PipelineID) (compact.Log, bool) {
			l, ok := p.logs[id]
			return l, ok
		},
		Clock: clock{p}, Logger: w.logger(), Failpoints: failpoints{p}, Tasks: tasks{p},
	})
	if err != nil {
		return err
	}
	p.pinner = &planner.Pinner{Catalog: p.catalog, Warehouse: warehouse{p}, Pins: warehouse{p}, LogDir: p.logDir}
	p.supervisor = ingest.NewSupervisor(w.cfg.ingest(), ingest.Deps{
		Catalog: p.catalog, Sources: map[string]ingest.SourceFactory{sourceKind: p.connect},
		Lake: p.compactor, Clock: clock{p}, IDs: p.ids, Log: w.logger(), Failpoints: failpoints{p}, Tasks: tasks{p},
		OpenLog: p.open, RemoveLog: p.remove,
	})
	w.spawn(p, "supervisor", func() { _ = p.supervisor.Run(p.ctx) })
	for i := range compactors {
		w.spawn(p, fmt.Sprintf("compactor %d", i), func() { p.compact(i) })
	}
	w.spawn(p, "reclaimer", p.reclaim)
	return nil
}

// executor answers plans and searches; each user has its own.
func (p *process) executor() *query.Executor {
	return &query.Executor{Slices: duckdb.NewLogReaderFS(disk{p, p.host.disk}), Files: lakeFiles{p}}
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
		tables := snap.AllTables()
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
func (w *World) updated(p *process) { w.emit(check.Updated{Host: p.host.name}) }

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
	_ = p.catalog.Close() // refuses commits from now on
	switch {
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
