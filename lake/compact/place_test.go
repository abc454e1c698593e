package compact_test

import (
	"testing"

	icecat "github.com/apache/iceberg-go/catalog"

	"github.com/skipprd/skipprd/catalog"
)

// TestCopyGetsTheName: the lake table of a copy that took a table's place has that one's name
// soon, with the other's data gone, though there is nothing to compact; also after a restart.
func TestCopyGetsTheName(t *testing.T) {
	for _, dropFirst := range []bool{true, false} {
		w := newWorld(t)
		w.append("", "+1 old")
		w.compact()
		before := w.table.ID
		c := &catalog.Table{Pipeline: w.pid, CopyOf: before, Current: people(t), State: catalog.TableReady, Generation: 2}
		w.update(func(txn *catalog.Txn) error { return txn.CreateCopy(c) })
		w.table = c
		w.append("", "+1 new", "+2 new")
		w.compact()
		w.update(func(txn *catalog.Txn) error { return txn.TakePlace(c.ID) })
		drop := func() {
			if err := w.svc.DropTable(t.Context(), before); err != nil {
				t.Fatal(err)
			}
		}
		if dropFirst {
			drop()
		}
		w.reopen()
		if more, err := w.svc.StepTable(t.Context(), c.ID, false); more || err != nil {
			t.Fatalf("step: %v, %v", more, err)
		}
		if !dropFirst {
			drop()
		}
		var names []string
		for ident, err := range w.wh.Catalog().ListTables(t.Context(), []string{"public"}) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, icecat.TableNameFromIdent(ident))
		}
		if len(names) != 1 || names[0] != "people" {
			t.Errorf("dropped first %v: lake tables %v", dropFirst, names)
		}
		w.wantRows("1 new", "2 new")
	}
}
