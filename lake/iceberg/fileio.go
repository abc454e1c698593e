package iceberg

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
)

// fileIO is iceberg-go's IO over the local file system, made durable: a file is
// synced by Close, and the directories that got new entries by syncDirs. Removing
// what is not there is no error. Safe for concurrent use.
type fileIO struct {
	mu struct {
		sync.Mutex
		dirty map[string]struct{}
	}
}

var (
	_ iceio.WriteFileIO = (*fileIO)(nil)
	_ iceio.ReadFileIO  = (*fileIO)(nil)
)

func newFileIO() *fileIO {
	f := &fileIO{}
	f.mu.dirty = map[string]struct{}{}
	return f
}

// plainPath strips the scheme that other engines' writers may have put there.
func plainPath(name string) string { return strings.TrimPrefix(name, "file://") }

// Open implements io.IO.
func (*fileIO) Open(name string) (iceio.File, error) { return os.Open(plainPath(name)) }

// ReadFile implements io.ReadFileIO.
func (*fileIO) ReadFile(name string) ([]byte, error) { return os.ReadFile(plainPath(name)) }

// Remove implements io.IO.
func (*fileIO) Remove(name string) error {
	if err := os.Remove(plainPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Create implements io.WriteFileIO. The file must not exist.
func (f *fileIO) Create(name string) (iceio.FileWriter, error) { return f.create(name) }

func (f *fileIO) create(name string) (*syncedFile, error) {
	path := plainPath(name)
	if err := f.mkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	f.markDirty(filepath.Dir(path))
	return &syncedFile{File: file}, nil
}

// WriteFile implements io.WriteFileIO.
func (f *fileIO) WriteFile(name string, p []byte) error {
	w, err := f.create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(p); err != nil {
		_ = w.Close() // the write error says more
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.Close()
}

// mkdirAll makes path and remembers every directory that got an entry.
func (f *fileIO) mkdirAll(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := f.mkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f.markDirty(parent)
	return nil
}

func (f *fileIO) markDirty(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.dirty[dir] = struct{}{}
}

// syncDirs makes every directory entry made so far durable. Called before a pointer
// that makes the files reachable is stored.
func (f *fileIO) syncDirs() error {
	f.mu.Lock()
	dirs := make([]string, 0, len(f.mu.dirty))
	for d := range f.mu.dirty {
		dirs = append(dirs, d)
	}
	clear(f.mu.dirty)
	f.mu.Unlock()
	for i, d := range dirs {
		if err := syncDir(d); err != nil {
			for _, left := range dirs[i:] {
				f.markDirty(left)
			}
			return fmt.Errorf("sync directory %s: %w", d, err)
		}
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since: nothing to keep
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncedFile is synced by Close, and counts what it was given.
type syncedFile struct {
	*os.File
	n      int64
	closed bool
}

// Write implements io.Writer.
func (s *syncedFile) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	s.n += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom.
func (s *syncedFile) ReadFrom(r io.Reader) (int64, error) {
	n, err := s.File.ReadFrom(r)
	s.n += n
	return n, err
}

// Close syncs and closes. Calling it again does nothing: pqarrow closes its sink too.
func (s *syncedFile) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.Sync(), s.File.Close())
}
