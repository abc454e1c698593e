package wal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

// faulty appends groups 0, 1, 2, … like a source would, over a disk on which some
// writes and syncs fail; after an error it goes on where the catalog is. Then the
// machine crashes.
func faulty(t *testing.T, seed uint64, wrap func(wal.FS) wal.FS) (failures int, err error) {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(seed)
	var injected atomic.Int64
	defer func() { failures = int(injected.Load()) }()
	// Its own source: the log's goroutines ask it, under the file system's lock.
	dice := rand.New(rand.NewPCG(seed, 3))
	w.fs.Fail = func(op crashfs.Op) error {
		switch op.Kind {
		case crashfs.OpWrite, crashfs.OpSync:
			if op.Count > 30 && dice.IntN(12) == 0 {
				injected.Add(1)
				return errIO
			}
		}
		return nil
	}
	_, control := wrap(w.fs).(retryFS)
	l, err := wal.Open(t.Context(), w.cfg, deps(wrap(w.fs), w.cat))
	if err != nil {
		return 0, nil // failed while opening: nothing was acknowledged
	}
	for attempts, n := 0, 0; n < 40 && attempts < 80; attempts++ {
		from, count, size := rows(0, n)
		pos := position(0, n)
		w.next[0] = n + 1
		if _, err := l.Append(t.Context(), group(pos, batch(1, from, count, size))); err == nil {
			w.acked[pos] = true
			n++
			continue
		} else if !errors.Is(err, wal.ErrPoisoned) {
			continue // an open failed, nothing was written
		}
		if rng.IntN(2) == 0 {
			// A log that finds acknowledged bytes gone refuses for good.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			if control {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			err = l.Settle(ctx)
			cancel()
		} else {
			l, err = reopen(t, l, w, wrap)
		}
		if err != nil {
			return 0, err
		}
		n = 0
		if all := w.cat.all(); len(all) > 0 {
			if _, err := fmt.Sscanf(string(all[len(all)-1].Position), "0/%d", &n); err != nil {
				return 0, err
			}
			n++
		}
	}
	w.fs.Halt()
	if err := l.Close(); err != nil {
		return 0, err
	}
	w.fs.Fail = nil
	w.crash()
	return 0, w.check(t)
}

// reopen is the other way to find out what became of a failed append.
func reopen(t *testing.T, l *wal.Log, w *world, wrap func(wal.FS) wal.FS) (*wal.Log, error) {
	if err := l.Close(); err != nil {
		return nil, err
	}
	for {
		l, err := wal.Open(t.Context(), w.cfg, deps(wrap(w.fs), w.cat))
		if !errors.Is(err, errIO) {
			return l, err
		}
	}
}

var errIO = errors.New("injected: input/output error")

// After a failed write or sync nothing is acknowledged that a crash could take away,
// and the group that failed does not turn up beside its repetition.
func TestFailedSyncs(t *testing.T) {
	failures := 0
	for seed := range seeds(t, 200) {
		n, err := faulty(t, uint64(seed), func(f wal.FS) wal.FS { return f })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		failures += n
	}
	t.Logf("%d failures injected", failures)
	if failures == 0 {
		t.Error("nothing was injected")
	}
}

// retryFS syncs again when a sync fails, which must not be done: the second sync
// succeeds and has written nothing.
type retryFS struct{ wal.FS }

type retryFile struct{ wal.File }

func (f retryFS) Open(name string, mode wal.OpenMode) (wal.File, error) {
	file, err := f.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return retryFile{file}, nil
}

func (f retryFile) Sync() error {
	if f.File.Sync() == nil {
		return nil
	}
	return f.File.Sync()
}

func TestFailedSyncsSeeRetries(t *testing.T) {
	broken := 0
	n := seeds(t, 60)
	for seed := range n {
		if _, err := faulty(t, uint64(seed), func(f wal.FS) wal.FS { return retryFS{f} }); err != nil {
			broken++
		}
	}
	t.Logf("retried syncs: noticed in %d of %d seeds", broken, n)
	if broken == 0 {
		t.Error("retried syncs not noticed")
	}
}

// A full disk refuses appends before anything is written, and takes them again when
// there is space.
func TestFullDisk(t *testing.T) {
	fsys, cat := crashfs.New(), &catalog{}
	cfg := config("wal")
	l := mustOpen(t, cfg, deps(fsys, cat))
	fsys.SetSpace(3*cfg.SegmentBytes + 4096)
	n, full := 0, 0
	for range 100 {
		_, err := l.Append(t.Context(), group("a", batch(1, 1, 10, 500)))
		switch {
		case err == nil:
			n++
		case errors.Is(err, wal.ErrFull) && errors.Is(err, syscall.ENOSPC):
			full++
		default:
			t.Fatal(err)
		}
	}
	if n == 0 || full == 0 || len(cat.all()) != n {
		t.Fatalf("%d appends, %d refused, %d published", n, full, len(cat.all()))
	}
	fsys.SetSpace(-1)
	mustAppend(t, l, group("b", batch(1, 1, 10, 500)))
}

var _ io.Closer = retryFile{}
