package ingest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// sinkWorld is a batcher with one or two tables (int8 id, text v) on a fake clock.
type sinkWorld struct {
	*batcher
	t     *testing.T
	clock *env.Fake
	token int64
}

func newSinkWorld(t *testing.T, cfg batcherConfig) *sinkWorld {
	t.Helper()
	clock := env.NewFake(time.Unix(1000, 0), 1)
	cfg.clock = clock
	if cfg.tasks == nil {
		cfg.tasks = env.Goroutines(clock)
	}
	if cfg.limit == 0 {
		cfg.limit = 1 << 20
	}
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20},
		{Name: "v", Type: schema.Type{Kind: schema.String}, OID: 25},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	for id := change.TableID(1); id <= 2; id++ {
		cfg.tables = append(cfg.tables, StreamTable{ID: id, Schema: s})
	}
	w := &sinkWorld{batcher: newBatcher(context.Background(), cfg), t: t, clock: clock}
	t.Cleanup(w.release)
	return w
}

func (w *sinkWorld) begin() {
	w.t.Helper()
	w.token++
	if err := w.Begin(w.token, w.clock.Now()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *sinkWorld) insert(table change.TableID, id int64, v string) {
	w.t.Helper()
	b, err := w.Builder(table)
	if err != nil {
		w.t.Fatal(err)
	}
	b.Add(change.Insert, w.token, 0)
	b.Column(0).(*array.Int64Builder).Append(id)
	b.Column(1).(*array.StringBuilder).Append(v)
}

func (w *sinkWorld) commit(at change.Position) {
	w.t.Helper()
	if err := w.Commit(at); err != nil {
		w.t.Fatal(err)
	}
}

// ids renders a group: per batch its table, "!" when it truncates, and its ids.
func (w *sinkWorld) ids(g *group) [][]int64 {
	w.t.Helper()
	if g == nil {
		return nil
	}
	defer g.release()
	var out [][]int64
	for _, b := range g.batches {
		row := []int64{int64(b.Table)}
		if b.Truncate {
			row = append(row, -1)
		}
		col := b.Record.Column(change.SystemColumns).(*array.Int64)
		row = append(row, col.Int64Values()...)
		if int64(b.Counts.Inserts) != b.Rows() {
			w.t.Errorf("batch of %d rows counts %+v", b.Rows(), b.Counts)
		}
		out = append(out, row)
	}
	return out
}

func equal(a, b [][]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return false
		}
		for j := range a[i] {
			if a[i][j] != b[i][j] {
				return false
			}
		}
	}
	return true
}

func (w *sinkWorld) expect(position change.Position, want ...[]int64) {
	w.t.Helper()
	g, _, _ := w.take()
	if g == nil {
		if want != nil {
			w.t.Fatalf("no group, want %v", want)
		}
		return
	}
	if g.position != position {
		w.t.Errorf("group ends at %q, want %q", g.position, position)
	}
	if got := w.ids(g); !equal(got, want) {
		w.t.Errorf("group has %v, want %v", got, want)
	}
}

// TestSinkGroups: what commits while a group is in flight shares the next one.
func TestSinkGroups(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{})
	w.expect("")
	w.begin()
	w.insert(1, 1, "a")
	w.expect("") // the transaction is open
	w.commit("p1")
	w.expect("p1", []int64{1, 1})
	w.begin()
	w.insert(2, 2, "b")
	w.commit("p2")
	w.begin()
	w.insert(1, 3, "c")
	w.insert(2, 4, "d")
	w.commit("p3")
	w.expect("p3", []int64{2, 2, 4}, []int64{1, 3})
	w.expect("")
}

// TestSinkLongTransaction: what was committed before a transaction opened does not
// wait for its end.
func TestSinkLongTransaction(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{})
	w.begin()
	w.insert(1, 1, "a")
	w.commit("p1")
	w.begin()
	w.insert(1, 2, "b")
	w.expect("p1", []int64{1, 1})
	w.commit("p2")
	w.expect("p2", []int64{1, 2})
}

func TestSinkTruncate(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{})
	w.begin()
	w.insert(1, 1, "a")
	if err := w.Truncate(1); err != nil {
		t.Fatal(err)
	}
	w.insert(1, 2, "b")
	if err := w.Truncate(2); err != nil {
		t.Fatal(err)
	}
	w.commit("p1")
	w.expect("p1", []int64{1, 1}, []int64{1, -1, 2}, []int64{2, -1})
}

// TestSinkStopTable: rows of the open transaction go, earlier ones of the same group
// stay, whatever a truncate has cut.
func TestSinkStopTable(t *testing.T) {
	for name, tc := range map[string]struct {
		before, during func(*sinkWorld)
		want           [][]int64
	}{
		"nothing": {func(*sinkWorld) {}, func(*sinkWorld) {}, nil},
		"rows before": {
			func(w *sinkWorld) { w.insert(1, 1, "a") },
			func(w *sinkWorld) { w.insert(1, 2, "b") },
			[][]int64{{1, 1}},
		},
		"only in the transaction": {
			func(*sinkWorld) {},
			func(w *sinkWorld) { w.insert(1, 2, "b") },
			nil,
		},
		"truncate in the transaction": {
			func(w *sinkWorld) { w.insert(1, 1, "a") },
			func(w *sinkWorld) { w.insert(1, 2, "b"); w.mustTruncate(1); w.insert(1, 3, "c") },
			[][]int64{{1, 1}},
		},
		"truncate before": {
			func(w *sinkWorld) { w.mustTruncate(1) },
			func(w *sinkWorld) { w.insert(1, 2, "b"); w.mustTruncate(1) },
			[][]int64{{1, -1}},
		},
		"two truncates, nothing before": {
			func(*sinkWorld) {},
			func(w *sinkWorld) { w.mustTruncate(1); w.insert(1, 3, "c"); w.mustTruncate(1) },
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSinkWorld(t, batcherConfig{from: "p0"})
			w.take()
			w.begin()
			tc.before(w)
			w.commit("p1")
			w.begin() // seals nothing: a group is in flight
			w.insert(2, 9, "other")
			tc.during(w)
			if err := w.StopTable(1, &TableError{Reason: "reason", Hint: "hint"}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Builder(1); err == nil {
				t.Error("a stopped table has a builder")
			}
			w.commit("p2")
			var stops []tableStop
			var got [][]int64
			for {
				g, _, _ := w.take()
				if g == nil {
					break
				}
				stops = append(stops, g.stops...)
				got = append(got, w.ids(g)...)
			}
			if want := append(tc.want, []int64{2, 9}); !equal(got, want) {
				t.Errorf("groups have %v, want %v", got, want)
			}
			if len(stops) != 1 || stops[0].At != "p1" || stops[0].Table != 1 {
				t.Errorf("stops %+v, want one at p1", stops)
			}
		})
	}
}

func (w *sinkWorld) mustTruncate(id change.TableID) {
	w.t.Helper()
	if err := w.Truncate(id); err != nil {
		w.t.Fatal(err)
	}
}

// TestSinkFreshness: a group waits for company as long as it may.
func TestSinkFreshness(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{freshness: time.Second})
	w.begin()
	w.insert(1, 1, "a")
	w.commit("p1")
	if g, _, wait := w.take(); g != nil || wait != time.Second {
		t.Fatalf("group %v, wait %v", g, wait)
	}
	w.clock.Advance(400 * time.Millisecond)
	if g, _, wait := w.take(); g != nil || wait != 600*time.Millisecond {
		t.Fatalf("group %v, wait %v", g, wait)
	}
	w.clock.Advance(600 * time.Millisecond)
	w.expect("p1", []int64{1, 1})
}

// TestSinkInterval: the first group goes at once, the next only after the interval.
func TestSinkInterval(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{interval: 40 * time.Millisecond})
	w.begin()
	w.insert(1, 1, "a")
	w.commit("p1")
	w.expect("p1", []int64{1, 1})
	w.begin()
	w.insert(1, 2, "b")
	w.commit("p2")
	if g, _, wait := w.take(); g != nil || wait != 40*time.Millisecond {
		t.Fatalf("group %v, wait %v", g, wait)
	}
	w.clock.Advance(40 * time.Millisecond)
	w.expect("p2", []int64{1, 2})
}

// TestSinkIdle: an idle position is given out only when nothing waits.
func TestSinkIdle(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{freshness: time.Second})
	w.begin()
	w.insert(1, 1, "a")
	w.commit("p1")
	if err := w.Idle("p7"); err != nil {
		t.Fatal(err)
	}
	if _, idle, _ := w.take(); idle != "" {
		t.Fatalf("idle at %q with a transaction waiting", idle)
	}
	w.clock.Advance(time.Second)
	w.expect("p7", []int64{1, 1}) // nothing else lies before it
	if _, idle, _ := w.take(); idle != "p7" {
		t.Errorf("idle at %q, want p7", idle)
	}
	if _, idle, _ := w.take(); idle != "" {
		t.Errorf("idle at %q twice", idle)
	}
}

// TestSinkFull: a full group holds the source until it is taken.
func TestSinkFull(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{limit: 100, freshness: time.Hour})
	w.begin()
	w.insert(1, 1, string(make([]byte, 200)))
	done := make(chan error, 1)
	go func() { done <- w.Commit("p1") }()
	<-w.wake
	select {
	case err := <-done:
		t.Fatalf("commit did not wait: %v", err)
	default:
	}
	w.expect("p1", []int64{1, 1})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	compare := func(a, b change.Position) int {
		switch {
		case len(a) != len(b):
			return len(a) - len(b)
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	p := newProgress(compare, "20", nil)
	p.mu.behind[1] = "10"
	p.mu.stopped[2] = "15"
	if from := p.from(); from != "10" {
		t.Errorf("from %q", from)
	}
	if at, ok := p.ack(); !ok || at != "10" {
		t.Errorf("ack %q %t", at, ok)
	}
	s := &groupState{}
	if at := p.plan("12", s); at != "" || len(s.Progress) != 1 || len(s.Reached) != 0 {
		t.Errorf("plan below the durable position: %q %+v", at, s)
	}
	p.record("", s)
	if at, ok := p.ack(); !ok || at != "12" {
		t.Errorf("ack %q %t", at, ok)
	}
	s = &groupState{}
	at := p.plan("25", s)
	if at != "25" || len(s.Reached) != 1 {
		t.Errorf("plan above: %q %+v", at, s)
	}
	p.record(at, s)
	if at, ok := p.ack(); !ok || at != "15" {
		t.Errorf("ack %q %t, want where table 2 stopped", at, ok)
	}
	p.idle("30")
	if at, ok := p.ack(); ok {
		t.Errorf("ack %q past a stopped table", at)
	}
	delete(p.mu.stopped, 2)
	if at, ok := p.ack(); !ok || at != "25" {
		t.Errorf("ack %q %t", at, ok)
	}
}

// TestUntil: what comes up to the end of a group that was refused is a group of its own, also
// when the appender is slow, so that nothing later can have it refused again.
func TestUntil(t *testing.T) {
	w := newSinkWorld(t, batcherConfig{
		until: "2", from: "0", freshness: time.Hour, compare: func(a, b change.Position) int { return strings.Compare(string(a), string(b)) },
	})
	for i := range int64(4) {
		w.begin()
		w.insert(1, i+1, "")
		w.commit(change.Position(fmt.Sprint(i + 1)))
	}
	for _, want := range []string{"[[1 1 2]]", "[]", "[[1 3 4]]", "[]"} {
		g, _, _ := w.take()
		if g == nil {
			w.clock.Advance(time.Hour)
		}
		if got := fmt.Sprint(w.ids(g)); got != want {
			t.Errorf("group %s, want %s", got, want)
		}
	}
}

// TestTakeLetters: what a stream has done with letters that are not durable is taken back, the
// last first, and what is durable stays.
func TestTakeLetters(t *testing.T) {
	open := deadletter.NewOpen(10, map[change.TableID]uint32{1: 1, 2: 1})
	w := newSinkWorld(t, batcherConfig{letters: open})
	refuse := func(key, at string) {
		t.Helper()
		w.begin()
		w.insert(1, 1, "")
		if err := w.Refuse(1, deadletter.Refused{Op: change.Insert, Token: w.token, Key: key, Row: key + at}); err != nil {
			t.Fatal(err)
		}
		w.commit(change.Position(at))
	}
	refuse("a", "1")
	durable, _, _ := w.take()
	durable.release()
	refuse("a", "2")
	refuse("b", "2")
	g, _, _ := w.take()
	defer g.release()
	refuse("a", "3")
	w.begin()
	if err := w.Passed(1, "b"); err != nil {
		t.Fatal(err)
	}
	w.takeLetters(g)
	for key, want := range map[string]string{"a": "a1", "b": ""} {
		if got, _ := open.Table(1).Row(key); got != want {
			t.Errorf("letter of %s has %q, want %q", key, got, want)
		}
	}
}
