// Package pebblekv is kv.Store on Pebble: an LSM tree in a directory of its own, held
// by one process at a time.
package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/skipprd/skipprd/catalog/kv"
)

// formatVersion is Pebble's own format. Raising it is one way: older binaries cannot
// open the store afterwards.
const formatVersion = pebble.FormatValueSeparation

// Store is a kv.Store on Pebble. Safe for concurrent use. Using it after Close is
// kv.ErrClosed; Close must not overlap with other calls.
type Store struct {
	db     *pebble.DB
	cache  *pebble.Cache
	closed atomic.Bool
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in dir, making it if there is none. It fails when another
// process has it open.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	cache := pebble.NewCache(o.CacheBytes)
	opts := &pebble.Options{
		Cache:                       cache,
		FormatMajorVersion:          formatVersion,
		FS:                          o.FS,
		Logger:                      logger{o.Log},
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                500,
		L0StopWritesThreshold:       24,
		WALBytesPerSync:             512 << 10,
		BytesPerSync:                512 << 10,
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		cache.Unref()
		return nil, fmt.Errorf("open key-value store %s: %w", dir, err)
	}
	return &Store{db: db, cache: cache}, nil
}

// Get implements kv.Reader.
func (s *Store) Get(key []byte) ([]byte, error) {
	if s.closed.Load() {
		return nil, kv.ErrClosed
	}
	return get(s.db, key)
}

// Iterate implements kv.Reader.
func (s *Store) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return iterate(s.db, lower, upper, fn)
}

// NewBatch implements kv.Store.
func (s *Store) NewBatch() kv.Batch {
	if s.closed.Load() {
		return &batch{}
	}
	return &batch{b: s.db.NewBatch()}
}

// NewIndexedBatch implements kv.Store.
func (s *Store) NewIndexedBatch() kv.IndexedBatch {
	if s.closed.Load() {
		return &batch{}
	}
	return &batch{b: s.db.NewIndexedBatch()}
}

// Snapshot implements kv.Store.
func (s *Store) Snapshot() kv.Snapshot {
	if s.closed.Load() {
		return &snapshot{}
	}
	return &snapshot{s: s.db.NewSnapshot()}
}

// Close implements kv.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	err := s.db.Close()
	s.cache.Unref()
	if err != nil {
		return fmt.Errorf("close key-value store: %w", err)
	}
	return nil
}

// Metrics is what the store holds and does, for the metrics page.
func (s *Store) Metrics() *pebble.Metrics { return s.db.Metrics() }

type getter interface {
	Get(key []byte) ([]byte, io.Closer, error)
}

func get(g getter, key []byte) ([]byte, error) {
	if len(key) == 0 {
		return nil, kv.ErrEmptyKey
	}
	value, closer, err := g.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get key: %w", err)
	}
	out := append([]byte{}, value...)
	if err := closer.Close(); err != nil {
		return nil, fmt.Errorf("get key: %w", err)
	}
	return out, nil
}

type iterable interface {
	NewIter(o *pebble.IterOptions) (*pebble.Iterator, error)
}

func iterate(r iterable, lower, upper []byte, fn func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("iterate keys: %w", err)
	}
	defer func() {
		if cerr := it.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("iterate keys: %w", cerr)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, verr := it.ValueAndErr()
		if verr != nil {
			return fmt.Errorf("iterate keys: %w", verr)
		}
		if err := fn(it.Key(), value); err != nil {
			if errors.Is(err, kv.Stop) {
				return nil
			}
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("iterate keys: %w", err)
	}
	return nil
}

// snapshot is a kv.Snapshot; s is nil if its store was closed before.
type snapshot struct {
	s      *pebble.Snapshot
	closed atomic.Bool
}

// Get implements kv.Reader.
func (s *snapshot) Get(key []byte) ([]byte, error) {
	if s.s == nil || s.closed.Load() {
		return nil, kv.ErrClosed
	}
	return get(s.s, key)
}

// Iterate implements kv.Reader.
func (s *snapshot) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	if s.s == nil || s.closed.Load() {
		return kv.ErrClosed
	}
	return iterate(s.s, lower, upper, fn)
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	if s.s == nil || s.closed.Swap(true) {
		return kv.ErrClosed
	}
	return s.s.Close()
}

// logger hands Pebble's messages on. Its information (each flush and compaction) is
// debugging to us.
type logger struct{ log *slog.Logger }

// Infof implements pebble.Logger.
func (l logger) Infof(format string, args ...any) {
	l.log.Debug("key-value store event", "event", lazy{format, args})
}

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.log.Error("key-value store error", "error", lazy{format, args})
}

// Fatalf implements pebble.Logger: the store's files can no longer be trusted, so the
// process ends and recovers at its next start.
func (l logger) Fatalf(format string, args ...any) {
	l.log.Error("key-value store broke", "error", lazy{format, args})
	fmt.Fprintf(os.Stderr, "key-value store broke: "+format+"\n", args...)
	os.Exit(1) // a panic could be recovered by whoever serves one client
}

// lazy formats a message only if it is logged.
type lazy struct {
	format string
	args   []any
}

// LogValue implements slog.LogValuer.
func (l lazy) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf(l.format, l.args...)) }

// defaultFS is the machine's file system.
func defaultFS() vfs.FS { return vfs.Default }
