package iceberg

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// Element ids of lists lie above all column ids and below the token's, eight for
// each column: a function of the column's id alone, so they are as permanent as it.
const (
	elementIDBase = 1_000_000_000
	elementIDStep = 8
	fieldIDMax    = (int(schema.TokenFieldID) - 1 - elementIDBase) / elementIDStep
)

// icebergSchema maps a table's columns, with the same ids, and the hidden token at
// the end. Key columns are required and, when their types allow it, the identifier.
func icebergSchema(t *schema.Table) (*icebergo.Schema, error) {
	key := make(map[int32]bool, len(t.Key))
	for _, id := range t.Key {
		key[id] = true
	}
	fields := make([]icebergo.NestedField, 0, len(t.Fields)+1)
	identifier := true
	for _, f := range t.Fields {
		if f.ID <= 0 || int(f.ID) > fieldIDMax {
			return nil, fmt.Errorf("column %s: field id %d is out of range", f.Name, f.ID)
		}
		typ, err := icebergType(f.Type, int(f.ID), 0)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		fields = append(fields, icebergo.NestedField{ID: int(f.ID), Name: f.Name, Type: typ, Required: key[f.ID]})
		switch f.Type.Kind {
		case schema.Float32, schema.Float64, schema.List:
			identifier = identifier && !key[f.ID]
		}
	}
	fields = append(fields, icebergo.NestedField{
		ID: int(schema.TokenFieldID), Name: change.ColToken, Type: icebergo.PrimitiveTypes.Int64,
		Doc: "order of the row's last change",
	})
	ids := make([]int, 0, len(t.Key))
	if identifier {
		for _, id := range t.Key {
			ids = append(ids, int(id))
		}
	}
	return icebergo.NewSchemaWithIdentifiers(0, ids, fields...), nil
}

func icebergType(t schema.Type, fieldID, depth int) (icebergo.Type, error) {
	switch t.Kind {
	case schema.Bool:
		return icebergo.PrimitiveTypes.Bool, nil
	case schema.Int32:
		return icebergo.PrimitiveTypes.Int32, nil
	case schema.Int64:
		return icebergo.PrimitiveTypes.Int64, nil
	case schema.Float32:
		return icebergo.PrimitiveTypes.Float32, nil
	case schema.Float64:
		return icebergo.PrimitiveTypes.Float64, nil
	case schema.Decimal:
		return icebergo.DecimalTypeOf(int(t.Precision), int(t.Scale)), nil
	case schema.Date:
		return icebergo.PrimitiveTypes.Date, nil
	case schema.Time:
		return icebergo.PrimitiveTypes.Time, nil
	case schema.Timestamp:
		return icebergo.PrimitiveTypes.Timestamp, nil
	case schema.TimestampTZ:
		return icebergo.PrimitiveTypes.TimestampTz, nil
	case schema.String:
		return icebergo.PrimitiveTypes.String, nil
	case schema.Binary:
		return icebergo.PrimitiveTypes.Binary, nil
	case schema.UUID:
		return icebergo.PrimitiveTypes.UUID, nil
	case schema.List:
		if t.Elem == nil || depth >= elementIDStep {
			return nil, fmt.Errorf("list type is malformed")
		}
		elem, err := icebergType(*t.Elem, fieldID, depth+1)
		if err != nil {
			return nil, err
		}
		return &icebergo.ListType{ElementID: elementID(fieldID, depth), Element: elem}, nil
	}
	return nil, fmt.Errorf("type kind %d has no lake type", t.Kind)
}

func elementID(fieldID, depth int) int { return elementIDBase + fieldID*elementIDStep + depth }

// parquetSchema is the Arrow schema that data files are written with: field ids in
// the metadata, UUIDs as such.
func parquetSchema(t *schema.Table) *arrow.Schema {
	key := make(map[int32]bool, len(t.Key))
	for _, id := range t.Key {
		key[id] = true
	}
	fields := make([]arrow.Field, 0, len(t.Fields)+1)
	for _, f := range t.Fields {
		fields = append(fields, arrow.Field{
			Name: f.Name, Type: parquetType(schema.ArrowType(f.Type), int(f.ID), 0), Nullable: !key[f.ID],
			Metadata: fieldID(int(f.ID)),
		})
	}
	fields = append(fields, arrow.Field{
		Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: fieldID(int(schema.TokenFieldID)),
	})
	return arrow.NewSchema(fields, nil)
}

func parquetType(t arrow.DataType, id, depth int) arrow.DataType {
	switch t := t.(type) {
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth == uuidBytes {
			return extensions.NewUUIDType()
		}
	case *arrow.ListType:
		return arrow.ListOfField(arrow.Field{
			Name: "element", Type: parquetType(t.Elem(), id, depth+1), Nullable: true,
			Metadata: fieldID(elementID(id, depth)),
		})
	}
	return t
}

const uuidBytes = 16

// fieldIDKey is where pqarrow keeps a column's field id.
const fieldIDKey = "PARQUET:field_id"

func fieldID(id int) arrow.Metadata {
	return arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.Itoa(id)})
}

// arrowSchema is parquetSchema for a table that is known by its lake schema only.
func arrowSchema(s *icebergo.Schema) (*arrow.Schema, error) {
	return table.SchemaToArrowSchema(s, nil, true, false)
}
