package circle_test

import (
	"slices"
	"testing"

	"github.com/skipprd/skipprd/ingest/own/circle"
)

// A circle is told by who closes it, who then does not wait; what hangs on a circle's side, or
// behind several blockers, is none or is found.
func TestCircle(t *testing.T) {
	var g circle.Graph
	g.Lock()
	defer g.Unlock()
	wait := func(pid uint32, lock string, by ...uint32) []string {
		return g.Begin(pid, circle.Wait{Lock: func() string { return lock }, Blockers: func() []uint32 { return by }})
	}
	for _, c := range []struct {
		pid  uint32
		lock string
		by   []uint32
		want []string
	}{
		{1, "a", []uint32{2}, nil},
		{2, "b", []uint32{9, 3}, nil},
		{4, "a", []uint32{2, 1}, nil},
		{3, "c", []uint32{1}, []string{
			"Process 3 waits for c; blocked by process 1.", "Process 1 waits for a; blocked by process 2.", "Process 2 waits for b; blocked by process 3.",
		}},
		{3, "d", []uint32{7}, nil},
		{7, "e", []uint32{8, 4}, []string{
			"Process 7 waits for e; blocked by process 4.", "Process 4 waits for a; blocked by process 2.", "Process 2 waits for b; blocked by process 3.",
			"Process 3 waits for d; blocked by process 7.",
		}},
	} {
		if got := wait(c.pid, c.lock, c.by...); !slices.Equal(got, c.want) {
			t.Errorf("%d waits for %v: %q", c.pid, c.by, got)
		}
	}
	g.End(3)
	if got := wait(7, "e", 4); got != nil {
		t.Errorf("a circle that is open by now: %q", got)
	}
}
