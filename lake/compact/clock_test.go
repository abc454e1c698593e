package compact_test

import (
	"testing"
	"time"
)

// After the clock was set back, changes published before do not wait until it has caught up.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t)
	w.append("", "+1 ana")
	w.clock.Advance(-time.Hour)
	w.step()
	w.wantLake()
}

func (w *world) step() {
	w.t.Helper()
	if _, err := w.svc.StepTable(w.t.Context(), w.table.ID, false); err != nil {
		w.t.Fatal(err)
	}
}
