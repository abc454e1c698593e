package memkv

import (
	"bytes"

	"github.com/skipprd/skipprd/catalog/kv"
)

// op is one write: a range removal if upper is set, a removal of key if value is nil.
type op struct {
	key, value, upper []byte
}

func (o op) apply(root *node) *node {
	switch {
	case o.upper != nil:
		return remove(root, o.key, o.upper)
	case o.value != nil:
		return set(root, o.key, o.value)
	default:
		return removeKey(root, o.key)
	}
}

// batch is a kv.IndexedBatch.
type batch struct {
	store *Store
	ops   []op
	ended bool
	// merged is base with the first mergedOps of ops, kept for the next read and the commit.
	base, merged *node
	mergedOps    int
}

var _ kv.IndexedBatch = (*batch)(nil)

// opsFirst is how many writes a batch has room for at first.
const opsFirst = 8

func (b *batch) add(o op) error {
	if b.ended {
		return kv.ErrClosed
	}
	if len(o.key) == 0 && o.upper == nil {
		return kv.ErrEmptyKey
	}
	if b.ops == nil {
		b.ops = make([]op, 0, opsFirst)
	}
	b.ops = append(b.ops, o)
	return nil
}

// Set implements kv.Batch.
func (b *batch) Set(key, value []byte) error {
	both := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
	return b.add(op{key: both[:len(key):len(key)], value: both[len(key):]})
}

// Delete implements kv.Batch.
func (b *batch) Delete(key []byte) error { return b.add(op{key: bytes.Clone(key)}) }

// DeleteRange implements kv.Batch.
func (b *batch) DeleteRange(lower, upper []byte) error {
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	return b.add(op{key: bytes.Clone(lower), upper: append([]byte{}, upper...)})
}

// Commit implements kv.Batch.
func (b *batch) Commit(sync bool) error {
	if b.ended {
		return kv.ErrClosed
	}
	b.ended = true
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return kv.ErrClosed
	}
	s.mu.root = b.merge(s.mu.root)
	if sync {
		s.mu.synced = s.mu.root
	}
	return nil
}

// Close implements kv.Batch.
func (b *batch) Close() error {
	b.ended, b.ops = true, nil
	return nil
}

func (b *batch) view() *view {
	v := b.store.view()
	v.closed = v.closed || b.ended
	v.root = b.merge(v.root)
	return v
}

// merge is base with all of ops.
func (b *batch) merge(base *node) *node {
	if base != b.base || b.mergedOps > len(b.ops) {
		b.base, b.merged, b.mergedOps = base, base, 0
	}
	for ; b.mergedOps < len(b.ops); b.mergedOps++ {
		b.merged = b.ops[b.mergedOps].apply(b.merged)
	}
	return b.merged
}

// Get implements kv.Reader.
func (b *batch) Get(key []byte) ([]byte, error) { return b.view().Get(key) }

// Iterate implements kv.Reader.
func (b *batch) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	return b.view().Iterate(lower, upper, fn)
}
