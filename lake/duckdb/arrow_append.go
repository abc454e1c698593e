package duckdb

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skipprd/skipprd/lake/vector"
)

// appendFunc appends n rows of v from row from on.
type appendFunc func(v *vector.Vector, from, n int)

// appender makes the appendFunc of a type that arrowType took.
func appender(b array.Builder, t vector.Type) appendFunc {
	switch b := b.(type) {
	case *array.Int8Builder:
		return fixed(b)
	case *array.Int16Builder:
		return fixed(b)
	case *array.Int32Builder:
		return fixed(b)
	case *array.Int64Builder:
		return fixed(b)
	case *array.Uint8Builder:
		return fixed(b)
	case *array.Uint16Builder:
		return fixed(b)
	case *array.Uint32Builder:
		return fixed(b)
	case *array.Uint64Builder:
		return fixed(b)
	case *array.Float32Builder:
		return fixed(b)
	case *array.Float64Builder:
		return fixed(b)
	case *array.Date32Builder:
		return fixed(b)
	case *array.Time64Builder:
		return fixed(b)
	case *array.TimestampBuilder:
		return fixed(b)
	case *array.Decimal128Builder:
		return decimals(b, t)
	}
	return variable(b, t)
}

func variable(b array.Builder, t vector.Type) appendFunc {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return perRow(b, func(v *vector.Vector, i int) { b.Append(*(*byte)(unsafe.Add(v.Data, i)) != 0) })
	case *array.StringBuilder:
		if t.Kind == vector.Enum {
			return perRow(b, func(v *vector.Vector, i int) { b.Append(t.Dict[enumIndex(v, i)]) })
		}
		return perRow(b, func(v *vector.Vector, i int) { b.BinaryBuilder.Append(v.Bytes(i)) })
	case *array.BinaryBuilder:
		return perRow(b, func(v *vector.Vector, i int) { b.Append(v.Bytes(i)) })
	case *array.FixedSizeBinaryBuilder:
		return perRow(b, func(v *vector.Vector, i int) {
			low, high := hugeAt(v, i)
			var id [16]byte
			binary.BigEndian.PutUint64(id[:8], uint64(high)^1<<63)
			binary.BigEndian.PutUint64(id[8:], low)
			b.Append(id[:])
		})
	case *array.MonthDayNanoIntervalBuilder:
		return perRow(b, func(v *vector.Vector, i int) {
			p := unsafe.Add(v.Data, i*16)
			b.Append(arrow.MonthDayNanoInterval{
				Months: *(*int32)(p), Days: *(*int32)(unsafe.Add(p, 4)),
				Nanoseconds: *(*int64)(unsafe.Add(p, 8)) * 1000,
			})
		})
	case *array.ListBuilder:
		child := appender(b.ValueBuilder(), t.Elem[0])
		return perRow(b, func(v *vector.Vector, i int) {
			entry := (*[2]uint64)(unsafe.Add(v.Data, i*16))
			b.Append(true)
			child(&v.Child[0], int(entry[0]), int(entry[1]))
		})
	case *array.StructBuilder:
		return structs(b, t)
	}
	return func(_ *vector.Vector, _, n int) { b.AppendNulls(n) } // the null type
}

// fixed is for types whose values are the same bytes on both sides.
func fixed[T any, B interface {
	AppendValues([]T, []bool)
	Append(T)
	AppendNull()
	Reserve(int)
}](b B) appendFunc {
	return func(v *vector.Vector, from, n int) {
		var zero T
		values := unsafe.Slice((*T)(unsafe.Add(v.Data, from*int(unsafe.Sizeof(zero)))), n)
		if v.Validity == nil {
			b.AppendValues(values, nil)
			return
		}
		b.Reserve(n)
		for i, x := range values {
			if v.Valid(from + i) {
				b.Append(x)
			} else {
				b.AppendNull()
			}
		}
	}
}

func perRow(b array.Builder, value func(v *vector.Vector, i int)) appendFunc {
	return func(v *vector.Vector, from, n int) {
		b.Reserve(n)
		for i := from; i < from+n; i++ {
			if v.Valid(i) {
				value(v, i)
			} else {
				b.AppendNull()
			}
		}
	}
}

// structs appends member by member; a null struct has null members.
func structs(b *array.StructBuilder, t vector.Type) appendFunc {
	members := make([]appendFunc, len(t.Elem))
	for i, e := range t.Elem {
		members[i] = appender(b.FieldBuilder(i), e)
	}
	return func(v *vector.Vector, from, n int) {
		for i := from; i < from+n; i++ {
			b.Append(v.Valid(i))
		}
		for i := range members {
			members[i](&v.Child[i], from, n)
		}
	}
}

func decimals(b *array.Decimal128Builder, t vector.Type) appendFunc {
	return perRow(b, func(v *vector.Vector, i int) {
		switch {
		case t.Kind == vector.HugeInt || t.Width > 18:
			low, high := hugeAt(v, i)
			b.Append(decimal128.New(high, low))
		case t.Width > 9:
			b.Append(decimal128.FromI64(*(*int64)(unsafe.Add(v.Data, i*8))))
		case t.Width > 4:
			b.Append(decimal128.FromI64(int64(*(*int32)(unsafe.Add(v.Data, i*4)))))
		default:
			b.Append(decimal128.FromI64(int64(*(*int16)(unsafe.Add(v.Data, i*2)))))
		}
	})
}

func hugeAt(v *vector.Vector, i int) (low uint64, high int64) {
	p := unsafe.Add(v.Data, i*16)
	return *(*uint64)(p), *(*int64)(unsafe.Add(p, 8))
}

func enumIndex(v *vector.Vector, i int) int {
	switch v.Type.Width {
	case 1:
		return int(*(*uint8)(unsafe.Add(v.Data, i)))
	case 2:
		return int(*(*uint16)(unsafe.Add(v.Data, i*2)))
	}
	return int(*(*uint32)(unsafe.Add(v.Data, i*4)))
}
