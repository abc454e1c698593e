package ingest_test

import (
	"slices"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// publish has the sources of a world publish orders in another way, gap being in the way of it.
func (s *seenTables) publish(mark, how, gap string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark, s.published, s.gap = mark, map[string]string{"orders": how}, map[string]string{"orders": gap}
}

// TestUnpublished: a table of which changes may have been left out is copied anew, once for each
// time; not before what is in the way of it is gone; and not where nothing is to be copied: there it
// stops, and goes on when somebody resumes it.
func TestUnpublished(t *testing.T) {
	w, seen := watching(t)
	copied := func() []string { return w.events("table copied anew") }
	seen.publish("1", "first", "")
	seen.awaitLook(w)
	w.stop()
	w.boot()
	w.start()
	seen.publish("2", "first", "")
	seen.awaitLook(w)
	if got := w.table("orders").Published; got != "first" || len(copied()) > 0 {
		t.Fatalf("published %q, copied %q", got, copied())
	}
	seen.publish("3", "second", "")
	w.await("copied anew", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").Generation == 1 })
	seen.awaitLook(w)
	if got := copied(); !slices.Equal(got, []string{"shop.orders: it was published as first"}) || w.table("orders").Published != "second" {
		t.Fatalf("published %q, copied %q", w.table("orders").Published, got)
	}
	w.expect(small, 2500)

	seen.publish("4", "third", "Mend it.")
	seen.awaitLook(w)
	if st := w.statusOf("orders"); st.State != string(catalog.TableStopped) || st.Reason != "it was published as second" || st.Hint != "Mend it." || len(copied()) != 1 {
		t.Errorf("orders is %+v, copied %q", st, copied())
	}
	seen.publish("5", "third", "")
	w.await("copied anew", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").Generation == 2 })
	seen.awaitLook(w)
	if st := w.statusOf("orders"); st.Reason != "" || len(copied()) != 2 {
		t.Errorf("orders is %+v, copied %q", st, copied())
	}

	w.option("copy_data", "false")
	seen.publish("6", "fourth", "")
	w.await("stopped", func(s *catalog.Snapshot) bool { return w.tableIn(s, "orders").State == catalog.TableStopped })
	if o := w.table("orders"); o.Reason != "it was published as third" || o.Hint != "Copy it anew: ALTER PIPELINE shop RESYNC TABLE shop.orders;" || len(copied()) != 2 {
		t.Errorf("orders is %+v, copied %q", o, copied())
	}
	w.resync("orders")
	w.await("copied anew", func(s *catalog.Snapshot) bool {
		o := w.tableIn(s, "orders")
		return o.Generation == 3 && o.State == catalog.TableReady && o.Published == "fourth"
	})
	w.expect(small, 2500)
}

var _ ingest.TableWatcher = (*watched)(nil)
