package merge

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The tags that precede a value in a content, so that a null is like no value.
const (
	tagNull  = 0
	tagValue = 1
)

// Content appends a value as rows are compared by it in a counted index: equal as bytes
// exactly when equal as stored, nulls and NaNs like themselves, both zeros apart. An
// integer or a float is the same before and after it was widened. It wraps ErrKeyType.
func Content(dst []byte, a arrow.Array, i int) ([]byte, error) {
	part := content(a)
	if part == nil {
		return nil, fmt.Errorf("type %s: %w", a.DataType(), ErrKeyType)
	}
	return part(dst, i), nil
}

// content is Content for a column; nil for a type that cannot be compared.
func content(a arrow.Array) func(dst []byte, i int) []byte {
	var value func([]byte, int) []byte
	switch a := a.(type) {
	case *array.Float64:
		value = func(dst []byte, i int) []byte { return appendFloat(dst, a.Value(i)) }
	case *array.Float32:
		value = func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i))) }
	case *array.List:
		value = listContent(a)
	default:
		value = encoder(a)
	}
	if value == nil {
		return nil
	}
	return nullable(a, value)
}

// nullable renders a null, or a value after its tag.
func nullable(a arrow.Array, value func([]byte, int) []byte) func([]byte, int) []byte {
	return func(dst []byte, i int) []byte {
		if a.IsNull(i) {
			return append(dst, tagNull)
		}
		return value(append(dst, tagValue), i)
	}
}

func appendFloat(dst []byte, f float64) []byte {
	if f != f {
		f = math.NaN() // one for all
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

func listContent(a *array.List) func([]byte, int) []byte {
	element := content(a.ListValues())
	if element == nil {
		return nil
	}
	return listBytes(a, element)
}

// listBytes renders lists, whose elements are never run together.
func listBytes(a *array.List, element func([]byte, int) []byte) func([]byte, int) []byte {
	return func(dst []byte, i int) []byte {
		start, end := a.ValueOffsets(i)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(end-start))
		for at := start; at < end; at++ {
			dst = element(dst, int(at))
		}
		return dst
	}
}

// NullContent is the content of a null.
func NullContent() []byte { return []byte{tagNull} }
