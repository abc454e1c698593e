package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/pebblekv"
	"github.com/skipprd/skipprd/cmd/skipprd/serverfile"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/ingest/postgres"
	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/lookup"
	"github.com/skipprd/skipprd/planner/mirror"
	"github.com/skipprd/skipprd/planner/owned"
	"github.com/skipprd/skipprd/planner/scroll"
	"github.com/skipprd/skipprd/planner/syscat"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// node is a whole server in one process, its parts in the order in which they open.
type node struct {
	temp  string // directory for what is not kept
	cfg   *config
	log   *slog.Logger
	clock env.Clock
	ids   env.IDs

	leader     *leader // nil: the log is on disk
	store      *pebblekv.Store
	catalog    *catalog.Catalog
	warehouse  *iceberg.Warehouse
	pool       *duckdb.Pool
	system     *syscat.Catalog
	supervisor *ingest.Supervisor
	own        *owned.Tables
	compactor  *compact.Service
	engine     *planner.Engine
	server     *pgwire.Server
	listener   net.Listener
	rules      *rules // nil: the defaults
	health     health
	metrics    *metrics
	stopHTTP   func()
}

// open opens everything, so that a wrong setting or a broken directory is an error
// before the first client connects. On an error what is open is closed.
func open(ctx context.Context, c *config, log *slog.Logger) (n *node, err error) {
	n = &node{cfg: c, log: log, metrics: newMetrics(), stopHTTP: func() {}}
	n.clock, n.ids = env.System()
	n.metrics.clock = n.clock
	if c.objectLog() != nil {
		n.metrics.leads = n.health.ready.Load
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.stopHTTP, err = httpServer(ctx, c.get("http"), &n.health, n.metrics, log); err != nil {
		n.stopHTTP = func() {}
		return n, err
	}
	failpoints, err := env.ExitAt(os.Getenv("SKIPPRD_FAILPOINT"), os.Exit)
	if err != nil {
		return n, err
	}
	for _, step := range []func() error{
		func() error { return n.openLog(ctx) },
		func() error { return n.openCatalog(ctx, failpoints) },
		n.openLake,
		func() error { return n.openPipelines(failpoints) },
		func() error { return n.rebuild(ctx) },
		func() error { return n.own.Tables.Sweep(ctx) },
		n.openEngine,
		func() error { return n.openWire(ctx) },
	} {
		if err := step(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// openLog finds out where the log is. On an object store it waits until this node leads.
func (n *node) openLog(ctx context.Context) error {
	dir := n.cfg.get("data-dir")
	where := n.cfg.objectLog()
	if where == nil {
		return errors.Join(claimDirectory(dir, onDisk), claimDirectory(n.cfg.lakeDir(), onDisk))
	}
	n.leader = &leader{
		objectLog: where, dir: dir, clock: n.clock, ids: n.ids, log: n.log,
		say: func(text string) { n.health.wait(n.log, text) },
	}
	if err := n.leader.lead(ctx, n.cfg.lakeDir()); err != nil {
		return err
	}
	// What is here may be of before another node led: the object store has it.
	if err := os.RemoveAll(filepath.Join(dir, "catalog")); err != nil {
		return fmt.Errorf("remove catalog: %w", err)
	}
	return nil
}

// backup is where the catalog's image is kept, with a name for people.
func (n *node) backup() (catalog.BackupStore, string) {
	dir := n.cfg.get("data-dir")
	if n.leader == nil {
		return catalog.FileBackup(wal.DiskFS(), dir), filepath.Join(dir, "catalog.backup")
	}
	return n.leader.backup(), n.leader.location() + "/catalog"
}

func (n *node) openCatalog(ctx context.Context, failpoints env.Failpoints) error {
	dir := n.cfg.get("data-dir")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	key, err := secretKey(n.cfg, n.ids)
	if err != nil {
		return err
	}
	if n.store, err = pebblekv.Open(filepath.Join(dir, "catalog"), pebblekv.Options{Log: n.log}); err != nil {
		return fmt.Errorf("open catalog (is another server running on %s?): %w", dir, err)
	}
	backup, name := n.backup()
	n.catalog, err = catalog.Open(ctx, n.store, catalog.Deps{
		Clock: n.clock, IDs: n.ids, Log: n.log, Key: key, ApplyState: ingest.ApplyState, Failpoints: failpoints,
		Getenv: os.Getenv, ReadFile: os.ReadFile,
		Backup: backup, Orphans: func() (string, error) { return orphans(dir, n.cfg.lakeDir(), name) },
	})
	n.metrics.catalog = n.catalog
	if err == nil && n.leader != nil {
		err = n.catalog.Backup(ctx) // from here on it is ours
	}
	return err
}

// engineMemoryShare is the part of the machine's memory that the engine may use unless
// told otherwise.
const engineMemoryShare = 3

func (n *node) engineMemory() int64 {
	if v := n.cfg.bytes("engine-memory"); v > 0 {
		return v
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 1 << 30
	}
	return max(512<<20, int64(info.Totalram)*int64(info.Unit)/engineMemoryShare) // memory fits
}

// tempShare is the part of the free disk that queries may spill to unless told otherwise: the
// log and the lake need the rest.
const tempShare = 2

func (n *node) engineTempLimit(dir string) int64 {
	if v := n.cfg.bytes("engine-temp-limit"); v > 0 {
		return v
	}
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		return 0
	}
	return int64(info.Bavail) * info.Bsize / tempShare // disks fit
}

func (n *node) openLake() error {
	dir := n.cfg.get("data-dir")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	lakeDir, err := filepath.Abs(n.cfg.lakeDir())
	if err != nil {
		return fmt.Errorf("warehouse directory: %w", err)
	}
	var pointers kv.Store = n.store
	if n.leader != nil {
		pointers = n.leader.pointers
	}
	n.warehouse, err = iceberg.Open(pointers, lakeDir, iceberg.Config{},
		iceberg.Deps{Clock: n.clock, IDs: n.ids, Log: n.log})
	if err != nil {
		return err
	}
	if n.leader != nil {
		if err := n.warehouse.Verify(); err != nil {
			return fmt.Errorf("%w. Bring the lake directory of %s back under the same path: nothing was changed", err, n.leader.location())
		}
	}
	temp := filepath.Join(abs, "engine-tmp") // emptied: must be a name that nobody else uses
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return fmt.Errorf("make temporary directory: %w", err)
	}
	n.temp = temp
	if n.system, err = syscat.New(syscat.Deps{Status: n.status, Files: n.files, Rules: n.ruleLines}); err != nil {
		return err
	}
	threads := n.cfg.int("engine-threads")
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	n.pool, err = duckdb.NewPool(duckdb.PoolConfig{
		Worker: duckdb.WorkerConfig{
			Threads: threads, MemoryLimit: n.engineMemory(), CacheBytes: n.engineMemory() / 2,
			TempDir: temp, TempLimit: n.engineTempLimit(temp),
			AllowedDirs: []string{lakeDir, temp},
			Prelude:     planner.Prelude(n.system),
		},
		MaxQueries: n.cfg.int("max-queries"), QueryMemory: n.cfg.bytes("engine-query-memory"),
	}, duckdb.Deps{Clock: n.clock, Log: n.log, Stderr: os.Stderr})
	if err != nil {
		return fmt.Errorf("start query engine: %w", err)
	}
	n.metrics.pool = n.pool
	return nil
}

// postgresVersion is the version of PostgreSQL that we speak.
const postgresVersion = "15.8"

func (n *node) openEngine() error {
	n.engine = planner.New(planner.Deps{
		Catalog: n.catalog, Warehouse: n.warehouse, Pins: n.warehouse, Logs: logPins{n.compactor},
		Positions: positions{n.supervisor}, Recovered: n.recovered, Runner: planner.PoolRunner{Pool: n.pool}, System: n.system,
		DDL: &ddl.Executor{Catalog: n.catalog, Controller: n.controller(), Clock: n.clock}, Own: n.own,
		Clock: n.clock, LogDir: n.logDir, Sessions: n.sessions, Cancel: n.endBackend, Reload: n.reload,
		Files:   n.serverFiles(),
		Version: postgresVersion, Database: n.cfg.get("database"), Started: n.clock.Now(), Spill: n.spill,
		Log: n.log, Settings: n.cfg.pgSettings(n.cfg.get("tls-cert") != "" || !isLoopback(n.cfg.get("listen"))),
	})
	return nil
}

// serverFiles are those that COPY may use: none that the server is configured by, or keeps.
func (n *node) serverFiles() *serverfile.Files {
	own := []string{n.temp}
	for _, name := range []string{"data-dir", "lake-dir", "config", "password-file", "tls-cert", "tls-key", "tls-client-ca", "hba-file", "ident-file"} {
		own = append(own, n.cfg.get(name))
	}
	return serverfile.New(serverfile.Allow(n.cfg.get("server-files")), n.log, own...)
}

// spill makes a file without a name: whatever ends us, it goes.
func (n *node) spill() (scroll.File, error) {
	f, err := os.CreateTemp(n.temp, "cursor-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// recovered waits for the log of a pipeline.
func (n *node) recovered(ctx context.Context, p change.PipelineID) error {
	return owned.Error(n.supervisor.Recovered(ctx, p))
}

// logPins keeps the log for transactions and cursors.
type logPins struct{ compactor *compact.Service }

// HoldLog implements planner.LogPins.
func (p logPins) HoldLog(pipeline change.PipelineID, from segment.Seq) (release func()) {
	return p.compactor.HoldLog(pipeline, from).Release
}

func (n *node) controller() *controller {
	return &controller{
		Supervisor: n.supervisor, compactor: n.compactor, leader: n.leader,
		comparer: &verify.Comparer{
			Catalog: n.catalog, Pipelines: n.supervisor, Lake: restingLake{n.compactor}, Clock: n.clock,
			Mirror: &mirror.Reader{
				Runner: planner.PoolRunner{Pool: n.pool},
				Pinner: &planner.Pinner{Catalog: n.catalog, Warehouse: n.warehouse, Pins: n.warehouse, LogDir: n.logDir},
			},
		},
	}
}

// reworkedEvery is how often is looked for tables to compare by themselves.
const reworkedEvery = 2 * time.Second

// compareReworked compares tables that were rewritten at their source, until ctx ends.
func (n *node) compareReworked(ctx context.Context) error {
	r := &verify.Reworked{
		Comparer: n.controller().comparer, Telling: n.supervisor.Comparing, Log: n.log, Rest: 10 * time.Second,
	}
	return env.RunLoop(ctx, env.LoopConfig{
		Name: "comparison", Clock: n.clock, Step: r.Step, Interval: reworkedEvery,
		OnError: func(err error) {
			if ctx.Err() == nil {
				n.log.Warn("outcome of a comparison not recorded", env.KeyError, err)
			}
		},
	})
}

func (n *node) status(name string) (ddl.PipelineStatus, bool) {
	if n.supervisor == nil {
		return ddl.PipelineStatus{}, false
	}
	return n.controller().Status(name)
}

func (n *node) files(ctx context.Context, table change.TableID, metadata string, snapshot int64) (*lake.Snapshot, error) {
	return n.warehouse.Snapshot(ctx, fmt.Sprint(table), metadata, snapshot)
}

func (n *node) logDir(p change.PipelineID) string {
	return wal.PipelineDir(n.cfg.get("data-dir"), p)
}

// restInterval is how often the source of a pipeline that rests is asked how much it keeps
// for it.
const restInterval = 10 * time.Second

func (n *node) openPipelines(failpoints env.Failpoints) error {
	cfg := ingest.Config{
		DataDir: n.cfg.get("data-dir"), GroupBytes: n.cfg.bytes("buffer-threshold-bytes"),
		Freshness: n.cfg.duration("buffer-threshold-seconds"), SegmentBytes: n.cfg.bytes("wal-segment-bytes"),
		QuotaBytes: n.cfg.bytes("wal-quota-bytes"), RestInterval: restInterval,
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	tasks := env.Goroutines(n.clock)
	n.own = &owned.Tables{Store: own.NewStore(own.Deps{Clock: n.clock, Tasks: tasks, Settled: n.catalog.SettleBackup}), Locks: own.NewLocks(tasks)}
	lakeAdmin := &lakeAdmin{}
	deps := ingest.Deps{
		Catalog: n.catalog,
		Sources: map[string]ingest.SourceFactory{"postgres": postgres.New, "generator": generate.New, own.Kind: n.own.Store.Source},
		Rows: &lookup.Lookup{
			Pinner: &planner.Pinner{Catalog: n.catalog, Warehouse: n.warehouse, Pins: n.warehouse, LogDir: n.logDir},
			Finder: lookup.Engine{Runner: planner.PoolRunner{Pool: n.pool}},
		},
		Lake: lakeAdmin, Clock: n.clock, IDs: n.ids, Log: n.log, Failpoints: failpoints,
		ScratchFS: wal.DiskFS(),
	}
	var epoch func(change.PipelineID) segment.Epoch
	if n.leader != nil {
		epoch = n.leader.epochOf
		deps.OpenLog, deps.RemoveLog = n.objectLogs(cfg, failpoints)
	}
	n.supervisor = ingest.NewSupervisor(cfg, deps)
	n.own.Tables = &own.Tables{Catalog: n.catalog, Pipelines: n.supervisor}
	n.metrics.supervisor = n.supervisor
	readers := &logReaders{open: func(p change.PipelineID) *wal.Reader { return wal.OpenReader(n.logDir(p)) }}
	var err error
	n.compactor, err = compact.New(compact.Config{
		CommitInterval: n.cfg.duration("commit-interval"), WantBytes: compactAt(n.cfg.bytes("wal-quota-bytes")),
	}, compact.Deps{
		Catalog: n.catalog, Warehouse: n.warehouse, Searcher: compact.EngineSearcher{Pool: n.pool}, Reader: readers.of,
		Log: n.reclaimer, Clock: n.clock, Logger: n.log, Failpoints: failpoints, Epoch: epoch,
	})
	lakeAdmin.service, n.own.Lake = n.compactor, n.compactor
	return err
}

// compactAt is how much log a table may have before it goes to the lake, whatever the
// commit interval: a part of the quota, so that a small log does not stand full until
// the interval is over. 0 is the compactor's own default.
func compactAt(quota int64) int64 {
	const quotaPart, most = 4, 64 << 20
	return min(quota/quotaPart, most)
}

// objectLogs open and remove the logs of pipelines on an object store.
func (n *node) objectLogs(cfg ingest.Config, failpoints env.Failpoints) (
	open func(context.Context, change.PipelineID) (ingest.Log, error), remove func(change.PipelineID) error,
) {
	fence := func(ctx context.Context, p change.PipelineID, epoch segment.Epoch) error {
		return compact.FenceTables(ctx, n.catalog, n.warehouse, p, epoch)
	}
	open = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		return n.leader.openLog(ctx, wal.Config{
			Dir: n.logDir(p), Pipeline: p, GroupBytes: cfg.GroupBytes, QuotaBytes: cfg.QuotaBytes,
		}, wal.Deps{
			Publisher: n.catalog, Clock: n.clock, IDs: n.ids, Log: n.log, Failpoints: failpoints,
		}, fence)
	}
	remove = func(p change.PipelineID) error {
		return n.leader.removeLog(context.Background(), p, n.logDir(p)) // as long as a few requests take
	}
	return open, remove
}

// reclaimer gives the compactor the reclaiming side of a pipeline's log.
func (n *node) reclaimer(p change.PipelineID) (compact.Log, bool) {
	return &reclaimer{n.supervisor, p}, true
}

func (n *node) openWire(ctx context.Context) error {
	var err error
	if n.rules, err = openRules(n.cfg); err != nil {
		return err
	}
	cfg, err := wireConfig(ctx, n.cfg, n.catalog, n.rules)
	if err != nil {
		return err
	}
	n.server, err = pgwire.New(cfg, pgwire.Deps{Engine: n.engine, Clock: n.clock, IDs: n.ids, Log: n.log})
	if err != nil {
		return err
	}
	n.metrics.server = n.server
	n.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", n.cfg.get("listen"))
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	return nil
}

// run serves until ctx ends, then stops in the order of the data flow: clients, sources
// and compaction, engine, catalog.
func (n *node) run(ctx context.Context) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	failed := make(chan error, 4)
	background := func(name string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(work); err != nil && work.Err() == nil {
				failed <- fmt.Errorf("%s ended: %w", name, err)
			}
		})
	}
	background("pipelines", n.supervisor.Run)
	background("compaction", n.compactor.Run)
	background("comparison", n.compareReworked)
	if n.leader != nil {
		background("lead", n.leader.watch)
	}
	background("reload", n.reloads)
	background("listener", func(context.Context) error { return n.server.Serve(n.listener) })
	n.health.ready.Store(true)
	n.log.Info("server ready", "listen", n.listener.Addr().String(), "http", n.cfg.get("http"), "data", n.cfg.get("data-dir"), "version", buildVersion())
	var err error
	select {
	case <-ctx.Done():
		n.log.Info("server stopping")
	case err = <-failed:
		n.log.Error("server stopping", env.KeyError, err)
	}
	n.health.ready.Store(false)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.duration("shutdown-timeout")+time.Second)
	if e := n.server.Shutdown(grace); e != nil && err == nil {
		n.log.Warn("sessions were cut off", env.KeyError, e)
	}
	cancel()
	stopWork(errStopping)
	wg.Wait()
	return errors.Join(err, n.close())
}

var errStopping = errors.New("server is stopping")

// close closes what is open, against the order of opening.
func (n *node) close() error {
	var errs []error
	if n.listener != nil {
		_ = n.listener.Close() // closed by Shutdown already
	}
	if n.pool != nil {
		n.pool.Close()
	}
	if n.catalog != nil {
		errs = append(errs, n.catalog.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	if n.leader != nil {
		errs = append(errs, n.leader.close())
	}
	n.stopHTTP()
	return errors.Join(errs...)
}
