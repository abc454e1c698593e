package objbackup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
)

// KV is a small kv.Store that is one object: a commit replaces the object, if nobody else
// has. Opening it takes it over: whoever had it open commits no more, and what it had
// committed is there. For the lake's pointers, which machines that take over from each
// other share. Safe for concurrent use.
type KV struct {
	object *Store
	lost   func(error)

	mu struct {
		sync.Mutex
		mem *memkv.Store
		// unsettled: it is not known whether the object is mem.
		unsettled bool
		err       error // why nothing can be read or written any more
	}
}

var _ kv.Store = (*KV)(nil)

// OpenKV takes the object with the key over, made when there is none. It wraps
// ErrSuperseded and wal.ErrFenced when another machine wrote meanwhile: then open again.
// lost is told once when another has taken it over later; it must not call the KV.
func OpenKV(objects objstore.Store, key string, ids env.IDs, lost func(error)) (*KV, error) {
	k := &KV{object: New(objects, key, ids), lost: lost}
	k.mu.mem = memkv.New()
	image, err := k.object.Read()
	if err == nil && image != nil {
		err = decodeRows(image, k.mu.mem)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.writeLocked(k.mu.mem); err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	return k, nil
}

// writeLocked makes the object what r has. After an error it is not known which of the
// two it is until the next one succeeded; when another machine has taken over, never.
func (k *KV) writeLocked(r kv.Reader) error {
	if k.mu.err != nil {
		return k.mu.err
	}
	image, err := encodeRows(r)
	if err != nil {
		return err
	}
	err = k.object.Write(image)
	k.mu.unsettled = err != nil
	if errors.Is(err, ErrSuperseded) {
		k.mu.err = err
		k.lost(err)
	}
	return err
}

// settled returns what the object has. It writes that again when the outcome of a commit
// is not known: a reader must not take a commit for undone that may yet be found.
func (k *KV) settled() (*memkv.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.err != nil {
		return nil, k.mu.err
	}
	if k.mu.unsettled {
		if err := k.writeLocked(k.mu.mem); err != nil {
			return nil, err
		}
	}
	return k.mu.mem, nil
}

// Get implements kv.Reader.
func (k *KV) Get(key []byte) ([]byte, error) {
	mem, err := k.settled()
	if err != nil {
		return nil, err
	}
	return mem.Get(key)
}

// Iterate implements kv.Reader.
func (k *KV) Iterate(lower, upper []byte, fn func(key, value []byte) error) error {
	mem, err := k.settled()
	if err != nil {
		return err
	}
	return mem.Iterate(lower, upper, fn)
}

// NewBatch implements kv.Store.
func (k *KV) NewBatch() kv.Batch { return k.NewIndexedBatch() }

// NewIndexedBatch implements kv.Store.
func (k *KV) NewIndexedBatch() kv.IndexedBatch {
	return &kvBatch{IndexedBatch: k.mu.mem.NewIndexedBatch(), of: k}
}

// Snapshot implements kv.Store.
func (k *KV) Snapshot() kv.Snapshot { return k.mu.mem.Snapshot() }

// Close implements kv.Store. The object stays.
func (k *KV) Close() error { return k.mu.mem.Close() }

// kvBatch is a batch of a KV.
type kvBatch struct {
	kv.IndexedBatch
	of *KV
}

// Commit implements kv.Batch. Whether or not sync: the object is replaced when it
// returns. After an error reads of the KV fail until it is known not to have happened.
func (b *kvBatch) Commit(bool) error {
	k := b.of
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.writeLocked(b.IndexedBatch); err != nil {
		return err
	}
	return b.IndexedBatch.Commit(true)
}

// The image of a KV, little-endian:
//
//	0  magic 4 "SKKV"
//	4  version 1
//	5  reserved 3
//	8  rows: key length uvarint, key, value length uvarint, value; keys ascending
//	   CRC32C of all before 4
const (
	kvVersion       = 1
	kvAtVersion     = 4
	kvAtReserved    = 5
	kvAtRows        = 8
	kvCRCBytes      = 4
	kvImageBytesMax = 64 << 20
	kvFieldBytesMax = 64 << 10
)

var kvMagic = [4]byte{'S', 'K', 'K', 'V'}

var errKVTooLarge = errors.New("too much for one object")

func encodeRows(r kv.Reader) ([]byte, error) {
	b := make([]byte, kvAtRows, 4<<10)
	copy(b, kvMagic[:])
	b[kvAtVersion] = kvVersion
	err := r.Iterate(nil, nil, func(key, value []byte) error {
		if len(key) > kvFieldBytesMax || len(value) > kvFieldBytesMax || len(b)+len(key)+len(value) > kvImageBytesMax-64 {
			return errKVTooLarge
		}
		b = kv.AppendRow(b, key, value)
		return nil
	})
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), err
}

// decodeRows puts the rows of an image into a store, or wraps catalog.ErrCorrupt or
// catalog.ErrFormat.
func decodeRows(image []byte, into *memkv.Store) error {
	n := len(image) - kvCRCBytes
	switch {
	case n < kvAtRows || n > kvImageBytesMax || [4]byte(image) != kvMagic:
		return fmt.Errorf("image of %d bytes: %w", len(image), catalog.ErrCorrupt)
	case binary.LittleEndian.Uint32(image[n:]) != crc32.Checksum(image[:n], castagnoli):
		return fmt.Errorf("image checksum: %w", catalog.ErrCorrupt)
	case image[kvAtVersion] != kvVersion:
		return fmt.Errorf("image version %d: %w", image[kvAtVersion], catalog.ErrFormat)
	case [kvAtRows - kvAtReserved]byte(image[kvAtReserved:]) != [kvAtRows - kvAtReserved]byte{}:
		return fmt.Errorf("image header: %w", catalog.ErrCorrupt)
	}
	batch := into.NewBatch()
	defer func() { _ = batch.Close() }() // committed, or nothing of it is of use
	for rest := image[kvAtRows:n]; len(rest) > 0; {
		var key, value []byte
		var ok bool
		if key, rest, ok = kv.TakeField(rest, kvFieldBytesMax); ok {
			value, rest, ok = kv.TakeField(rest, kvFieldBytesMax)
		}
		if !ok || len(key) == 0 {
			return fmt.Errorf("image row: %w", catalog.ErrCorrupt)
		}
		if err := batch.Set(key, value); err != nil {
			return err
		}
	}
	return batch.Commit(true)
}
