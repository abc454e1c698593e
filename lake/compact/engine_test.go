package compact_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

func newPool(t *testing.T) *duckdb.Pool {
	t.Helper()
	clock, _ := env.System()
	pool, err := duckdb.NewPool(duckdb.PoolConfig{InProcess: true, Worker: duckdb.WorkerConfig{Threads: 1}},
		duckdb.Deps{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// The search as it runs in production, over files that have deletes already.
func TestEngineSearch(t *testing.T) {
	w := newWorld(t)
	w.searcher = compact.EngineSearcher{Pool: newPool(t)}
	w.reopen()
	w.append("", "+1 a", "+2 b", "+3 c")
	w.compact()
	for i := range 5 {
		w.append("", fmt.Sprintf("~1 a%d", i), fmt.Sprintf("~2 b%d", i))
		w.compact()
		w.append("", fmt.Sprintf("+%d n", 10+i), "-3", fmt.Sprintf("+3 again%d", i))
		w.compact()
	}
	w.append("", "-2")
	w.compact()
	w.wantLake()
}

// A key of every type that can be one, alone and with another column.
func TestEngineSearchKeyTypes(t *testing.T) {
	pool := newPool(t)
	for _, k := range []schema.Type{
		{Kind: schema.Bool},
		{Kind: schema.Int32},
		{Kind: schema.Int64},
		{Kind: schema.Decimal, Precision: 9, Scale: 2},
		{Kind: schema.Decimal, Precision: 30, Scale: 4},
		{Kind: schema.Date},
		{Kind: schema.Time},
		{Kind: schema.Timestamp},
		{Kind: schema.TimestampTZ},
		{Kind: schema.String},
		{Kind: schema.Binary},
		{Kind: schema.UUID},
		{Kind: schema.Float64},
		{Kind: schema.Float32},
		{Kind: schema.List, Elem: &schema.Type{Kind: schema.Int32}},
		{Kind: schema.List, Elem: &schema.Type{Kind: schema.String}},
		{Kind: schema.List, Elem: &schema.Type{Kind: schema.Float64}},
	} {
		t.Run(schema.EngineType(k), func(t *testing.T) {
			w := newWorld(t)
			w.searcher = compact.EngineSearcher{Pool: pool}
			w.reopen()
			s, err := schema.New([]schema.NewField{
				{Name: `k"1`, Type: k, NotNull: true},
				{Name: "k2", Type: schema.Type{Kind: schema.Int32}, NotNull: true},
				{Name: "v", Type: schema.Type{Kind: schema.Int32}},
			}, []string{"k2", `k"1`})
			if err != nil {
				t.Fatal(err)
			}
			w.setTable(func(t *catalog.Table) { t.Current, t.Versions = s, []*schema.Table{s} })
			w.publishTyped(t, change.Insert, 1, 0, 1)
			w.compact()
			w.publishTyped(t, change.Update, 2, 1)
			w.compact()
			if st := w.lakeState(); st.Rows != 2 || st.Files != 2 {
				t.Errorf("lake has %d rows in %d files, want 2 in 2", st.Rows, st.Files)
			}
			w.publishTyped(t, change.Delete, 3, 0, 1)
			w.compact()
			if st := w.lakeState(); st.Rows != 0 {
				t.Errorf("lake has %d rows after the delete, want none", st.Rows)
			}
		})
	}
}

// publishTyped publishes one slice of changes to the given keys.
func (w *world) publishTyped(t *testing.T, op change.Op, v int32, keys ...int) {
	t.Helper()
	w.token++
	b := change.NewBuilder(memory.DefaultAllocator, w.table.ID, w.table.Current.Version, w.table.Current.Arrow())
	defer b.Release()
	for i, k := range keys {
		b.Add(op, w.token, int32(i))
		appendKey(t, b.Column(0), k)
		b.Column(1).(*array.Int32Builder).Append(7)
		b.Column(2).(*array.Int32Builder).Append(v)
	}
	batch := b.Batch()
	ref := segment.SliceRef{Seq: w.seq, Start: w.start}
	w.start += 256
	w.log[ref] = batch.Record
	g := wal.CommittedGroup{Seq: w.seq, End: w.start, Slices: []wal.Slice{{
		Ref: ref, Length: 256, Table: w.table.ID, SchemaVersion: 1, Rows: uint32(len(keys)), Counts: batch.Counts,
	}}}
	if err := w.cat.Publish(t.Context(), w.pid, []wal.CommittedGroup{g}); err != nil {
		t.Fatal(err)
	}
}

func appendKey(t *testing.T, b array.Builder, k int) {
	t.Helper()
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(k == 1)
	case *array.ListBuilder: // [] and [0, null]
		b.Append(true)
		if k > 0 {
			appendKey(t, b.ValueBuilder(), 0)
			b.ValueBuilder().AppendNull()
		}
	case *array.FixedSizeBinaryBuilder:
		b.Append(fmt.Appendf([]byte{byte(0x7f + k)}, "%014d\xff", k))
	case *array.BinaryBuilder:
		b.Append([]byte{0, byte(k)})
	case *array.Date32Builder:
		b.Append(arrow.Date32(k - 1))
	case *array.Time64Builder:
		b.Append(arrow.Time64(k))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(k - 1))
	default:
		if err := b.AppendValueFromString(fmt.Sprint(k)); err != nil {
			t.Fatal(err)
		}
	}
}
