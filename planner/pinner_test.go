package planner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// TestPlanWithoutSQL pins a table as a statement does, and runs the plan later: what
// is appended in between is not in it.
func TestPlanWithoutSQL(t *testing.T) {
	w := newWorld(t)
	w.put("1 a 10", "2 b 20")
	p := &planner.Pinner{Catalog: w.cat, LogDir: func(change.PipelineID) string { return "logs" }}
	snap := w.cat.Snapshot()
	pin, err := p.Plan(t.Context(), snap, []planner.TableUse{planner.WholeTable(w.table)})
	snap.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	w.put("3 c 30")
	r := pin.Relations[0]
	if r.Name != "shop.orders" || len(r.Columns) != 3 || len(r.Key) != 1 || r.Key[0] != "id" || len(r.Files) != 0 {
		t.Errorf("relation %+v", r)
	}
	if r.Live == nil || len(r.Live.Slices) != 1 || r.Live.Slices[0].Rows != 2 || r.Live.Dir != "logs" ||
		len(r.Live.Fields[w.table.Current.Version]) != 3 {
		t.Errorf("live side %+v", r.Live)
	}
	snap = w.cat.Snapshot()
	defer snap.Close()
	if _, err := p.Plan(t.Context(), snap, []planner.TableUse{{Table: 99}}); !errors.Is(err, catalog.ErrTableNotFound) {
		t.Errorf("plan of a table that does not exist = %v", err)
	}
}

// TestRunPinnedTakesNewPins after a slice was lost, each at a new moment, and never
// inside a transaction that reads one moment.
func TestRunPinnedTakesNewPins(t *testing.T) {
	lost := fmt.Errorf("test: %w", duckdb.ErrSliceLost)
	other := errors.New("other")
	for _, c := range []struct {
		name   string
		held   bool
		loses  int
		err    error
		takes  int
		tooOld bool
	}{
		{name: "at once", takes: 1},
		{name: "three times lost", loses: 3, takes: 4},
		{name: "four times lost", loses: 4, takes: 4, tooOld: true},
		{name: "held", held: true, loses: 1, takes: 1, tooOld: true},
		{name: "another error", err: other, takes: 1},
	} {
		takes, released, loses := 0, 0, c.loses
		err := planner.RunPinned(c.held, func() (*catalog.Snapshot, func()) {
			takes++
			return nil, func() { released++ }
		}, func(*catalog.Snapshot) (int, error) { return takes, nil }, func(pin int) error {
			if pin != takes || released != takes {
				t.Errorf("%s: pin %d runs after %d takes and %d releases", c.name, pin, takes, released)
			}
			if loses > 0 {
				loses--
				return lost
			}
			return c.err
		})
		if takes != c.takes || planner.TooOld(err) != c.tooOld || !c.tooOld && !errors.Is(err, c.err) {
			t.Errorf("%s: %d takes, err %v", c.name, takes, err)
		}
	}
}

// imageInMemory is a catalog's backup.
type imageInMemory struct{ image []byte }

func (m *imageInMemory) Read() ([]byte, error) { return m.image, nil }

func (m *imageInMemory) Write(image []byte) error {
	m.image = slices.Clone(image)
	return nil
}

// TestNotRebuilt: a table of a pipeline that could not be rebuilt has lost rows, so nothing
// of it is read; the query says why, and does not ask to be run again.
func TestNotRebuilt(t *testing.T) {
	backup := &imageInMemory{}
	open := func() *catalog.Catalog {
		clock, ids := env.System()
		c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: ids, Key: make([]byte, 32), Backup: backup})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	w := newWorld(t)
	c := open()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var table *catalog.Table
	must(c.Update(t.Context(), func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "Shop", Connection: "pg"}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		table = &catalog.Table{Pipeline: p.ID, Schema: "s", Name: "t", Current: w.table.Current, State: catalog.TableReady}
		return txn.CreateTable(table)
	}))
	must(c.Backup(t.Context()))
	c = open() // without what the store had
	plan := func() error {
		snap := c.Snapshot()
		defer snap.Close()
		pinner := &planner.Pinner{Catalog: c, LogDir: func(change.PipelineID) string { return "logs" }}
		pin, err := pinner.Plan(t.Context(), snap, []planner.TableUse{planner.WholeTable(table)})
		if err == nil {
			pin.Release()
		}
		return err
	}
	must(plan())
	must(c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.FailRebuild(table.Pipeline, "segment 4 is damaged") }))
	e, ok := pgerr.As(plan())
	if !ok || e.Code != "55000" || e.Detail != "Its pipeline could not be rebuilt after the loss of the catalog: segment 4 is damaged." ||
		!strings.Contains(e.Hint, `DROP PIPELINE "Shop";`) {
		t.Errorf("%+v", e)
	}
	must(c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.FinishRebuild(table.Pipeline) }))
	must(plan())
}
