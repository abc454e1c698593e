package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// While groups with a slice of each table are published and each table is compacted, every
// snapshot sees, for both tables, the same groups: in the lake or live, never in both and
// never in neither. The lake's row count stands for its contents.
func TestSnapshotConsistency(t *testing.T) {
	for name, store := range map[string]kv.Store{
		"memory": memkv.New(), "pebble": openPebble(t, vfs.NewMem(), "db"),
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, store)
			shop(t, c)
			const groups = 400
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for _, id := range []change.TableID{1, 2} {
				wg.Go(func() { compactUntil(t, ctx, c, id) })
			}
			for range 2 {
				wg.Go(func() { observeUntil(t, ctx, c) })
			}
			for i := range groups {
				g := group(segment.Seq(1+i/10), i%10, 1, 2)
				if i%10 == 0 {
					g.State = []byte{1}
				}
				if err := c.Publish(t.Context(), 1, []wal.CommittedGroup{g}); err != nil {
					t.Error(err)
					break
				}
			}
			stop()
			wg.Wait()
			observe(t, c, 0)
			checkSegments(t, c)
		})
	}
}

func observeUntil(t *testing.T, ctx context.Context, c *catalog.Catalog) {
	var last int64
	for ctx.Err() == nil && !t.Failed() {
		last = observe(t, c, last)
	}
}

// observe checks one snapshot and returns how many rows it has.
func observe(t *testing.T, c *catalog.Catalog, last int64) int64 {
	s := c.Snapshot()
	defer s.Close()
	var rows [2]int64
	for i, id := range []change.TableID{1, 2} {
		live, err := s.LiveSlices(id)
		if err != nil {
			t.Error(err)
		}
		rows[i] = s.LakeState(id).Rows + int64(len(live))
	}
	o, err := s.Offset(1)
	if err != nil {
		t.Error(err)
	}
	place := int64(0)
	if o.Seq > 0 {
		place = int64(o.Seq-1)*10 + int64(o.End)/100
	}
	tbl, err := s.TableByID(1)
	if err != nil {
		t.Error(err)
	}
	states := (place + 9) / 10
	if rows[0] != rows[1] || rows[0] != place || rows[0] < last || tbl.Backfill.RowsDone != states {
		t.Errorf("tables have %v rows, the log %d, %d before; %d states, want %d",
			rows, place, last, tbl.Backfill.RowsDone, states)
	}
	return rows[0]
}

func compactUntil(t *testing.T, ctx context.Context, c *catalog.Catalog, id change.TableID) {
	for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
		if err := compactOnce(c, id, fmt.Sprintf("%d-%d", id, n)); err != nil {
			t.Error(err)
		}
	}
}

func compactOnce(c *catalog.Catalog, id change.TableID, name string) error {
	s := c.Snapshot()
	defer s.Close()
	live, err := s.LiveSlices(id)
	if err != nil || len(live) == 0 {
		return err
	}
	// All but the newest third, to leave some live.
	var refs []segment.SliceRef
	for _, sl := range live[:len(live)-len(live)/3] {
		refs = append(refs, sl.Ref)
	}
	plan := &catalog.Compaction{ID: name, Table: id, Slices: refs}
	err = c.Update(context.Background(), func(txn *catalog.Txn) error { return txn.PlanCompaction(plan) })
	if err != nil {
		return err
	}
	lake := s.LakeState(id)
	lake.Snapshot++
	lake.Rows += int64(len(refs))
	return c.Update(context.Background(), func(txn *catalog.Txn) error {
		reclaimable, err := txn.ReclaimableSegments(1, 3)
		if err != nil {
			return err
		}
		for _, seq := range reclaimable {
			err = errors.Join(err, txn.DeleteSegment(1, seq))
		}
		return errors.Join(err, txn.AckCompaction(name, lake, refs))
	})
}

// checkSegments compares the counters of segment rows with a count.
func checkSegments(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	s := snapshot(t, c)
	live := map[segment.Seq]int{}
	all := map[segment.Seq]int{}
	for _, sl := range get[[]catalog.Slice](t)(s.Slices(1)) {
		all[sl.Ref.Seq]++
		if sl.Compacted == "" {
			live[sl.Ref.Seq]++
		}
	}
	for _, seg := range get[[]catalog.Segment](t)(s.Segments(1)) {
		if seg.Live != live[seg.Seq] || seg.Slices != all[seg.Seq] {
			t.Errorf("segment %+v has %d slices, %d live", seg, all[seg.Seq], live[seg.Seq])
		}
	}
}
