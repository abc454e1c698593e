package ingest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// slotted is a source with something to tear down, which may be out of reach.
type slotted struct {
	ingest.Source
	err  *atomic.Pointer[error]
	left []string
}

func (s *slotted) Setup(ctx context.Context, state []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	r, err := s.Source.Setup(ctx, state, tables)
	r.State = []byte("slot")
	return r, err
}

func (s *slotted) Teardown(context.Context, []byte) ([]string, error) {
	if err := s.err.Load(); err != nil {
		return s.left, *err
	}
	return s.left, nil
}

func slottedWorld(t *testing.T, left ...string) (*world, *atomic.Pointer[error]) {
	t.Helper()
	failure := &atomic.Pointer[error]{}
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source {
		return &slotted{Source: s, err: failure, left: left}
	}))
	w.start()
	w.awaitReady("2500")
	return w, failure
}

var errAway = errors.New("connection refused")

// TestResetUnreachable: with the source away nothing changes, so that the slot there is
// not forgotten; when it is back the reset works.
func TestResetUnreachable(t *testing.T) {
	w, failure := slottedWorld(t)
	failure.Store(&errAway)
	before := w.table("orders").Generation
	err := w.supervisor.Reset(context.Background(), "shop")
	if !errors.Is(err, ingest.ErrSourceUnavailable) || !errors.Is(err, errAway) {
		t.Fatalf("reset: %v", err)
	}
	snap := w.catalog.Snapshot()
	p, err := snap.Pipeline("shop")
	snap.Close()
	if err != nil || string(p.SourceState) != "slot" {
		t.Fatalf("source state %q, %v", p.SourceState, err)
	}
	if g := w.table("orders").Generation; g != before || len(w.lake.ids) != 0 {
		t.Fatalf("generation %d, lake tables dropped %v", g, w.lake.ids)
	}
	failure.Store(nil)
	if err := w.supervisor.Reset(context.Background(), "shop"); err != nil {
		t.Fatal(err)
	}
	w.await("copied again", func(s *catalog.Snapshot) bool {
		return allIn(s, catalog.TableReady) && w.tableIn(s, "orders").Generation > before
	})
	w.expect(small, 2500)
}

// TestResetElsewhere: what a reset cannot remove but nothing trips over is no obstacle.
func TestResetElsewhere(t *testing.T) {
	w, _ := slottedWorld(t, "Slot s stays.")
	if err := w.supervisor.Reset(context.Background(), "shop"); err != nil {
		t.Fatal(err)
	}
	w.await("copied again", func(s *catalog.Snapshot) bool {
		return allIn(s, catalog.TableReady) && w.tableIn(s, "orders").Generation > 0
	})
}

// TestDropUnreachable goes through, and says what stays.
func TestDropUnreachable(t *testing.T) {
	for _, told := range []string{"", "Slot s stays: SELECT pg_drop_replication_slot('s');"} {
		var left []string
		if told != "" {
			left = append(left, told)
		}
		w, failure := slottedWorld(t, left...)
		failure.Store(&errAway)
		got, err := w.supervisor.Drop(context.Background(), "shop", false)
		if err != nil || len(got) != 1 || told != "" && got[0] != told || !strings.Contains(got[0], "stays") {
			t.Fatalf("left %q, %v", got, err)
		}
	}
}

// TestDropKilled: what a drop that was killed halfway has not removed goes at the next
// start; kept data does not.
func TestDropKilled(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := ready(t)
		w.stop()
		var removed []change.PipelineID
		broken := errors.New("killed")
		w.removeLog = func(p change.PipelineID) error {
			removed = append(removed, p)
			return broken
		}
		w.lake.fail = broken
		w.boot()
		left, err := w.supervisor.Drop(context.Background(), "shop", keep)
		if err != nil || len(left) != 1 {
			t.Fatalf("left %q, %v", left, err)
		}
		w.stop()
		broken, w.lake.fail = nil, nil
		w.boot()
		w.awaitBegun()
		want := len(generate.Tables())
		if keep {
			want = 0
		}
		if len(removed) != 2 || len(w.lake.ids) != want {
			t.Errorf("keep %v: logs removed %v, lake tables dropped %v", keep, removed, w.lake.ids)
		}
		w.stop()
		w.boot()
		w.awaitBegun()
		if len(removed) != 2 || len(w.lake.ids) != want {
			t.Errorf("keep %v: removed again: %v, %v", keep, removed, w.lake.ids)
		}
		w.stop()
	}
}

// awaitBegun returns when the supervisor has begun: statements wait for that.
func (w *world) awaitBegun() {
	w.t.Helper()
	if err := w.supervisor.Stop(context.Background(), "nobody"); !errors.Is(err, catalog.ErrPipelineNotFound) {
		w.t.Fatal(err)
	}
}

// openLogs counts the open logs.
type openLogs struct {
	mu sync.Mutex
	n  int
}

func (o *openLogs) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n += n
}

func (o *openLogs) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

type countedLog struct {
	ingest.Log
	open *openLogs
}

func (l *countedLog) Close() error {
	l.open.add(-1)
	return l.Log.Close()
}

// hookStore calls a function before the next commit of facts.
type hookStore struct {
	kv.Store
	before atomic.Pointer[func()]
}

func (s *hookStore) NewIndexedBatch() kv.IndexedBatch {
	return &hookBatch{s.Store.NewIndexedBatch(), s}
}

type hookBatch struct {
	kv.IndexedBatch
	s *hookStore
}

func (b *hookBatch) Commit(sync bool) error {
	if f := b.s.before.Swap(nil); f != nil {
		(*f)()
	}
	return b.IndexedBatch.Commit(sync)
}

// TestDropWhileStopped: a statement that comes while the rows of a dropped pipeline go
// does not open its log again, which is then removed.
func TestDropWhileStopped(t *testing.T) {
	w := ready(t)
	w.stop()
	open := &openLogs{}
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		l, err := w.disk.open(ctx, p, w.catalog)
		if err == nil {
			open.add(1)
		}
		return &countedLog{l, open}, err
	}
	late := -1
	w.removeLog = func(change.PipelineID) error {
		late = open.count()
		return nil
	}
	store := &hookStore{Store: w.store}
	w.store = store
	w.boot()
	w.start()
	between := func() {
		if err := w.supervisor.Stop(context.Background(), "shop"); err != nil {
			t.Error(err)
		}
		clock, _ := env.System()
		for i := 0; i < 100 && open.count() == 0; i++ { // a host opens its log beside the statement
			_ = clock.Sleep(context.Background(), time.Millisecond) // not cancelled
		}
	}
	if err := w.supervisor.Stop(context.Background(), "shop"); err != nil { // nothing else commits then
		t.Fatal(err)
	}
	store.before.Store(&between)
	if left, err := w.supervisor.Drop(context.Background(), "shop", false); err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	if late != 0 {
		t.Errorf("%d logs were open when the log was removed", late)
	}
}
