// Package literal writes values of Arrow columns as PostgreSQL reads them from text: the
// inverse of package value.
package literal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// ErrType means that values of a type cannot be written.
var ErrType = errors.New("type has no text form here")

// Array is the text of a one-dimensional array of texts, one for each value of a column.
func Array(a arrow.Array) (string, error) {
	write, err := writer(a)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	writeArray(&b, a, write, a.Len(), func(i int) int { return i })
	return b.String(), nil
}

// Some is the same of some rows of a column.
func Some(a arrow.Array, rows []int) (string, error) {
	write, err := writer(a)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	writeArray(&b, a, write, len(rows), func(i int) int { return rows[i] })
	return b.String(), nil
}

// writeArray writes n values of a column, at the places that at gives.
func writeArray(b *strings.Builder, a arrow.Array, write func(i int) string, n int, at func(int) int) {
	b.WriteByte('{')
	for k := range n {
		i := at(k)
		if k > 0 {
			b.WriteByte(',')
		}
		if a.IsNull(i) {
			b.WriteString("NULL")
			continue
		}
		b.WriteByte('"')
		for _, c := range []byte(write(i)) {
			if c == '"' || c == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
}

func writer(a arrow.Array) (func(i int) string, error) {
	switch a := a.(type) {
	case *array.String:
		return a.Value, nil
	case *array.Int32:
		return func(i int) string { return strconv.Itoa(int(a.Value(i))) }, nil
	case *array.Int64:
		return func(i int) string { return strconv.FormatInt(a.Value(i), 10) }, nil
	case *array.Boolean:
		return func(i int) string { return strconv.FormatBool(a.Value(i)) }, nil
	case *array.Binary:
		return func(i int) string { return `\x` + hex.EncodeToString(a.Value(i)) }, nil
	case *array.FixedSizeBinary: // a uuid; PostgreSQL reads it without its hyphens
		return func(i int) string { return hex.EncodeToString(a.Value(i)) }, nil
	case *array.Float32:
		return func(i int) string { return float(float64(a.Value(i)), 32) }, nil
	case *array.Float64:
		return func(i int) string { return float(a.Value(i), 64) }, nil
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) string { return a.Value(i).ToString(scale) }, nil
	case *array.Date32:
		return func(i int) string { return date(time.Unix(int64(a.Value(i))*86400, 0).UTC(), "") }, nil
	case *array.Timestamp:
		zone := ""
		if a.DataType().(*arrow.TimestampType).TimeZone != "" {
			zone = "+00"
		}
		return func(i int) string { return date(time.UnixMicro(int64(a.Value(i))).UTC(), zone, "15:04:05.000000") }, nil
	case *array.Time64:
		return func(i int) string { return clock(int64(a.Value(i))) }, nil
	case *array.List:
		elements := a.ListValues()
		write, err := writer(elements)
		if err != nil {
			return nil, err
		}
		return func(i int) string {
			var b strings.Builder
			from, to := a.ValueOffsets(i)
			writeArray(&b, elements, write, int(to-from), func(k int) int { return int(from) + k })
			return b.String()
		}, nil
	}
	return nil, fmt.Errorf("%s: %w", a.DataType(), ErrType)
}

func float(v float64, bits int) string {
	switch {
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

// date writes a day, and a time of it, in years of our era or before it.
func date(t time.Time, zone string, layout ...string) string {
	year, era := t.Year(), ""
	if year <= 0 {
		year, era = 1-year, " BC"
	}
	out := fmt.Sprintf("%04d-%02d-%02d", year, t.Month(), t.Day())
	for _, l := range layout {
		out += " " + t.Format(l)
	}
	return out + zone + era
}

// clock writes microseconds since midnight; 24:00:00 is a time, too.
func clock(us int64) string {
	s := us / 1_000_000
	return fmt.Sprintf("%02d:%02d:%02d.%06d", s/3600, s/60%60, s%60, us%1_000_000)
}
