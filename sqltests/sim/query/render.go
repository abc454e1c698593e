package query

import (
	"encoding/hex"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The separator between the values of a row, and what stands for a null. A text that
// has either is escaped.
const (
	separator = '|'
	null      = `\N`
)

// AppendValue renders a value of a source: nil, bool, int64, float64, string or
// []byte. A value and the column that holds it render the same.
func AppendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, null...)
	case bool:
		return appendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case string:
		return appendText(dst, v)
	case []byte:
		return appendHex(dst, v)
	}
	return append(dst, '?')
}

// AppendRow renders a row of values.
func AppendRow(dst []byte, row []any) []byte {
	for i, v := range row {
		if i > 0 {
			dst = append(dst, separator)
		}
		dst = AppendValue(dst, v)
	}
	return dst
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

func appendFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) {
		return append(dst, "NaN"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

func appendText(dst []byte, v string) []byte {
	for i := range len(v) {
		switch c := v[i]; c {
		case separator:
			dst = append(dst, '\\', separator)
		case '\\':
			dst = append(dst, '\\', '\\')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendHex(dst, v []byte) []byte { return hex.AppendEncode(append(dst, '\\', 'x'), v) }

// appender renders the values of a column.
type appender func(dst []byte, row int) []byte

// column makes the appender of an array; nil, for a column that a schema version does
// not have, is all nulls (D2).
func column(a arrow.Array) appender {
	if a == nil {
		return func(dst []byte, _ int) []byte { return append(dst, null...) }
	}
	value := values(a)
	if a.NullN() == 0 {
		return value
	}
	return func(dst []byte, i int) []byte {
		if a.IsNull(i) {
			return append(dst, null...)
		}
		return value(dst, i)
	}
}

func values(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.Int64:
		v := a.Int64Values()
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, v[i], 10) }
	case *array.Int32:
		v := a.Int32Values()
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(v[i]), 10) }
	case *array.String:
		return func(dst []byte, i int) []byte { return appendText(dst, a.Value(i)) }
	case *array.Boolean:
		return func(dst []byte, i int) []byte { return appendBool(dst, a.Value(i)) }
	case *array.Float64:
		return func(dst []byte, i int) []byte { return appendFloat(dst, a.Value(i)) }
	case *array.Float32:
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i))) }
	case *array.Binary:
		return func(dst []byte, i int) []byte { return appendHex(dst, a.Value(i)) }
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return appendHex(dst, a.Value(i)) }
	case *array.Date32:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(a.Value(i)), 10) }
	case *array.Time64:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(a.Value(i)), 10) }
	case *array.Timestamp:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(a.Value(i)), 10) }
	}
	return func(dst []byte, i int) []byte { return appendText(dst, a.ValueStr(i)) }
}
