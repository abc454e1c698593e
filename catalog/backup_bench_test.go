package catalog_test

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/pebblekv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// BenchmarkBackup: an image of so many tables and live slices, and a definition with one
// written before it.
func BenchmarkBackup(b *testing.B) {
	for _, size := range []struct{ tables, groups int }{{10, 1000}, {1000, 100}} {
		dir := b.TempDir()
		store, err := pebblekv.Open(dir+"/catalog", pebblekv.Options{})
		if err != nil {
			b.Fatal(err)
		}
		deps := testDeps()
		deps.Backup = catalog.FileBackup(wal.DiskFS(), dir)
		c, err := catalog.Open(b.Context(), store, deps)
		if err != nil {
			b.Fatal(err)
		}
		ids := make([]change.TableID, size.tables)
		update(b, c, func(txn *catalog.Txn) error {
			p := &catalog.Pipeline{Name: "p"}
			if err := txn.CreatePipeline(p); err != nil {
				return err
			}
			for i := range ids {
				tbl := &catalog.Table{Pipeline: p.ID, Schema: "s", Name: fmt.Sprint("t", i), Current: testTable(b)}
				if err := txn.CreateTable(tbl); err != nil {
					return err
				}
				ids[i] = tbl.ID
			}
			return nil
		})
		for n := range size.groups {
			g := wal.CommittedGroup{Seq: 1, End: uint32(n+1) * 100_000, Position: "1"}
			for i, id := range ids {
				g.Slices = append(g.Slices, wal.Slice{
					Ref: segment.SliceRef{Seq: 1, Start: uint32(n*100_000 + i*10)}, Length: 10, Table: id, Rows: 1,
				})
			}
			publish(b, c, g)
		}
		name := fmt.Sprintf("%d tables %d slices", size.tables, size.tables*size.groups)
		b.Run(name+"/backup", func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if err := c.Backup(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/definition", func(b *testing.B) {
			for i := range b.N {
				update(b, c, func(txn *catalog.Txn) error { return txn.PutSetting("a", fmt.Sprint(i)) })
			}
		})
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
