package compact_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/wal/segment"
)

// A hold keeps its segment and those above it, until it moves, is released or lapses.
func TestHoldLog(t *testing.T) {
	reclaimed := func(w *world) []segment.Seq {
		w.reclaimed = nil
		for range 2 {
			if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(time.Minute)
		}
		return w.reclaimed
	}
	w := newWorld(t)
	for range 4 {
		w.append("", "+1 a")
		w.roll()
	}
	w.append("", "+9 z") // the active segment
	w.compact()
	hold := w.svc.HoldLog(w.pid, 2)
	other := w.svc.HoldLog(w.pid+1, 1)
	defer other.Release()
	for _, step := range []struct {
		what string
		do   func()
		want []segment.Seq
	}{
		{"held from 2", func() {}, []segment.Seq{1}},
		{"moved to 3", func() { hold.Move(3) }, []segment.Seq{2}},
		{"not moved back", func() { hold.Move(1) }, nil},
		{"lapsed", func() { w.clock.Advance(11 * time.Minute) }, []segment.Seq{3, 4}},
		{"released", func() { hold.Release(); hold.Release(); hold.Move(1) }, nil},
	} {
		step.do()
		if got := reclaimed(w); !slices.Equal(got, step.want) {
			t.Errorf("%s: reclaimed %v, want %v", step.what, got, step.want)
		}
	}
}

var errLeft = errors.New("left")

// During a rest nothing of the pipeline goes into the lake, whoever asks; afterwards it
// does. Rests add up, and another pipeline's does not count.
func TestRest(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 a")
	end, other, again := w.svc.Rest(w.pid), w.svc.Rest(w.pid+1), w.svc.Rest(w.pid)
	defer other()
	for _, release := range []func(){end, end, again} {
		if more, err := w.svc.StepTable(t.Context(), w.table.ID, true); more || !errors.Is(err, compact.ErrResting) {
			t.Fatalf("a compaction that is asked for: %v, %v", more, err)
		}
		if more, err := w.svc.StepTable(t.Context(), w.table.ID, false); more || err != nil {
			t.Fatalf("a compaction by itself: %v, %v", more, err)
		}
		gone, leave := context.WithCancelCause(t.Context())
		leave(errLeft)
		if err := w.svc.CompactTable(gone, w.table.ID, true); !errors.Is(err, errLeft) {
			t.Fatalf("a statement, while it waits for the end: %v", err)
		}
		if w.live() != 1 {
			t.Fatalf("%d live slices", w.live())
		}
		release()
	}
	end, compacted := w.svc.Rest(w.pid), make(chan error)
	go func() { compacted <- w.svc.Compact(t.Context(), "p") }()
	end()
	if err := <-compacted; err != nil || w.live() != 0 {
		t.Errorf("%d live slices after the rest: %v", w.live(), err)
	}
}
