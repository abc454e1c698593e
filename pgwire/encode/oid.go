package encode

import (
	"strconv"

	"github.com/skipprd/skipprd/lake/vector"
)

// OIDs of PostgreSQL's built-in types, as far as this package treats them.
const (
	oidBool        uint32 = 16
	oidBytea       uint32 = 17
	oidChar        uint32 = 18 // "char"
	oidName        uint32 = 19
	oidInt8        uint32 = 20
	oidInt2        uint32 = 21
	oidInt2Vector  uint32 = 22
	oidInt4        uint32 = 23
	oidRegproc     uint32 = 24
	oidText        uint32 = 25
	oidOID         uint32 = 26
	oidTID         uint32 = 27
	oidXID         uint32 = 28
	oidCID         uint32 = 29
	oidOIDVector   uint32 = 30
	oidJSON        uint32 = 114
	oidXML         uint32 = 142
	oidPgNodeTree  uint32 = 194
	oidCIDR        uint32 = 650
	oidFloat4      uint32 = 700
	oidFloat8      uint32 = 701
	oidUnknown     uint32 = 705
	oidMacaddr8    uint32 = 774
	oidMoney       uint32 = 790
	oidMacaddr     uint32 = 829
	oidInet        uint32 = 869
	oidACLItem     uint32 = 1033
	oidBPChar      uint32 = 1042
	oidVarchar     uint32 = 1043
	oidDate        uint32 = 1082
	oidTime        uint32 = 1083
	oidTimestamp   uint32 = 1114
	oidTimestampTZ uint32 = 1184
	oidInterval    uint32 = 1186
	oidTimeTZ      uint32 = 1266
	oidBit         uint32 = 1560
	oidVarbit      uint32 = 1562
	oidNumeric     uint32 = 1700
	oidRefcursor   uint32 = 1790
	oidRecord      uint32 = 2249
	oidCString     uint32 = 2275
	oidVoid        uint32 = 2278
	oidUUID        uint32 = 2950
	oidLSN         uint32 = 3220
	oidJSONB       uint32 = 3802
	oidJSONPath    uint32 = 4072
	oidXID8        uint32 = 5069
)

// typeInfo is a built-in type's name as format_type spells it, its array type, and
// for an array type its element type.
type typeInfo struct {
	name  string
	array uint32
	elem  uint32
}

var typeTable = makeTypeTable()

func makeTypeTable() map[uint32]typeInfo {
	t := map[uint32]typeInfo{
		oidBool: {"boolean", 1000, 0}, oidBytea: {"bytea", 1001, 0}, oidChar: {`"char"`, 1002, 0},
		oidName: {"name", 1003, 0}, oidInt8: {"bigint", 1016, 0}, oidInt2: {"smallint", 1005, 0},
		oidInt4: {"integer", 1007, 0}, oidRegproc: {"regproc", 1008, 0}, oidText: {"text", 1009, 0},
		oidOID: {"oid", 1028, 0}, oidTID: {"tid", 1010, 0}, oidXID: {"xid", 1011, 0},
		oidCID: {"cid", 1012, 0}, oidJSON: {"json", 199, 0}, oidXML: {"xml", 143, 0},
		oidPgNodeTree: {"pg_node_tree", 0, 0}, oidCIDR: {"cidr", 651, 0}, oidFloat4: {"real", 1021, 0},
		oidFloat8: {"double precision", 1022, 0}, oidUnknown: {"unknown", 0, 0},
		oidMacaddr8: {"macaddr8", 775, 0}, oidMoney: {"money", 791, 0}, oidMacaddr: {"macaddr", 1040, 0},
		oidInet: {"inet", 1041, 0}, oidACLItem: {"aclitem", 1034, 0}, oidBPChar: {"character", 1014, 0},
		oidVarchar: {"character varying", 1015, 0}, oidDate: {"date", 1182, 0},
		oidTime: {"time without time zone", 1183, 0}, oidTimestamp: {"timestamp without time zone", 1115, 0},
		oidTimestampTZ: {"timestamp with time zone", 1185, 0}, oidInterval: {"interval", 1187, 0},
		oidTimeTZ: {"time with time zone", 1270, 0}, oidBit: {"bit", 1561, 0},
		oidVarbit: {"bit varying", 1563, 0}, oidNumeric: {"numeric", 1231, 0},
		oidRefcursor: {"refcursor", 2201, 0}, oidRecord: {"record", 2287, 0}, oidCString: {"cstring", 1263, 0},
		oidVoid: {"void", 0, 0}, oidUUID: {"uuid", 2951, 0}, oidLSN: {"pg_lsn", 3221, 0},
		oidJSONB: {"jsonb", 3807, 0}, oidJSONPath: {"jsonpath", 4073, 0}, oidXID8: {"xid8", 271, 0},
		oidInt2Vector: {"int2vector", 1006, 0}, oidOIDVector: {"oidvector", 1013, 0},
		600: {"point", 1017, 0}, 601: {"lseg", 1018, 0}, 602: {"path", 1019, 0}, 603: {"box", 1020, 0},
		604: {"polygon", 1027, 0}, 628: {"line", 629, 0}, 718: {"circle", 719, 0},
		2202: {"regprocedure", 2207, 0}, 2203: {"regoper", 2208, 0}, 2204: {"regoperator", 2209, 0},
		2205: {"regclass", 2210, 0}, 2206: {"regtype", 2211, 0}, 4096: {"regrole", 4097, 0},
		4089: {"regnamespace", 4090, 0}, 3734: {"regconfig", 3735, 0}, 3769: {"regdictionary", 3770, 0},
		4191: {"regcollation", 4192, 0}, 3614: {"tsvector", 3643, 0}, 3615: {"tsquery", 3645, 0},
		3904: {"int4range", 3905, 0}, 3906: {"numrange", 3907, 0}, 3908: {"tsrange", 3909, 0},
		3910: {"tstzrange", 3911, 0}, 3912: {"daterange", 3913, 0}, 3926: {"int8range", 3927, 0},
		4451: {"int4multirange", 6150, 0}, 4532: {"nummultirange", 6151, 0}, 4533: {"tsmultirange", 6152, 0},
		4534: {"tstzmultirange", 6153, 0}, 4535: {"datemultirange", 6155, 0}, 4536: {"int8multirange", 6157, 0},
		2970: {"txid_snapshot", 2949, 0}, 5038: {"pg_snapshot", 5039, 0},
	}
	arrays := map[uint32]typeInfo{}
	for oid, i := range t {
		if i.array != 0 {
			arrays[i.array] = typeInfo{name: i.name + "[]", elem: oid}
		}
	}
	for oid, i := range arrays {
		t[oid] = i
	}
	return t
}

// typeName is the name of a type in error messages.
func typeName(oid uint32) string {
	if i, ok := typeTable[oid]; ok {
		return i.name
	}
	return "type with OID " + strconv.FormatUint(uint64(oid), 10)
}

// inputName is the name that the date and time types' input functions use.
func inputName(oid uint32) string {
	switch oid {
	case oidTimestamp:
		return "timestamp"
	case oidTime:
		return "time"
	}
	return typeName(oid)
}

// ElementOID returns the element type of a built-in array type, and 0 for others.
func ElementOID(array uint32) uint32 { return typeTable[array].elem }

// ArrayOID returns the array type of a built-in type, and 0 where there is none.
func ArrayOID(element uint32) uint32 { return typeTable[element].array }

// isRegType reports the OID alias types: 4 bytes on the wire, names as text.
func isRegType(oid uint32) bool {
	switch oid {
	case oidRegproc, 2202, 2203, 2204, 2205, 2206, 4096, 4089, 3734, 3769, 4191:
		return true
	}
	return false
}

// isTextual reports types whose binary form is their text.
func isTextual(oid uint32) bool {
	switch oid {
	case oidText, oidVarchar, oidBPChar, oidName, oidUnknown, oidJSON, oidXML, oidCString,
		oidRefcursor, oidPgNodeTree, 0:
		return true
	}
	return false
}

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

// typeSize is pg_type.typlen of the types whose binary form is read here, -1 of others.
func typeSize(oid uint32) int16 {
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
