package catalog_test

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

func live(t testing.TB, c *catalog.Catalog, table change.TableID) []catalog.Slice {
	t.Helper()
	return get[[]catalog.Slice](t)(snapshot(t, c).LiveSlices(table))
}

// ackAll compacts all live slices of a table.
func ackAll(t testing.TB, c *catalog.Catalog, table change.TableID, id string, lake catalog.LakeState) {
	t.Helper()
	var all []segment.SliceRef
	for _, s := range live(t, c, table) {
		all = append(all, s.Ref)
	}
	plan(t, c, table, id, all...)
	update(t, c, func(txn *catalog.Txn) error { return txn.AckCompaction(id, lake, all) })
}

func plan(t testing.TB, c *catalog.Catalog, table change.TableID, id string, slices ...segment.SliceRef) {
	t.Helper()
	update(t, c, func(txn *catalog.Txn) error {
		return txn.PlanCompaction(&catalog.Compaction{ID: id, Table: table, Slices: slices})
	})
}

func TestAckCompaction(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2), group(1, 1, 1), group(2, 0, 1, 2), group(2, 1, 1))
	before := snapshot(t, c)
	// Out of order and not the oldest: the middle two slices of table 1.
	middle := []segment.SliceRef{{Seq: 2, Start: 0}, {Seq: 1, Start: 100}}
	plan(t, c, 1, "c1", middle...)
	lake := catalog.LakeState{Snapshot: 7, Metadata: "m", MaxToken: 2000, Rows: 2}
	update(t, c, func(txn *catalog.Txn) error {
		if err := txn.AckCompaction("c1", lake, middle); err != nil {
			return err
		}
		equal(t, "live in the transaction", refs(get[[]catalog.Slice](t)(txn.LiveSlices(1))), []string{"1:0", "2:100"})
		return nil
	})
	for _, c := range []*catalog.Catalog{c, open(t, store)} {
		s := snapshot(t, c)
		equal(t, "live", refs(get[[]catalog.Slice](t)(s.LiveSlices(1))), []string{"1:0", "2:100"})
		equal(t, "lake", s.LakeState(1), lake)
		equal(t, "segments", get[[]catalog.Segment](t)(s.Segments(1)), []catalog.Segment{
			{Pipeline: 1, Seq: 1, End: 200, Slices: 3, Live: 2}, {Pipeline: 1, Seq: 2, End: 200, Slices: 3, Live: 2},
		})
		var marks []string
		for _, s := range get[[]catalog.Slice](t)(s.Slices(1)) {
			marks = append(marks, fmt.Sprintf("%s %d %s", s.Ref, s.Table, s.Compacted))
		}
		equal(t, "marks", marks, []string{"1:0 1 ", "1:10 2 ", "1:100 1 c1", "2:0 1 c1", "2:10 2 ", "2:100 1 "})
		done := get[[]*catalog.Compaction](t)(s.Compactions(1))
		equal(t, "compaction", *done[0], catalog.Compaction{
			ID: "c1", Table: 1, State: catalog.CompactionAcked, SliceCount: 2, Snapshot: 7,
			PlannedAt: testStart, FinishedAt: testStart,
		})
		equal(t, "planned", len(s.PlannedCompactions(1)), 0)
	}
	equal(t, "live before", len(get[[]catalog.Slice](t)(before.LiveSlices(1))), 4)
	equal(t, "lake before", before.LakeState(1), catalog.LakeState{})
	// The rest, then one more slice.
	ackAll(t, c, 1, "c2", lake)
	equal(t, "live", refs(live(t, c, 1)), []string{})
	publish(t, c, group(2, 2, 1))
	equal(t, "live", refs(live(t, c, 1)), []string{"2:200"})
	equal(t, "live", refs(live(t, c, 2)), []string{"1:10", "2:10"})
}

func TestAckTwice(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	publish(t, c, group(1, 0, 1))
	first := catalog.LakeState{Snapshot: 1}
	ackAll(t, c, 1, "c1", first)
	publish(t, c, group(1, 1, 1))
	update(t, c, func(txn *catalog.Txn) error {
		return txn.AckCompaction("c1", catalog.LakeState{Snapshot: 2}, nil)
	})
	equal(t, "lake", snapshot(t, c).LakeState(1), first)
	equal(t, "live", refs(live(t, c, 1)), []string{"1:100"})
	is(t, "plan again", c.Update(t.Context(), func(txn *catalog.Txn) error {
		return txn.PlanCompaction(&catalog.Compaction{ID: "c1", Table: 1})
	}), catalog.ErrCompactionAcked)
	is(t, "drop", c.Update(t.Context(), func(txn *catalog.Txn) error {
		return txn.DropCompaction("c1")
	}), catalog.ErrCompactionAcked)
}

func TestCompactionRefused(t *testing.T) {
	ref := func(start uint32) segment.SliceRef { return segment.SliceRef{Seq: 1, Start: start} }
	cases := []struct {
		name string
		do   func(txn *catalog.Txn) error
		want error
	}{
		{"ack of no plan", func(x *catalog.Txn) error {
			return x.AckCompaction("x", catalog.LakeState{}, nil)
		}, catalog.ErrCompactionNotFound},
		{"ack of other slices", func(x *catalog.Txn) error {
			return x.AckCompaction("c1", catalog.LakeState{}, []segment.SliceRef{ref(0)})
		}, catalog.ErrStale},
		{"ack after reset", func(x *catalog.Txn) error {
			if _, err := x.ResetTable(1); err != nil {
				return err
			}
			return x.AckCompaction("c1", catalog.LakeState{}, nil)
		}, catalog.ErrCompactionNotFound},
		{"plan of slices that are not live", func(x *catalog.Txn) error {
			return x.PlanCompaction(&catalog.Compaction{ID: "c2", Table: 1, Slices: []segment.SliceRef{ref(50)}})
		}, catalog.ErrStale},
		{"plan of slices of another table", func(x *catalog.Txn) error {
			return x.PlanCompaction(&catalog.Compaction{ID: "c2", Table: 2, Slices: []segment.SliceRef{ref(0)}})
		}, catalog.ErrStale},
		{"other slices under the id", func(x *catalog.Txn) error {
			return x.PlanCompaction(&catalog.Compaction{ID: "c1", Table: 1, Slices: []segment.SliceRef{ref(0)}})
		}, catalog.ErrStale},
		{"ack of slices that another took", func(x *catalog.Txn) error {
			err := x.PlanCompaction(&catalog.Compaction{ID: "c2", Table: 1, Slices: []segment.SliceRef{ref(100)}})
			if err == nil {
				err = x.AckCompaction("c2", catalog.LakeState{}, nil)
			}
			if err != nil {
				return err
			}
			return x.AckCompaction("c1", catalog.LakeState{}, nil)
		}, catalog.ErrStale},
		{"plan for no table", func(x *catalog.Txn) error {
			return x.PlanCompaction(&catalog.Compaction{ID: "c2", Table: 9})
		}, catalog.ErrTableNotFound},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := open(t, memkv.New())
			shop(t, c)
			publish(t, c, group(1, 0, 1, 2), group(1, 1, 1))
			plan(t, c, 1, "c1", ref(0), ref(100))
			is(t, "update", c.Update(t.Context(), tc.do), tc.want)
			equal(t, "live", len(live(t, c, 1)), 2)
		})
	}
}

func TestReplanAndDrop(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	publish(t, c, group(1, 0, 1))
	ref := []segment.SliceRef{{Seq: 1}}
	plan(t, c, 1, "c1", ref...)
	update(t, c, func(txn *catalog.Txn) error {
		return txn.PlanCompaction(&catalog.Compaction{ID: "c1", Table: 1, Slices: ref, Rows: 5})
	})
	equal(t, "rows", snapshot(t, c).PlannedCompactions(1)[0].Rows, int64(5))
	for range 2 {
		update(t, c, func(txn *catalog.Txn) error { return txn.DropCompaction("c1") })
	}
	equal(t, "planned", len(snapshot(t, c).PlannedCompactions(1)), 0)
	equal(t, "all", len(get[[]*catalog.Compaction](t)(snapshot(t, c).Compactions(1))), 0)
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1})
}

func TestAckedHistoryBounded(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	for i := range 30 {
		publish(t, c, group(1, i, 1))
		ackAll(t, c, 1, fmt.Sprintf("c%02d", i), catalog.LakeState{Snapshot: int64(i)})
	}
	all := get[[]*catalog.Compaction](t)(snapshot(t, c).Compactions(1))
	equal(t, "kept", len(all), 20)
	equal(t, "newest", all[19].ID, "c29")
}

// A segment goes when nothing in it is live and the log has moved on (R1).
func TestReclaim(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	publish(t, c, group(1, 0, 1, 2), group(2, 0, 1), group(3, 0), group(4, 0, 1))
	reclaimable := func(active segment.Seq) []segment.Seq {
		t.Helper()
		return get[[]segment.Seq](t)(snapshot(t, c).ReclaimableSegments(1, active))
	}
	equal(t, "at first", reclaimable(4), []segment.Seq{3})
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1})
	equal(t, "after table 1", reclaimable(4), []segment.Seq{2, 3})
	equal(t, "with a newer active", reclaimable(5), []segment.Seq{2, 3, 4})
	is(t, "delete of a live one", c.Update(t.Context(), func(txn *catalog.Txn) error {
		return txn.DeleteSegment(1, 1)
	}), catalog.ErrSegmentLive)
	for range 2 {
		update(t, c, func(txn *catalog.Txn) error { return txn.DeleteSegment(1, 2) })
	}
	equal(t, "slices", refs(get[[]catalog.Slice](t)(snapshot(t, c).Slices(1))), []string{"1:0", "1:10", "4:0"})
	equal(t, "after deletion", reclaimable(4), []segment.Seq{3})
	// The active segment goes too, once it is sealed; the watermark stays.
	update(t, c, func(txn *catalog.Txn) error { return txn.DeleteSegment(1, 4) })
	publish(t, c, group(4, 0, 1), group(5, 0, 1))
	equal(t, "live", refs(live(t, c, 1)), []string{"5:0"})
}

// Slices of a dropped or reset table hold no segment back.
func TestDropAndResetFreeSegments(t *testing.T) {
	for _, how := range []string{"drop", "reset"} {
		t.Run(how, func(t *testing.T) {
			c := open(t, memkv.New())
			shop(t, c)
			publish(t, c, group(1, 0, 1, 2), group(2, 0, 1))
			ackAll(t, c, 2, "c1", catalog.LakeState{Snapshot: 1})
			plan(t, c, 1, "c2", segment.SliceRef{Seq: 1})
			update(t, c, func(txn *catalog.Txn) error {
				if how == "drop" {
					return txn.DeleteTable(1)
				}
				tbl, err := txn.ResetTable(1)
				if err == nil {
					equal(t, "generation", tbl.Generation, uint32(1))
				}
				return err
			})
			s := snapshot(t, c)
			equal(t, "reclaimable", get[[]segment.Seq](t)(s.ReclaimableSegments(1, 3)), []segment.Seq{1, 2})
			equal(t, "live", len(live(t, c, 1)), 0)
			equal(t, "lake", s.LakeState(1), catalog.LakeState{})
			// What comes later lands in the new generation, or nowhere.
			publish(t, c, group(3, 0, 1, 2))
			got := live(t, c, 1)
			if how == "drop" {
				equal(t, "live", len(got), 0)
				equal(t, "segment", get[[]catalog.Segment](t)(snapshot(t, c).Segments(1))[2],
					catalog.Segment{Pipeline: 1, Seq: 3, End: 100, Slices: 2, Live: 1})
				return
			}
			equal(t, "live", refs(got), []string{"3:0"})
			equal(t, "generation", got[0].Generation, uint32(1))
		})
	}
}

func TestNewerThanLake(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	newer := func() bool {
		s := snapshot(t, c)
		return s.NewerThanLake(1, get[[]catalog.Slice](t)(s.LiveSlices(1)))
	}
	equal(t, "empty", newer(), true)
	publish(t, c, group(1, 0, 1)) // token 1000
	equal(t, "no lake", newer(), true)
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1, MaxToken: 1000})
	equal(t, "no live", newer(), true)
	publish(t, c, group(1, 1, 1)) // token 1001
	equal(t, "newer", newer(), true)
	put := func(token int64) {
		update(t, c, func(txn *catalog.Txn) error {
			return txn.PutLakeState(1, catalog.LakeState{Snapshot: 2, MaxToken: token})
		})
	}
	put(1001)
	equal(t, "tie, later in the log", newer(), true)
	put(1002)
	equal(t, "older", newer(), false)
	// A tie where the live slice precedes a compacted one.
	publish(t, c, group(1, 2, 1))
	plan(t, c, 1, "c2", segment.SliceRef{Seq: 1, Start: 200})
	update(t, c, func(txn *catalog.Txn) error {
		return txn.AckCompaction("c2", catalog.LakeState{Snapshot: 3, MaxToken: 1001}, nil)
	})
	equal(t, "tie, earlier in the log", newer(), false)
}

func TestNewestSlice(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	newest := func() segment.SliceRef { return get[segment.SliceRef](t)(snapshot(t, c).NewestSlice(1)) }
	equal(t, "none", newest(), segment.SliceRef{})
	publish(t, c, group(1, 0, 1), group(1, 1, 2))
	equal(t, "live", newest(), segment.SliceRef{Seq: 1})
	truncate := group(1, 2, 1)
	truncate.Slices[0].Truncate, truncate.Slices[0].Rows, truncate.Slices[0].Counts = true, 0, change.Counts{}
	publish(t, c, truncate)
	equal(t, "truncated", newest(), segment.SliceRef{Seq: 1, Start: 200})
	ackAll(t, c, 1, "c1", catalog.LakeState{Snapshot: 1, MaxToken: 1000})
	equal(t, "compacted", newest(), segment.SliceRef{Seq: 1, Start: 200})
}
