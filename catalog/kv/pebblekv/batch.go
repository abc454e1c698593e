package pebblekv

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/skipprd/skipprd/catalog/kv"
)

// batch is a kv.IndexedBatch; b is nil once it has ended.
type batch struct{ b *pebble.Batch }

var _ kv.IndexedBatch = (*batch)(nil)

// Get implements kv.Reader.
func (b *batch) Get(key []byte) ([]byte, error) {
	if b.b == nil {
		return nil, kv.ErrClosed
	}
	return get(b.b, key)
}

// Iterate implements kv.Reader.
func (b *batch) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	if b.b == nil {
		return kv.ErrClosed
	}
	return iterate(b.b, lower, upper, fn)
}

// Set implements kv.Batch.
func (b *batch) Set(key, value []byte) error {
	if b.b == nil {
		return kv.ErrClosed
	}
	if len(key) == 0 {
		return kv.ErrEmptyKey
	}
	return b.b.Set(key, value, nil)
}

// Delete implements kv.Batch.
func (b *batch) Delete(key []byte) error {
	if b.b == nil {
		return kv.ErrClosed
	}
	if len(key) == 0 {
		return kv.ErrEmptyKey
	}
	return b.b.Delete(key, nil)
}

// DeleteRange implements kv.Batch.
func (b *batch) DeleteRange(lower, upper []byte) error {
	if b.b == nil {
		return kv.ErrClosed
	}
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	return b.b.DeleteRange(lower, upper, nil)
}

// Commit implements kv.Batch.
func (b *batch) Commit(sync bool) error {
	if b.b == nil {
		return kv.ErrClosed
	}
	how := pebble.NoSync
	if sync {
		how = pebble.Sync
	}
	// An empty batch writes nothing, so it would not make earlier ones durable.
	if sync && b.b.Empty() {
		if err := b.b.LogData(nil, nil); err != nil {
			return fmt.Errorf("commit batch: %w", err)
		}
	}
	err := b.b.Commit(how)
	if cerr := b.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	return nil
}

// Close implements kv.Batch.
func (b *batch) Close() error {
	if b.b == nil {
		return nil
	}
	err := b.b.Close()
	b.b = nil
	return err
}
