package wal

import "io"

// FS is what the log asks of a file system. Implementations are safe for
// concurrent use. Errors of missing files satisfy errors.Is(err, fs.ErrNotExist),
// of missing space errors.Is(err, syscall.ENOSPC).
type FS interface {
	// MkdirAll makes a directory with its parents, durably.
	MkdirAll(dir string) error
	// Lock takes name for this process until the result is closed. It wraps
	// ErrLocked when another one has it.
	Lock(name string) (io.Closer, error)
	// List returns the files of a directory in any order.
	List(dir string) ([]FileInfo, error)
	// Open opens a file.
	Open(name string, mode OpenMode) (File, error)
	// Rename moves a file, replacing what has the new name. It is atomic, and durable
	// after SyncDir.
	Rename(from, to string) error
	// Remove deletes a file, durably after SyncDir.
	Remove(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
}

// SpaceFS is an FS that knows how much space there is.
type SpaceFS interface {
	FS
	// FreeBytes is what may still be written in a directory's file system.
	FreeBytes(dir string) (int64, error)
}

// File is an open file. Reads may run beside anything, the rest one at a time.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes what was written durable, and the length with it. After an error
	// nothing is known about what was written since the last success.
	Sync() error
	Truncate(n int64) error
	// Allocate reserves space for n bytes and makes the file that long.
	Allocate(n int64) error
	// Size is the length of the file.
	Size() (int64, error)
}

// FileInfo is an entry of a directory.
type FileInfo struct {
	Name string
	Size int64
}

// OpenMode says what a file is opened for.
type OpenMode uint8

const (
	// ReadOnly opens an existing file.
	ReadOnly OpenMode = iota
	// ReadFresh opens an existing file and reads past the system's cache where that
	// can be asked for.
	ReadFresh
	// ReadWrite opens an existing file.
	ReadWrite
	// Create makes a new file; it must not exist.
	Create
)
