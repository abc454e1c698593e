package driver

import (
	"fmt"

	b "github.com/duckdb/duckdb-go-bindings"

	"github.com/skipprd/skipprd/lake/vector"
)

// kinds maps the engine's types without parameters.
var kinds = map[b.Type]vector.Kind{
	b.TypeSQLNull: vector.Null, b.TypeBoolean: vector.Bool,
	b.TypeTinyInt: vector.Int8, b.TypeSmallInt: vector.Int16, b.TypeInteger: vector.Int32,
	b.TypeBigInt: vector.Int64, b.TypeUTinyInt: vector.UInt8, b.TypeUSmallInt: vector.UInt16,
	b.TypeUInteger: vector.UInt32, b.TypeUBigInt: vector.UInt64,
	b.TypeHugeInt: vector.HugeInt, b.TypeUHugeInt: vector.UHugeInt,
	b.TypeFloat: vector.Float32, b.TypeDouble: vector.Float64,
	b.TypeDate: vector.Date, b.TypeTime: vector.Time, b.TypeTimeTZ: vector.TimeTZ,
	b.TypeTimestamp: vector.Timestamp, b.TypeTimestampTZ: vector.TimestampTZ,
	b.TypeTimestampS: vector.TimestampS, b.TypeTimestampMS: vector.TimestampMS,
	b.TypeTimestampNS: vector.TimestampNS, b.TypeInterval: vector.Interval,
	b.TypeVarchar: vector.String, b.TypeBlob: vector.Blob, b.TypeBit: vector.Bit,
	b.TypeUUID: vector.UUID,
}

// ownedType converts a logical type and destroys it. A type that is not known yet is
// the zero Type.
func ownedType(t b.LogicalType) (vector.Type, error) {
	defer b.DestroyLogicalType(&t)
	if t.Ptr == nil {
		return vector.Type{}, nil
	}
	id := b.GetTypeId(t)
	if kind, ok := kinds[id]; ok {
		return vector.Type{Kind: kind}, nil
	}
	switch id {
	case b.TypeInvalid, b.TypeAny:
		return vector.Type{}, nil
	case b.TypeDecimal:
		return vector.Type{Kind: vector.Decimal, Width: b.DecimalWidth(t), Scale: b.DecimalScale(t)}, nil
	case b.TypeEnum:
		return enumType(t), nil
	case b.TypeList:
		elem, err := ownedType(b.ListTypeChildType(t))
		return vector.Type{Kind: vector.List, Elem: []vector.Type{elem}}, err
	case b.TypeStruct:
		return structType(t)
	case b.TypeMap:
		key, err := ownedType(b.MapTypeKeyType(t))
		if err != nil {
			return vector.Type{}, err
		}
		value, err := ownedType(b.MapTypeValueType(t))
		return vector.Type{Kind: vector.Map, Elem: []vector.Type{key, value}}, err
	}
	return vector.Type{}, &Error{Kind: NotSupported, Message: fmt.Sprintf("result of engine type %d", id)}
}

func enumType(t b.LogicalType) vector.Type {
	out := vector.Type{Kind: vector.Enum, Width: 4}
	switch b.EnumInternalType(t) {
	case b.TypeUTinyInt:
		out.Width = 1
	case b.TypeUSmallInt:
		out.Width = 2
	}
	for i := range b.EnumDictionarySize(t) {
		out.Dict = append(out.Dict, b.EnumDictionaryValue(t, b.IdxT(i)))
	}
	return out
}

func structType(t b.LogicalType) (vector.Type, error) {
	out := vector.Type{Kind: vector.Struct}
	for i := range b.StructTypeChildCount(t) {
		elem, err := ownedType(b.StructTypeChildType(t, i))
		if err != nil {
			return out, err
		}
		out.Elem = append(out.Elem, elem)
		out.Names = append(out.Names, b.StructTypeChildName(t, i))
	}
	return out, nil
}
