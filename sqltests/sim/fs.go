package sim

import (
	"io"

	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/wal"
)

// disk is a process's view of its machine's file system.
type disk struct {
	p  *process
	fs wal.FS
}

var _ wal.FS = disk{}

// MkdirAll implements wal.FS.
func (d disk) MkdirAll(dir string) error { return d.fs.MkdirAll(dir) }

// Lock implements wal.FS.
func (d disk) Lock(name string) (io.Closer, error) {
	if d.p.dead {
		return nil, errDead
	}
	return d.fs.Lock(name)
}

// List implements wal.FS.
func (d disk) List(dir string) (out []wal.FileInfo, err error) {
	err = d.p.exchange(atOpen, dir, func() error {
		out, err = d.fs.List(dir)
		return err
	})
	return out, err
}

// Open implements wal.FS.
func (d disk) Open(name string, mode wal.OpenMode) (wal.File, error) {
	var f wal.File
	err := d.p.exchange(atOpen, name, func() (err error) {
		f, err = d.fs.Open(name, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &file{d.p, name, f}, nil
}

// Rename implements wal.FS.
func (d disk) Rename(from, to string) error {
	return d.names(from, func() error {
		d.removed(from)
		return d.fs.Rename(from, to)
	})
}

// Remove implements wal.FS.
func (d disk) Remove(name string) error {
	return d.names(name, func() error {
		d.removed(name)
		return d.fs.Remove(name)
	})
}

// removed tells of a name that is about to vanish. A mirror's are no loss.
func (d disk) removed(name string) {
	if d.p.store == nil {
		d.p.world.emit(check.Removed{Host: d.p.host.name, Name: name})
	}
}

// SyncDir implements wal.FS.
func (d disk) SyncDir(dir string) error {
	return d.names(dir, func() error { return d.fs.SyncDir(dir) })
}

func (d disk) names(name string, do func() error) error {
	if err := d.p.exchange(atNames, name, do); err != nil {
		return err
	}
	_, err := d.p.at(atDone, "named")
	return err
}

// file is an open file of a process.
type file struct {
	p    *process
	name string
	f    wal.File
}

var _ wal.File = (*file)(nil)

// ReadAt implements wal.File.
func (f *file) ReadAt(b []byte, at int64) (int, error) {
	fault, err := f.p.at(atRead, f.name)
	if err != nil {
		return 0, err
	}
	switch fault {
	case NoFault:
		return f.f.ReadAt(b, at)
	case FlipRead:
		n, err := f.f.ReadAt(b, at)
		if n > 0 {
			b[f.p.world.rng.n(n)] ^= 1 << f.p.world.rng.n(8)
		}
		return n, err
	case Misdirect:
		n, err := f.f.ReadAt(b, at)
		other := make([]byte, len(b))
		if m, _ := f.f.ReadAt(other, max(0, at-512)); m > 0 {
			copy(b[:n], other[:m])
		}
		return n, err
	}
	return 0, injected(fault, f.name)
}

// WriteAt implements wal.File.
func (f *file) WriteAt(b []byte, at int64) (int, error) {
	fault, err := f.p.at(atWrite, f.name)
	if err != nil {
		return 0, err
	}
	switch fault {
	case NoFault:
		return f.f.WriteAt(b, at)
	case FailAfter:
		n, err := f.f.WriteAt(b, at)
		if err == nil {
			err = injected(fault, f.name)
		}
		return n, err
	case Torn:
		n := f.p.world.rng.n(len(b) + 1)
		_, _ = f.f.WriteAt(b[:n], at) // the error to report is the injected one
		return n, injected(fault, f.name)
	}
	return 0, injected(fault, f.name)
}

// Sync implements wal.File.
func (f *file) Sync() error {
	fault, err := f.p.at(atSync, f.name)
	if err != nil {
		return err
	}
	switch fault {
	case NoFault:
		if err := f.f.Sync(); err != nil {
			return err
		}
		f.p.world.dirty = true
		_, err := f.p.at(atDone, "synced")
		return err
	case FailSync:
		f.p.host.disk.LoseSync()
		return f.f.Sync()
	}
	return injected(fault, f.name)
}

// Truncate implements wal.File.
func (f *file) Truncate(n int64) error {
	return f.p.exchange(atOpen, f.name, func() error { return f.f.Truncate(n) })
}

// Allocate implements wal.File.
func (f *file) Allocate(n int64) error {
	return f.p.exchange(atOpen, f.name, func() error { return f.f.Allocate(n) })
}

// Size implements wal.File.
func (f *file) Size() (int64, error) {
	if f.p.dead {
		return 0, errDead
	}
	return f.f.Size()
}

// Close implements wal.File.
func (f *file) Close() error { return f.f.Close() }
