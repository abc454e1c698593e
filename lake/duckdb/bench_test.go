package duckdb

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/wal/change"
)

// The benchmarks' lake: 20 files of a million rows. Keys are in order over the
// files, as a table that grows by its key has them.
const (
	benchFiles    = 20
	benchFileRows = 1_000_000
)

func benchLake(b *testing.B) Relation {
	b.Helper()
	db, err := driver.Open(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	rel := Relation{
		Name: "T 1", Key: []string{"id"}, LakeRows: benchFiles * benchFileRows,
		Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}, {Name: "status", FieldID: 2, EngineType: "VARCHAR"}, {Name: "amount", FieldID: 3, EngineType: "DOUBLE"}, {Name: "qty", FieldID: 4, EngineType: "INTEGER"}},
	}
	dir := b.TempDir()
	for i := range benchFiles {
		path := filepath.Join(dir, fmt.Sprintf("%d.parquet", i))
		from := i * benchFileRows
		sql := fmt.Sprintf(`COPY (SELECT i AS id, 'status ' || (i * 7919 %% 5) AS status, (i %% 1000) / 8.0 AS amount,
			(i * 31 %% 100)::INTEGER AS qty FROM range(%d, %d) t(i)) TO '%s'
			(FORMAT parquet, COMPRESSION zstd, FIELD_IDS {id: 1, status: 2, amount: 3, qty: 4})`, from, from+benchFileRows, path)
		if err := conn.Exec(sql); err != nil {
			b.Fatal(err)
		}
		rel.Files = append(rel.Files, File{
			Path: path, Rows: benchFileRows, KeyBounds: true,
			KeyMin: int64(from), KeyMax: int64(from + benchFileRows - 1),
		})
	}
	return rel
}

// benchLive makes n changes in slices of 10,000: nine of ten change an old row, at
// random places of [from, to), the tenth is new.
func benchLive(log *memorySlices, n int, from, to int64) *Live {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "status", Type: arrow.BinaryTypes.String},
		{Name: "amount", Type: arrow.PrimitiveTypes.Float64},
		{Name: "qty", Type: arrow.PrimitiveTypes.Int32},
	}, nil)
	live := &Live{Dir: fmt.Sprint(n, from, to), Table: uint32(n), Fields: map[uint32][]int32{1: {1, 2, 3, 4}}}
	rec := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range n {
		id := from + int64(i)*7919%(to-from)
		if i%10 == 0 {
			id = benchFiles*benchFileRows + int64(i)
		}
		op := change.Update
		if i%10 == 5 {
			op = change.Delete
		}
		rec.Field(0).(*array.Uint8Builder).Append(uint8(op))
		rec.Field(1).(*array.Int64Builder).Append(int64(i))
		rec.Field(2).(*array.Int32Builder).Append(0)
		rec.Field(3).(*array.Int64Builder).Append(id)
		rec.Field(4).(*array.StringBuilder).Append("a changed status")
		rec.Field(5).(*array.Float64Builder).Append(1)
		rec.Field(6).(*array.Int32Builder).Append(int32(i % 100))
		if i%10_000 == 9_999 {
			seq := uint64(len(log.recs) + 1)
			log.recs[seq] = rec.NewRecordBatch()
			live.Slices = append(live.Slices, LiveSlice{Seq: seq, SchemaVersion: 1, Rows: 10_000})
		}
	}
	return live
}

func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// timed runs the plan b.N times and reports the CPU it took.
func timed(b *testing.B, p *Pool, plan *Plan) {
	b.Helper()
	mustDrain(b, p, plan)
	began, n := cpu(), 0
	for b.Loop() {
		mustDrain(b, p, plan)
		n++
	}
	b.ReportMetric(float64((cpu()-began).Microseconds())/1000/float64(n), "cpu-ms/op")
}

func mustDrain(b *testing.B, p *Pool, plan *Plan) {
	b.Helper()
	s, err := p.Query(context.Background(), plan)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for err == nil {
		_, err = s.Next(context.Background())
	}
	if err != io.EOF {
		b.Fatal(err)
	}
}

func BenchmarkUnion(b *testing.B) {
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{}}
	p := newTestPool(b, PoolConfig{InProcess: true}, log)
	lake := benchLake(b)
	all := int64(benchFiles * benchFileRows)
	for _, live := range []struct {
		name string
		live *Live
	}{
		{"0", nil},
		{"100k", benchLive(log, 100_000, 0, all)},
		{"100k recent", benchLive(log, 100_000, all-benchFileRows, all)},
		{"1M", benchLive(log, 1_000_000, 0, all)},
	} {
		for _, q := range []struct{ name, sql, key string }{
			{"agg", `SELECT sum(amount)::VARCHAR FROM "T 1" t WHERE qty < 50`, ""},
			{"count", `SELECT count(*)::VARCHAR FROM "T 1" t`, ""},
			{"group", `SELECT status || count(*) || sum(amount) FROM "T 1" t GROUP BY status`, ""},
			{"point", `SELECT status FROM "T 1" t WHERE id = 12345678`, "id = 12345678"},
			{"limit", `SELECT status FROM "T 1" t LIMIT 10`, ""},
		} {
			b.Run(live.name+"/"+q.name, func(b *testing.B) {
				rel := lake
				rel.Live, rel.KeyPredicate = live.live, q.key
				timed(b, p, &Plan{SQL: q.sql, Relations: []Relation{rel}, Output: rowsOutput(1)})
			})
		}
	}
}

// BenchmarkOverhead is a query that does nothing, through the socket of a worker
// process and in this one.
func BenchmarkOverhead(b *testing.B) {
	for name, inProcess := range map[string]bool{"process": false, "in process": true} {
		p := newTestPool(b, PoolConfig{InProcess: inProcess}, nil)
		b.Run(name, func(b *testing.B) { timed(b, p, one("SELECT 'x'")) })
	}
}

// BenchmarkExtend is a pin that moved on by one small slice, with a million live rows
// before it.
func BenchmarkExtend(b *testing.B) {
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{}}
	p := newTestPool(b, PoolConfig{InProcess: true}, log)
	rel := Relation{Name: "T 1", Key: []string{"id"}, Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}, {Name: "status", FieldID: 2, EngineType: "VARCHAR"}}}
	rel.Live = benchLive(log, 1_000_000, 0, benchFiles*benchFileRows)
	small := log.recs[1].NewSlice(0, 10)
	plan := &Plan{SQL: `SELECT status FROM "T 1" t WHERE id = 5`, Output: rowsOutput(1)}
	step := func() {
		seq := uint64(len(log.recs) + 1)
		log.recs[seq] = small
		rel.Live.Slices = append(rel.Live.Slices, LiveSlice{Seq: seq, SchemaVersion: 1, Rows: 10})
		plan.Relations = []Relation{rel}
		mustDrain(b, p, plan)
	}
	step()
	for b.Loop() {
		step()
	}
}

// BenchmarkRows is five million rows of four columns through the socket.
func BenchmarkRows(b *testing.B) {
	p := newTestPool(b, PoolConfig{}, nil)
	plan := one(`SELECT i::VARCHAR, 'a string of some length', NULL::VARCHAR, 'short' FROM range(5000000) t(i)`)
	plan.Output = rowsOutput(4)
	for b.Loop() {
		mustDrain(b, p, plan)
	}
	b.ReportMetric(5_000_000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
