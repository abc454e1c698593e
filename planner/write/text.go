package write

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// textMax is up to how many bytes of a value PostgreSQL shows of a failing row.
const textMax = 64

// rowText is a row as messages show it, in a session's formats.
func (t *Table) rowText(columns []arrow.Array, row int, f encode.Format) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = valueText(c, row, t.Current.Fields[i].OID, f)
		if n := textMax; len(out[i]) > n {
			for n > 0 && !utf8.RuneStart(out[i][n]) {
				n--
			}
			out[i] = out[i][:n] + "..."
		}
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// valueText is a value as PostgreSQL writes it.
func valueText(a arrow.Array, row int, oid uint32, f encode.Format) string {
	if a.IsNull(row) {
		return "null"
	}
	if list, ok := a.(*array.List); ok {
		return listText(list, row, schema.ElementOID(oid), f)
	}
	value := goValue(a, row)
	if text, ok := value.(string); ok {
		if styled, err := encode.Styled(oid, text, f); err == nil {
			return styled
		}
		return text
	}
	const head = 11 // of the message, and the value's length
	line, err := encode.AppendRow(nil, f, []encode.Column{{TypeOID: oid}}, []any{value})
	if err != nil || len(line) < head {
		return a.ValueStr(row)
	}
	return string(line[head:])
}

func listText(a *array.List, row int, oid uint32, f encode.Format) string {
	from, to := a.ValueOffsets(row)
	var out []string
	for i := int(from); i < int(to); i++ {
		if a.ListValues().IsNull(i) {
			out = append(out, "NULL")
			continue
		}
		text := valueText(a.ListValues(), i, oid, f)
		if text == "" || strings.EqualFold(text, "null") || strings.ContainsAny(text, "{},\"\\ \t\n\r\v\f") {
			text = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		}
		out = append(out, text)
	}
	return "{" + strings.Join(out, ",") + "}"
}

// goValue is a value as encode takes it: its text where nothing depends on a session.
func goValue(a arrow.Array, row int) any {
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(row)
	case *array.Int32:
		return a.Value(row)
	case *array.Int64:
		return a.Value(row)
	case *array.Float32:
		return a.Value(row)
	case *array.Float64:
		return a.Value(row)
	case *array.Binary:
		return a.Value(row)
	case *array.FixedSizeBinary:
		var id [16]byte
		copy(id[:], a.Value(row))
		return id
	case *array.Decimal128: // with all digits of its scale
		return a.Value(row).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Date32:
		return moment(int64(a.Value(row)), math.MaxInt32, func(d int64) time.Time { return time.Unix(d*86400, 0).UTC() })
	case *array.Timestamp:
		return moment(int64(a.Value(row)), math.MaxInt64, time.UnixMicro)
	case *array.Time64:
		return time.UnixMicro(int64(a.Value(row))).UTC()
	}
	return a.ValueStr(row)
}

// moment is a day or a time of one; most stands for infinity.
func moment(v, most int64, at func(int64) time.Time) any {
	switch v {
	case most:
		return "infinity"
	case -most:
		return "-infinity"
	}
	return at(v)
}
