package catalog_test

import (
	"errors"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/change"
)

// Views are kept, and their schema with them; none has the number of a table.
func TestViews(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	v := &catalog.View{Schema: "r", Name: "v", SQL: "SELECT 1 AS a", Columns: []catalog.ViewColumn{{Name: "a", OID: 23, TypMod: -1}}, Reads: []change.TableID{1}}
	update(t, c, func(txn *catalog.Txn) error { return txn.PutView(v) })
	for _, s := range []*catalog.Snapshot{snapshot(t, c), snapshot(t, open(t, store))} {
		got := get[*catalog.View](t)(s.ViewByName("r", "v"))
		equal(t, "columns", got.Columns, v.Columns)
		equal(t, "reads", got.Reads, v.Reads)
		_, err := s.TableByID(got.ID)
		is(t, "a table of its number", err, catalog.ErrTableNotFound)
		_, err = s.Schema("r")
		is(t, "schema", err, nil)
		equal(t, "views", len(s.Views()), 1)
	}
	update(t, c, func(txn *catalog.Txn) error { return txn.DeleteView("r", "v") })
	_, err := snapshot(t, open(t, store)).ViewByName("r", "v")
	is(t, "deleted", err, catalog.ErrTableNotFound)
}

// A schema that a statement made, or that has a view, outlives its tables.
func TestSchemaStays(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	tables := []*catalog.Table{}
	for _, name := range []string{"made", "viewed", "other"} {
		tbl := &catalog.Table{Pipeline: 1, Schema: name, Name: "t", Current: testTable(t)}
		update(t, c, func(txn *catalog.Txn) error { return txn.CreateTable(tbl) })
		tables = append(tables, tbl)
	}
	update(t, c, func(txn *catalog.Txn) error {
		s := *get[*catalog.Schema](t)(txn.Schema("made"))
		s.Made = true
		return errors.Join(txn.PutSchema(&s), txn.PutView(&catalog.View{Schema: "viewed", Name: "v"}))
	})
	for _, tbl := range tables {
		update(t, c, func(txn *catalog.Txn) error { return txn.DeleteTable(tbl.ID) })
	}
	s := snapshot(t, c)
	for name, want := range map[string]error{"made": nil, "viewed": nil, "other": catalog.ErrSchemaNotFound} {
		_, err := s.Schema(name)
		is(t, name, err, want)
	}
}

// A draft shows what would be; the catalog stays as it is, and so does its version.
func TestDraft(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	before := snapshot(t, c).Version()
	change70 := func(txn *catalog.Txn) error {
		return errors.Join(txn.DeleteTable(1), txn.CreateTable(&catalog.Table{ID: 70, Pipeline: 1, Schema: "s", Name: "a", Current: testTable(t)}))
	}
	seen := map[uint64]bool{before: true}
	for range 2 {
		d := get[*catalog.Snapshot](t)(c.Draft(change70))
		equal(t, "id", get[*catalog.Table](t)(d.TableByName("s", "a")).ID, change.TableID(70))
		equal(t, "live", len(get[[]catalog.Slice](t)(d.LiveSlices(70))), 0)
		equal(t, "version seen", seen[d.Version()], false)
		seen[d.Version()] = true
		d.Close()
	}
	_, err := c.Draft(func(*catalog.Txn) error { return catalog.ErrFormat })
	is(t, "refused", err, catalog.ErrFormat)
	for _, s := range []*catalog.Snapshot{snapshot(t, c), snapshot(t, open(t, store))} {
		equal(t, "id", get[*catalog.Table](t)(s.TableByName("s", "a")).ID, change.TableID(1))
	}
	equal(t, "version", snapshot(t, c).Version(), before)
}

// A table whose transaction has not committed is known to those who store it alone.
func TestDraftTable(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	tbl := &catalog.Table{Pipeline: 1, Schema: "s", Name: "z", Current: testTable(t), Draft: true}
	update(t, c, func(txn *catalog.Txn) error { return txn.CreateTable(tbl) })
	s := snapshot(t, c)
	equal(t, "tables", names(s.AllTables()), []string{"a", "b"})
	equal(t, "every table", names(s.EveryTableOf(1)), []string{"a", "b", "z"})
	_, err := s.TableByName("s", "z")
	is(t, "by name", err, catalog.ErrTableNotFound)
	_, err = s.TableByFace(tbl.ID)
	is(t, "by id", err, catalog.ErrTableNotFound)
	update(t, c, func(txn *catalog.Txn) error {
		n := get[*catalog.Table](t)(txn.TableByID(tbl.ID))
		n.Draft = false
		return txn.PutTable(n)
	})
	equal(t, "tables", names(snapshot(t, c).AllTables()), []string{"a", "b", "z"})
}
