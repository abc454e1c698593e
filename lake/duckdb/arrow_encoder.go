package duckdb

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/lake/vector"
)

// arrowBatchRows is how many rows a batch of an Arrow result has at least, but for
// the last.
const arrowBatchRows = 16 << 10

// arrowEncoder makes one Arrow IPC stream of a result.
type arrowEncoder struct {
	schema  *arrow.Schema
	builder *array.RecordBuilder
	appends []appendFunc
	writer  *ipc.Writer
	out     tail
	rows    int
}

// tail is a writer to the slice that the encoder's caller holds.
type tail struct{ dst []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.dst = append(t.dst, p...)
	return len(p), nil
}

func newArrowEncoder(columns []driver.Column) (RowEncoder, error) {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		t, err := arrowType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("result column %q: %w", c.Name, err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: t, Nullable: true}
	}
	e := &arrowEncoder{schema: arrow.NewSchema(fields, nil)}
	e.builder = array.NewRecordBuilder(memory.DefaultAllocator, e.schema)
	for i, c := range columns {
		e.appends = append(e.appends, appender(e.builder.Field(i), c.Type))
	}
	e.writer = ipc.NewWriter(&e.out, ipc.WithSchema(e.schema))
	return e, nil
}

// Header returns dst: the stream's schema goes out with its first batch or its end.
func (e *arrowEncoder) Header(dst []byte) []byte { return dst }

// Chunk collects rows, and appends a batch when there are enough.
func (e *arrowEncoder) Chunk(dst []byte, c *vector.Chunk) ([]byte, error) {
	for i := range e.appends {
		e.appends[i](&c.Columns[i], 0, c.Rows)
	}
	if e.rows += c.Rows; e.rows < arrowBatchRows {
		return dst, nil
	}
	return e.flush(dst)
}

// Trailer appends the last batch and the end of the stream. The writer's sink is
// memory, so neither can fail on a schema that took batches before.
func (e *arrowEncoder) Trailer(dst []byte) []byte {
	var err error
	if e.rows > 0 {
		if dst, err = e.flush(dst); err != nil {
			return dst
		}
	}
	e.out.dst = dst
	_ = e.writer.Close() // writes to memory
	e.builder.Release()
	return e.out.dst
}

func (e *arrowEncoder) flush(dst []byte) ([]byte, error) {
	rec := e.builder.NewRecordBatch()
	defer rec.Release()
	e.rows = 0
	e.out.dst = dst
	err := e.writer.Write(rec)
	return e.out.dst, err
}

// simpleArrow maps the kinds without parameters.
var simpleArrow = map[vector.Kind]arrow.DataType{
	vector.Null: arrow.Null, vector.Bool: arrow.FixedWidthTypes.Boolean,
	vector.Int8: arrow.PrimitiveTypes.Int8, vector.Int16: arrow.PrimitiveTypes.Int16,
	vector.Int32: arrow.PrimitiveTypes.Int32, vector.Int64: arrow.PrimitiveTypes.Int64,
	vector.UInt8: arrow.PrimitiveTypes.Uint8, vector.UInt16: arrow.PrimitiveTypes.Uint16,
	vector.UInt32: arrow.PrimitiveTypes.Uint32, vector.UInt64: arrow.PrimitiveTypes.Uint64,
	vector.HugeInt: &arrow.Decimal128Type{Precision: 38}, vector.Float32: arrow.PrimitiveTypes.Float32,
	vector.Float64: arrow.PrimitiveTypes.Float64, vector.Date: arrow.FixedWidthTypes.Date32,
	vector.Time: arrow.FixedWidthTypes.Time64us, vector.Timestamp: &arrow.TimestampType{Unit: arrow.Microsecond},
	vector.TimestampTZ: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	vector.TimestampS:  &arrow.TimestampType{Unit: arrow.Second},
	vector.TimestampMS: &arrow.TimestampType{Unit: arrow.Millisecond},
	vector.TimestampNS: &arrow.TimestampType{Unit: arrow.Nanosecond},
	vector.Interval:    arrow.FixedWidthTypes.MonthDayNanoInterval,
	vector.String:      arrow.BinaryTypes.String, vector.Enum: arrow.BinaryTypes.String,
	vector.Blob: arrow.BinaryTypes.Binary, vector.UUID: &arrow.FixedSizeBinaryType{ByteWidth: 16},
}

// arrowType is the Arrow form of an engine type.
func arrowType(t vector.Type) (arrow.DataType, error) {
	if simple, ok := simpleArrow[t.Kind]; ok {
		return simple, nil
	}
	switch t.Kind {
	case vector.Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Width), Scale: int32(t.Scale)}, nil
	case vector.List:
		elem, err := arrowType(t.Elem[0])
		if err != nil {
			return nil, err
		}
		return arrow.ListOf(elem), nil
	case vector.Struct:
		fields := make([]arrow.Field, len(t.Elem))
		for i, e := range t.Elem {
			member, err := arrowType(e)
			if err != nil {
				return nil, err
			}
			fields[i] = arrow.Field{Name: t.Names[i], Type: member, Nullable: true}
		}
		return arrow.StructOf(fields...), nil
	}
	return nil, &EngineError{Kind: KindNotSupported, Message: fmt.Sprintf("result type %d as Arrow", t.Kind)}
}
