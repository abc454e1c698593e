package ingest_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/wal/change"
)

// gate lets copies of a source's tables wait, or fail.
type gate struct {
	shut chan struct{} // closed: nobody waits
	fail atomic.Pointer[ingest.TableError]
}

type gated struct {
	ingest.Source
	gate *gate
}

func (g *gated) Backfill(ctx context.Context) (ingest.Backfill, error) {
	b, err := g.Source.Backfill(ctx)
	return &gatedBackfill{b, g.gate}, err
}

// Discover takes any filter for one of all rows.
func (g *gated) Discover(ctx context.Context, sel catalog.TableSelection) ([]ingest.SourceTable, error) {
	found, err := g.Source.Discover(ctx, sel)
	for i := range found {
		for _, w := range sel.Tables {
			if w.Name == found[i].Name {
				found[i].Filter = w.Where
			}
		}
	}
	return found, err
}

type gatedBackfill struct {
	ingest.Backfill
	gate *gate
}

func (g *gatedBackfill) Describe(ctx context.Context, wanted map[uint32]catalog.SelectedTable, outOfRangeText bool,
) (map[uint32]ingest.SourceTable, error) {
	found, err := g.Backfill.Describe(ctx, wanted, outOfRangeText)
	for oid, t := range found {
		t.Filter = wanted[oid].Where
		found[oid] = t
	}
	return found, err
}

func (g *gatedBackfill) Read(ctx context.Context, t ingest.SourceTable, s *schema.Table, chunk string,
	token int64, emit func(*change.Batch) error,
) error {
	select {
	case <-g.gate.shut:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := g.gate.fail.Load(); err != nil {
		return err
	}
	return g.Backfill.Read(ctx, t, s, chunk, token, emit)
}

// resyncing is a world whose table customers is being copied anew, and waits.
func resyncing(t *testing.T, cfg *generate.Config) (*world, *gate) {
	t.Helper()
	g := &gate{shut: make(chan struct{})}
	close(g.shut)
	w := newWorld(t, func(ctx context.Context, c ingest.ResolvedConnection, p *catalog.Pipeline, deps ingest.SourceDeps,
	) (ingest.Source, error) {
		return shopFactory(*cfg, func(s ingest.Source) ingest.Source { return &gated{s, g} })(ctx, c, p, deps)
	})
	w.start()
	w.awaitReady("2500")
	g.shut = make(chan struct{})
	w.resync("customers")
	return w, g
}

func (w *world) resync(name string) {
	w.t.Helper()
	if err := w.supervisor.ResyncTable(context.Background(), "shop", named(name)); err != nil {
		w.t.Fatal(err)
	}
}

func copyOf(s *catalog.Snapshot, name string) *catalog.Table {
	t, err := s.TableByName("shop", name)
	if err != nil {
		return nil
	}
	return s.CopyFor(t.ID)
}

// copying waits until the copy of customers is under way, and returns it.
func (w *world) copying() (c *catalog.Table) {
	w.t.Helper()
	w.await("copy under way", func(s *catalog.Snapshot) bool {
		c = copyOf(s, "customers")
		return c != nil && c.State == catalog.TableBackfill
	})
	return c
}

// TestResyncStaysReadable has a table answer, and follow the stream, while it is copied
// anew, over restarts; then the copy takes its place under the same name and number.
func TestResyncStaysReadable(t *testing.T) {
	cfg := small
	w, g := resyncing(t, &cfg)
	before := w.table("customers")
	w.copying()
	w.expect(small, 2500)
	if n := len(w.lake.ids); n != 0 {
		t.Errorf("lake tables dropped: %v", w.lake.ids)
	}
	w.stop()
	cfg.Transactions = 3000
	w.boot()
	w.start()
	c := w.copying()
	w.awaitReady("3000") // all that users know of
	w.expect(cfg, 3000)
	if now := w.table("customers"); now.ID != before.ID || now.State != catalog.TableReady {
		t.Errorf("customers is %d %s", now.ID, now.State)
	}
	if st := w.statusOf("customers"); st.State != ingest.StateResync || st.Backfill.Percent == 100 || st.Backfill.StartedAt.IsZero() {
		t.Errorf("status %+v", st)
	}
	close(g.shut)
	w.await("copy in its place", func(s *catalog.Snapshot) bool { return w.tableIn(s, "customers").ID == c.ID })
	w.expect(cfg, 3000)
	if st := w.statusOf("customers"); st.State != "ready" || st.Backfill.Percent != 100 || st.Backfill.Rows == 0 {
		t.Errorf("status %+v", st)
	}
	now := w.table("customers")
	if now.OID != before.OID || now.Face() != before.ID || now.Generation != before.Generation+1 {
		t.Errorf("customers has oid %d, face %d, generation %d", now.OID, now.Face(), now.Generation)
	}
	w.poll("lake side of the table before dropped", func() bool {
		w.lake.mu.Lock()
		defer w.lake.mu.Unlock()
		return slices.Equal(w.lake.ids, []change.TableID{before.ID})
	})
}

// TestResyncFiltered has a table answer as it was, while the others follow the stream,
// until its copy with another row filter is ready; and go on so when that is given up.
func TestResyncFiltered(t *testing.T) {
	cfg := small
	w, g := resyncing(t, &cfg)
	w.copying()
	read := func(s catalog.Slice) *change.Batch { return w.disk.read(s.Ref) }
	then := w.fold("customers", read)
	want := named("customers")
	want.Where = "id > 0"
	if err := w.supervisor.ResyncTable(context.Background(), "shop", want); err != nil {
		t.Fatal(err)
	}
	c := w.copying()
	if c.Filter != want.Where {
		t.Errorf("the copy has filter %q", c.Filter)
	}
	w.stop()
	cfg.Transactions = 3000
	w.boot()
	w.start()
	w.copying()
	w.await("others at 3000", func(s *catalog.Snapshot) bool { return w.position(s) == "3000" })
	w.same("customers", w.fold("customers", read), then)
	now := w.table("customers")
	if !now.Answers() || now.FrozenAt != "2500" || now.StoppedAt != "" || now.Hint != "SYNC PIPELINE shop waits for it." {
		t.Errorf("customers is %s at %q and %q: %s. %s", now.State, now.StoppedAt, now.FrozenAt, now.Reason, now.Hint)
	}
	g.fail.Store(&ingest.TableError{Reason: "a column is gone", Hint: "Copy it anew."})
	close(g.shut)
	w.await("copy given up", func(s *catalog.Snapshot) bool { return copyOf(s, "customers") == nil })
	w.same("customers", w.fold("customers", read), then)
	if now := w.table("customers"); !now.Answers() || !strings.HasSuffix(now.Reason, "given up: a column is gone") {
		t.Errorf("customers is %s: %s", now.State, now.Reason)
	}
	g.fail.Store(nil)
	w.resync("customers")
	w.await("copy in its place", func(s *catalog.Snapshot) bool { return w.tableIn(s, "customers").Filter == want.Where })
	w.expect(cfg, 3000)
	if now := w.table("customers"); now.State != catalog.TableReady || now.Reason != "" {
		t.Errorf("customers is %s: %s", now.State, now.Reason)
	}
}

// TestResyncAgain has the newest copy take the place, and none that came before.
func TestResyncAgain(t *testing.T) {
	cfg := small
	w, g := resyncing(t, &cfg)
	first := w.copying()
	w.resync("customers")
	second := w.copying()
	if first.ID == second.ID {
		t.Fatal("the copy under way was kept")
	}
	close(g.shut)
	w.await("copy in its place", func(s *catalog.Snapshot) bool { return w.tableIn(s, "customers").ID == second.ID })
	w.expect(small, 2500)
}

// TestResyncGoesWithItsTable leaves nothing of a copy whose table is dropped, or begun
// anew with its pipeline.
func TestResyncGoesWithItsTable(t *testing.T) {
	for name, act := range map[string]func(*ingest.Supervisor) error{
		"drop table": func(s *ingest.Supervisor) error { return s.DropTable(context.Background(), "shop", named("customers")) },
		"reset":      func(s *ingest.Supervisor) error { return s.Reset(context.Background(), "shop") },
		"drop": func(s *ingest.Supervisor) error {
			_, err := s.Drop(context.Background(), "shop", true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := small
			w, _ := resyncing(t, &cfg)
			c := w.copying()
			if err := act(w.supervisor); err != nil {
				t.Fatal(err)
			}
			snap := w.catalog.Snapshot()
			defer snap.Close()
			if _, err := snap.TableByID(c.ID); err == nil {
				t.Error("the copy is there")
			}
			w.lake.mu.Lock()
			defer w.lake.mu.Unlock()
			if !slices.Contains(w.lake.ids, c.ID) {
				t.Errorf("lake tables dropped: %v, not that of the copy, %d", w.lake.ids, c.ID)
			}
		})
	}
}

// TestCopyGivenUp has a table answer as before, and say why, when its copy cannot go on.
func TestCopyGivenUp(t *testing.T) {
	cfg := small
	w, g := resyncing(t, &cfg)
	w.copying()
	g.fail.Store(&ingest.TableError{Reason: "a column is gone", Hint: "Add it; then ALTER PIPELINE … RESUME TABLE …;"})
	synced := make(chan error, 1)
	go func() {
		_, err := w.supervisor.Sync(context.Background(), "shop", 0, func(ingest.PipelineStatus) {})
		synced <- err
	}()
	close(g.shut)
	w.await("copy given up", func(s *catalog.Snapshot) bool { return copyOf(s, "customers") == nil })
	now := w.table("customers")
	if now.State != catalog.TableReady || !strings.HasSuffix(now.Reason, "a column is gone") ||
		now.Hint != "Add it; then ALTER PIPELINE shop RESYNC TABLE shop.customers;" {
		t.Errorf("customers is %s: %s. %s", now.State, now.Reason, now.Hint)
	}
	w.expect(small, 2500)
	if err := <-synced; err != nil {
		t.Error(err)
	}
	g.fail.Store(nil)
	w.resync("customers")
	if _, err := w.supervisor.Sync(context.Background(), "shop", 0, func(ingest.PipelineStatus) {}); err != nil {
		t.Fatal(err)
	}
	if g := w.table("customers").Generation; g != 1 {
		t.Errorf("after a SYNC customers has generation %d", g)
	}
	w.expect(small, 2500)
	if now := w.table("customers"); now.Reason != "" || now.Hint != "" {
		t.Errorf("customers says %s. %s", now.Reason, now.Hint)
	}
}

// TestResyncKilled kills the server at each append while a table is copied anew: it
// answers after each start.
func TestResyncKilled(t *testing.T) {
	for _, kill := range []killPoint{beforeDurable, beforePublish, beforeReturn} {
		w := ready(t)
		w.resync("customers")
		for n := range 4 {
			died := w.disk.killAt(kill, n)
			if n == 0 {
				w.resync("visits")
			}
			w.awaitDeathOr(died, func(s *catalog.Snapshot) bool { return allPlaced(s) })
			w.stop()
			w.disk.revive()
			w.boot()
			w.expect(small, 2500)
		}
		w.start()
		w.await("copies in their places", allPlaced)
		w.expect(small, 2500)
		for _, name := range []string{"customers", "visits"} {
			if w.table(name).Generation == 0 { // a copy without a key begins anew after each kill
				t.Errorf("%s was not copied anew", name)
			}
		}
	}
}

func allPlaced(s *catalog.Snapshot) bool { return len(s.EveryTable()) == len(s.AllTables()) }

// awaitDeathOr waits until the disk has died, or cond holds.
func (w *world) awaitDeathOr(died <-chan struct{}, cond func(*catalog.Snapshot) bool) {
	w.t.Helper()
	w.poll("death or the end", func() bool {
		select {
		case <-died:
			return true
		default:
		}
		snap := w.catalog.Snapshot()
		defer snap.Close()
		return cond(snap)
	})
}

func (w *world) statusOf(table string) ingest.TableStatus {
	w.t.Helper()
	st, _ := w.supervisor.Status("shop")
	for _, t := range st.Tables {
		if t.Name == table {
			return t
		}
	}
	w.t.Fatalf("no status of %s", table)
	return ingest.TableStatus{}
}
