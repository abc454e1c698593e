package catalog_test

import (
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/change"
)

func beginCopy(t testing.TB, c *catalog.Catalog, of change.TableID) *catalog.Table {
	t.Helper()
	tbl := &catalog.Table{Pipeline: 1, CopyOf: of, Current: testTable(t), State: catalog.TablePending}
	update(t, c, func(txn *catalog.Txn) error { return txn.CreateCopy(tbl) })
	return tbl
}

func names(tables []*catalog.Table) []string {
	out := []string{}
	for _, t := range tables {
		out = append(out, t.Name)
	}
	return out
}

// A copy stores and streams, and nobody else knows of it before it has its place.
func TestCopyIsHidden(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	b := beginCopy(t, c, 1)
	publish(t, c, group(1, 0, 1, b.ID))
	for _, s := range []*catalog.Snapshot{snapshot(t, c), snapshot(t, open(t, store))} {
		equal(t, "tables", names(s.Tables(1)), []string{"a", "b"})
		equal(t, "all tables", names(s.AllTables()), []string{"a", "b"})
		equal(t, "every table", names(s.EveryTable()), []string{"a", "a__copy_1", "b"})
		equal(t, "every table of the pipeline", names(s.EveryTableOf(1)), []string{"a", "a__copy_1", "b"})
		_, err := s.TableByName("s", "a__copy_1")
		is(t, "by name", err, catalog.ErrTableNotFound)
		_, err = s.TableByFace(b.ID)
		is(t, "by its own id", err, catalog.ErrTableNotFound)
		equal(t, "by face", get[*catalog.Table](t)(s.TableByFace(1)).ID, change.TableID(1))
		equal(t, "copy", s.CopyFor(1).ID, b.ID)
		equal(t, "slices", len(get[[]catalog.Slice](t)(s.Slices(1))), 2)
	}
}

// Who looks sees the table or the copy under the same name, object id and face.
func TestTakePlace(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	for turn := range 2 { // the second is a copy of the first
		before := get[*catalog.Table](t)(snapshot(t, c).TableByFace(1))
		b := beginCopy(t, c, before.ID)
		publish(t, c, group(1, 2*turn, before.ID, b.ID))
		update(t, c, func(txn *catalog.Txn) error { return txn.TakePlace(b.ID) })
		for _, s := range []*catalog.Snapshot{snapshot(t, c), snapshot(t, open(t, store))} {
			now := get[*catalog.Table](t)(s.TableByFace(1))
			equal(t, "id", now.ID, b.ID)
			equal(t, "face", now.Face(), change.TableID(1))
			equal(t, "oid", now.OID, before.OID)
			equal(t, "created", now.CreatedAt, before.CreatedAt)
			equal(t, "by name", get[*catalog.Table](t)(s.TableByName("s", "a")).ID, b.ID)
			equal(t, "every table", names(s.EveryTable()), []string{"a", "b"})
			equal(t, "live", len(get[[]catalog.Slice](t)(s.LiveSlices(b.ID))), 1)
			_, err := s.TableByID(before.ID)
			is(t, "the table before", err, catalog.ErrTableNotFound)
		}
		// A group of before that comes late keeps nothing.
		publish(t, c, group(1, 2*turn+1, before.ID))
	}
	equal(t, "leftovers", get[catalog.Leftovers](t)(snapshot(t, c).Leftovers()).Lakes, []change.TableID{1, 3})
}

// A copy goes with its table, with its pipeline, and when another begins.
func TestCopyGoes(t *testing.T) {
	for name, drop := range map[string]func(*catalog.Txn) error{
		"table":    func(txn *catalog.Txn) error { return txn.DeleteTable(1) },
		"pipeline": func(txn *catalog.Txn) error { return txn.DeletePipeline(1) },
		"copy":     func(txn *catalog.Txn) error { return txn.DropCopy(1) },
		"next": func(txn *catalog.Txn) error {
			return txn.CreateCopy(&catalog.Table{Pipeline: 1, CopyOf: 1, State: catalog.TablePending})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, memkv.New())
			shop(t, c)
			b := beginCopy(t, c, 1)
			publish(t, c, group(1, 0, b.ID))
			update(t, c, drop)
			s := snapshot(t, c)
			_, err := s.TableByID(b.ID)
			is(t, "the copy", err, catalog.ErrTableNotFound)
			equal(t, "leftovers", get[catalog.Leftovers](t)(s.Leftovers()).Lakes, []change.TableID{b.ID})
			if next := s.CopyFor(1); name == "next" && (next == nil || next.ID == b.ID) {
				t.Errorf("the next copy is %+v", next)
			}
		})
	}
}

// TestExact has the names of a hint's statements stand where they can be run.
func TestExact(t *testing.T) {
	tbl := &catalog.Table{Schema: "shop", Name: "Orders", SourceSchema: "public", SourceName: "or\"ders"}
	for hint, want := range map[string]string{
		"Copy it: ALTER PIPELINE … RESYNC TABLE …;": `Copy it: ALTER PIPELINE "a b" RESYNC TABLE shop."Orders";`,
		"ALTER TABLE … REPLICA IDENTITY FULL; then ALTER PIPELINE … RESUME TABLE …;": `ALTER TABLE public."or""ders" ` +
			`REPLICA IDENTITY FULL; then ALTER PIPELINE "a b" RESUME TABLE shop."Orders";`,
		"Wait.": "Wait.",
	} {
		equal(t, "hint", tbl.Exact(hint, "a b"), want)
	}
}

// TestExactPipeline does the same for texts about a pipeline.
func TestExactPipeline(t *testing.T) {
	p := &catalog.Pipeline{Name: "Shop"}
	order := &catalog.Table{SourceSchema: "public", SourceName: "order", Schema: "shop", Name: "order"}
	equal(t, "reserved words", order.Exact("ALTER TABLE … REPLICA IDENTITY FULL; or ALTER PIPELINE … DROP TABLE …", "all"),
		`ALTER TABLE public."order" REPLICA IDENTITY FULL; or ALTER PIPELINE "all" DROP TABLE shop."order"`)
	equal(t, "text", p.Exact("or ALTER PIPELINE … RESET, which"), `or ALTER PIPELINE "Shop" RESET, which`)
}
