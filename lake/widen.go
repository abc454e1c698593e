package lake

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Widen converts a column to the type that a later schema version gave it. The caller
// releases the result.
func Widen(c arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(c.DataType(), want) {
		c.Retain()
		return c, nil
	}
	switch c := c.(type) {
	case *array.Int32:
		if want.ID() == arrow.INT64 {
			return each(c, array.NewInt64Builder(memory.DefaultAllocator), func(b *array.Int64Builder,
				i int,
			) {
				b.Append(int64(c.Value(i)))
			}), nil
		}
	case *array.Float32:
		if want.ID() == arrow.FLOAT64 {
			return each(c, array.NewFloat64Builder(memory.DefaultAllocator), func(b *array.Float64Builder,
				i int,
			) {
				b.Append(float64(c.Value(i)))
			}), nil
		}
	case *array.Decimal128:
		have, isDecimal := c.DataType().(*arrow.Decimal128Type), false
		if w, ok := want.(*arrow.Decimal128Type); ok {
			isDecimal = w.Scale == have.Scale && w.Precision >= have.Precision
		}
		if isDecimal { // the same unscaled numbers
			data := array.NewData(want, c.Len(), c.Data().Buffers(), nil, c.NullN(), c.Data().Offset())
			defer data.Release()
			return array.MakeFromData(data), nil
		}
	case *array.List:
		if w, ok := want.(*arrow.ListType); ok {
			return widenList(c, w)
		}
	}
	if want.ID() == arrow.STRING { // the policy "text": exact text of the old values
		return each(c, array.NewStringBuilder(memory.DefaultAllocator), func(b *array.StringBuilder,
			i int,
		) {
			b.Append(c.ValueStr(i))
		}), nil
	}
	return nil, fmt.Errorf("%s to %s: %w", c.DataType(), want, ErrNoWidening)
}

// widenList widens the elements.
func widenList(c *array.List, want *arrow.ListType) (arrow.Array, error) {
	elem, err := Widen(c.ListValues(), want.Elem())
	if err != nil {
		return nil, err
	}
	defer elem.Release()
	data := array.NewData(want, c.Len(), c.Data().Buffers(), []arrow.ArrayData{elem.Data()}, c.NullN(), c.Data().Offset())
	defer data.Release()
	return array.MakeFromData(data), nil
}

func each[B array.Builder](c arrow.Array, b B, put func(b B, i int)) arrow.Array {
	defer b.Release()
	b.Reserve(c.Len())
	for i := range c.Len() {
		if c.IsNull(i) {
			b.AppendNull()
			continue
		}
		put(b, i)
	}
	return b.NewArray()
}
