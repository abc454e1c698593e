package compact_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// publishRows publishes slices of 50,000 changes each, with ids from first in steps of
// stride.
func (w *world) publishRows(b testing.TB, backfill bool, first, stride, n int) {
	b.Helper()
	for n > 0 {
		w.token++
		token, op := w.token, change.Update
		if backfill {
			token, op = 5, change.Insert
		}
		bb := change.NewBuilder(memory.DefaultAllocator, w.table.ID, 1, w.table.Current.Arrow())
		bb.Backfill = backfill
		rows := min(n, 50_000)
		for i := range rows {
			bb.Add(op, token, int32(i))
			bb.Column(0).(*array.Int64Builder).Append(int64(first))
			bb.Column(1).(*array.StringBuilder).Append(fmt.Sprintf("name of %d", first*7919))
			first += stride
		}
		n -= rows
		batch := bb.Batch()
		bb.Release()
		ref := segment.SliceRef{Seq: w.seq, Start: w.start}
		w.start += 256
		w.log[ref] = batch.Record
		g := wal.CommittedGroup{Seq: w.seq, End: w.start, Slices: []wal.Slice{{
			Ref: ref, Length: 256, Table: w.table.ID, SchemaVersion: 1, Rows: uint32(rows), Counts: batch.Counts,
			Backfill: backfill,
		}}}
		if err := w.cat.Publish(b.Context(), w.pid, []wal.CommittedGroup{g}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBackfill(b *testing.B) {
	const rows = 500_000
	w := newWorld(b)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		w.publishRows(b, true, i*rows, 1, rows)
		b.StartTimer()
		w.compact()
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// Updates of every tenth row of a million.
func BenchmarkUpserts(b *testing.B) {
	const lakeRows, rows = 1_000_000, 100_000
	w := newWorld(b)
	clock, _ := env.System()
	pool, err := duckdb.NewPool(duckdb.PoolConfig{InProcess: true}, duckdb.Deps{Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	w.searcher = compact.EngineSearcher{Pool: pool}
	w.reopen()
	w.publishRows(b, true, 0, 1, lakeRows)
	w.compact()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		w.publishRows(b, false, i%10, 10, rows)
		b.StartTimer()
		w.compact()
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}
