package wal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

func TestAppendIsPublishedAndReadable(t *testing.T) {
	cfg, pub := config(filepath.Join(t.TempDir(), "wal", "00000007")), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	truncate := &change.Batch{Table: 2, SchemaVersion: 1, Truncate: true}
	got := mustAppend(t, l, group("a", batch(1, 10, 3, 5), truncate, batch(2, 20, 1, 5)))
	if got.Position != "a" || string(got.State) != "state of a" || !got.CommittedAt.Equal(start) {
		t.Errorf("group %+v", got)
	}
	if len(got.Slices) != 3 || !got.Slices[1].Truncate || got.Slices[0].Counts.Inserts != 3 {
		t.Fatalf("slices %+v", got.Slices)
	}
	if all := pub.all(); len(all) != 1 || all[0].End != got.End {
		t.Fatalf("published %+v", all)
	}
	r := wal.OpenReader(cfg.Dir)
	defer r.Close()
	must(t, checkRows(r, got.Slices[0], 10, 3, 5))
	must(t, checkRows(r, got.Slices[2], 20, 1, 5))
	if rec, err := r.ReadSlice(t.Context(), got.Slices[1]); err != nil || rec != nil {
		t.Errorf("bare truncate: %v, %v", rec, err)
	}
}

func TestProducersShareCommits(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	const producers, each = 8, 20
	var wg sync.WaitGroup
	errs := make(chan error, producers*each)
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				_, err := l.Append(t.Context(), group(fmt.Sprint(p), batch(change.TableID(p+1), int64(i), 4, 100)))
				errs <- err
			}
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	groups := pub.all()
	if len(groups) != producers*each {
		t.Fatalf("%d groups", len(groups))
	}
	s := l.Stats()
	if s.Commits >= s.Groups {
		t.Errorf("%d commits for %d groups: nothing was shared", s.Commits, s.Groups)
	}
	r := wal.OpenReader(cfg.Dir)
	defer r.Close()
	for _, g := range groups {
		sl := g.Slices[0]
		must(t, checkRows(r, sl, sl.Counts.MinToken, 4, 100))
	}
}

func TestReopenPublishesWhatTheCatalogLost(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	for i := range 30 { // several segments
		mustAppend(t, l, group(fmt.Sprint(i), batch(1, int64(i), 10, 1000)))
	}
	must(t, l.Close())
	want := pub.all()
	if last := want[len(want)-1].Seq; last < 4 {
		t.Fatalf("only %d segments", last)
	}
	for n := range len(want) + 1 {
		lost := pub.clone(n)
		l, err := wal.Open(t.Context(), cfg, deps(nil, lost))
		must(t, err)
		must(t, l.Close())
		got := lost.all()
		if len(got) != len(want) {
			t.Fatalf("after losing all above %d: %d groups, want %d", n, len(got), len(want))
		}
		for i := range got {
			if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
				t.Fatalf("group %d is %+v, was %+v", i, got[i], want[i])
			}
		}
	}
}

func TestOpenRefusesWhenLockedOrBehind(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	g := mustAppend(t, l, group("a", batch(1, 1, 1, 1)))
	if _, err := wal.Open(t.Context(), cfg, deps(nil, pub)); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	must(t, l.Close())
	ahead := &catalog{seq: g.Seq, end: g.End + 8}
	if _, err := wal.Open(t.Context(), cfg, deps(nil, ahead)); !errors.Is(err, wal.ErrBehind) {
		t.Errorf("catalog ahead of the log: %v", err)
	}
}

func TestHugeGroupGetsItsOwnSegment(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	first := mustAppend(t, l, group("a", batch(1, 1, 1, 1)))
	huge := mustAppend(t, l, group("b", batch(1, 2, 100, 5000)))
	after := mustAppend(t, l, group("c", batch(1, 200, 1, 1)))
	if huge.Seq != first.Seq+1 || after.Seq != huge.Seq+1 {
		t.Errorf("seqs %d, %d, %d", first.Seq, huge.Seq, after.Seq)
	}
	r := wal.OpenReader(cfg.Dir)
	defer r.Close()
	must(t, checkRows(r, huge.Slices[0], 2, 100, 5000))
	must(t, l.Close())
	lost := pub.clone(1)
	mustOpen(t, cfg, deps(nil, lost))
	if len(lost.all()) != 3 {
		t.Errorf("recovered %d groups", len(lost.all()))
	}
}

func TestReclaimRecyclesAndReadersNotice(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	r := wal.OpenReader(cfg.Dir)
	defer r.Close()
	old := mustAppend(t, l, group("a", batch(1, 1, 10, 100)))
	if err := l.Reclaim(t.Context(), []segment.Seq{old.Seq}); !errors.Is(err, wal.ErrActive) {
		t.Fatalf("reclaim of the active segment: %v", err)
	}
	must(t, checkRows(r, old.Slices[0], 1, 10, 100)) // the file is in the reader's cache
	must(t, l.SealActive(t.Context()))
	must(t, l.Reclaim(t.Context(), []segment.Seq{old.Seq}))
	must(t, l.Reclaim(t.Context(), []segment.Seq{old.Seq})) // again is no error
	fresh := wal.OpenReader(cfg.Dir)
	defer fresh.Close()
	if _, err := fresh.ReadSlice(t.Context(), old.Slices[0]); !errors.Is(err, wal.ErrSliceLost) {
		t.Fatalf("reclaimed slice: %v", err)
	}
	for i := range 60 { // reuse the file, whichever spare it became
		g := mustAppend(t, l, group("b", batch(1, int64(i), 10, 1000)))
		must(t, checkRows(r, g.Slices[0], int64(i), 10, 1000))
		switch err := checkRows(r, old.Slices[0], 1, 10, 100); {
		case err == nil: // still the old bytes: right rows
		case errors.Is(err, wal.ErrSliceLost):
		default:
			t.Fatalf("after %d appends: %v", i, err)
		}
	}
	if _, err := r.ReadSlice(t.Context(), old.Slices[0]); !errors.Is(err, wal.ErrSliceLost) {
		t.Errorf("overwritten slice: %v", err)
	}
}

func TestDamageIsAnError(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	g := mustAppend(t, l, group("a", batch(1, 1, 10, 100)))
	name := filepath.Join(cfg.Dir, g.Seq.ID()+".seg")
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0xff}, int64(g.Slices[0].Ref.Start)+100)
	must(t, errors.Join(err, f.Close()))
	r := wal.OpenReader(cfg.Dir)
	defer r.Close()
	var corrupt *segment.CorruptError
	if _, err := r.ReadSlice(t.Context(), g.Slices[0]); !errors.As(err, &corrupt) {
		t.Errorf("damaged slice: %v", err)
	}
	mustAppend(t, l, group("b", batch(1, 2, 1, 1))) // promises that the first was durable
	must(t, l.Close())
	if _, err := wal.Open(t.Context(), cfg, deps(nil, &catalog{})); !errors.As(err, &corrupt) {
		t.Errorf("recovery of a damaged log: %v", err)
	}
}

func TestPublishFailureRefusesUntilRepaired(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	l := mustOpen(t, cfg, deps(nil, pub))
	mustAppend(t, l, group("a", batch(1, 1, 1, 1)))
	boom := errors.New("catalog is down")
	pub.setFail(boom)
	for range 2 {
		if _, err := l.Append(t.Context(), group("b", batch(1, 2, 1, 1))); !errors.Is(err, wal.ErrUnpublished) || !errors.Is(err, boom) {
			t.Fatalf("append: %v", err)
		}
	}
	pub.setFail(nil)
	must(t, l.Settle(t.Context()))
	mustAppend(t, l, group("c", batch(1, 3, 1, 1)))
	var positions []string
	for _, g := range pub.all() {
		positions = append(positions, string(g.Position))
	}
	if fmt.Sprint(positions) != "[a b c]" {
		t.Errorf("published %v", positions)
	}
}

func TestQuotaRefusesAndReclaimHelps(t *testing.T) {
	cfg, pub := config(t.TempDir()), &catalog{}
	cfg.QuotaBytes = 3 * cfg.SegmentBytes
	l := mustOpen(t, cfg, deps(nil, pub))
	var err error
	var last wal.CommittedGroup
	for range 100 {
		var g wal.CommittedGroup
		if g, err = l.Append(t.Context(), group("a", batch(1, 1, 10, 1000))); err != nil {
			break
		}
		last = g
	}
	if !errors.Is(err, wal.ErrFull) || !l.Stats().Full {
		t.Fatalf("append into a full log: %v", err)
	}
	if n := l.Stats().LiveBytes; n > cfg.QuotaBytes {
		t.Errorf("%d bytes live with a quota of %d", n, cfg.QuotaBytes)
	}
	must(t, l.SealActive(t.Context()))
	must(t, l.Reclaim(t.Context(), []segment.Seq{1, 2, last.Seq}))
	mustAppend(t, l, group("b", batch(1, 2, 10, 1000)))
}

func TestFailpointsOfACommit(t *testing.T) {
	cfg := config(t.TempDir())
	boom := errors.New("stop here")
	for _, at := range []env.Failpoint{env.BeforeBody, env.AfterBody, env.AfterMarker} {
		pub := &catalog{}
		d := deps(nil, pub)
		armed := true
		var mu sync.Mutex
		d.Failpoints = env.FailpointFunc(func(f env.Failpoint) error {
			mu.Lock()
			defer mu.Unlock()
			if f == at && armed {
				armed = false
				return boom
			}
			return nil
		})
		cfg.Dir = t.TempDir()
		l := mustOpen(t, cfg, d)
		if _, err := l.Append(t.Context(), group("a", batch(1, 1, 1, 1))); !errors.Is(err, wal.ErrPoisoned) {
			t.Fatalf("%v: %v", at, err)
		}
		must(t, l.Settle(t.Context()))
		mustAppend(t, l, group("b", batch(1, 2, 1, 1)))
		must(t, l.Close())
		lost := &catalog{}
		mustOpen(t, cfg, deps(nil, lost))
		if got := lost.all(); len(got) != 1 || got[0].Position != "b" {
			t.Errorf("%v: log has %+v", at, got)
		}
	}
}

func TestCloseRefuses(t *testing.T) {
	l := mustOpen(t, config(t.TempDir()), deps(nil, &catalog{}))
	must(t, l.Close())
	must(t, l.Close())
	if _, err := l.Append(t.Context(), group("a")); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := l.SealActive(t.Context()); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("seal: %v", err)
	}
	if err := l.Reclaim(t.Context(), nil); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("reclaim: %v", err)
	}
	if err := l.Settle(context.Background()); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("settle: %v", err)
	}
}
