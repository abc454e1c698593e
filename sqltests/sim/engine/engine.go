package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// The engine's limits: worlds are small.
const (
	engineThreads = 1
	engineMemory  = 256 << 20
)

// Engine is one DuckDB for any number of worlds, one after the other. Safe for concurrent
// use.
type Engine struct {
	pool   *duckdb.Pool
	slices *worldSlices
}

// World is what a session reads.
type World struct {
	Catalog *catalog.Catalog
	Lake    planner.Snapshots
	Disk    wal.FS
	LogDir  func(change.PipelineID) string
	Clock   env.Clock
}

// Open starts the engine. The caller closes it.
func Open() (*Engine, error) {
	clock, _ := env.System()
	e := &Engine{slices: &worldSlices{}}
	e.slices.mu.worlds = map[string]*duckdb.LogReader{}
	var err error
	e.pool, err = duckdb.NewPool(duckdb.PoolConfig{
		InProcess: true,
		Worker: duckdb.WorkerConfig{
			Threads: engineThreads, MemoryLimit: engineMemory, Prelude: planner.Prelude(noSystem{}), Functions: pgfunc.Functions(),
		},
	}, duckdb.Deps{Clock: clock, Log: slog.New(slog.DiscardHandler), Encoder: encoder, Slices: e.slices})
	if err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	return e, nil
}

// Close ends the engine.
func (e *Engine) Close() { e.pool.Close() }

func encoder(o duckdb.Output, types []vector.Type) (duckdb.RowEncoder, error) {
	spec := encode.Spec{Kind: encode.Kind(o.Kind), Copy: encode.CopyOptions(o.Copy), Format: encode.Format(o.Format)}
	for _, c := range o.Columns {
		spec.Columns = append(spec.Columns, encode.Column(c))
	}
	return encode.New(spec, types)
}

// Session opens a session on a world. The engine keeps what it has read of the log while
// the session is open, as it does in a server. The caller closes it.
func (e *Engine) Session(ctx context.Context, w World) (*Session, error) {
	prefix := e.slices.add(w.Disk)
	p := planner.New(planner.Deps{
		Catalog: w.Catalog, Warehouse: w.Lake, Runner: planner.PoolRunner{Pool: e.pool}, DDL: noDDL{},
		System: noSystem{}, Clock: w.Clock, Version: "15.8", Database: "lake",
		LogDir: func(id change.PipelineID) string { return prefix + w.LogDir(id) },
	})
	s, err := p.Open(ctx, pgwire.Startup{User: "postgres", Database: "lake", PID: 1})
	if err != nil {
		e.slices.remove(prefix)
		return nil, fmt.Errorf("open session: %w", err)
	}
	return &Session{engine: e, prefix: prefix, session: s}, nil
}

// worldSlices reads the logs of worlds. The directory in a plan begins with the world's
// prefix, so that no world gets what was kept of another.
type worldSlices struct {
	mu struct {
		sync.Mutex
		worlds map[string]*duckdb.LogReader
		count  int
	}
}

var _ duckdb.SliceReader = (*worldSlices)(nil)

const prefixEnd = "//"

func (s *worldSlices) add(fsys wal.FS) (prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.count++
	prefix = fmt.Sprintf("world-%d%s", s.mu.count, prefixEnd)
	s.mu.worlds[prefix] = duckdb.NewLogReaderFS(fsys)
	return prefix
}

func (s *worldSlices) remove(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.worlds, prefix) // its files are closed with their world
}

// ReadSlice implements duckdb.SliceReader.
func (s *worldSlices) ReadSlice(ctx context.Context, l duckdb.LiveSlice, dir string) (arrow.RecordBatch, error) {
	world, rest, _ := strings.Cut(dir, prefixEnd)
	s.mu.Lock()
	r := s.mu.worlds[world+prefixEnd]
	s.mu.Unlock()
	if r == nil {
		return nil, fmt.Errorf("log %s: %w", dir, duckdb.ErrSliceLost)
	}
	return r.ReadSlice(ctx, l, rest)
}

// noDDL refuses statements of ours: a world has its own.
type noDDL struct{}

// Execute implements planner.DDL.
func (noDDL) Execute(context.Context, ddl.Statement, ddl.Session) (*ddl.Result, error) {
	return nil, fmt.Errorf("no statements in a simulated world")
}

// noSystem has no system relations: nothing here reads them.
type noSystem struct{}

var _ planner.SystemRelations = noSystem{}

// Lookup implements planner.SystemRelations.
func (noSystem) Index(string, string) (uint32, bool) { return 0, false }

func (noSystem) Lookup(string, string) (planner.SystemRelation, bool) {
	return planner.SystemRelation{}, false
}

// Rows implements planner.SystemRelations.
func (noSystem) Rows(_ context.Context, r planner.SystemRelation, _ *planner.SystemEnv) ([]byte, error) {
	return nil, fmt.Errorf("system relation %s.%s", r.Schema, r.Name)
}

// Functions implements planner.SystemRelations.
func (noSystem) Functions() []planner.SystemFunction { return nil }

// Prelude implements planner.SystemRelations.
func (noSystem) Prelude() []string { return nil }

// IndexColumns implements planner.SystemRelations.
func (noSystem) IndexColumns(*planner.SystemEnv, *catalog.Table, catalog.Index) []string { return nil }
