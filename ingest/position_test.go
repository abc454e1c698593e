package ingest

import (
	"strconv"
	"testing"

	"github.com/skipprd/skipprd/wal/change"
)

func numerically(a, b change.Position) int {
	x, _ := strconv.Atoi(string(a)) // empty is 0
	y, _ := strconv.Atoi(string(b))
	return x - y
}

// TestIdleIsNotAcknowledgedBeforeDurable: a source that was told of a position lets go of
// what precedes it, and the next process begins at the durable one (O1).
func TestIdleIsNotAcknowledgedBeforeDurable(t *testing.T) {
	p := newProgress(numerically, "20", nil)
	p.ack()
	p.idle("30")
	if at, ok := p.ack(); ok {
		t.Fatalf("acknowledged %q, durable is 20", at)
	}
	p.record("30", &groupState{})
	if at, ok := p.ack(); !ok || at != "30" {
		t.Errorf("acknowledged %q %t, want 30", at, ok)
	}
}

// TestPositionOfTableBehindDoesNotRegress: of two tables that are behind, the stream
// begins where the first is; the other has what is delivered until it is reached.
func TestPositionOfTableBehindDoesNotRegress(t *testing.T) {
	p := newProgress(numerically, "200", nil)
	p.mu.behind[1], p.mu.behind[2] = "50", "90"
	s := &groupState{}
	p.plan("60", s)
	p.record("", s)
	if p.mu.behind[1] != "60" || p.mu.behind[2] != "90" {
		t.Errorf("tables are at %v, want 60 and 90", p.mu.behind)
	}
}

// TestTableStopsAfterIdle: a table stops where the stream was idle last, which the source
// has let go, not at the commit before.
func TestTableStopsAfterIdle(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{})
	w.begin()
	w.insert(1, 1, "a")
	w.commit("100")
	w.expect("100", []int64{1, 1})
	if err := w.Idle("150"); err != nil {
		t.Fatal(err)
	}
	if _, idle, _ := w.take(); idle != "150" {
		t.Fatalf("idle at %q", idle)
	}
	w.begin()
	w.insert(1, 2, "b")
	if err := w.StopTable(2, &TableError{Reason: "made to", Hint: ""}); err != nil {
		t.Fatal(err)
	}
	w.commit("160")
	g, _, _ := w.take()
	defer g.release()
	if len(g.stops) != 1 || g.stops[0].At != "150" || g.position != "160" {
		t.Errorf("group at %q with stops %+v, want 160 and a stop at 150", g.position, g.stops)
	}
}

// TestTableStopsWhereItIs: while the stream repeats for another table what this one has,
// it stops where it is, so that it does not get that again once it is resumed.
func TestTableStopsWhereItIs(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{compare: numerically, from: "50"})
	w.tables[2].after = "200"
	w.begin()
	w.insert(1, 1, "a")
	w.commit("60")
	w.expect("60", []int64{1, 1})
	w.begin()
	if err := w.StopTable(2, &TableError{Reason: "made to", Hint: ""}); err != nil {
		t.Fatal(err)
	}
	w.commit("210")
	g, _, _ := w.take()
	defer g.release()
	if len(g.stops) != 1 || g.stops[0].At != "200" {
		t.Errorf("stops %+v, want one at 200", g.stops)
	}
}
