package ingest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/wal/change"
)

func ready(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, shopFactory(small, nil))
	w.start()
	w.awaitReady("2500")
	return w
}

// rewritten is a source whose table is rewritten once while it is copied.
type rewritten struct {
	ingest.Source
	first *sync.Once
}

func (r *rewritten) Backfill(ctx context.Context) (ingest.Backfill, error) {
	b, err := r.Source.Backfill(ctx)
	return &rewrittenBackfill{b, r.first}, err
}

type rewrittenBackfill struct {
	ingest.Backfill
	first *sync.Once
}

func (r *rewrittenBackfill) Read(ctx context.Context, t ingest.SourceTable, s *schema.Table, chunk string,
	token int64, emit func(*change.Batch) error,
) error {
	err := r.Backfill.Read(ctx, t, s, chunk, token, emit)
	if t.Name == "orders" {
		r.first.Do(func() { err = &ingest.TableError{Reason: "the table was rewritten", Anew: true} })
	}
	return err
}

// TestVoidCopy begins the copy of a table that was rewritten anew, by itself, with what
// was read before it gone.
func TestVoidCopy(t *testing.T) {
	var first sync.Once
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source { return &rewritten{s, &first} }))
	w.start()
	w.awaitReady("2500")
	w.expect(small, 2500)
	if o := w.table("orders"); o.Generation != 1 || o.Backfill.Anew {
		t.Errorf("orders %+v", o)
	}
}

func named(name string) catalog.SelectedTable { return catalog.SelectedTable{Name: name} }

// TestReset begins again with nothing of the old generation.
func TestReset(t *testing.T) {
	w := ready(t)
	before := w.table("orders").Generation
	if err := w.supervisor.Reset(context.Background(), "shop"); err != nil {
		t.Fatal(err)
	}
	w.await("copied again", func(s *catalog.Snapshot) bool {
		return allIn(s, catalog.TableReady) && w.tableIn(s, "orders").Generation > before
	})
	w.expect(small, 2500)
	if len(w.lake.ids) != len(generate.Tables()) {
		t.Errorf("lake tables dropped: %v", w.lake.ids)
	}
}

// TestResync copies one table with a key and one without anew, while the others stay.
func TestResync(t *testing.T) {
	w := ready(t)
	for _, name := range []string{"customers", "visits"} {
		if err := w.supervisor.ResyncTable(context.Background(), "shop", named(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.await("copied again", func(s *catalog.Snapshot) bool {
		return allIn(s, catalog.TableReady) && w.tableIn(s, "visits").Generation == 1
	})
	w.expect(small, 2500)
	if g := w.table("orders").Generation; g != 0 {
		t.Errorf("orders has generation %d", g)
	}
}

// TestDropAndAddTable takes tables out and in again.
func TestDropAndAddTable(t *testing.T) {
	w := ready(t)
	ctx := context.Background()
	for _, name := range []string{"payments", "visits"} {
		if err := w.supervisor.DropTable(ctx, "shop", named(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.await("table gone", func(s *catalog.Snapshot) bool {
		return len(s.AllTables()) == len(generate.Tables())-2
	})
	added, err := w.supervisor.AddTables(ctx, "shop", []catalog.SelectedTable{named("payments"), named("visits")})
	if err != nil || !slices.Equal(added, []string{"public.payments", "public.visits"}) {
		t.Fatalf("added %v, %v", added, err)
	}
	w.await("ready", func(s *catalog.Snapshot) bool {
		return len(s.AllTables()) == len(generate.Tables()) && allIn(s, catalog.TableReady)
	})
	w.expect(small, 2500)
	if _, err := w.supervisor.AddTables(ctx, "shop", []catalog.SelectedTable{named("nonesuch")}); !errors.Is(err, catalog.ErrTableNotFound) {
		t.Errorf("adding a table that is not there: %v", err)
	}
	added, err = w.supervisor.AddTables(ctx, "shop", nil)
	if err != nil || len(added) != 0 {
		t.Errorf("refresh added %v, %v", added, err)
	}
}

// TestStopStart stops in the midst, stays still, and goes on.
func TestStopStart(t *testing.T) {
	w := newWorld(t, shopFactory(small, nil))
	ctx := context.Background()
	w.start()
	if err := w.supervisor.Stop(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	at := w.disk.durable()
	if err := w.supervisor.Stop(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if now := w.disk.durable(); now != at {
		t.Errorf("stopped at %s, now at %s", at, now)
	}
	w.start()
	w.awaitReady("2500")
	w.expect(small, 2500)
}

// TestDrop leaves nothing in the catalog.
func TestDrop(t *testing.T) {
	w := ready(t)
	left, err := w.supervisor.Drop(context.Background(), "shop", false)
	if err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	snap := w.catalog.Snapshot()
	defer snap.Close()
	if len(snap.Pipelines())+len(snap.AllTables()) != 0 {
		t.Errorf("still there: %s", w.describe())
	}
	if _, ok := w.supervisor.Status("shop"); ok {
		t.Error("status of a dropped pipeline")
	}
}

// TestSync returns when the pipeline has caught up, with what it took in.
func TestSync(t *testing.T) {
	w := newWorld(t, shopFactory(small, nil))
	w.start()
	synced, err := w.supervisor.Sync(context.Background(), "shop", 0, func(ingest.PipelineStatus) {})
	if err != nil || len(synced) != len(generate.Tables()) {
		t.Fatalf("synced %v, %v", synced, err)
	}
	for _, s := range synced {
		if s.State != string(catalog.TableReady) || s.LagSeconds < 0 || s.Rows == 0 {
			t.Errorf("synced %+v", s)
		}
	}
}

// TestSourceDown shows the reason, and goes on by itself when the source is back.
func TestSourceDown(t *testing.T) {
	var mu sync.Mutex
	down := true
	good := shopFactory(small, nil)
	w := newWorld(t, func(ctx context.Context, c ingest.ResolvedConnection, p *catalog.Pipeline, d ingest.SourceDeps) (ingest.Source, error) {
		s, err := good(ctx, c, p, d)
		mu.Lock()
		defer mu.Unlock()
		if down {
			return &unreachable{s}, err
		}
		return s, err
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.supervisor.Start(ctx, "shop"); !errors.Is(err, ingest.ErrSourceUnavailable) {
		t.Errorf("start: %v", err)
	}
	w.await("error", func(s *catalog.Snapshot) bool {
		p, err := s.Pipeline("shop")
		return err == nil && p.State == catalog.PipelineError && p.Reason != ""
	})
	mu.Lock()
	down = false
	mu.Unlock()
	w.awaitReady("2500")
	w.await("running", func(s *catalog.Snapshot) bool {
		p, err := s.Pipeline("shop")
		return err == nil && p.State == catalog.PipelineRunning && p.Reason == ""
	})
	w.expect(small, 2500)
}

type unreachable struct{ ingest.Source }

func (*unreachable) Discover(context.Context, catalog.TableSelection) ([]ingest.SourceTable, error) {
	return nil, errors.New("connection refused")
}

// brokenTable is a source that cannot copy one table until it is mended.
type brokenTable struct {
	ingest.Source
	broken func() bool
}

func (b *brokenTable) Backfill(ctx context.Context) (ingest.Backfill, error) {
	bf, err := b.Source.Backfill(ctx)
	return &brokenBackfill{bf, b.broken}, err
}

type brokenBackfill struct {
	ingest.Backfill
	broken func() bool
}

func (b *brokenBackfill) Read(ctx context.Context, t ingest.SourceTable, s *schema.Table, chunk string,
	token int64, emit func(*change.Batch) error,
) error {
	if t.Name == "orders" && b.broken() {
		return &ingest.TableError{Reason: "column is gone", Hint: "Copy it anew."}
	}
	return b.Backfill.Read(ctx, t, s, chunk, token, emit)
}

// TestBrokenCopy stops the table whose copy fails, alone, and RESUME copies it anew.
func TestBrokenCopy(t *testing.T) {
	var mu sync.Mutex
	broken := true
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source {
		return &brokenTable{s, func() bool { mu.Lock(); defer mu.Unlock(); return broken }}
	}))
	w.start()
	w.await("others ready", func(s *catalog.Snapshot) bool {
		for _, tb := range s.AllTables() {
			if want := catalog.TableReady; tb.Name != "orders" && tb.State != want {
				return false
			}
		}
		return w.tableIn(s, "orders").State == catalog.TableStopped && w.position(s) == "2500"
	})
	if o := w.table("orders"); o.Reason != "column is gone" || o.Hint != "Copy it anew." || o.StoppedAt != "" {
		t.Errorf("orders %+v", o)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	if err := w.supervisor.ResumeTable(context.Background(), "shop", named("orders")); err != nil {
		t.Fatal(err)
	}
	w.awaitReady("2500")
	w.expect(small, 2500)
}
