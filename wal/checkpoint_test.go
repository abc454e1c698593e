package wal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/segment"
)

// sealed makes n sealed segments with a group each, from seq 1, position "1" up.
func sealed(t *testing.T, s *wal.Stepped, n int) {
	t.Helper()
	for i := range n {
		p, err := s.Log().Start(t.Context(), group(fmt.Sprint(i+1), batch(1, int64(i), 3, 10)))
		must(t, err)
		drive(t, s)
		mustOutcome(t, p)
		p, err = s.Log().StartSeal()
		must(t, err)
		drive(t, s)
		mustOutcome(t, p)
	}
}

func reclaimed(t *testing.T, s *wal.Stepped, seqs ...segment.Seq) {
	t.Helper()
	p, err := s.Log().StartReclaim(seqs)
	must(t, err)
	drive(t, s)
	mustOutcome(t, p)
}

func checkpointOf(t *testing.T, fs *crashfs.FS) segment.Checkpoint {
	t.Helper()
	f, err := fs.Open("/log/checkpoint", wal.ReadOnly)
	must(t, err)
	n, err := f.Size()
	must(t, err)
	b := make([]byte, n)
	_, err = f.ReadAt(b, 0)
	must(t, err)
	must(t, f.Close())
	c, err := segment.ParseCheckpoint(b)
	must(t, err)
	return c
}

// Whoever loses the catalog finds in the checkpoint what the log has no more.
func TestRebuildOfALostCatalog(t *testing.T) {
	for _, c := range []struct {
		name    string
		reclaim []segment.Seq
		low     segment.Seq
		group   uint64
		gone    []segment.Seq
		publish []segment.Seq
		next    segment.Seq
	}{
		{"beginning", []segment.Seq{1, 2}, 3, 3, nil, []segment.Seq{3, 4}, 5},
		{"middle", []segment.Seq{2, 3}, 1, 1, []segment.Seq{2, 3}, []segment.Seq{1, 4}, 5},
		{"end", []segment.Seq{2, 4}, 1, 1, []segment.Seq{2, 4}, []segment.Seq{1, 3}, 5},
		{"all", []segment.Seq{1, 2, 3, 4}, 5, 5, nil, nil, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := crashfs.New()
			d := tinyDeps(fs, &catalog{})
			s := mustStep(t, tinyConfig(), d)
			sealed(t, s, 4)
			reclaimed(t, s, c.reclaim...)
			s.Abandon()

			cat := &catalog{}
			fs = fs.Kill()
			d = tinyDeps(fs, cat)
			s = mustStep(t, tinyConfig(), d)
			got := checkpointOf(t, fs)
			if got.Low != c.low || got.Group != c.group || !slices.Equal(got.Gone, c.gone) {
				t.Errorf("checkpoint %+v", got)
			}
			var seqs []segment.Seq
			for _, g := range cat.all() {
				seqs = append(seqs, g.Seq)
			}
			if !slices.Equal(seqs, c.publish) {
				t.Errorf("published %v", seqs)
			}
			if next := s.Log().Stats().Active; next != c.next {
				t.Errorf("goes on at %d", next)
			}
			must(t, s.Log().Close())
		})
	}
}

// A rebuild that ends in its midst goes on where it was.
func TestRebuildInTwoPieces(t *testing.T) {
	fs := crashfs.New()
	s := mustStep(t, tinyConfig(), tinyDeps(fs, &catalog{}))
	sealed(t, s, 6)
	reclaimed(t, s, 2, 3, 5)
	must(t, s.Log().Close())
	cat := &catalog{}
	first := tinyDeps(fs, failAfter{cat, 1})
	if _, err := wal.OpenStepped(t.Context(), tinyConfig(), first); !errors.Is(err, errIO) {
		t.Fatalf("open: %v", err)
	}
	if n := len(cat.all()); n != 1 {
		t.Fatalf("%d groups published at first", n)
	}
	must(t, mustStep(t, tinyConfig(), tinyDeps(fs, cat)).Log().Close())
	got := cat.all()
	if len(got) != 3 || got[1].Seq != 4 || got[2].Seq != 6 {
		t.Errorf("published %v", got)
	}
}

// failAfter is a catalog that takes n groups.
type failAfter struct {
	*catalog
	n int
}

func (f failAfter) Publish(ctx context.Context, p change.PipelineID, groups []wal.CommittedGroup) error {
	if len(f.all()) >= f.n {
		return errIO
	}
	return f.catalog.Publish(ctx, p, groups)
}

// A segment that the checkpoint does not let go must be there.
func TestRebuildMissesASegment(t *testing.T) {
	fs := crashfs.New()
	s := mustStep(t, tinyConfig(), tinyDeps(fs, &catalog{}))
	sealed(t, s, 5)
	reclaimed(t, s, 1, 3)
	must(t, s.Log().Close())
	must(t, fs.Remove("/log/"+segment.Seq(4).ID()+".seg"))
	must(t, fs.Remove("/log/"+segment.Seq(4).ID()+".seg.commit"))
	_, err := wal.OpenStepped(t.Context(), tinyConfig(), tinyDeps(fs, &catalog{}))
	var corrupt *segment.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Seq != 4 {
		t.Errorf("open: %v", err)
	}
}

// A crash anywhere in a reclaim, and the catalog is lost with it: what the checkpoint
// has let go does not come back, and nothing else is gone.
func TestRebuildAfterACrashInReclaim(t *testing.T) {
	for halt := 1; ; halt++ {
		fs := crashfs.New()
		s := mustStep(t, tinyConfig(), tinyDeps(fs, &catalog{}))
		sealed(t, s, 3)
		fs.HaltAt = fs.Ops() + halt
		p, err := s.Log().StartReclaim([]segment.Seq{1, 2})
		must(t, err)
		drive(t, s)
		_, err, _ = p.Outcome()
		s.Abandon()
		cat := &catalog{}
		again := mustStep(t, tinyConfig(), tinyDeps(fs.Kill(), cat))
		got := cat.all()
		if n := len(got); n != 1 && n != 3 || got[n-1].Seq != 3 {
			t.Fatalf("halt %d: published %v", halt, got)
		}
		must(t, again.Log().Close())
		if err == nil {
			if halt < 8 {
				t.Errorf("a reclaim has only %d operations", halt)
			}
			return
		}
	}
}

// A checkpoint that cannot be read matters only to a catalog that is lost.
func TestDamagedCheckpoint(t *testing.T) {
	fs, cat := crashfs.New(), &catalog{}
	s := mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	sealed(t, s, 3)
	reclaimed(t, s, 1)
	must(t, s.Log().Close())
	f, err := fs.Open("/log/checkpoint", wal.ReadWrite)
	must(t, err)
	_, err = f.WriteAt([]byte{0xff}, 40)
	must(t, err)
	if _, err := wal.OpenStepped(t.Context(), tinyConfig(), tinyDeps(fs.Kill(), &catalog{})); !errors.Is(err, segment.ErrChecksum) {
		t.Errorf("open with an empty catalog: %v", err)
	}
	fs = fs.Kill()
	s = mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	reclaimed(t, s, 2)
	must(t, s.Log().Close())
	must(t, mustStep(t, tinyConfig(), tinyDeps(fs, &catalog{})).Log().Close())
}

// Opening a log reads no segment below the catalog's watermark for the position of the
// checkpoint, unless that has facts to go with it: damage there is met by its readers.
func TestOpenReadsNothingPublished(t *testing.T) {
	fs, cat := crashfs.New(), &catalog{}
	s := mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	sealed(t, s, 2)
	copied := func() {
		p, err := s.Log().Start(t.Context(), group("", batch(1, 9, 3, 10))) // as of an initial copy
		must(t, err)
		drive(t, s)
		mustOutcome(t, p)
		must(t, s.Log().Close())
	}
	copied()
	must(t, fs.Rot("/log/"+segment.Seq(2).ID()+".seg", 8*(segment.HeaderBytes+1)))
	s = mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	copied()
}
