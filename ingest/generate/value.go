package generate

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// appendValue appends one value of a Row to a builder of its column's Arrow type.
func appendValue(b array.Builder, v any) error {
	switch v := v.(type) {
	case nil:
		b.AppendNull()
	case bool:
		b.(*array.BooleanBuilder).Append(v)
	case Int4:
		b.(*array.Int32Builder).Append(int32(v))
	case int64:
		b.(*array.Int64Builder).Append(v)
	case float64:
		b.(*array.Float64Builder).Append(v)
	case string:
		b.(*array.StringBuilder).Append(v)
	case Money:
		b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(v)))
	case Instant:
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(v))
	case Day:
		b.(*array.Date32Builder).Append(arrow.Date32(v))
	case UUID:
		b.(*array.FixedSizeBinaryBuilder).Append(v[:])
	case []int32:
		l := b.(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).AppendValues(v, nil)
	case []string:
		l := b.(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.StringBuilder).AppendValues(v, nil)
	default:
		return fmt.Errorf("generate: value of type %T", v)
	}
	return nil
}

// Text renders a value as PostgreSQL's text output does with TimeZone UTC; null says
// that it is NULL.
func Text(v any) (text string, null bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case bool:
		if v {
			return "t", false
		}
		return "f", false
	case Int4:
		return strconv.Itoa(int(v)), false
	case int64:
		return strconv.FormatInt(v, 10), false
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), false
	case Money:
		return v.String(), false
	case Instant:
		return instantText(v), false
	case Day:
		return time.Unix(int64(v)*86400, 0).UTC().Format("2006-01-02"), false
	case UUID:
		h := hex.EncodeToString(v[:])
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], false
	case []int32:
		words := make([]string, len(v))
		for i, e := range v {
			words[i] = strconv.Itoa(int(e))
		}
		return "{" + strings.Join(words, ",") + "}", false
	case []string:
		words := make([]string, len(v))
		for i, e := range v {
			words[i] = arrayWord(e)
		}
		return "{" + strings.Join(words, ",") + "}", false
	case string:
		return v, false
	}
	return fmt.Sprint(v), false
}

// String renders numeric(12,2).
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	return fmt.Sprintf("%s%d.%02d", sign, int64(m)/100, int64(m)%100)
}

func instantText(v Instant) string {
	t := time.UnixMicro(int64(v)).UTC()
	text := t.Format("2006-01-02 15:04:05")
	if micros := int64(v) % 1_000_000; micros != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%06d", micros), "0")
	}
	return text + "+00"
}

// arrayWord quotes an element as array output does.
func arrayWord(s string) string {
	if s != "" && !strings.EqualFold(s, "null") && !strings.ContainsAny(s, "{}\",\\ \t\n\r\v\f") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
