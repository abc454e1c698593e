package kv

import "bytes"

// PrefixEnd is the least key greater than every key that begins with prefix, nil if
// there is none (prefix is empty or all 0xff).
func PrefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// IteratePrefix calls fn for each pair whose key begins with prefix, as Iterate does.
func IteratePrefix(r Reader, prefix []byte, fn func(key, value []byte) error) error {
	return r.Iterate(prefix, PrefixEnd(prefix), fn)
}

// WithPrefix is the part of store whose keys begin with prefix, as a store of its own:
// keys are given and seen without it. Its Close does nothing; close store instead.
// prefix must not be empty or all 0xff.
func WithPrefix(store Store, prefix []byte) Store {
	p := bytes.Clone(prefix)
	return &prefixStore{prefixReader: prefixReader{store, p}, store: store}
}

type prefixReader struct {
	reader Reader
	prefix []byte
}

func (p prefixReader) key(k []byte) []byte {
	out := make([]byte, 0, len(p.prefix)+len(k))
	return append(append(out, p.prefix...), k...)
}

func (p prefixReader) upper(k []byte) []byte {
	if k == nil {
		return PrefixEnd(p.prefix)
	}
	return p.key(k)
}

// Get implements Reader.
func (p prefixReader) Get(key []byte) ([]byte, error) {
	if len(key) == 0 {
		return nil, ErrEmptyKey
	}
	return p.reader.Get(p.key(key))
}

// Iterate implements Reader.
func (p prefixReader) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	n := len(p.prefix)
	return p.reader.Iterate(p.key(lower), p.upper(upper), func(k, v []byte) error {
		return fn(k[n:], v)
	})
}

type prefixStore struct {
	prefixReader
	store Store
}

// NewBatch implements Store.
func (s *prefixStore) NewBatch() Batch {
	return &prefixBatch{prefixReader{nil, s.prefix}, s.store.NewBatch()}
}

// NewIndexedBatch implements Store.
func (s *prefixStore) NewIndexedBatch() IndexedBatch {
	b := s.store.NewIndexedBatch()
	return &prefixBatch{prefixReader{b, s.prefix}, b}
}

// Snapshot implements Store.
func (s *prefixStore) Snapshot() Snapshot {
	snap := s.store.Snapshot()
	return &prefixSnapshot{prefixReader{snap, s.prefix}, snap}
}

// Close implements Store: it does nothing.
func (s *prefixStore) Close() error { return nil }

type prefixSnapshot struct {
	prefixReader
	snap Snapshot
}

// Close implements Snapshot.
func (s *prefixSnapshot) Close() error { return s.snap.Close() }

type prefixBatch struct {
	prefixReader
	batch Batch
}

// Set implements Batch.
func (b *prefixBatch) Set(key, value []byte) error {
	if len(key) == 0 {
		return ErrEmptyKey
	}
	return b.batch.Set(b.key(key), value)
}

// Delete implements Batch.
func (b *prefixBatch) Delete(key []byte) error {
	if len(key) == 0 {
		return ErrEmptyKey
	}
	return b.batch.Delete(b.key(key))
}

// DeleteRange implements Batch.
func (b *prefixBatch) DeleteRange(lower, upper []byte) error {
	return b.batch.DeleteRange(b.key(lower), b.key(upper))
}

// Commit implements Batch.
func (b *prefixBatch) Commit(sync bool) error { return b.batch.Commit(sync) }

// Close implements Batch.
func (b *prefixBatch) Close() error { return b.batch.Close() }
