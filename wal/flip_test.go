package wal_test

import (
	"context"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

// flipFS flips one bit of what is read at a byte, once.
type flipFS struct {
	wal.FS
	at   int64 // of a file's reads from its start
	left *int
}

// Open implements wal.FS.
func (f flipFS) Open(name string, mode wal.OpenMode) (wal.File, error) {
	file, err := f.FS.Open(name, mode)
	if err != nil || mode != wal.ReadFresh {
		return file, err
	}
	return flipFile{file, f}, nil
}

type flipFile struct {
	wal.File
	fs flipFS
}

// ReadAt implements io.ReaderAt.
func (f flipFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if i := f.fs.at - at; i >= 0 && i < int64(n) && *f.fs.left > 0 {
		b[i] ^= 0x10
		*f.fs.left--
	}
	return n, err
}

// A bit that flips while recovery reads an unsealed body costs no group: that of the last
// group would make it look torn, and recovery would cut it off. Not opening is right, and
// the next attempt finds everything.
func TestRecoveryMistrustsOneRead(t *testing.T) {
	const groups = 3
	for at := int64(0); at < 4096; at += 8 {
		fs := crashfs.New()
		s := mustStep(t, tinyConfig(), tinyDeps(fs, &catalog{}))
		for i := range groups {
			p, err := s.Log().Start(context.Background(), group(position(0, i), batch(1, int64(i), 2, 10)))
			must(t, err)
			drive(t, s)
			mustOutcome(t, p)
		}
		disk := fs.Kill()
		left := 1
		cat := &catalog{}
		l, err := wal.OpenStepped(t.Context(), tinyConfig(), tinyDeps(flipFS{disk, at, &left}, cat))
		if err == nil {
			if n := len(cat.all()); n != groups {
				t.Fatalf("byte %d: opened with %d groups", at, n)
			}
			must(t, l.Log().Close())
		}
		again := &catalog{}
		l, err = wal.OpenStepped(t.Context(), tinyConfig(), tinyDeps(disk.Kill(), again))
		if err != nil {
			t.Fatalf("byte %d: opened again: %v", at, err)
		}
		if n := len(again.all()); n != groups {
			t.Fatalf("byte %d: opened again with %d groups", at, n)
		}
		must(t, l.Log().Close())
	}
}
