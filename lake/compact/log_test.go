package compact_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// The real log: appended, compacted, reclaimed while it is written.
func TestRealLog(t *testing.T) {
	w := newWorld(t)
	clock, ids := env.System()
	dir := filepath.Join(t.TempDir(), "wal")
	log, err := wal.Open(t.Context(), wal.Config{Dir: dir, Pipeline: w.pid, SegmentBytes: 1 << 20}, wal.Deps{
		Publisher: w.cat, Clock: clock, IDs: ids,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	reader := wal.OpenReader(dir)
	defer reader.Close()
	w.svc, err = compact.New(compact.Config{}, compact.Deps{
		Catalog: w.cat, Warehouse: w.wh, Searcher: w, Clock: w.clock,
		Reader: func(change.PipelineID) compact.SliceReader { return reader },
		Log:    func(change.PipelineID) (compact.Log, bool) { return log, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 12 {
		b := change.NewBuilder(memory.DefaultAllocator, w.table.ID, 1, w.table.Current.Arrow())
		for i := range 4000 {
			id := int64((round*1500 + i) % 9000)
			name := fmt.Sprintf("row-%d-%d-with-some-text-so-that-segments-fill", round, i*7919)
			b.Add(change.Update, int64(round+1), int32(i))
			b.Column(0).(*array.Int64Builder).Append(id)
			b.Column(1).(*array.StringBuilder).Append(name)
			w.model[id] = name
		}
		batch := b.Batch()
		b.Release()
		_, err := log.Append(t.Context(), &change.Group{
			Batches:  []*change.Batch{batch},
			Position: change.Position(fmt.Sprint(round)),
		})
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
		if round%3 == 2 {
			w.compact()
			w.wantLake()
			for range 2 {
				if _, err := w.svc.Reclaim(t.Context(), w.pid); err != nil {
					t.Fatal(err)
				}
				w.clock.Advance(time.Minute)
			}
		}
	}
	snap := w.cat.Snapshot()
	defer snap.Close()
	segs, err := snap.Segments(w.pid)
	if err != nil {
		t.Fatal(err)
	}
	at, err := snap.Offset(w.pid)
	if err != nil {
		t.Fatal(err)
	}
	if at.Seq < 2 || len(segs) > 2 {
		t.Errorf("log is at segment %d, %d segments are left", at.Seq, len(segs))
	}
}
