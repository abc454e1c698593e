package duckdb

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
)

// benchDeletes are deletes of n rows of benchLake, whole.
func benchDeletes(log *memorySlices, n int) *Live {
	s := arrow.NewSchema(append(systemSchema().Fields(),
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "status", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "amount", Type: arrow.PrimitiveTypes.Float64}, arrow.Field{Name: "qty", Type: arrow.PrimitiveTypes.Int32}), nil)
	rec := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for i := range n {
		id := int64(i) * 7919 % (benchFiles * benchFileRows)
		rec.Field(0).(*array.Uint8Builder).Append(uint8(change.Delete))
		rec.Field(1).(*array.Int64Builder).Append(int64(i))
		rec.Field(2).(*array.Int32Builder).Append(0)
		rec.Field(3).(*array.Int64Builder).Append(id)
		rec.Field(4).(*array.StringBuilder).Append(fmt.Sprint("status ", id*7919%5))
		rec.Field(5).(*array.Float64Builder).Append(float64(id%1000) / 8)
		rec.Field(6).(*array.Int32Builder).Append(int32(id * 31 % 100))
	}
	seq := uint64(len(log.recs) + 1)
	log.recs[seq] = rec.NewRecordBatch()
	return &Live{
		Dir: fmt.Sprint("deletes ", n), Table: uint32(n), Fields: map[uint32][]int32{1: {1, 2, 3, 4}},
		Slices: []LiveSlice{{Seq: seq, SchemaVersion: 1, Rows: int64(n)}},
	}
}

// BenchmarkWholeRows reads twenty million rows, of which live deletes of whole rows take
// some away.
func BenchmarkWholeRows(b *testing.B) {
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{}}
	p := newTestPool(b, PoolConfig{InProcess: true}, log)
	lake := benchLake(b)
	lake.Key = nil
	for _, n := range []int{0, 1000, 100_000} {
		for _, q := range []struct{ name, sql string }{
			{"agg", `SELECT sum(amount)::VARCHAR FROM "T 1" t WHERE qty < 50`},
			{"count", `SELECT count(*)::VARCHAR FROM "T 1" t`},
			{"point", `SELECT status FROM "T 1" t WHERE id = 12345678`},
		} {
			b.Run(fmt.Sprint(n, "/", q.name), func(b *testing.B) {
				rel := lake
				if n > 0 {
					rel.WholeRow, rel.Live = true, benchDeletes(log, n)
				}
				timed(b, p, &Plan{SQL: q.sql, Relations: []Relation{rel}, Output: rowsOutput(1)})
			})
		}
	}
}
