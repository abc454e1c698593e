package own

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// copyFunc appends the value of a row to a builder of the same type.
type copyFunc func(to array.Builder, row int)

// copier makes the copyFunc of a column of a type that a table can have
// (schema.ArrowType).
func copier(from arrow.Array) (copyFunc, error) {
	switch from := from.(type) {
	case *array.Boolean:
		return plain[bool, *array.BooleanBuilder](from), nil
	case *array.Int32:
		return plain[int32, *array.Int32Builder](from), nil
	case *array.Int64:
		return plain[int64, *array.Int64Builder](from), nil
	case *array.Float32:
		return plain[float32, *array.Float32Builder](from), nil
	case *array.Float64:
		return plain[float64, *array.Float64Builder](from), nil
	case *array.Decimal128:
		return plain[decimal128.Num, *array.Decimal128Builder](from), nil
	case *array.Date32:
		return plain[arrow.Date32, *array.Date32Builder](from), nil
	case *array.Time64:
		return plain[arrow.Time64, *array.Time64Builder](from), nil
	case *array.Timestamp:
		return plain[arrow.Timestamp, *array.TimestampBuilder](from), nil
	case *array.String:
		return plain[string, *array.StringBuilder](from), nil
	case *array.Binary:
		return plain[[]byte, *array.BinaryBuilder](from), nil
	case *array.FixedSizeBinary:
		return plain[[]byte, *array.FixedSizeBinaryBuilder](from), nil
	case *array.List:
		return listCopier(from)
	}
	return nil, fmt.Errorf("no table has a column of type %s", from.DataType())
}

// plain copies values that the array gives and the builder takes.
func plain[V any, B interface {
	array.Builder
	Append(V)
}](from interface {
	IsNull(int) bool
	Value(int) V
},
) copyFunc {
	return func(to array.Builder, row int) {
		if from.IsNull(row) {
			to.AppendNull()
			return
		}
		to.(B).Append(from.Value(row))
	}
}

func listCopier(from *array.List) (copyFunc, error) {
	element, err := copier(from.ListValues())
	if err != nil {
		return nil, err
	}
	return func(to array.Builder, row int) {
		if from.IsNull(row) {
			to.AppendNull()
			return
		}
		list := to.(*array.ListBuilder)
		list.Append(true)
		start, end := from.ValueOffsets(row)
		for i := start; i < end; i++ {
			element(list.ValueBuilder(), int(i))
		}
	}, nil
}
