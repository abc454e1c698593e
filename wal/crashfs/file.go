package crashfs

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/skipprd/skipprd/wal"
)

// file is an open file.
type file struct {
	fs     *FS
	name   string
	ino    *inode
	closed bool
}

var _ wal.File = (*file)(nil)

func (f *file) startLocked(kind OpKind) error {
	if f.closed {
		return &fs.PathError{Op: "use", Path: f.name, Err: fs.ErrClosed}
	}
	return f.fs.startLocked(kind, f.name)
}

func (f *file) startAtLocked(kind OpKind, at int64, n int) error {
	if f.closed {
		return &fs.PathError{Op: "use", Path: f.name, Err: fs.ErrClosed}
	}
	return f.fs.startAtLocked(Op{Kind: kind, Name: f.name, At: at, Bytes: int64(n)})
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.startAtLocked(OpRead, at, len(b)); err != nil {
		return 0, err
	}
	from, flip := f.ino.data, int64(-1)
	if f.fs.Damage != nil {
		from, flip = f.damageLocked(Op{
			Kind: OpRead, Name: f.name, Count: f.fs.mu.count, At: at, Bytes: int64(len(b)),
		})
	}
	if at >= int64(len(from)) {
		return 0, io.EOF
	}
	n := copy(b, from[at:])
	if flip >= 0 && n > 0 {
		f.fs.mu.damaged++
		bit := flip % int64(8*n)
		b[bit/8] ^= 1 << (bit % 8)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt that is made to fail writes the first half.
func (f *file) WriteAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.mu.down {
		return 0, ErrCrashed
	}
	if err := f.startAtLocked(OpWrite, at, len(b)); err != nil {
		n := len(b) / 2
		_ = f.writeLocked(b[:n], at) // the error to report is the first
		return n, err
	}
	if err := f.writeLocked(b, at); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *file) writeLocked(b []byte, at int64) error {
	if err := f.growLocked(at + int64(len(b))); err != nil {
		return err
	}
	if len(b) > 0 {
		f.ino.write(b, int(at))
	}
	return nil
}

func (f *file) growLocked(n int64) error {
	more := n - int64(len(f.ino.data))
	if more <= 0 {
		return nil
	}
	if space := f.fs.mu.space; space >= 0 {
		if more > space {
			return &fs.PathError{Op: "write", Path: f.name, Err: errNoSpace}
		}
		f.fs.mu.space -= more
	}
	f.ino.grow(int(n))
	return nil
}

func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.mu.down {
		return ErrCrashed
	}
	err := f.startLocked(OpSync)
	if f.fs.mu.lose && err == nil {
		f.fs.mu.lose = false
		err = &fs.PathError{Op: "sync", Path: f.name, Err: syscall.EIO}
	}
	if err != nil {
		if !f.fs.mu.down {
			f.ino.lose()
		}
		return err
	}
	if !f.fs.SkipSync {
		f.ino.sync()
		f.fs.mu.version++
		f.ino.stamp = f.fs.mu.version
	}
	return nil
}

func (f *file) Truncate(n int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.startLocked(OpTruncate); err != nil {
		return err
	}
	if n < int64(len(f.ino.data)) {
		if f.fs.mu.space >= 0 {
			f.fs.mu.space += int64(len(f.ino.data)) - n
		}
		f.ino.data = f.ino.data[:n:n] // what follows is another's to write
		return nil
	}
	return f.growLocked(n)
}

func (f *file) Allocate(n int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.startLocked(OpAllocate); err != nil {
		return err
	}
	return f.growLocked(n)
}

func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.mu.down {
		return 0, ErrCrashed
	}
	return int64(len(f.ino.data)), nil
}

func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.closed = true
	return nil
}
