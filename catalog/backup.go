package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/mutant"
)

// BackupStore keeps one image of the catalog outside of its key-value store, so that a
// lost store is rebuilt. Its methods are called one at a time.
type BackupStore interface {
	// Read returns the image that was written last, nil when there is none.
	Read() ([]byte, error)
	// Write replaces the image: durable when it returns, and whole or not at all after a
	// crash. It runs under the commit mutex, so it must not wait for another commit, and
	// in a simulation not park. It does not keep its argument.
	Write(image []byte) error
}

// backups orders the writes of images. Locked after the commit mutex, and held across
// the write: an older image never replaces a newer one.
type backups struct {
	sync.Mutex
	written uint64 // the number of the newest image written
	// open says that a write has failed since, whose image may be there, now or later.
	open  atomic.Bool
	bytes atomic.Int64
	// spare is the memory of an image that has been written, nil: none.
	spare atomic.Pointer[[]byte]
}

// spareMost is the size of an image whose memory is kept for the next.
const spareMost = 256 << 10

// image encodes an image; recycle gives its memory back.
func (b *backups) image(r kv.Reader) ([]byte, error) {
	var into []byte
	if spare := b.spare.Swap(nil); spare != nil {
		into = *spare
	}
	return encodeImage(into, r, b.bytes.Load())
}

func (b *backups) recycle(image []byte) {
	if cap(image) <= spareMost {
		b.spare.Store(&image)
	}
}

// save writes an image, unless a newer one has been written.
func (b *backups) save(store BackupStore, number uint64, image []byte) error {
	b.Lock()
	defer b.Unlock()
	if number < b.written {
		return nil
	}
	if err := store.Write(image); err != nil {
		b.open.Store(true)
		return fmt.Errorf("back up catalog: %w", err)
	}
	b.open.Store(false)
	b.written = number
	b.bytes.Store(int64(len(image)))
	return nil
}

// Backup writes an image of the catalog as it is now. Nothing may be removed that only
// the log or the lake still knows before it returned: segments whose slices are
// compacted, lake snapshots that name compactions. Definitions need no call: Update
// backs them up before it commits. Without Deps.Backup it does nothing.
func (c *Catalog) Backup(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if c.deps.Backup == nil {
		return nil
	}
	c.mu.Lock()
	if c.mu.err != nil {
		c.mu.Unlock()
		return c.mu.err
	}
	c.mu.images++
	number, snap := c.mu.images, c.store.Snapshot()
	c.mu.Unlock()
	image, err := c.backups.image(snap)
	if err := errors.Join(err, snap.Close()); err != nil {
		return fmt.Errorf("back up catalog: %w", err)
	}
	defer c.backups.recycle(image)
	return c.backups.save(c.deps.Backup, number, image)
}

// SettleBackup returns once the newest backup is known to have nothing that is undone here: a
// definition whose backup failed is undone, and its image may still have come about, or come
// later. Then an image of the catalog as it is now takes its place. Who makes something durable
// that such a definition would not have allowed calls it before; where no backup has failed it
// costs nothing. The error is that of Backup.
func (c *Catalog) SettleBackup(ctx context.Context) error {
	for c.backups.open.Load() && !mutant.On(mutant.BackupLeftOpen) {
		if err := c.Backup(ctx); err != nil {
			return err
		}
	}
	return nil
}

// backUpLocked writes an image with what txn is about to commit, if that defines
// anything; mu is locked. Before the commit, so that no group of what is new gets into
// the log while the image does not know it, and an error undoes the transaction. After a
// crash in between the image is ahead by a statement whose outcome nobody was told, and
// after an error it may be so until the next image (SettleBackup).
func (c *Catalog) backUpLocked(txn *Txn) error {
	if c.deps.Backup == nil || !txn.defines {
		return nil
	}
	image, err := c.backups.image(txn.kv)
	if err != nil {
		return fmt.Errorf("back up catalog: %w", err)
	}
	defer c.backups.recycle(image)
	c.mu.images++
	return c.backups.save(c.deps.Backup, c.mu.images, image)
}

// isDefinition says whether rows of a prefix are what only the catalog knows: the others
// follow from the log and the lake.
func isDefinition(key []byte) bool {
	if mutant.On(mutant.ValuesNotBackedUp) && key[0] == prefixSequence {
		return false
	}
	switch key[0] {
	case prefixPipeline, prefixTable, prefixPlan, prefixProgress, prefixConnection, prefixSecret, prefixRole,
		prefixRight, prefixSetting, prefixSchema, prefixView, prefixSequence, prefixType, prefixLeftLake, prefixLeftLog, prefixOffset, prefixRebuild:
		return true
	}
	return false
}

// imagePrefixes are the rows of an image. Left out are history (events, acked
// compactions, compacted slices) and plans, which are made anew. They are in the order of keys.
var imagePrefixes = []byte{
	prefixFormat, prefixCounter, prefixKeyCheck, prefixRebuild, prefixPipeline, prefixTable, prefixPlan, prefixProgress,
	prefixConnection, prefixSecret, prefixRole, prefixSetting, prefixSchema, prefixLake, prefixLeftLake, prefixLeftLog,
	prefixRight, prefixOffset, prefixSegment, prefixLive, prefixPending, prefixPendingTxn, prefixDeadLetter, prefixView,
	prefixSequence, prefixType,
}

// fileBackup keeps the image in a file.
type fileBackup struct {
	fs   wal.FS
	name string
}

// FileBackup keeps the image in a file of a directory, which is made when it does not
// exist.
func FileBackup(fsys wal.FS, dir string) BackupStore {
	return &fileBackup{fs: fsys, name: filepath.Join(dir, "catalog.backup")}
}

// Read implements BackupStore.
func (f *fileBackup) Read() ([]byte, error) {
	file, err := f.fs.Open(f.name, wal.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.name, err)
	}
	image, err := readImageFile(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.name, err)
	}
	return image, nil
}

func readImageFile(file wal.File) ([]byte, error) {
	n, err := file.Size()
	if err != nil {
		return nil, err
	}
	if n > imageBytesMax {
		return nil, fmt.Errorf("%d bytes exceed %d: %w", n, imageBytesMax, ErrCorrupt)
	}
	image := make([]byte, n)
	if _, err := file.ReadAt(image, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return image, nil
}

// Write implements BackupStore: a new file takes the old one's name.
func (f *fileBackup) Write(image []byte) error {
	if err := f.fs.MkdirAll(filepath.Dir(f.name)); err != nil {
		return err
	}
	return wal.ReplaceFile(f.fs, f.name, image)
}

// scanImage visits the rows of an image in key order.
func scanImage(r kv.Reader, fn func(key, value []byte) error) error {
	for _, prefix := range imagePrefixes {
		if err := kv.IteratePrefix(r, []byte{prefix}, fn); err != nil {
			return err
		}
	}
	return nil
}
