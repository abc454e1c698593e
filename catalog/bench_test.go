package catalog_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

func BenchmarkPublish(b *testing.B) {
	for _, per := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d groups", per), func(b *testing.B) {
			c := open(b, openPebble(b, vfs.Default, b.TempDir()))
			shop(b, c)
			groups := make([]wal.CommittedGroup, per)
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for range b.N {
				for i := range groups {
					groups[i] = group(segment.Seq(1+n/1000), n%1000, 1)
					n++
				}
				publish(b, c, groups...)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "groups/s")
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	c := open(b, openPebble(b, vfs.Default, b.TempDir()))
	shop(b, c)
	publish(b, c, group(1, 0, 1))
	b.ReportAllocs()
	for b.Loop() {
		c.Snapshot().Close()
	}
}

// Live slices, with as many compacted ones before them that the store still has to forget.
func BenchmarkLiveSlices(b *testing.B) {
	for _, n := range []int{0, 1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := open(b, openPebble(b, vfs.Default, b.TempDir()))
			shop(b, c)
			for i := range 2 * n {
				if i == n {
					ackAll(b, c, 1, "c", catalog.LakeState{Snapshot: 1})
				}
				publish(b, c, group(segment.Seq(1+i/1000), i%1000, 1))
			}
			b.ReportAllocs()
			for b.Loop() {
				s := c.Snapshot()
				live, err := s.LiveSlices(1)
				if err != nil || len(live) != n {
					b.Fatal(len(live), err)
				}
				s.Close()
			}
		})
	}
}

func BenchmarkAckCompaction(b *testing.B) {
	const slices = 10_000
	c := open(b, openPebble(b, vfs.Default, b.TempDir()))
	shop(b, c)
	n := 0
	for b.Loop() {
		b.StopTimer()
		for range slices {
			publish(b, c, group(segment.Seq(1+n/1000), n%1000, 1))
			n++
		}
		var refs []segment.SliceRef
		for _, s := range live(b, c, 1) {
			refs = append(refs, s.Ref)
		}
		id := fmt.Sprint(n)
		plan(b, c, 1, id, refs...)
		b.StartTimer()
		update(b, c, func(txn *catalog.Txn) error { return txn.AckCompaction(id, catalog.LakeState{Snapshot: 1}, refs) })
	}
}

// A change of one table among many.
func BenchmarkPutTable(b *testing.B) {
	c := open(b, openPebble(b, vfs.Default, b.TempDir()))
	shop(b, c)
	update(b, c, func(txn *catalog.Txn) error {
		for i := range 5000 {
			tbl := &catalog.Table{Pipeline: 1, Schema: "s", Name: fmt.Sprint(i), Current: testTable(b)}
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
		}
		return nil
	})
	for b.Loop() {
		update(b, c, func(txn *catalog.Txn) error {
			tbl, err := txn.TableByID(change.TableID(100))
			if err != nil {
				return err
			}
			tbl.Backfill.RowsDone++
			return txn.PutTable(tbl)
		})
	}
}

// BenchmarkComplete makes the slices of a transaction in a thousand parts live.
func BenchmarkComplete(b *testing.B) {
	deps := testDeps()
	deps.ApplyState = partState
	for range b.N {
		b.StopTimer()
		c, err := catalog.Open(b.Context(), openPebble(b, vfs.Default, b.TempDir()), deps)
		if err != nil {
			b.Fatal(err)
		}
		shop(b, c)
		for i := range 1000 {
			publish(b, c, withState(group(segment.Seq(1+i/100), i%100, 1, 2), "part x"))
		}
		b.StartTimer()
		publish(b, c, withState(group(11, 0, 1, 2), "complete x 1000 1"))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/slice")
}
