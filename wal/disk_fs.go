package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DiskFS is the machine's file system.
func DiskFS() FS { return diskFS{} }

type diskFS struct{}

var _ SpaceFS = diskFS{}

func (d diskFS) MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := d.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return d.SyncDir(parent)
}

func (diskFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // the lock's error says more
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

func (diskFS) List(dir string) ([]FileInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]FileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // renamed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			out = append(out, FileInfo{Name: e.Name(), Size: info.Size()})
		}
	}
	return out, nil
}

func (diskFS) Open(name string, mode OpenMode) (File, error) {
	flags := map[OpenMode]int{
		ReadOnly: os.O_RDONLY, ReadFresh: os.O_RDONLY, ReadWrite: os.O_RDWR,
		Create: os.O_RDWR | os.O_CREATE | os.O_EXCL,
	}[mode]
	f, err := os.OpenFile(name, flags, 0o640)
	if err != nil {
		return nil, err
	}
	if mode == ReadFresh {
		// Advice: without it the read is still right, only less of a test.
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	return diskFile{f}, nil
}

func (diskFS) Rename(from, to string) error { return os.Rename(from, to) }

func (diskFS) Remove(name string) error { return os.Remove(name) }

func (diskFS) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (diskFS) FreeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

type diskFile struct{ *os.File }

func (f diskFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func (f diskFile) Allocate(n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(n)
	}
	return os.NewSyscallError("fallocate", err)
}

func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
