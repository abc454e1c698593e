// Package memkv is kv.Store in memory, for tests and simulation. It never parks: its
// mutex is held only to read or replace the root. Sync makes no difference, except to
// Crash.
package memkv

import (
	"bytes"
	"errors"
	"sync"

	"github.com/skipprd/skipprd/catalog/kv"
)

// Store is a kv.Store in memory.
type Store struct {
	mu struct {
		sync.Mutex
		root   *node
		synced *node
		closed bool
	}
}

var _ kv.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store { return &Store{} }

// Crash returns a new store with what a crash now would leave: everything committed
// up to the last synced batch and nothing after it. The receiver is not changed.
func (s *Store) Crash() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := New()
	c.mu.root, c.mu.synced = s.mu.synced, s.mu.synced
	return c
}

// Get implements kv.Reader.
func (s *Store) Get(key []byte) ([]byte, error) { return s.view().Get(key) }

// Iterate implements kv.Reader.
func (s *Store) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	return s.view().Iterate(lower, upper, fn)
}

// NewBatch implements kv.Store.
func (s *Store) NewBatch() kv.Batch { return &batch{store: s} }

// NewIndexedBatch implements kv.Store.
func (s *Store) NewIndexedBatch() kv.IndexedBatch { return &batch{store: s} }

// Snapshot implements kv.Store.
func (s *Store) Snapshot() kv.Snapshot { return s.view() }

// Close implements kv.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return kv.ErrClosed
	}
	s.mu.closed = true
	return nil
}

func (s *Store) view() *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &view{root: s.mu.root, closed: s.mu.closed}
}

// view reads one root.
type view struct {
	root   *node
	closed bool
}

// Get implements kv.Reader.
func (v *view) Get(key []byte) ([]byte, error) {
	if v.closed {
		return nil, kv.ErrClosed
	}
	if len(key) == 0 {
		return nil, kv.ErrEmptyKey
	}
	value, ok := v.root.get(key)
	if !ok {
		return nil, kv.ErrNotFound
	}
	return bytes.Clone(value), nil
}

// Iterate implements kv.Reader.
func (v *view) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	if v.closed {
		return kv.ErrClosed
	}
	err := v.root.walk(lower, upper, fn)
	if errors.Is(err, kv.Stop) {
		return nil
	}
	return err
}

// Close implements kv.Snapshot.
func (v *view) Close() error {
	if v.closed {
		return kv.ErrClosed
	}
	v.closed = true
	return nil
}
