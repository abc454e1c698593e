package compact_test

import (
	"slices"
	"testing"
	"time"

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
