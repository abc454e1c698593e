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
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal/change"
)

// altered is a source whose one table has more columns from some moment on.
type altered struct {
	scripted
	at *alteredAt
}

// alteredAt is what outlives the connections of an altered source.
type alteredAt struct {
	sync.Mutex
	columns string
	key     bool
	refuse  error // of the next read
	always  bool  // of all reads
	slot    int
	read    []int       // how many columns each copy read
	onSlot  func(n int) // when the n-th slot is there
	onCopy  func()      // when the moment of a copy is fixed
	after   change.Position
}

func (s *altered) Discover(_ context.Context, sel catalog.TableSelection) ([]ingest.SourceTable, error) {
	named := slices.ContainsFunc(sel.Tables, func(w catalog.SelectedTable) bool { return w.Schema == "s" && w.Name == "t" })
	if !named && (!sel.AllTables || slices.Contains(sel.Except, "s.t")) {
		return nil, nil
	}
	return []ingest.SourceTable{s.at.described()}, nil
}

func (at *alteredAt) described() ingest.SourceTable {
	at.Lock()
	defer at.Unlock()
	cols, key := parseColumns(at.columns)
	if !at.key {
		key = nil
	}
	return ingest.SourceTable{Schema: "s", Name: "t", OID: 1, Columns: cols, Key: key}
}

func (s *altered) Setup(_ context.Context, state []byte, _ []ingest.SourceTable) (ingest.SetupResult, error) {
	if len(state) == 0 {
		s.at.slot++
		if s.at.onSlot != nil {
			s.at.onSlot(s.at.slot)
		}
	}
	return ingest.SetupResult{State: []byte("{}"), Created: len(state) == 0, Start: "0"}, nil
}

func (s *altered) Backfill(context.Context) (ingest.Backfill, error) {
	if s.at.onCopy != nil {
		s.at.onCopy()
	}
	return oneChunk{at: s.at}, nil
}

func (s *altered) Stream(ctx context.Context, _ change.Position, tables []ingest.StreamTable, _ ingest.Sink) error {
	s.at.Lock()
	for _, t := range tables {
		s.at.after = t.After
	}
	s.at.Unlock()
	<-ctx.Done()
	return context.Cause(ctx)
}

// oneChunk is the copy of a table of one chunk.
type oneChunk struct {
	noRows
	at *alteredAt
}

func (c oneChunk) Describe(context.Context, map[uint32]catalog.SelectedTable, bool) (map[uint32]ingest.SourceTable, error) {
	return map[uint32]ingest.SourceTable{1: c.at.described()}, nil
}

func (oneChunk) Horizon() change.Position { return "7" }

func (oneChunk) Plan(context.Context, ingest.SourceTable) ([]string, error) {
	return []string{"all"}, nil
}

func (c oneChunk) Read(_ context.Context, _ ingest.SourceTable, s *schema.Table, _ string, _ int64, _ func(*change.Batch) error) error {
	c.at.Lock()
	defer c.at.Unlock()
	c.at.read = append(c.at.read, len(s.Fields))
	err := c.at.refuse
	if !c.at.always {
		c.at.refuse = nil
	}
	return err
}

// TestCopyHasColumnsOfItsMoment: a copy that begins from its start, and that the stream does
// not follow from before it, reads the columns that the source has then.
func TestCopyHasColumnsOfItsMoment(t *testing.T) {
	const before, after = "id int4 1, v text 2", "id int4 1, v text 2, n int4 3"
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	alter := func(at *alteredAt) {
		at.Lock()
		defer at.Unlock()
		at.columns = after
	}
	retaken := &alteredAt{key: true}
	for _, c := range []struct {
		name  string
		at    *alteredAt
		first func(*alteredAt)
		again func(*world) error // nil: the first copy counts
	}{
		{
			"a table is altered before a reset", &alteredAt{key: true}, nil,
			func(w *world) error { return w.supervisor.Reset(ctx, "shop") },
		},
		{
			"a table is taken out, taken in again and altered before a reset", retaken, nil,
			func(w *world) error {
				retaken.Lock()
				retaken.columns = before
				retaken.Unlock()
				t := catalog.SelectedTable{Schema: "s", Name: "t"}
				err := w.supervisor.DropTable(ctx, "shop", t)
				if err == nil {
					_, err = w.supervisor.AddTables(ctx, "shop", []catalog.SelectedTable{t})
				}
				alter(retaken)
				return errors.Join(err, w.supervisor.Reset(ctx, "shop"))
			},
		},
		{
			"a table is altered while the slot is made", &alteredAt{key: true},
			func(at *alteredAt) { at.onSlot = func(int) { alter(at) } }, nil,
		},
		{
			"a table is altered after it was described, before the moment of its copy", &alteredAt{key: true},
			func(at *alteredAt) { at.onCopy = func() { alter(at) } }, nil,
		},
		{
			"a table whose copy stopped is altered and resumed",
			&alteredAt{key: true, refuse: &ingest.TableError{Reason: "it cannot be read"}}, nil,
			func(w *world) error {
				return w.supervisor.ResumeTable(ctx, "shop", catalog.SelectedTable{Schema: "s", Name: "t"})
			},
		},
		{
			"the copy of a table without key begins anew", &alteredAt{refuse: errors.New("connection lost")}, nil, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := c.at
			at.columns = before
			if c.first != nil {
				c.first(at)
			}
			keyless := !at.key
			w := newWorld(t, func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
				at.Lock()
				begun := len(at.read) > 0
				at.Unlock()
				if keyless && begun {
					alter(at)
				}
				return &altered{at: at}, nil
			})
			w.start()
			if c.again != nil {
				w.poll("first copy", func() bool { at.Lock(); defer at.Unlock(); return len(at.read) > 0 })
				w.await("copied or stopped", func(s *catalog.Snapshot) bool {
					state := w.tableIn(s, "t").State
					return state == catalog.TableReady || state == catalog.TableStopped || state == catalog.TableCatchup
				})
				alter(at)
				if err := c.again(w); err != nil {
					t.Fatal(err)
				}
			}
			w.poll("a copy with three columns", func() bool {
				at.Lock()
				defer at.Unlock()
				return len(at.read) > 0 && at.read[len(at.read)-1] == 3 && at.after == "7"
			})
		})
	}
}

// TestVoidCopiesEnd: a copy that is void each time begins anew, with pauses, and not for ever.
func TestVoidCopiesEnd(t *testing.T) {
	at := &alteredAt{key: true, columns: "id int4 1", always: true, refuse: &ingest.TableError{Reason: "columns change", Anew: true}}
	w := newWorld(t, func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
		return &altered{at: at}, nil
	})
	w.start()
	w.await("the table stands", func(s *catalog.Snapshot) bool { return w.tableIn(s, "t").State == catalog.TableStopped })
	at.Lock()
	defer at.Unlock()
	if n := len(at.read); n != 21 {
		t.Fatalf("%d copies", n)
	}
}

// renamedAt is a source whose table has another name than its pipeline knows.
type renamedAt struct{ altered }

func (s *renamedAt) Look(context.Context, catalog.TableSelection, []watch.Here, string) (ingest.Look, error) {
	return ingest.Look{Mark: "1", Known: map[uint32]watch.There{1: {OID: 1, Schema: "s", Name: "t"}}}, nil
}

// TestResyncFindsRenamed: a table that was renamed while it stood still is copied anew under
// the name that it has.
func TestResyncFindsRenamed(t *testing.T) {
	at := &alteredAt{key: true, columns: "id int4 1"}
	w := newWorld(t, func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
		return &renamedAt{altered{at: at}}, nil
	})
	w.start()
	read := func(n int) func() bool {
		return func() bool { at.Lock(); defer at.Unlock(); return len(at.read) == n }
	}
	w.poll("the first copy", read(1))
	err := w.catalog.Update(t.Context(), func(txn *catalog.Txn) error {
		old, err := txn.TableByName("shop", "t")
		if err != nil {
			return err
		}
		old.State, old.SourceName = catalog.TableStopped, "before"
		return txn.PutTable(old)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.supervisor.ResyncTable(t.Context(), "shop", catalog.SelectedTable{Schema: "shop", Name: "t"}); err != nil {
		t.Fatal(err)
	}
	w.poll("another copy", read(2))
	if got := w.table("t").SourceName; got != "t" {
		t.Errorf("it is called %q at the source", got)
	}
}

// TestTableOf: a table is found by its name at the source, by the one here, and without a
// schema when there is no other of the name.
func TestTableOf(t *testing.T) {
	at := &alteredAt{key: true, columns: "id int4 1"}
	w := newWorld(t, func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
		return &altered{at: at}, nil
	})
	w.start()
	for _, c := range []struct {
		schema, name string
		found        bool
	}{
		{"s", "t", true},
		{"shop", "t", true},
		{"", "t", true},
		{"public", "t", false},
		{"", "u", false},
	} {
		err := w.supervisor.ResumeTable(t.Context(), "shop", catalog.SelectedTable{Schema: c.schema, Name: c.name})
		if (err == nil) != c.found || err != nil && !errors.Is(err, catalog.ErrTableNotFound) {
			t.Errorf("%q.%q: %v", c.schema, c.name, err)
		}
	}
}
