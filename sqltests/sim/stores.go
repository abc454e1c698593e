package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/kv/pebblekv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/lake/memlake"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal/env"
)

// Lake is what a world has for a lake. It outlives hosts.
type Lake interface {
	lake.Warehouse
	query.Files
}

var _ Lake = (*memlake.Warehouse)(nil)

// icebergLake is the real lake, in a directory.
type icebergLake struct {
	*iceberg.Warehouse
	query.ParquetFiles
}

// IcebergLake opens the real lake in dir, which must be empty. Its pointers are in a store
// that never crashes: it is somebody else's.
func IcebergLake(dir string) func(env.Clock, env.IDs) (Lake, error) {
	return func(clock env.Clock, ids env.IDs) (Lake, error) {
		w, err := iceberg.Open(memkv.New(), dir, iceberg.Config{}, iceberg.Deps{Clock: clock, IDs: ids})
		if err != nil {
			return nil, err
		}
		return icebergLake{Warehouse: w}, nil
	}
}

// store is what a host has for its catalog.
type store interface {
	kv.Store
	// crash returns what a power cut leaves. The receiver is of no use to the living
	// afterwards.
	crash() (store, error)
}

// memStore is a catalog in memory.
type memStore struct{ *memkv.Store }

func (s memStore) crash() (store, error) { return memStore{s.Crash()}, nil }

// pebbleStore is a catalog on Pebble, over a file system in memory.
type pebbleStore struct {
	*pebblekv.Store
	fs *vfs.MemFS
}

const pebbleDir = "catalog"

func openPebble(fs *vfs.MemFS) (pebbleStore, error) {
	s, err := pebblekv.Open(pebbleDir, pebblekv.Options{FS: fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	return pebbleStore{s, fs}, err
}

// crash leaves the old store open: what died with it may still hold snapshots of it.
func (s pebbleStore) crash() (store, error) { return openPebble(s.fs.CrashClone(vfs.CrashCloneCfg{})) }

// newStore makes the catalog of a host that has not run.
func (w *World) newStore(pebble bool) (store, error) {
	from, err := w.template()
	if err != nil || !pebble {
		return memStore{from.Crash()}, err
	}
	to, err := openPebble(vfs.NewCrashableMem())
	if err != nil {
		return nil, err
	}
	batch := to.NewBatch()
	err = from.Iterate(nil, nil, func(key, value []byte) error { return batch.Set(key, value) })
	if err != nil {
		return nil, fmt.Errorf("copy catalog: %w", err)
	}
	return to, batch.Commit(true)
}

// worldClock is the time of what no host has.
type worldClock struct{ w *World }

var _ env.Clock = worldClock{}

// Now implements env.Clock.
func (c worldClock) Now() time.Time { return c.w.now }

// Since implements env.Clock.
func (c worldClock) Since(t time.Time) time.Duration { return c.w.now.Sub(t) }

// Sleep implements env.Clock: nobody waits here.
func (c worldClock) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// Timer implements env.Clock: it never fires.
func (c worldClock) Timer(time.Duration) (fired <-chan time.Time, stop func()) {
	return make(chan time.Time), func() {}
}
