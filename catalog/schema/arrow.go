package schema

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/wal/change"
)

// Arrow is the schema of the table's batches: the system columns, then the fields. The
// fields are nullable whatever NotNull says, since a delete carries only its key.
func (t *Table) Arrow() *arrow.Schema {
	fields := make([]arrow.Field, 0, change.SystemColumns+len(t.Fields))
	fields = append(fields,
		arrow.Field{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		arrow.Field{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
	)
	for _, f := range t.Fields {
		fields = append(fields, arrow.Field{Name: f.Name, Type: ArrowType(f.Type), Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// ArrowType is the Arrow type of a valid lake type; it panics on an invalid one.
func ArrowType(t Type) arrow.DataType {
	switch t.Kind {
	case Bool:
		return arrow.FixedWidthTypes.Boolean
	case Int32:
		return arrow.PrimitiveTypes.Int32
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case Float32:
		return arrow.PrimitiveTypes.Float32
	case Float64:
		return arrow.PrimitiveTypes.Float64
	case Decimal:
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Time:
		return arrow.FixedWidthTypes.Time64us
	case Timestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case TimestampTZ:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case String:
		return arrow.BinaryTypes.String
	case Binary:
		return arrow.BinaryTypes.Binary
	case UUID:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	case List:
		return arrow.ListOfField(arrow.Field{Name: "element", Type: ArrowType(*t.Elem), Nullable: true})
	}
	panic(fmt.Sprintf("schema: no Arrow type for kind %d", t.Kind))
}

// EngineType is the SQL name of a valid lake type in the engine; it panics on an
// invalid one.
func EngineType(t Type) string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case List:
		return EngineType(*t.Elem) + "[]"
	}
	if name, ok := engineNames[t.Kind]; ok {
		return name
	}
	panic(fmt.Sprintf("schema: no engine type for kind %d", t.Kind))
}

var engineNames = map[Kind]string{
	Bool: "BOOLEAN", Int32: "INTEGER", Int64: "BIGINT", Float32: "REAL", Float64: "DOUBLE",
	Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP", TimestampTZ: "TIMESTAMP WITH TIME ZONE",
	String: "VARCHAR", Binary: "BLOB", UUID: "UUID",
}
