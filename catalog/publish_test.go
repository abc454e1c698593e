package catalog_test

import (
	"context"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/segment"
)

func published(t *testing.T, c *catalog.Catalog) segment.SliceRef {
	t.Helper()
	seq, end, err := c.Published(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return segment.SliceRef{Seq: seq, Start: end}
}

func TestPublish(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	equal(t, "watermark", published(t, c), segment.SliceRef{})
	old := snapshot(t, c)
	g := group(3, 1, 1)
	g.Slices[0].Truncate, g.Slices[0].Backfill = true, true
	noPosition := group(4, 0, 2)
	noPosition.Position, noPosition.CommittedAt = "", time.Time{}
	publish(t, c, g, noPosition)
	equal(t, "old snapshot", len(get[[]catalog.Slice](t)(old.LiveSlices(1))), 0)
	for _, c := range []*catalog.Catalog{c, open(t, store)} {
		s := snapshot(t, c)
		equal(t, "slice", get[[]catalog.Slice](t)(s.LiveSlices(1)), []catalog.Slice{{
			Slice: g.Slices[0], Pipeline: 1, PublishedAt: testStart, CommittedAt: testStart,
		}})
		equal(t, "offset", get[catalog.Offset](t)(s.Offset(1)), catalog.Offset{
			Pipeline: 1, Position: "3.1", Seq: 4, End: 100, CommittedAt: testStart, PublishedAt: testStart,
		})
		equal(t, "segments", get[[]catalog.Segment](t)(s.Segments(1)), []catalog.Segment{
			{Pipeline: 1, Seq: 3, End: 200, Slices: 1, Live: 1}, {Pipeline: 1, Seq: 4, End: 100, Slices: 1, Live: 1},
		})
		equal(t, "watermark", published(t, c), segment.SliceRef{Seq: 4, Start: 100})
	}
}

// Groups at or below the watermark are skipped, whole, state included.
func TestPublishIdempotent(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	all := []wal.CommittedGroup{group(1, 0, 1), group(1, 1, 1, 2), group(2, 0, 2), group(2, 1, 1)}
	for i := range all {
		all[i].State = []byte{1}
	}
	publish(t, c, all[:2]...)
	publish(t, c, all[:1]...)
	publish(t, c, all[:2]...)
	publish(t, c, all[1:3]...)
	c = open(t, store)
	publish(t, c, all...)
	publish(t, c, all...)
	s := snapshot(t, c)
	equal(t, "slices", refs(get[[]catalog.Slice](t)(s.Slices(1))),
		[]string{"1:0", "1:100", "1:110", "2:0", "2:100"})
	equal(t, "segments", get[[]catalog.Segment](t)(s.Segments(1)), []catalog.Segment{
		{Pipeline: 1, Seq: 1, End: 200, Slices: 3, Live: 3}, {Pipeline: 1, Seq: 2, End: 200, Slices: 2, Live: 2},
	})
	equal(t, "states", get[*catalog.Table](t)(s.TableByID(1)).Backfill.RowsDone, int64(4))
}

// A group that cannot be applied takes the whole Publish with it.
func TestPublishAtomic(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	bad := group(1, 1, 1)
	bad.Slices[0].Ref.Seq = 7
	for name, second := range map[string]wal.CommittedGroup{"misplaced slice": bad} {
		first := group(1, 0, 1)
		first.State = []byte{5}
		if err := c.Publish(context.Background(), 1, []wal.CommittedGroup{first, second}); err == nil {
			t.Errorf("%s: published", name)
		}
	}
	s := snapshot(t, c)
	equal(t, "slices", len(get[[]catalog.Slice](t)(s.Slices(1))), 0)
	equal(t, "watermark", published(t, c), segment.SliceRef{})
	equal(t, "states", get[*catalog.Table](t)(s.TableByID(1)).Backfill.RowsDone, int64(0))
	publish(t, c, group(1, 0, 1))
	equal(t, "slices", refs(live(t, c, 1)), []string{"1:0"})
}

func TestSetPosition(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	publish(t, c, group(1, 0, 1))
	update(t, c, func(txn *catalog.Txn) error { return txn.SetPosition(1, "start") })
	o := get[catalog.Offset](t)(snapshot(t, c).Offset(1))
	equal(t, "offset", string(o.Position), "start")
	equal(t, "watermark", published(t, c), segment.SliceRef{Seq: 1, Start: 100})
	g := group(1, 1, 1)
	g.Position = ""
	publish(t, c, g)
	o = get[catalog.Offset](t)(snapshot(t, c).Offset(1))
	equal(t, "offset", string(o.Position), "start")
}
