package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// tinyDeps let segments be as small as a simulation wants them.
func tinyDeps(fs wal.FS, pub wal.Publisher) wal.Deps {
	d := deps(fs, pub)
	d.Clock = env.NewFake(start, 1)
	d.SegmentBytesMin = 4 << 10
	return d
}

func tinyConfig() wal.Config {
	return wal.Config{Dir: "/log", Pipeline: pipeline, SegmentBytes: 4 << 10, GroupBytes: 4 << 10}
}

func mustStep(t testing.TB, cfg wal.Config, d wal.Deps) *wal.Stepped {
	t.Helper()
	s, err := wal.OpenStepped(t.Context(), cfg, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drive steps all parts until none has anything to do.
func drive(t testing.TB, s *wal.Stepped) {
	t.Helper()
	for did := true; did; {
		did = false
		for _, part := range []wal.Part{wal.Owner, wal.Commits, wal.Background} {
			d, err := s.Step(t.Context(), part)
			if err != nil {
				t.Fatal(err)
			}
			did = did || d
		}
	}
}

func mustOutcome(t testing.TB, p *wal.Pending) wal.CommittedGroup {
	t.Helper()
	g, err, done := p.Outcome()
	if err != nil || !done {
		t.Fatalf("outcome: done %v, error %v", done, err)
	}
	return g
}

func TestSteppedCommitsOnlyWhenStepped(t *testing.T) {
	cat := &catalog{}
	s := mustStep(t, tinyConfig(), tinyDeps(crashfs.New(), cat))
	first, err := s.Log().Start(t.Context(), group("1", batch(1, 1, 3, 10)))
	must(t, err)
	second, err := s.Log().Start(t.Context(), group("2", batch(1, 4, 1, 10)))
	must(t, err)
	if _, _, done := first.Outcome(); done {
		t.Fatal("done before a step")
	}
	// Owner: Open; Commits: the header; Owner: Write.
	for _, part := range []wal.Part{wal.Owner, wal.Commits, wal.Owner} {
		if did, err := s.Step(t.Context(), part); !did || err != nil {
			t.Fatalf("%v did %v, %v", part, did, err)
		}
	}
	if _, _, done := first.Outcome(); done || len(cat.all()) > 0 {
		t.Fatal("done before the commit point")
	}
	drive(t, s)
	a, b := mustOutcome(t, first), mustOutcome(t, second)
	if a.Seq != 1 || b.Seq != 1 || b.End <= a.End || len(cat.all()) != 2 {
		t.Errorf("placed at %d:%d and %d:%d", a.Seq, a.End, b.Seq, b.End)
	}
	if again := mustOutcome(t, first); again.End != a.End {
		t.Error("the second look differs")
	}
	must(t, s.Log().Close())
	if _, err := s.Step(t.Context(), wal.Owner); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("step of a closed log: %v", err)
	}
}

func TestSteppedSealsAndReclaims(t *testing.T) {
	cat, fs := &catalog{}, crashfs.New()
	s := mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	l := s.Log()
	p, err := l.Start(t.Context(), group("1", batch(1, 1, 3, 10)))
	must(t, err)
	drive(t, s)
	mustOutcome(t, p)
	early, err := l.StartReclaim([]segment.Seq{1})
	must(t, err)
	if _, err := l.StartReclaim([]segment.Seq{1}); !errors.Is(err, wal.ErrBusy) {
		t.Errorf("second reclaim: %v", err)
	}
	drive(t, s)
	if _, err, _ := early.Outcome(); !errors.Is(err, wal.ErrActive) {
		t.Errorf("reclaim of the active segment: %v", err)
	}
	p, err = l.StartSeal()
	must(t, err)
	drive(t, s)
	mustOutcome(t, p)
	p, err = l.StartReclaim([]segment.Seq{1})
	must(t, err)
	drive(t, s)
	mustOutcome(t, p)
	if st := l.Stats(); st.Segments != 0 {
		t.Errorf("%d segments after reclaim", st.Segments)
	}
	must(t, l.Close())
}

// A dead process answers nobody and writes nothing; its successor finds what was
// durable.
func TestSteppedAbandon(t *testing.T) {
	cat, fs := &catalog{}, crashfs.New()
	s := mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	p, err := s.Log().Start(t.Context(), group("1", batch(1, 1, 3, 10)))
	must(t, err)
	for _, part := range []wal.Part{wal.Owner, wal.Commits, wal.Owner, wal.Commits} {
		_, err := s.Step(t.Context(), part)
		must(t, err)
	}
	ops := fs.Ops()
	s.Abandon()
	if _, err, done := p.Outcome(); !done || !errors.Is(err, wal.ErrClosed) {
		t.Errorf("outcome: done %v, error %v", done, err)
	}
	if _, err := s.Step(t.Context(), wal.Owner); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("step: %v", err)
	}
	must(t, s.Log().Close())
	if fs.Ops() != ops {
		t.Error("an abandoned log did I/O")
	}
	s = mustStep(t, tinyConfig(), tinyDeps(fs.Kill(), cat))
	if got := cat.all(); len(got) != 1 || string(got[0].Position) != "1" {
		t.Errorf("published %v", got)
	}
	must(t, s.Log().Close())
}

func TestSteppedHealsWhenOwnerIsIdle(t *testing.T) {
	cat, fs := &catalog{}, crashfs.New()
	s := mustStep(t, tinyConfig(), tinyDeps(fs, cat))
	cat.setFail(errors.New("catalog is down"))
	p, err := s.Log().Start(t.Context(), group("1", batch(1, 1, 3, 10)))
	must(t, err)
	drive(t, s)
	if _, err, _ := p.Outcome(); !errors.Is(err, wal.ErrUnpublished) {
		t.Fatalf("outcome %v", err)
	}
	if !errors.Is(s.Log().Settled(), wal.ErrUnpublished) {
		t.Errorf("settled: %v", s.Log().Settled())
	}
	cat.setFail(nil)
	_, err = s.Step(t.Context(), wal.Owner) // repeats what failed
	must(t, err)
	must(t, s.Log().Settled())
	if len(cat.all()) != 1 {
		t.Error("not published")
	}
	must(t, s.Log().Close())
}

func TestStartIsBusyWhenMuchIsQueued(t *testing.T) {
	s := mustStep(t, tinyConfig(), tinyDeps(crashfs.New(), &catalog{}))
	var queued []*wal.Pending
	for i := range 100 {
		p, err := s.Log().Start(t.Context(), group(fmt.Sprint(i), batch(1, int64(i), 10, 100)))
		if errors.Is(err, wal.ErrBusy) {
			break
		}
		must(t, err)
		queued = append(queued, p)
	}
	if len(queued) == 100 {
		t.Fatal("the queue has no bound")
	}
	drive(t, s)
	for _, p := range queued {
		mustOutcome(t, p)
	}
	_, err := s.Log().Start(t.Context(), group("again", batch(1, 1, 10, 100)))
	must(t, err)
	must(t, s.Log().Close())
}

// One seed, one history: every operation of the file system in the same order.
func TestSteppedRepeats(t *testing.T) {
	run := func(seed uint64) (trace []string) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := crashfs.New()
		fs.Fail = func(op crashfs.Op) error {
			trace = append(trace, fmt.Sprint(op))
			if rng.IntN(40) == 0 {
				return errors.New("injected")
			}
			return nil
		}
		d := tinyDeps(fs, &catalog{})
		s, err := wal.OpenStepped(context.Background(), tinyConfig(), d)
		if err != nil {
			return append(trace, err.Error())
		}
		var pending []*wal.Pending
		for i := range 400 {
			switch n := rng.IntN(8); {
			case n < 2:
				if p, err := s.Log().Start(t.Context(), group(fmt.Sprint(i), batch(1, int64(i), 5, 50))); err == nil {
					pending = append(pending, p)
				}
			case n == 2:
				_, _ = s.Log().StartSeal()
			case n == 3:
				_, _ = s.Log().StartReclaim([]segment.Seq{segment.Seq(1 + rng.IntN(8))})
			default:
				_, _ = s.Step(t.Context(), wal.Part(rng.IntN(3)))
			}
		}
		for _, p := range pending {
			g, err, done := p.Outcome()
			trace = append(trace, fmt.Sprint(g.Seq, g.End, err, done))
		}
		return trace
	}
	for seed := range uint64(50) {
		a, b := run(seed), run(seed)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("seed %d: two histories", seed)
		}
	}
}

// BenchmarkSteppedWorld opens a log and appends a small group, as a simulator does
// thousands of times a second.
func BenchmarkSteppedWorld(b *testing.B) {
	g := group("1", batch(1, 1, 3, 10))
	b.ReportAllocs()
	for b.Loop() {
		s := mustStep(b, tinyConfig(), tinyDeps(crashfs.New(), &catalog{}))
		p, err := s.Log().Start(b.Context(), g)
		if err != nil {
			b.Fatal(err)
		}
		drive(b, s)
		mustOutcome(b, p)
	}
}
