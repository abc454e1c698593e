package iceberg

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// TestEncodings: integers with many values are stored as differences, those with few
// by a dictionary, and all read back as they were.
func TestEncodings(t *testing.T) {
	as := arrow.NewSchema([]arrow.Field{
		{Name: "key", Type: arrow.PrimitiveTypes.Int64},
		{Name: "wild", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		{Name: "amount", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}},
		{Name: "few", Type: arrow.PrimitiveTypes.Int64},
		{Name: "text", Type: arrow.BinaryTypes.String},
	}, nil)
	const rows = 100_000
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 7)
		b.Field(1).(*array.Int32Builder).Append(int32(uint32(i) * 2654435761)) // wraps on purpose
		if i%3 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(math.MaxInt64 - int64(i)*int64(i)))
		}
		b.Field(3).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) - rows/2))
		b.Field(4).(*array.Int64Builder).Append(int64(i % 5))
		b.Field(5).(*array.StringBuilder).Append("text")
	}
	want := b.NewRecordBatch()
	defer want.Release()
	l, err := newLayout(as, Config{RowGroupRows: rows})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(as, &buf, l.properties(want), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteBuffered(want); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := file.NewParquetReader(bytes.NewReader(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for i, delta := range []bool{true, true, true, true, false, false} {
		c, err := r.MetaData().RowGroup(0).ColumnChunk(i)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(c.Encodings(), parquet.Encodings.DeltaBinaryPacked); got != delta {
			t.Errorf("column %s: encodings %v, want differences: %v", as.Field(i).Name, c.Encodings(), delta)
		}
	}
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: rows}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fr.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	for i := range as.NumFields() {
		column := arrow.NewChunked(as.Field(i).Type, []arrow.Array{want.Column(i)})
		if !array.ChunkedEqual(column, got.Column(i).Data()) {
			t.Errorf("column %s differs", as.Field(i).Name)
		}
		column.Release()
	}
}
