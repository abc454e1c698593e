package merge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/wal/change"
)

// ErrNullKey says that a key column holds a null: such a row has no identity.
var ErrNullKey = errors.New("null in a key column")

// ErrKeyType says that a key column has a type that cannot be compared, or not
// with the key columns of earlier slices.
var ErrKeyType = errors.New("unusable key column type")

// ErrUpdate says that a row of a counted table is no insert or delete: an update there
// travels as both.
var ErrUpdate = errors.New("neither an insert nor a delete of a whole row")

// batch is the part of a record that the rule looks at.
type batch struct {
	rows    int
	op      []uint8 // for counted rows
	copied  bool
	token   []int64
	ordinal []int32
	// ints is set for a single integer key, otherwise key appends row i's key bytes.
	// Neither is set without a key.
	ints func(i int) int64
	key  func(dst []byte, i int) []byte
}

// readBatch finds the system columns and the key columns of rec. key holds column
// indexes of the record, system columns counted.
func readBatch(rec arrow.RecordBatch, key []int) (*batch, error) {
	if rec.NumCols() < change.SystemColumns {
		return nil, fmt.Errorf("record has %d columns, system columns are missing", rec.NumCols())
	}
	token, okToken := rec.Column(1).(*array.Int64)
	ordinal, okOrdinal := rec.Column(2).(*array.Int32)
	if !okToken || !okOrdinal {
		return nil, fmt.Errorf("system columns have types %s, %s", rec.Column(1).DataType(),
			rec.Column(2).DataType())
	}
	b := &batch{rows: int(rec.NumRows()), token: token.Int64Values(), ordinal: ordinal.Int32Values()}
	if len(key) == 0 {
		return b, nil
	}
	columns := make([]arrow.Array, len(key))
	for i, k := range key {
		if k < 0 || k >= int(rec.NumCols()) {
			return nil, fmt.Errorf("key column %d of %d", k, rec.NumCols())
		}
		columns[i] = rec.Column(k)
		if columns[i].NullN() > 0 {
			return nil, fmt.Errorf("column %q: %w", rec.ColumnName(k), ErrNullKey)
		}
	}
	if len(columns) == 1 {
		b.ints = integers(columns[0])
	}
	if b.ints != nil {
		return b, nil
	}
	parts := make([]func([]byte, int) []byte, len(columns))
	for i, c := range columns {
		if parts[i] = encoder(c); parts[i] == nil {
			return nil, fmt.Errorf("column %q of type %s: %w", rec.ColumnName(key[i]), c.DataType(), ErrKeyType)
		}
	}
	b.key = func(dst []byte, i int) []byte {
		for _, part := range parts {
			dst = part(dst, i)
		}
		return dst
	}
	return b, nil
}

// integers reads a column of the integer fast path, nil for any other.
func integers(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Int64:
		v := a.Int64Values()
		return func(i int) int64 { return v[i] }
	case *array.Int32:
		v := a.Int32Values()
		return func(i int) int64 { return int64(v[i]) }
	}
	return nil
}

// encoder appends a key column's value so that two keys are equal as bytes exactly
// when they are equal as values; an integer column encodes the same before and after
// it was widened. Lengths stand before variable bytes, so parts cannot run together.
func encoder(a arrow.Array) func([]byte, int) []byte {
	if ints := integers(a); ints != nil {
		return func(dst []byte, i int) []byte {
			return binary.LittleEndian.AppendUint64(dst, uint64(ints(i)))
		}
	}
	switch a := a.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return appendBytes(dst, a.Value(i)) }
	case *array.Binary:
		return func(dst []byte, i int) []byte { return appendBytes(dst, a.Value(i)) }
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.List:
		if element := encoder(a.ListValues()); element != nil {
			return listBytes(a, nullable(a.ListValues(), element))
		}
		return nil
	case *array.Decimal128:
		return func(dst []byte, i int) []byte {
			v := a.Value(i)
			dst = binary.LittleEndian.AppendUint64(dst, v.LowBits())
			return binary.LittleEndian.AppendUint64(dst, uint64(v.HighBits()))
		}
	}
	word := fixedWord(a)
	if word == nil {
		return nil
	}
	return func(dst []byte, i int) []byte { return binary.LittleEndian.AppendUint64(dst, word(i)) }
}

// fixedWord reads a column whose values fit eight bytes, nil for any other.
func fixedWord(a arrow.Array) func(int) uint64 {
	switch a := a.(type) {
	case *array.Boolean:
		return func(i int) uint64 {
			if a.Value(i) {
				return 1
			}
			return 0
		}
	case *array.Date32:
		return func(i int) uint64 { return uint64(a.Value(i)) }
	case *array.Time64:
		return func(i int) uint64 { return uint64(a.Value(i)) }
	case *array.Timestamp:
		return func(i int) uint64 { return uint64(a.Value(i)) }
	case *array.Float64:
		return func(i int) uint64 { return floatWord(a.Value(i)) }
	case *array.Float32:
		return func(i int) uint64 { return floatWord(float64(a.Value(i))) }
	}
	return nil
}

// floatWord makes the floats equal that a unique index takes as equal: both zeros,
// and all NaNs.
func floatWord(f float64) uint64 {
	switch {
	case f == 0:
		return 0
	case f != f:
		return math.Float64bits(math.NaN())
	}
	return math.Float64bits(f)
}

func appendBytes[T string | []byte](dst []byte, v T) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}
