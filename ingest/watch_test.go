package ingest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/watch"
)

// seenTables is what the watched sources of a world have.
type seenTables struct {
	mu    sync.Mutex
	mark  string
	acted string // the mark up to which there was nothing left to act on
	found func([]ingest.SourceTable) []ingest.SourceTable
	known func(map[uint32]watch.There)
	// refused are tables that cannot be published.
	refused map[string]*ingest.TableError
	// published is how a table is published, gap what is in the way of publishing it.
	published map[string]string
	gap       map[string]string
}

func (s *seenTables) change(mark string, found func([]ingest.SourceTable) []ingest.SourceTable, known func(map[uint32]watch.There)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark, s.found, s.known = mark, found, known
}

// awaitLook waits until what was changed last has been acted on.
func (s *seenTables) awaitLook(w *world) {
	w.t.Helper()
	w.poll("a look at the source", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.acted == s.mark
	})
}

type watched struct {
	ingest.Source
	seen *seenTables
}

func (w *watched) Look(ctx context.Context, sel catalog.TableSelection, here []watch.Here, last string) (ingest.Look, error) {
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	if w.seen.mark == last {
		w.seen.acted = last
		return ingest.Look{Mark: last}, nil
	}
	found, err := w.Discover(ctx, sel)
	if err != nil {
		return ingest.Look{}, err
	}
	l := ingest.Look{Mark: w.seen.mark, Found: found, Known: map[uint32]watch.There{}, Published: map[uint32]string{}}
	for _, h := range here {
		there := watch.There{OID: h.OID, Schema: h.Schema, Name: h.Name}
		switch now := w.seen.published[h.Name]; {
		case h.Published != "" && h.Published != now:
			there.Gap = &watch.Gap{Reason: "it was published as " + h.Published, Hint: w.seen.gap[h.Name]}
		case now != "":
			l.Published[h.OID] = now
		}
		l.Known[h.OID] = there
	}
	if w.seen.found != nil {
		l.Found = w.seen.found(l.Found)
	}
	if w.seen.known != nil {
		w.seen.known(l.Known)
	}
	return l, nil
}

func (w *watched) Setup(ctx context.Context, state []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	r, err := w.Source.Setup(ctx, state, tables)
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	r.Published = map[uint32]string{}
	for _, t := range tables {
		r.Published[t.OID] = w.seen.published[t.Name]
		if why := w.seen.refused[t.Name]; why != nil && !r.Created {
			r.Refused = map[uint32]*ingest.TableError{t.OID: why}
		}
	}
	return r, err
}

func watching(t *testing.T) (*world, *seenTables) {
	t.Helper()
	seen := &seenTables{mark: "0"}
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source { return &watched{s, seen} }))
	w.start()
	w.awaitReady("2500")
	return w, seen
}

func (w *world) option(name, value string) {
	w.t.Helper()
	err := w.catalog.Update(context.Background(), func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("shop")
		if err != nil {
			return err
		}
		p.Options[name] = value
		return txn.PutPipeline(p)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) events(kind string) (details []string) {
	w.t.Helper()
	snap := w.catalog.Snapshot()
	defer snap.Close()
	all, err := snap.Events(1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == kind {
			details = append(details, e.Table+": "+e.Detail)
		}
	}
	return details
}

func hasTable(name string) func(*catalog.Snapshot) bool {
	return func(s *catalog.Snapshot) bool {
		_, err := s.TableByName("shop", name)
		return err == nil
	}
}

// TestNewTable takes a table in that comes at the source, unless that is turned off, and
// stops it alone when it cannot be published.
func TestNewTable(t *testing.T) {
	w, seen := watching(t)
	if err := w.supervisor.DropTable(context.Background(), "shop", named("payments")); err != nil {
		t.Fatal(err)
	}
	err := w.catalog.Update(context.Background(), func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("shop")
		if err != nil {
			return err
		}
		p.Selection.Except = nil
		p.Options["auto_refresh"] = "false"
		return txn.PutPipeline(p)
	})
	if err != nil {
		t.Fatal(err)
	}
	seen.change("1", nil, nil)
	seen.awaitLook(w)
	if len(w.events("table taken in")) != 0 {
		t.Error("a table was taken in in spite of auto_refresh = false")
	}
	w.option("auto_refresh", "true")
	seen.mu.Lock()
	seen.refused = map[string]*ingest.TableError{"payments": {Reason: "not ours", Hint: "ALTER PIPELINE … RESUME TABLE …;"}}
	seen.mu.Unlock()
	seen.change("2", nil, nil)
	w.await("taken in", hasTable("payments"))
	w.await("stopped", func(s *catalog.Snapshot) bool { return w.tableIn(s, "payments").State == catalog.TableStopped })
	p := w.table("payments")
	if p.Reason != "not ours" || p.Hint != "ALTER PIPELINE shop RESUME TABLE shop.payments;" || p.StoppedAt != "" {
		t.Errorf("payments: %s. %s at %q", p.Reason, p.Hint, p.StoppedAt)
	}
	w.await("others go on", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").State == catalog.TableReady })
	seen.mu.Lock()
	seen.refused = nil
	seen.mu.Unlock()
	if err := w.supervisor.ResumeTable(context.Background(), "shop", named("payments")); err != nil {
		t.Fatal(err)
	}
	w.awaitReady("2500")
	w.expect(small, 2500)
}

// TestDroppedTable keeps what a table has that the source has no more, and says so once;
// one made anew under its name is copied, unless that is to stop it.
func TestDroppedTable(t *testing.T) {
	w, seen := watching(t)
	oid := w.table("orders").SourceOID
	gone := func(known map[uint32]watch.There) { delete(known, oid) }
	without := func(found []ingest.SourceTable) (out []ingest.SourceTable) {
		for _, f := range found {
			if f.OID != oid {
				out = append(out, f)
			}
		}
		return out
	}
	seen.change("1", without, gone)
	w.await("gone", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").Away != "" })
	if st := w.statusOf("orders"); st.State != ingest.StateGone || !strings.Contains(st.Hint, "ALTER PIPELINE shop DROP TABLE shop.orders;") {
		t.Errorf("orders is %+v", st)
	}
	w.expect(small, 2500)
	seen.change("2", without, gone)
	seen.awaitLook(w)
	if events := w.events("table gone at the source"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
	w.option("on_recreate", "stop")
	seen.change("3", func(found []ingest.SourceTable) []ingest.SourceTable {
		for i := range found {
			if found[i].OID == oid {
				found[i].OID = 999
			}
		}
		return found
	}, gone)
	w.await("replaced", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").Away == watch.Replaced })
	if c := copyOf(w.catalog.Snapshot(), "orders"); c != nil {
		t.Errorf("orders is copied anew as table %d", c.ID)
	}
	w.expect(small, 2500)
}

// TestReplacedByWhatCannotBe: a table that is made anew with a column whose name is ours keeps
// what it has, and says why; the others go on.
func TestReplacedByWhatCannotBe(t *testing.T) {
	w, seen := watching(t)
	oid := w.table("orders").SourceOID
	seen.change("1", func(found []ingest.SourceTable) []ingest.SourceTable {
		for i := range found {
			if f := &found[i]; f.OID == oid {
				f.OID, f.Columns = 999, slices.Clone(f.Columns)
				f.Columns[len(f.Columns)-1].Name = "_skippr_lsn"
			}
		}
		return found
	}, func(known map[uint32]watch.There) { delete(known, oid) })
	w.await("left", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").Away != "" })
	seen.awaitLook(w)
	if o := w.table("orders"); !strings.HasPrefix(o.Away, watch.Replaced+", which cannot be taken in: ") || !strings.Contains(o.Away, "_skippr_lsn") {
		t.Errorf("orders: %s", o.Away)
	}
	w.expect(small, 2500)
}

// TestPartitions copies a table anew whose partitions came or went with rows, or keeps it.
func TestPartitions(t *testing.T) {
	w, seen := watching(t)
	oid := w.table("orders").SourceOID
	parts := func(all ...watch.Part) func(map[uint32]watch.There) {
		return func(known map[uint32]watch.There) {
			t := known[oid]
			t.Parts = all
			known[oid] = t
		}
	}
	born, filled := watch.Part{OID: 7, Born: true}, watch.Part{OID: 8}
	seen.change("1", nil, parts(born))
	w.await("noted", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").PartsKnown })
	seen.change("2", nil, parts(born, filled))
	w.await("copied anew", func(s *catalog.Snapshot) bool {
		o := w.tableIn(s, "orders")
		return o.Generation == 1 && len(o.Parts) == 2
	})
	w.expect(small, 2500)
	unknown := false // then one that is attached before the next look would be taken for copied
	seen.change("2a", nil, parts())
	w.await("copied anew without any", func(s *catalog.Snapshot) bool {
		c, o := copyOf(s, "orders"), w.tableIn(s, "orders")
		unknown = unknown || c != nil && !c.PartsKnown
		return o.Generation == 2 && len(o.Parts) == 0
	})
	if unknown {
		t.Error("the new copy does not know that there are no partitions")
	}
	seen.change("2b", nil, parts(born, filled))
	w.await("copied anew with both", func(s *catalog.Snapshot) bool {
		o := w.tableIn(s, "orders")
		return o.Generation == 3 && len(o.Parts) == 2
	})
	w.expect(small, 2500)
	w.option("on_partition", "keep")
	seen.change("3", nil, parts(filled))
	w.await("kept", func(s *catalog.Snapshot) bool { return len(w.tableIn(s, "orders").Parts) == 1 })
	if o := w.table("orders"); o.Generation != 3 {
		t.Errorf("orders was copied anew: generation %d", o.Generation)
	}
	if events := w.events("partitions changed"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
	w.expect(small, 2500)
}

// TestCopyRests: a copy that nobody has asked for and that cannot be made is not begun again at
// once, which would begin the session, and the others with it, anew and anew. A copy that
// somebody asks for is.
func TestCopyRests(t *testing.T) {
	seen := &seenTables{mark: "0"}
	var broken atomic.Bool
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source {
		return &watched{&brokenTable{s, broken.Load}, seen}
	}))
	w.start()
	w.awaitReady("2500")
	oid := w.table("orders").SourceOID
	broken.Store(true)
	parts := func(n int) func(map[uint32]watch.There) {
		return func(known map[uint32]watch.There) {
			t := known[oid]
			for i := range n {
				t.Parts = append(t.Parts, watch.Part{OID: uint32(8 + i), Born: i == 0})
			}
			known[oid] = t
		}
	}
	seen.change("1", nil, parts(1))
	w.await("noted", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").PartsKnown })
	seen.change("2", nil, parts(2))
	w.await("given up", func(s *catalog.Snapshot) bool {
		o := w.tableIn(s, "orders")
		return o.GaveUp != nil && o.GaveUp.Times == 1 && o.State == catalog.TableReady
	})
	for _, mark := range []string{"3", "4"} { // of sessions that begin afterwards, too
		seen.change(mark, nil, parts(2))
		seen.awaitLook(w)
	}
	if o := w.table("orders"); o.GaveUp.Times != 1 || !strings.Contains(o.Reason, "column is gone") || len(w.events("table copied anew")) != 1 {
		t.Errorf("orders %+v, %s; %d copies", o.GaveUp, o.Reason, len(w.events("table copied anew")))
	}
	broken.Store(false)
	w.resync("orders")
	w.await("copied", func(s *catalog.Snapshot) bool {
		o := w.tableIn(s, "orders")
		return o.Generation > 0 && o.GaveUp == nil && o.State == catalog.TableReady
	})
	w.expect(small, 2500)
}

// TestReworded copies a table anew when the source writes what it has sent in another way,
// also when that is noticed while it is copied, or stops it.
func TestReworded(t *testing.T) {
	w, seen := watching(t)
	oid := w.table("orders").SourceOID
	column := w.table("orders").Current.Fields[1].AttNum
	forms := func(labels ...string) func(map[uint32]watch.There) {
		return func(known map[uint32]watch.There) {
			t := known[oid]
			t.Forms = []watch.Form{{Column: column, ID: "t", Text: "900"}}
			for i, l := range labels {
				t.Forms = append(t.Forms, watch.Form{Column: column, ID: fmt.Sprintf("e%d", i), Text: l})
			}
			known[oid] = t
		}
	}
	generation := func(n uint32) func(*catalog.Snapshot) bool {
		return func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").Generation == n }
	}
	seen.change("1", nil, forms("new"))
	w.await("noted", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").FormsKnown })
	seen.change("2", nil, forms("new", "paid"))
	w.await("noted", func(s *catalog.Snapshot) bool { return len(w.tableIn(s, "orders").Forms) == 3 })
	if w.table("orders").Generation != 0 {
		t.Error("a label that was added had orders copied anew")
	}
	seen.change("3", nil, forms("new", "settled"))
	w.await("copied anew", generation(1))
	w.expect(small, 2500)
	// The source of this test does not say how it wrote the rows of a copy.
	w.await("noted", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").FormsKnown })
	if events := w.events("table copied anew"); len(events) != 1 || !strings.Contains(events[0], "in another way now") {
		t.Errorf("events %q", events)
	}
	w.option("on_type_change", "stop")
	seen.change("4", nil, forms("fresh", "settled"))
	w.await("stopped", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").State == catalog.TableStopped })
	if o := w.table("orders"); o.Hint != "Copy it anew: ALTER PIPELINE shop RESYNC TABLE shop.orders;" || !o.Answers() {
		t.Errorf("orders is %+v", o)
	}
	w.await("others go on", func(s *catalog.Snapshot) bool { return w.tableIn(s, "customers").State == catalog.TableReady })
	seen.change("5", nil, forms("fresher", "settled"))
	seen.awaitLook(w)
	if events := w.events("table stopped"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
	w.resync("orders")
	w.await("copied anew", generation(2))
	w.expect(small, 2500)
}

// TestRenamedAtSource: a table goes on under its name here, and is selected under the one
// that it has at the source, also when the stream says nothing.
func TestRenamedAtSource(t *testing.T) {
	w, seen := watching(t)
	oid := w.table("orders").SourceOID
	err := w.catalog.Update(context.Background(), func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("shop")
		if err != nil {
			return err
		}
		p.Selection = catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "public", Name: "orders", AsText: []string{"x"}}}}
		return txn.PutPipeline(p)
	})
	if err != nil {
		t.Fatal(err)
	}
	seen.change("1", nil, func(known map[uint32]watch.There) {
		there := known[oid]
		there.Schema, there.Name = "sales", "old_orders"
		known[oid] = there
	})
	w.await("renamed", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").SourceSchema == "sales" })
	snap := w.catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline("shop")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Selection.Tables[0]; got.Schema != "sales" || got.Name != "old_orders" || len(got.AsText) != 1 {
		t.Errorf("selected is %+v", got)
	}
	if events := w.events("table renamed"); len(events) != 1 || !strings.HasSuffix(events[0], "public.orders is now called sales.old_orders at the source") {
		t.Errorf("events %q", events)
	}
	w.expect(small, 2500)
}
