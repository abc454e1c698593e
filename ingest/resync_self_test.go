package ingest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// changing is a world in which a table stops for something that a new copy takes in, at the
// first change after position 1000 that comes before there is a new copy.
func changing(t *testing.T, table string, with map[string]string) *world {
	t.Helper()
	var w *world
	anew := begunAnew(table)
	enabled := func() bool { // the catalog is another one only when no session runs
		snap := w.catalog.Snapshot()
		defer snap.Close()
		return !anew(snap)
	}
	w = newWorldAs(t, func(made *world) {
		w = made
		made.factory = aheadFactory(small, func(s ingest.Source) ingest.Source {
			return &stopper{Source: s, at: 1000, table: table, enabled: enabled, acks: func(change.Position) {}, resync: true}
		})
	})
	err := w.catalog.Update(context.Background(), func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("shop")
		if err != nil {
			return err
		}
		for name, value := range with {
			p.Options[name] = value
		}
		return txn.PutPipeline(p)
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// begunAnew says that a table's new copy was begun.
func begunAnew(table string) func(*catalog.Snapshot) bool {
	return func(s *catalog.Snapshot) bool {
		all, err := s.Events(1000)
		return err == nil && slices.ContainsFunc(all, func(e catalog.Event) bool {
			return e.Kind == "table copied anew" && e.Table == "shop."+table
		})
	}
}

// TestResyncsItself: a table of which the stream does not tell all is copied anew by itself,
// wherever the server dies meanwhile, with a key and without, and is told of.
func TestResyncsItself(t *testing.T) {
	for _, table := range []string{"payments", "visits"} {
		for _, kill := range []killPoint{beforeDurable, beforePublish, beforeReturn} {
			w := changing(t, table, nil)
			anew := func(s *catalog.Snapshot) bool {
				return w.position(s) == "2500" && allIn(s, catalog.TableReady) && allPlaced(s) && begunAnew(table)(s)
			}
			for n := range 3 {
				died := w.disk.killAt(kill, 5*n)
				w.startDoomed()
				w.awaitDeathOr(died, anew)
				w.stop()
				w.disk.revive()
				w.boot()
			}
			w.start()
			w.await("copied anew", anew)
			w.expect(small, 2500)
			events := w.events("table copied anew")
			if len(events) != 1 || events[0] != "shop."+table+": made to stop" {
				t.Errorf("%s: events %q", table, events)
			}
			if stops := w.events("table stopped"); len(stops) > 0 {
				t.Errorf("%s: %q", table, stops)
			}
		}
	}
}

// TestResyncsItselfNot: where it is declared, or nothing is to be copied, the table stops, until
// the declaration changes.
func TestResyncsItselfNot(t *testing.T) {
	for _, with := range []map[string]string{{"on_schema_change": "stop"}, {"copy_data": "false"}} {
		w := changing(t, "payments", with)
		w.start()
		w.await("stopped", func(s *catalog.Snapshot) bool {
			return w.position(s) == "2500" && w.tableIn(s, "payments").State == catalog.TableStopped
		})
		if st := w.statusOf("payments"); st.State != string(catalog.TableStopped) || st.Reason != "made to stop" || st.Hint != "Resume it." {
			t.Errorf("%v: %+v", with, st)
		}
		if stops := w.events("table stopped"); len(stops) != 1 || !strings.Contains(stops[0], "made to stop") {
			t.Errorf("%v: %q", with, stops)
		}
		if with["copy_data"] != "" {
			continue
		}
		w.option("on_schema_change", "resync")
		w.await("copied anew", func(s *catalog.Snapshot) bool {
			return allIn(s, catalog.TableReady) && allPlaced(s) && begunAnew("payments")(s)
		})
		w.expect(small, 2500)
	}
}
