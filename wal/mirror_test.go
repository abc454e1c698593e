package wal_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// The mirror is a cache: what is damaged or missing in it is fetched again, and what is
// whole is not.
func TestMirrorIsVerifiedAndFilled(t *testing.T) {
	for _, c := range []struct {
		name  string
		hurt  func(t *testing.T, fs *crashfs.FS) *crashfs.FS
		fetch int
	}{
		{"whole", func(_ *testing.T, fs *crashfs.FS) *crashfs.FS { return fs.Kill() }, 0},
		{"rotten", func(t *testing.T, fs *crashfs.FS) *crashfs.FS {
			must(t, fs.Rot("/mirror/"+segment.Seq(2).ID()+".seg", 0))
			return fs.Kill()
		}, 1},
		{"a body missing", func(t *testing.T, fs *crashfs.FS) *crashfs.FS {
			must(t, fs.Remove("/mirror/"+segment.Seq(3).ID()+".seg"))
			return fs.Kill()
		}, 1},
		{"another's body", func(t *testing.T, fs *crashfs.FS) *crashfs.FS {
			must(t, fs.Rename("/mirror/"+segment.Seq(3).ID()+".seg", "/mirror/"+segment.Seq(2).ID()+".seg"))
			return fs.Kill()
		}, 2},
		{"crashed", func(_ *testing.T, fs *crashfs.FS) *crashfs.FS {
			return fs.Crash(rand.New(rand.NewPCG(1, 1)), 0)
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem, fetched := memstore.New(), 0
			way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
				if op.Verb == faultstore.Get && len(op.Key) > 4 && op.Key[len(op.Key)-4:] == ".seg" {
					fetched++
				}
				return faultstore.Fault{}
			}})
			h := newHost(t, "a", way, 1)
			h.open()
			h.append("1", 10)
			h.append("2", 20)
			if c.name == "rotten" {
				f, err := h.fs.Open("/mirror/"+segment.Seq(2).ID()+".seg", wal.ReadWrite)
				must(t, err)
				must(t, f.Sync())
			}
			groups := h.cat.all()
			h.log.Abandon()
			h.fs = c.hurt(t, h.fs)
			h.deps.FS = h.fs
			h.open()
			if fetched != c.fetch {
				t.Errorf("%d bodies fetched, want %d", fetched, c.fetch)
			}
			r := wal.OpenReaderFS(h.fs, "/mirror")
			must(t, checkRows(r, groups[0].Slices[0], 10, 3, 10))
			must(t, checkRows(r, groups[1].Slices[0], 20, 3, 10))
			must(t, h.log.Log().Close())
		})
	}
}

// A body that was lost on the way to its marker, or in a takeover, is no part of the
// mirror after the next opening.
func TestMirrorKeepsOnlyWhatIsCommitted(t *testing.T) {
	store := memstore.New()
	a, b := newHost(t, "a", store, 1), newHost(t, "b", store, 2)
	a.open()
	b.open()
	p := a.start("lost", 10)
	a.drive()
	if _, err, _ := p.Outcome(); !errors.Is(err, wal.ErrFenced) {
		t.Fatal(err)
	}
	must(t, a.log.Log().Close())
	must(t, b.log.Log().Close())
	a.open()
	if n := a.log.Log().Stats().Segments; n != 0 {
		t.Errorf("%d segments in the mirror", n)
	}
}

// The lake is fenced before the log is read, or the old writer's compactor could commit
// what the new one does not expect.
func TestStoreFencesTheLakeFirst(t *testing.T) {
	mem := memstore.New()
	var events []string
	way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
		if op.Verb == faultstore.List {
			events = append(events, "list")
		}
		return faultstore.Fault{}
	}})
	h := newHost(t, "a", way, 1)
	down := errors.New("lake is down")
	h.deps.FenceLake = func(_ context.Context, epoch segment.Epoch) error {
		if epoch != segment.Epoch(len(events)+1) {
			t.Errorf("fence at epoch %d", epoch)
		}
		events = append(events, "fence")
		return down
	}
	if _, err := wal.OpenStepped(t.Context(), h.cfg, h.deps); !errors.Is(err, down) {
		t.Errorf("open: %v", err)
	}
	down = nil
	h.open()
	if len(events) != 3 || events[1] != "fence" || events[2] != "list" {
		t.Errorf("events %v", events)
	}
}
