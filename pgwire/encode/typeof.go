package encode

import "github.com/skipprd/skipprd/lake/vector"

// TypeOf returns the PostgreSQL type, and its modifier (-1: none), as which a value
// of engine type t is announced when nothing else is known about a column.
func TypeOf(t vector.Type) (oid uint32, typmod int32) {
	switch t.Kind {
	case vector.Bool:
		return oidBool, -1
	case vector.Int8, vector.Int16, vector.UInt8:
		return oidInt2, -1
	case vector.Int32, vector.UInt16:
		return oidInt4, -1
	case vector.Int64, vector.UInt32:
		return oidInt8, -1
	case vector.UInt64, vector.HugeInt, vector.UHugeInt:
		return oidNumeric, -1
	case vector.Float32:
		return oidFloat4, -1
	case vector.Float64:
		return oidFloat8, -1
	case vector.Decimal:
		return oidNumeric, (int32(t.Width)<<16 | int32(t.Scale)) + 4
	case vector.Date:
		return oidDate, -1
	case vector.Time:
		return oidTime, -1
	case vector.TimeTZ:
		return oidTimeTZ, -1
	case vector.Timestamp, vector.TimestampS, vector.TimestampMS, vector.TimestampNS:
		return oidTimestamp, -1
	case vector.TimestampTZ:
		return oidTimestampTZ, -1
	case vector.Interval:
		return oidInterval, -1
	case vector.Blob:
		return oidBytea, -1
	case vector.Bit:
		return oidVarbit, -1
	case vector.UUID:
		return oidUUID, -1
	case vector.Struct:
		return oidRecord, -1
	case vector.List:
		elem := t
		for elem.Kind == vector.List {
			elem = elem.Elem[0]
		}
		oid, typmod = TypeOf(elem)
		if a := ArrayOID(oid); a != 0 {
			return a, typmod
		}
		return ArrayOID(oidText), -1
	}
	return oidText, -1
}

// TypeSize is the type's length as RowDescription and pg_type.typlen give it.
func TypeSize(oid uint32) int16 {
	switch oid {
	case oidBool, oidChar:
		return 1
	case oidInt2:
		return 2
	case oidInt4, oidFloat4, oidDate, oidOID, oidXID, oidCID:
		return 4
	case oidTID, oidMacaddr:
		return 6
	case oidInt8, oidFloat8, oidTime, oidTimestamp, oidTimestampTZ, oidMoney, oidXID8, oidLSN, oidMacaddr8:
		return 8
	case oidTimeTZ:
		return 12
	case oidInterval, oidUUID:
		return 16
	case oidName:
		return 64
	case oidUnknown, oidCString:
		return -2
	}
	if isRegType(oid) {
		return 4
	}
	return -1
}
