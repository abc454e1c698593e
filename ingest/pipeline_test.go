package ingest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/wal/change"
)

var small = generate.Config{Customers: 40, Orders: 120, Transactions: 2500, ChunkRows: 25}

// TestPipeline copies and follows the shop, and ends with what the oracle says.
func TestPipeline(t *testing.T) {
	w := newWorld(t, shopFactory(small, nil))
	w.start()
	w.awaitReady("2500")
	w.expect(small, 2500)
	w.poll("2500 transactions without lag", func() bool {
		st, ok := w.supervisor.Status("shop")
		return ok && st.Metrics.Transactions == 2500 && st.LagSeconds == 0 && st.Acked == "2500" &&
			st.State == string(catalog.PipelineRunning)
	})
}

// ackWatch checks each acknowledgement against the log (W1).
type ackWatch struct {
	ingest.Source
	w *world
}

func (a *ackWatch) Ack(p change.Position) {
	if p != "0" && a.Compare(p, a.w.disk.durable()) > 0 {
		a.w.t.Errorf("acknowledged %s, durable is %s", p, a.w.disk.durable())
	}
	a.Source.Ack(p)
}

// TestKill ends the server at each kind of instant of an append, at many appends, and
// starts it again: nothing is lost, nothing is twice, and nothing is acknowledged
// before it is durable.
func TestKill(t *testing.T) {
	for _, kill := range []killPoint{beforeDurable, beforePublish, beforeReturn} {
		for _, after := range []int{0, 1, 2, 3, 5, 8, 13, 20, 29} {
			t.Run(fmt.Sprintf("%d/%d", kill, after), func(t *testing.T) {
				t.Parallel()
				testKill(t, kill, after)
			})
		}
	}
}

func testKill(t *testing.T, kill killPoint, after int) {
	w := newWorldAs(t, func(w *world) {
		w.factory = aheadFactory(small, func(s ingest.Source) ingest.Source { return &ackWatch{s, w} })
	})
	for round := range 4 {
		w.dieOnce(kill, after+round)
		w.disk.revive()
		w.boot()
	}
	w.start()
	w.awaitReady("2500")
	w.expect(small, 2500)
}

// awaitEnd waits until the shop's history is at its end, or ctx is.
func (w *world) awaitEnd(ctx context.Context) {
	for {
		changed := w.catalog.Changed()
		snap := w.catalog.Snapshot()
		done := w.position(snap) == "2500" && allIn(snap, catalog.TableReady)
		snap.Close()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// stopper is a source that stops a table at a transaction until told otherwise.
type stopper struct {
	ingest.Source
	at      int64
	table   string
	enabled func() bool
	acks    func(change.Position)
	resync  bool // a new copy takes in what it stops at
}

func (s *stopper) Ack(p change.Position) {
	s.acks(p)
	s.Source.Ack(p)
}

func (s *stopper) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	ss := &stopSink{Sink: sink, s: s}
	for _, t := range tables {
		if t.Source.Name == s.table {
			ss.id, ss.columns = t.ID, len(t.Schema.Fields)
			ss.scratch = change.NewBuilder(memory.DefaultAllocator, t.ID, t.Schema.Version, t.Schema.Arrow())
		}
	}
	return s.Source.Stream(ctx, from, tables, ss)
}

type stopSink struct {
	ingest.Sink
	s       *stopper
	id      change.TableID
	columns int
	stopped bool
	scratch *change.Builder
	token   int64
}

func (s *stopSink) Begin(token int64, committedAt time.Time) error {
	s.token = token
	return s.Sink.Begin(token, committedAt)
}

// Builder hands out the real builder once more in the transaction that stops the
// table, so that what is added before the stop must be discarded.
func (s *stopSink) Builder(id change.TableID) (*change.Builder, error) {
	if id != s.id {
		return s.Sink.Builder(id)
	}
	if s.stopped {
		return s.scratch, nil
	}
	b, err := s.Sink.Builder(id)
	if err != nil || s.token < s.s.at || !s.s.enabled() {
		return b, err
	}
	s.stopped = true
	b.Add(change.Delete, s.token, 99)
	for i := range s.columns {
		b.Column(i).AppendNull()
	}
	return s.scratch, s.StopTable(id, &ingest.TableError{Reason: "made to stop", Hint: "Resume it.", Resync: s.s.resync})
}

// TestStoppedTable stops one table in the midst of the stream: the others go on, the
// acknowledged position stays where the table stopped, across a restart too, and
// RESUME brings exactly what was missed.
func TestStoppedTable(t *testing.T) {
	for _, table := range []string{"payments", "visits"} {
		t.Run(table, func(t *testing.T) { testStoppedTable(t, table) })
	}
}

func testStoppedTable(t *testing.T, table string) {
	var mu sync.Mutex
	enabled, acked := true, change.Position("")
	factory := shopFactory(small, func(s ingest.Source) ingest.Source {
		return &stopper{
			Source: s, at: 1000, table: table,
			enabled: func() bool { mu.Lock(); defer mu.Unlock(); return enabled },
			acks:    func(p change.Position) { mu.Lock(); defer mu.Unlock(); acked = p },
		}
	})
	w := newWorld(t, factory)
	w.start()
	stopped := func(s *catalog.Snapshot) bool {
		for _, tb := range s.AllTables() {
			want := catalog.TableReady
			if tb.Name == table {
				want = catalog.TableStopped
			}
			if tb.State != want {
				return false
			}
		}
		return w.position(s) == "2500"
	}
	w.await("the other tables at the end", stopped)
	at := w.table(table).StoppedAt
	check := func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if acked == "" || number(acked) > number(at) {
			t.Errorf("acknowledged %q with a table stopped at %q", acked, at)
		}
	}
	check()
	if number(at) < 990 || number(at) >= 1010 {
		t.Errorf("stopped at %s, want about 1000", at)
	}
	w.stop()
	w.boot()
	w.start()
	check()
	mu.Lock()
	enabled = false
	mu.Unlock()
	err := w.supervisor.ResumeTable(context.Background(), "shop", catalog.SelectedTable{Name: table})
	if err != nil {
		t.Fatal(err)
	}
	w.await("resumed table", func(s *catalog.Snapshot) bool {
		return allIn(s, catalog.TableReady) && w.tableIn(s, table).StoppedAt == ""
	})
	w.expect(small, 2500)
}

func (w *world) tableIn(s *catalog.Snapshot, name string) *catalog.Table {
	t, err := s.TableByName("shop", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}
