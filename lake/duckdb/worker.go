package duckdb

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// ServeWorker is the life of a worker process: it opens the engine, listens on
// c.Socket, says "ready" on c.Ready, and answers the pool until ctx ends or c.Parent
// does. Called by the hidden subcommand that the pool starts:
//
//	cfg, err := duckdb.ReadWorkerConfig(os.Stdin)
//	cfg.Ready = os.Stdout
//	err = duckdb.ServeWorker(ctx, cfg, factory)
func ServeWorker(ctx context.Context, c WorkerConfig, encoder EncoderFactory) error {
	w, err := openWorker(c, encoder)
	if err != nil {
		return err
	}
	defer w.close()
	listener, err := net.Listen("unix", c.Socket)
	if err != nil {
		return fmt.Errorf("listen for the engine pool: %w", err)
	}
	defer os.Remove(c.Socket)
	if c.Ready != nil {
		if _, err := io.WriteString(c.Ready, readyLine); err != nil {
			return fmt.Errorf("tell the engine pool: %w", err)
		}
		stop := pulse(c.Ready)
		defer stop()
	}
	return w.serve(ctx, listener, c.Parent)
}

const (
	readyLine = "ready\n"
	pulseLine = "\n"
)

// worker is the engine with its cache of live slices.
type worker struct {
	db      *driver.DB
	live    *liveCache
	deleted *deletedCache
	encoder EncoderFactory
	// fatal takes the error after which the engine is of no more use: the worker
	// ends, and the pool starts another.
	fatal chan error
}

func openWorker(c WorkerConfig, encoder EncoderFactory) (*worker, error) {
	c = c.withDefaults()
	db, err := driver.Open(map[string]string{
		"threads":            fmt.Sprint(c.Threads),
		"memory_limit":       fmt.Sprintf("%dB", c.MemoryLimit),
		"temp_directory":     c.TempDir,
		"default_null_order": "nulls_last_on_asc_first_on_desc",
	})
	if err != nil {
		return nil, err
	}
	w := &worker{db: db, live: newLiveCache(c.Slices, c.CacheBytes), deleted: newDeletedCache(), encoder: encoder, fatal: make(chan error, 1)}
	if err := w.prepare(c); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *worker) close() {
	w.live.close()
	w.deleted.close()
	w.db.Close()
}

// prepare runs what holds for the whole database. Access to files is narrowed last:
// nothing can widen it again.
func (w *worker) prepare(c WorkerConfig) error {
	if err := w.db.RegisterFunctions(c.Functions); err != nil {
		return err
	}
	conn, err := w.db.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	statements := []string{
		"SET GLOBAL autoinstall_known_extensions = false",
		"SET GLOBAL autoload_known_extensions = false",
		"SET GLOBAL allow_community_extensions = false",
		"SET GLOBAL parquet_metadata_cache = true",
		"SET SESSION TimeZone = 'UTC'",
	}
	if c.TempLimit > 0 { // as an option of a database that opens it does nothing
		statements = append(statements, fmt.Sprintf("SET GLOBAL max_temp_directory_size = '%dB'", c.TempLimit))
	}
	statements = append(statements, c.Prelude...)
	if len(c.AllowedDirs) > 0 {
		dirs := make([]string, len(c.AllowedDirs))
		for i, d := range c.AllowedDirs {
			dirs[i] = quote.Text(d)
		}
		statements = append(statements, "SET GLOBAL allowed_directories = ["+strings.Join(dirs, ", ")+"]",
			"SET GLOBAL enable_external_access = false")
	}
	for i, sql := range statements {
		if err := conn.Exec(sql); err != nil {
			return fmt.Errorf("engine statement %d %.60q: %w", i, sql, err)
		}
	}
	return nil
}
