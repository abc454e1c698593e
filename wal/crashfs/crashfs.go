// Package crashfs is a file system in memory that loses what was not synced.
//
// It implements wal.FS. Until a crash it behaves like a disk behind a page cache. A
// crash gives each 512-byte sector that was written and not synced its old or its
// new content, each unsynced length likewise, and keeps a part of the renames and
// removals whose directory was not synced. A sync that is made to fail drops what it
// should have written, as Linux does: reads still see it, the disk never will.
//
// Reads may be damaged on their way (ReadFault) and the medium may rot (Rot): both are
// counted. Files are copied when they are written, so a crash or an image costs what is
// not synced.
//
// For tests. Reading order: FS, Op, Crash, Kill, Durable.
package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/skipprd/skipprd/wal"
)

// ErrCrashed is every operation's error after Crash.
var ErrCrashed = errors.New("machine is down")

// OpKind is what an operation does.
type OpKind uint8

// The operations that can be made to fail.
const (
	OpOpen OpKind = iota
	OpCreate
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpAllocate
	OpRename
	OpRemove
	OpSyncDir
)

// Op is an operation about to happen.
type Op struct {
	Kind OpKind
	Name string
	// Count numbers the operations of the file system from 1.
	Count int
	// At and Bytes are the place of a read or write in the file.
	At, Bytes int64
}

const sectorBytes = 512

// FS is the file system. Safe for concurrent use.
type FS struct {
	mu struct {
		sync.Mutex
		names   map[string]*inode // as seen
		durable map[string]*inode // as on disk
		pending []dirOp
		locks   map[string]bool
		down    bool
		count   int
		damaged int   // reads and files
		space   int64 // left; negative: no limit
		// version grows with each change of what is durable; listing is that of the latest
		// change of durable names.
		version, listing uint64
		// lose makes the next Sync fail.
		lose bool
	}
	// Fail is asked before each operation; an error makes it fail. Set before use.
	Fail func(Op) error
	// Damage is asked before each read of a file that does not fail. Set before use.
	Damage func(Op) ReadFault
	// HaltAt halts the machine at the operation of that number; zero does not.
	HaltAt int
	// SkipSync makes every Sync of a file a lie, SkipSyncDir every one of a directory:
	// negative controls of the tests that use this package.
	SkipSync, SkipSyncDir bool
}

// dirOp is a change of names that is not durable: to names ino, from is free.
type dirOp struct {
	dir      string
	from, to string
	ino      *inode
}

var _ wal.FS = (*FS)(nil)

// New makes an empty file system.
func New() *FS {
	f := &FS{}
	f.mu.names, f.mu.durable = map[string]*inode{}, map[string]*inode{}
	f.mu.locks = map[string]bool{}
	f.mu.space = -1
	return f
}

// SetSpace limits how many more bytes files may take; negative does not.
func (f *FS) SetSpace(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.space = n
}

// LoseSync makes the next Sync of a file fail and drop what it should have written.
func (f *FS) LoseSync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.lose = true
}

// Ops is how many operations there were.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.count
}

// Halt makes every later operation fail, as at the moment of a crash.
func (f *FS) Halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.down = true
}

// Crash halts the file system and returns what a restart finds. keep is the chance,
// 0 to 1, that something not synced is on the disk all the same.
func (f *FS) Crash(r *rand.Rand, keep float64) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.down = true
	// Journals keep an order; POSIX does not ask for one.
	ordered := r.IntN(2) == 0
	for _, op := range f.mu.pending {
		if r.Float64() >= keep {
			if ordered {
				break
			}
			continue
		}
		op.apply(f.mu.durable)
	}
	out := New()
	out.SkipSync, out.SkipSyncDir = f.SkipSync, f.SkipSyncDir
	out.mu.version = f.mu.version + 1
	out.mu.listing = out.mu.version
	survivors := map[*inode]*inode{}
	for _, name := range sortedNames(f.mu.durable) {
		ino := f.mu.durable[name]
		if survivors[ino] == nil {
			survivors[ino] = ino.crash(r, keep)
			out.mu.version++
			survivors[ino].stamp = out.mu.version
		}
		out.mu.names[name] = survivors[ino]
		out.mu.durable[name] = survivors[ino]
	}
	return out
}

// Kill halts the file system for its process alone and returns what the next one
// finds: everything that was written, durable or not.
func (f *FS) Kill() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.down = true
	out := New()
	out.SkipSync, out.SkipSyncDir = f.SkipSync, f.SkipSyncDir
	out.mu.version = f.mu.version + 1
	out.mu.listing = out.mu.version
	out.mu.names, out.mu.durable, out.mu.pending = f.mu.names, f.mu.durable, f.mu.pending
	out.mu.space = f.mu.space
	return out
}

func sortedNames(m map[string]*inode) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (op dirOp) apply(names map[string]*inode) {
	if op.from != "" && (op.to == "" || names[op.from] == op.ino) {
		delete(names, op.from)
	}
	if op.to != "" {
		names[op.to] = op.ino
	}
}

// startLocked counts the operation and says whether it may happen.
func (f *FS) startLocked(kind OpKind, name string) error {
	return f.startAtLocked(Op{Kind: kind, Name: name})
}

func (f *FS) startAtLocked(op Op) error {
	name := op.Name
	if f.mu.down {
		return fmt.Errorf("%s: %w", name, ErrCrashed)
	}
	f.mu.count++
	if f.HaltAt > 0 && f.mu.count >= f.HaltAt {
		f.mu.down = true
		return fmt.Errorf("%s: %w", name, ErrCrashed)
	}
	if f.Fail != nil {
		op.Count = f.mu.count
		if err := f.Fail(op); err != nil {
			return &fs.PathError{Op: "op", Path: name, Err: err}
		}
	}
	return nil
}

// MkdirAll does nothing: directories need not exist.
func (f *FS) MkdirAll(string) error { return nil }

// Lock takes name until the result is closed.
func (f *FS) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.locks[name] {
		return nil, fmt.Errorf("lock %s: %w", name, wal.ErrLocked)
	}
	f.mu.locks[name] = true
	return lock{f, name}, nil
}

type lock struct {
	f    *FS
	name string
}

func (l lock) Close() error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	delete(l.f.mu.locks, l.name)
	return nil
}

// List returns the files in dir.
func (f *FS) List(dir string) ([]wal.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.startLocked(OpRead, dir); err != nil {
		return nil, err
	}
	var out []wal.FileInfo
	for _, name := range sortedNames(f.mu.names) {
		if filepath.Dir(name) == filepath.Clean(dir) {
			out = append(out, wal.FileInfo{
				Name: filepath.Base(name), Size: int64(len(f.mu.names[name].data)),
			})
		}
	}
	return out, nil
}

// Open opens or creates a file.
func (f *FS) Open(name string, mode wal.OpenMode) (wal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	kind := OpOpen
	if mode == wal.Create {
		kind = OpCreate
	}
	if err := f.startLocked(kind, name); err != nil {
		return nil, err
	}
	ino := f.mu.names[name]
	switch {
	case mode == wal.Create && ino != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case mode == wal.Create:
		ino = &inode{}
		f.mu.names[name] = ino
		f.mu.pending = append(f.mu.pending, dirOp{dir: filepath.Dir(name), to: name, ino: ino})
	case ino == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if mode == wal.ReadFresh {
		ino.evict()
	}
	return &file{fs: f, name: name, ino: ino}, nil
}

// Rename moves a file.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, to = filepath.Clean(from), filepath.Clean(to)
	if err := f.startLocked(OpRename, from); err != nil {
		return err
	}
	ino := f.mu.names[from]
	if ino == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	op := dirOp{dir: filepath.Dir(to), from: from, to: to, ino: ino}
	op.apply(f.mu.names)
	f.mu.pending = append(f.mu.pending, op)
	return nil
}

// Remove deletes a file.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = filepath.Clean(name)
	if err := f.startLocked(OpRemove, name); err != nil {
		return err
	}
	ino := f.mu.names[name]
	if ino == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if f.mu.space >= 0 {
		f.mu.space += int64(len(ino.data))
	}
	op := dirOp{dir: filepath.Dir(name), from: name}
	op.apply(f.mu.names)
	f.mu.pending = append(f.mu.pending, op)
	return nil
}

// SyncDir makes the names in dir durable.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir = filepath.Clean(dir)
	if err := f.startLocked(OpSyncDir, dir); err != nil {
		return err
	}
	if f.SkipSyncDir {
		return nil
	}
	rest := f.mu.pending[:0]
	for _, op := range f.mu.pending {
		if op.dir == dir {
			op.apply(f.mu.durable)
		} else {
			rest = append(rest, op)
		}
	}
	f.mu.version++
	if len(rest) < len(f.mu.pending) {
		f.mu.listing = f.mu.version
	}
	f.mu.pending = rest
	return nil
}

var errNoSpace = syscall.ENOSPC
