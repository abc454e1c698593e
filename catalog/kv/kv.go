// Package kv is the contract of an ordered key-value store, under the catalog and
// the lake's own catalog.
//
// Reading order: Reader, Batch, Store. Implementations are pebblekv (disk) and memkv
// (memory, for simulation and tests); kvtest is the suite that both pass. Keys are
// ordered as bytes. An empty key is invalid.
package kv

// Reader reads one consistent state.
type Reader interface {
	// Get returns the value of key in a slice that the caller owns, or ErrNotFound.
	Get(key []byte) ([]byte, error)
	// Iterate calls fn for each pair with lower ≤ key < upper, in key order. A nil
	// lower or upper is unbounded. key and value are valid only during the call. An
	// error from fn ends the iteration and is returned, except Stop, which ends it
	// with nil. fn must not write to what is iterated.
	Iterate(lower, upper []byte, fn func(key, value []byte) error) error
}

// Batch collects writes that Commit applies atomically. Not safe for concurrent use.
type Batch interface {
	// Set, Delete and DeleteRange (lower ≤ key < upper, both given) add a write that
	// takes effect after those added before. They do not keep their arguments.
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lower, upper []byte) error
	// Commit applies all writes at once, after every batch committed before, and ends
	// the batch. With sync they are durable when it returns, and so is every batch
	// committed before; without, a crash may take them away, whole, newest first.
	Commit(sync bool) error
	// Close drops an uncommitted batch; after Commit it does nothing.
	Close() error
}

// IndexedBatch is a Batch that reads its own writes over the store's newest state.
type IndexedBatch interface {
	Batch
	Reader
}

// Snapshot is a Reader of the moment it was taken. Safe for concurrent use, also
// with writes to its store; Close it before the store.
type Snapshot interface {
	Reader
	Close() error
}

// Store is an ordered key-value store. Its own reads see the newest commit. Safe for
// concurrent use.
type Store interface {
	Reader
	NewBatch() Batch
	NewIndexedBatch() IndexedBatch
	Snapshot() Snapshot
	// Close releases the store. Batches and snapshots must be closed before.
	Close() error
}
