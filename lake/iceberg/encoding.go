package iceberg

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
)

// layout says how the columns of a data file are encoded.
type layout struct {
	base   []parquet.WriterProperty
	leaves *pqschema.Schema
}

// newLayout: decimals as integers as the Iceberg specification wants them, and a
// dictionary per column only where it pays.
func newLayout(as *arrow.Schema, cfg Config) (*layout, error) {
	l := &layout{base: []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithMaxRowGroupLength(cfg.RowGroupRows),
		parquet.WithDataPageVersion(parquet.DataPageV2),
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithVersion(parquet.V2_LATEST),
	}}
	var err error
	l.leaves, err = pqarrow.ToParquet(as, parquet.NewWriterProperties(l.base...), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("map schema to Parquet: %w", err)
	}
	for i := range l.leaves.NumColumns() {
		l.base = append(l.base, parquet.WithDictionaryCostFallbackFor(l.leaves.Column(i).Path(), true))
	}
	return l, nil
}

// properties are those of a file that begins with rows. Integers with many values,
// such as keys and times, are stored as differences: plain ones compress to several
// times the size, and are read at a fifth of the speed.
func (l *layout) properties(rows arrow.RecordBatch) *parquet.WriterProperties {
	props := l.base
	for i := range l.leaves.NumColumns() {
		leaf := l.leaves.Column(i)
		at := rows.Schema().FieldIndices(leaf.Path())
		if leaf.MaxRepetitionLevel() > 0 || len(leaf.ColumnPath()) != 1 || len(at) != 1 {
			continue // in a list
		}
		if t := leaf.PhysicalType(); t != parquet.Types.Int32 && t != parquet.Types.Int64 {
			continue
		}
		if manyValues(rows.Column(at[0])) {
			props = append(props[:len(props):len(props)], parquet.WithDictionaryFor(leaf.Path(), false),
				parquet.WithEncodingFor(leaf.Path(), parquet.Encodings.DeltaBinaryPacked))
		}
	}
	return parquet.NewWriterProperties(props...)
}

const (
	// sampleRows is how many rows of a file's first chunk are looked at.
	sampleRows = 16 << 10
	// sampleShare: a column whose sample has more than this part of distinct values
	// gets no dictionary.
	sampleShare = 16
)

// manyValues says whether a dictionary of the column's values would grow with its
// rows.
func manyValues(a arrow.Array) bool {
	value := integers(a)
	if value == nil {
		return false
	}
	n := min(a.Len(), sampleRows)
	seen := make(map[int64]struct{}, n/sampleShare+1)
	for i := range n {
		if a.IsValid(i) {
			seen[value(i)] = struct{}{}
		}
		if len(seen) > n/sampleShare {
			return true
		}
	}
	return false
}

// integers reads a column that Parquet stores as integers, nil for another.
func integers(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int64:
		return a.Value
	case *array.Date32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Time64:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Timestamp:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Decimal128:
		return func(i int) int64 { return int64(a.Value(i).LowBits()) } // only told apart
	}
	return nil
}
