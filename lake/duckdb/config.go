package duckdb

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/lake/duckdb/admission"
	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/wal/env"
)

// PoolConfig is what a user tunes about query execution.
type PoolConfig struct {
	// Worker is what each worker process is told.
	Worker WorkerConfig
	// MaxQueries is how many queries run at once; more wait. Default 4 per CPU, at
	// least 16. As many again may run of those that need next to no memory.
	MaxQueries int
	// QueryMemory is what a query may count on of the worker's MemoryLimit: no more run at
	// once than there is memory for, but for those that need next to none. Default 64 MiB
	// for each of the worker's threads, at least 128 MiB.
	QueryMemory int64
	// StartTimeout bounds a worker's start. Default 30 s.
	StartTimeout time.Duration
	// CancelTimeout is how long a canceled query may take to stop before its
	// connection is closed. Default 10 s.
	CancelTimeout time.Duration
	// SilenceTimeout is how long a worker process may give no sign of life before it
	// is killed, and its queries end with ErrWorkerDied. Default 30 s.
	SilenceTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause before a dead worker is started
	// again. Defaults 100 ms and 5 s.
	BackoffMin, BackoffMax time.Duration
	// InProcess runs the worker's code in this process, over net.Pipe: for tests and
	// for tools that run one query. A fault in the engine then ends the process.
	InProcess bool
}

// Deps are the collaborators of a pool.
type Deps struct {
	// Clock is the system's: connections have deadlines.
	Clock env.Clock
	Log   *slog.Logger
	// Encoder makes the row encoders of an in-process worker; a worker process has
	// its own.
	Encoder EncoderFactory
	// Slices reads live slices for an in-process worker. Default: a LogReader.
	Slices SliceReader
	// Stderr takes a worker process's standard error; nil drops it.
	Stderr io.Writer
}

// WorkerConfig is what a worker is told. It travels as JSON.
type WorkerConfig struct {
	// Socket is the path of the unix socket to listen on.
	Socket string
	// Threads of the engine, shared by all its queries. Default: one per CPU.
	Threads int
	// MemoryLimit bounds the engine's memory in bytes. Default 1 GiB.
	MemoryLimit int64
	// CacheBytes bounds the cached live slices of all tables. Default 512 MiB.
	CacheBytes int64
	// TempDir is where large queries spill; empty: they end with ErrOutOfMemory.
	TempDir string
	// TempLimit bounds the bytes that they spill, all together; 0: nine tenths of what is
	// free on the disk at the worker's start.
	TempLimit int64
	// AllowedDirs are the only directories the engine may read files from; empty
	// leaves it unrestricted.
	AllowedDirs []string
	// Prelude is run on each new database, one statement an element.
	Prelude []string

	// Parent, when not nil, ends the worker at its EOF. Set by ReadWorkerConfig.
	Parent io.Reader `json:"-"`
	// Ready, when not nil, gets a line when the worker listens, and from then on one
	// every second as a sign of life.
	Ready io.Writer `json:"-"`
	// Slices reads live slices. Default: a LogReader.
	Slices SliceReader `json:"-"`
	// Functions are what statements and the Prelude may call besides the engine's own. A
	// worker process brings its own.
	Functions []scalar.Function `json:"-"`
}

// SliceReader reads live slices of the log. Safe for concurrent use.
type SliceReader interface {
	// ReadSlice returns the rows of a slice of the log in dir, system columns first;
	// the caller releases the record, which is nil for a slice without rows. A
	// reclaimed slice is an error that wraps
	// ErrSliceLost, never other rows.
	ReadSlice(ctx context.Context, s LiveSlice, dir string) (arrow.RecordBatch, error)
}

// configBytesMax bounds the JSON of a WorkerConfig; preludes are its bulk.
const configBytesMax = 16 << 20

// ReadWorkerConfig reads what the pool writes to a worker's standard input. The
// reader stays the worker's tie to its parent.
func ReadWorkerConfig(stdin io.Reader) (WorkerConfig, error) {
	var c WorkerConfig
	body, err := readBlock(stdin, configBytesMax)
	if err != nil {
		return c, fmt.Errorf("read worker config: %w", err)
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("decode worker config: %w", err)
	}
	c.Parent = stdin
	return c, nil
}

func writeWorkerConfig(stdin io.Writer, c WorkerConfig) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode worker config: %w", err)
	}
	return writeBlock(stdin, body)
}

// What a query may count on by default: each thread that works for it has buffers of its own.
const (
	queryMemoryMin    = 128 << 20
	queryMemoryThread = 64 << 20
)

// limits are how many queries run at once. c has its defaults.
func (c PoolConfig) limits() admission.Limits {
	return admission.Limits{Heavy: int(min(int64(c.MaxQueries), c.Worker.MemoryLimit/c.QueryMemory)), Light: c.MaxQueries}
}

func (c PoolConfig) withDefaults() PoolConfig {
	c.Worker = c.Worker.withDefaults()
	setDefault(&c.MaxQueries, max(16, 4*runtime.NumCPU()))
	setDefault(&c.QueryMemory, max(queryMemoryMin, queryMemoryThread*int64(c.Worker.Threads)))
	setDefault(&c.StartTimeout, 30*time.Second)
	setDefault(&c.CancelTimeout, 10*time.Second)
	setDefault(&c.SilenceTimeout, 30*time.Second)
	setDefault(&c.BackoffMin, 100*time.Millisecond)
	setDefault(&c.BackoffMax, 5*time.Second)
	return c
}

func (c WorkerConfig) withDefaults() WorkerConfig {
	setDefault(&c.Threads, runtime.NumCPU())
	setDefault(&c.MemoryLimit, 1<<30)
	setDefault(&c.CacheBytes, 512<<20)
	if c.Slices == nil {
		c.Slices = NewLogReader()
	}
	return c
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
