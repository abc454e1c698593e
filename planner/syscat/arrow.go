package syscat

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/planner"
)

// scalarTypes are the Arrow types of the engine types that columns have.
var scalarTypes = map[string]arrow.DataType{
	"BOOLEAN": arrow.FixedWidthTypes.Boolean, "INTEGER": arrow.PrimitiveTypes.Int32, "BIGINT": arrow.PrimitiveTypes.Int64,
	"REAL": arrow.PrimitiveTypes.Float32, "DOUBLE": arrow.PrimitiveTypes.Float64, "VARCHAR": arrow.BinaryTypes.String,
	"BLOB": arrow.BinaryTypes.Binary, "TIMESTAMP WITH TIME ZONE": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
}

func arrowType(engine string) arrow.DataType {
	if elem, ok := strings.CutSuffix(engine, "[]"); ok {
		return arrow.ListOf(scalarTypes[elem])
	}
	return scalarTypes[engine]
}

func schemaOf(rel planner.SystemRelation) *arrow.Schema {
	fields := make([]arrow.Field, len(rel.Columns))
	for i, c := range rel.Columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.EngineType), Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// record renders rows as a batch. A cell is nil, or a value that its column's type
// takes (see appendValue).
func record(rel planner.SystemRelation, rows [][]any) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(rel))
	defer b.Release()
	for _, row := range rows {
		if len(row) != len(rel.Columns) {
			return nil, fmt.Errorf("fill %s: %d values for %d columns", rel.Name, len(row), len(rel.Columns))
		}
		for i, v := range row {
			if err := appendValue(b.Field(i), v); err != nil {
				return nil, fmt.Errorf("fill %s.%s: %w", rel.Name, rel.Columns[i].Name, err)
			}
		}
	}
	return b.NewRecordBatch(), nil
}

// encode writes batches as one Arrow IPC stream.
func encode(rel planner.SystemRelation, batches ...arrow.RecordBatch) ([]byte, error) {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schemaOf(rel)))
	for i, b := range batches {
		if b.NumRows() == 0 && i+1 < len(batches) {
			continue
		}
		if err := w.Write(b); err != nil {
			return nil, fmt.Errorf("encode %s: %w", rel.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", rel.Name, err)
	}
	return out.Bytes(), nil
}

// appendValue appends v: a bool, an integer, a float, a string, a time (zero is NULL),
// a slice of these for a list, or text that reads as the type (rows from data).
func appendValue(b array.Builder, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		switch v := v.(type) {
		case bool:
			b.Append(v)
			return nil
		case string:
			b.Append(v == "t")
			return nil
		}
	case *array.Int32Builder:
		n, err := integer(v)
		b.Append(int32(n)) // catalog values fit their columns
		return err
	case *array.Int64Builder:
		n, err := integer(v)
		b.Append(n)
		return err
	case *array.Float32Builder:
		f, err := float(v)
		b.Append(float32(f))
		return err
	case *array.Float64Builder:
		f, err := float(v)
		b.Append(f)
		return err
	case *array.StringBuilder:
		b.Append(fmt.Sprint(v))
		return nil
	case *array.TimestampBuilder:
		if t, ok := v.(time.Time); ok {
			if t.IsZero() {
				b.AppendNull()
			} else {
				b.Append(arrow.Timestamp(t.UnixMicro()))
			}
			return nil
		}
	case *array.ListBuilder:
		return appendList(b, v)
	}
	return fmt.Errorf("no %T from %T", b, v)
}

func appendList(b *array.ListBuilder, v any) error {
	var items []any
	switch v := v.(type) {
	case []string:
		for _, s := range v {
			items = append(items, s)
		}
	case []int64:
		for _, n := range v {
			items = append(items, n)
		}
	case string: // a vector's or an array's text
		for _, s := range strings.FieldsFunc(strings.Trim(v, "{}"), func(r rune) bool { return r == ' ' || r == ',' }) {
			items = append(items, strings.Trim(s, `"`)) // "" is empty, and nothing else needs quotes
		}
	default:
		return fmt.Errorf("no list from %T", v)
	}
	b.Append(true)
	for _, i := range items {
		if err := appendValue(b.ValueBuilder(), i); err != nil {
			return err
		}
	}
	return nil
}

func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case uint32:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case string:
		if v == "-" {
			return 0, nil // regproc 0
		}
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, fmt.Errorf("no integer from %T", v)
}

func float(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case string:
		return strconv.ParseFloat(v, 64)
	}
	n, err := integer(v)
	return float64(n), err
}
