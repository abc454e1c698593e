package schema

// OIDs of the built-in types that code names.
const (
	OIDBool        uint32 = 16
	OIDBytea       uint32 = 17
	OIDChar        uint32 = 18 // "char"
	OIDName        uint32 = 19
	OIDInt8        uint32 = 20
	OIDInt2        uint32 = 21
	OIDInt4        uint32 = 23
	OIDText        uint32 = 25
	OIDOid         uint32 = 26
	OIDJSON        uint32 = 114
	OIDFloat4      uint32 = 700
	OIDFloat8      uint32 = 701
	OIDBpchar      uint32 = 1042
	OIDVarchar     uint32 = 1043
	OIDDate        uint32 = 1082
	OIDTime        uint32 = 1083
	OIDTimestamp   uint32 = 1114
	OIDTimestampTZ uint32 = 1184
	OIDInterval    uint32 = 1186
	OIDTimeTZ      uint32 = 1266
	OIDBit         uint32 = 1560
	OIDVarbit      uint32 = 1562
	OIDNumeric     uint32 = 1700
	OIDUUID        uint32 = 2950
	OIDJSONB       uint32 = 3802

	// OIDFirstUser is the first oid that is not built in.
	OIDFirstUser uint32 = 16384
)

// PostgresType is a built-in type as pg_type has it.
type PostgresType struct {
	OID uint32
	// Name is pg_type.typname, the internal name.
	Name string
	// Array is the oid of its array type, 0 if it has none.
	Array uint32
	// Size is pg_type.typlen: bytes, -1 variable, -2 a C string.
	Size int16
	// Category is pg_type.typcategory; Kind is pg_type.typtype (b, c, p, r, m).
	Category, Kind byte
}

// builtinTypes are PostgreSQL 15's, without array types, in order of oid.
var builtinTypes = []PostgresType{
	{16, "bool", 1000, 1, 'B', 'b'},
	{17, "bytea", 1001, -1, 'U', 'b'},
	{18, "char", 1002, 1, 'Z', 'b'},
	{19, "name", 1003, 64, 'S', 'b'},
	{20, "int8", 1016, 8, 'N', 'b'},
	{21, "int2", 1005, 2, 'N', 'b'},
	{22, "int2vector", 1006, -1, 'A', 'b'},
	{23, "int4", 1007, 4, 'N', 'b'},
	{24, "regproc", 1008, 4, 'N', 'b'},
	{25, "text", 1009, -1, 'S', 'b'},
	{26, "oid", 1028, 4, 'N', 'b'},
	{27, "tid", 1010, 6, 'U', 'b'},
	{28, "xid", 1011, 4, 'U', 'b'},
	{29, "cid", 1012, 4, 'U', 'b'},
	{30, "oidvector", 1013, -1, 'A', 'b'},
	{32, "pg_ddl_command", 0, 8, 'P', 'p'},
	{71, "pg_type", 210, -1, 'C', 'c'},
	{75, "pg_attribute", 270, -1, 'C', 'c'},
	{81, "pg_proc", 272, -1, 'C', 'c'},
	{83, "pg_class", 273, -1, 'C', 'c'},
	{114, "json", 199, -1, 'U', 'b'},
	{142, "xml", 143, -1, 'U', 'b'},
	{194, "pg_node_tree", 0, -1, 'Z', 'b'},
	{269, "table_am_handler", 0, 4, 'P', 'p'},
	{325, "index_am_handler", 0, 4, 'P', 'p'},
	{600, "point", 1017, 16, 'G', 'b'},
	{601, "lseg", 1018, 32, 'G', 'b'},
	{602, "path", 1019, -1, 'G', 'b'},
	{603, "box", 1020, 32, 'G', 'b'},
	{604, "polygon", 1027, -1, 'G', 'b'},
	{628, "line", 629, 24, 'G', 'b'},
	{650, "cidr", 651, -1, 'I', 'b'},
	{700, "float4", 1021, 4, 'N', 'b'},
	{701, "float8", 1022, 8, 'N', 'b'},
	{705, "unknown", 0, -2, 'X', 'p'},
	{718, "circle", 719, 24, 'G', 'b'},
	{774, "macaddr8", 775, 8, 'U', 'b'},
	{790, "money", 791, 8, 'N', 'b'},
	{829, "macaddr", 1040, 6, 'U', 'b'},
	{869, "inet", 1041, -1, 'I', 'b'},
	{1033, "aclitem", 1034, 12, 'U', 'b'},
	{1042, "bpchar", 1014, -1, 'S', 'b'},
	{1043, "varchar", 1015, -1, 'S', 'b'},
	{1082, "date", 1182, 4, 'D', 'b'},
	{1083, "time", 1183, 8, 'D', 'b'},
	{1114, "timestamp", 1115, 8, 'D', 'b'},
	{1184, "timestamptz", 1185, 8, 'D', 'b'},
	{1186, "interval", 1187, 16, 'T', 'b'},
	{1266, "timetz", 1270, 12, 'D', 'b'},
	{1560, "bit", 1561, -1, 'V', 'b'},
	{1562, "varbit", 1563, -1, 'V', 'b'},
	{1700, "numeric", 1231, -1, 'N', 'b'},
	{1790, "refcursor", 2201, -1, 'U', 'b'},
	{2202, "regprocedure", 2207, 4, 'N', 'b'},
	{2203, "regoper", 2208, 4, 'N', 'b'},
	{2204, "regoperator", 2209, 4, 'N', 'b'},
	{2205, "regclass", 2210, 4, 'N', 'b'},
	{2206, "regtype", 2211, 4, 'N', 'b'},
	{2249, "record", 2287, -1, 'P', 'p'},
	{2275, "cstring", 1263, -2, 'P', 'p'},
	{2276, "any", 0, 4, 'P', 'p'},
	{2277, "anyarray", 0, -1, 'P', 'p'},
	{2278, "void", 0, 4, 'P', 'p'},
	{2279, "trigger", 0, 4, 'P', 'p'},
	{2280, "language_handler", 0, 4, 'P', 'p'},
	{2281, "internal", 0, 8, 'P', 'p'},
	{2283, "anyelement", 0, 4, 'P', 'p'},
	{2776, "anynonarray", 0, 4, 'P', 'p'},
	{2950, "uuid", 2951, 16, 'U', 'b'},
	{2970, "txid_snapshot", 2949, -1, 'U', 'b'},
	{3115, "fdw_handler", 0, 4, 'P', 'p'},
	{3220, "pg_lsn", 3221, 8, 'U', 'b'},
	{3310, "tsm_handler", 0, 4, 'P', 'p'},
	{3361, "pg_ndistinct", 0, -1, 'Z', 'b'},
	{3402, "pg_dependencies", 0, -1, 'Z', 'b'},
	{3500, "anyenum", 0, 4, 'P', 'p'},
	{3614, "tsvector", 3643, -1, 'U', 'b'},
	{3615, "tsquery", 3645, -1, 'U', 'b'},
	{3642, "gtsvector", 3644, -1, 'U', 'b'},
	{3734, "regconfig", 3735, 4, 'N', 'b'},
	{3769, "regdictionary", 3770, 4, 'N', 'b'},
	{3802, "jsonb", 3807, -1, 'U', 'b'},
	{3831, "anyrange", 0, -1, 'P', 'p'},
	{3838, "event_trigger", 0, 4, 'P', 'p'},
	{3904, "int4range", 3905, -1, 'R', 'r'},
	{3906, "numrange", 3907, -1, 'R', 'r'},
	{3908, "tsrange", 3909, -1, 'R', 'r'},
	{3910, "tstzrange", 3911, -1, 'R', 'r'},
	{3912, "daterange", 3913, -1, 'R', 'r'},
	{3926, "int8range", 3927, -1, 'R', 'r'},
	{4072, "jsonpath", 4073, -1, 'U', 'b'},
	{4089, "regnamespace", 4090, 4, 'N', 'b'},
	{4096, "regrole", 4097, 4, 'N', 'b'},
	{4191, "regcollation", 4192, 4, 'N', 'b'},
	{4451, "int4multirange", 6150, -1, 'R', 'm'},
	{4532, "nummultirange", 6151, -1, 'R', 'm'},
	{4533, "tsmultirange", 6152, -1, 'R', 'm'},
	{4534, "tstzmultirange", 6153, -1, 'R', 'm'},
	{4535, "datemultirange", 6155, -1, 'R', 'm'},
	{4536, "int8multirange", 6157, -1, 'R', 'm'},
	{4537, "anymultirange", 0, -1, 'P', 'p'},
	{4538, "anycompatiblemultirange", 0, -1, 'P', 'p'},
	{4600, "pg_brin_bloom_summary", 0, -1, 'Z', 'b'},
	{4601, "pg_brin_minmax_multi_summary", 0, -1, 'Z', 'b'},
	{5017, "pg_mcv_list", 0, -1, 'Z', 'b'},
	{5038, "pg_snapshot", 5039, -1, 'U', 'b'},
	{5069, "xid8", 271, 8, 'U', 'b'},
	{5077, "anycompatible", 0, 4, 'P', 'p'},
	{5078, "anycompatiblearray", 0, -1, 'P', 'p'},
	{5079, "anycompatiblenonarray", 0, 4, 'P', 'p'},
	{5080, "anycompatiblerange", 0, -1, 'P', 'p'},
}

// sqlNames are the standard's names where they differ from pg_type.typname.
var sqlNames = map[uint32]string{
	OIDBool: "boolean", OIDChar: `"char"`, OIDInt8: "bigint", OIDInt2: "smallint",
	OIDInt4: "integer", OIDFloat4: "real", OIDFloat8: "double precision",
	OIDVarchar: "character varying", OIDBit: `"bit"`, OIDVarbit: "bit varying",
	OIDTime: "time without time zone", OIDTimeTZ: "time with time zone",
	OIDTimestamp: "timestamp without time zone", OIDTimestampTZ: "timestamp with time zone",
	2276: `"any"`,
}

// SQLName is the type's name without modifiers as format_type writes it. bpchar and
// "bit" without a length are not character and bit, which mean a length of 1.
func (t PostgresType) SQLName() string {
	if n, ok := sqlNames[t.OID]; ok {
		return n
	}
	return t.Name
}

func (t PostgresType) sqlNameWithMod() string {
	switch t.OID {
	case OIDBpchar:
		return "character"
	case OIDBit:
		return "bit"
	}
	return t.SQLName()
}

var (
	typeByOID  = indexTypes(func(t PostgresType) uint32 { return t.OID })
	typeByElem = indexTypes(func(t PostgresType) uint32 { return t.Array })
	typeByName = indexTypes(func(t PostgresType) string { return t.Name })
)

func indexTypes[K comparable](key func(PostgresType) K) map[K]PostgresType {
	var none K
	out := make(map[K]PostgresType, len(builtinTypes))
	for _, t := range builtinTypes {
		if k := key(t); k != none {
			out[k] = t
		}
	}
	return out
}

// BuiltinTypes are all built-in types and their array types, in order of neither. The
// caller owns the slice.
func BuiltinTypes() []PostgresType {
	out := make([]PostgresType, 0, 2*len(builtinTypes))
	for _, t := range builtinTypes {
		out = append(out, t)
		if t.Array != 0 {
			out = append(out, arrayOf(t))
		}
	}
	return out
}

// arrayOf is the array type of t. Those of pseudo-types are pseudo-types.
func arrayOf(t PostgresType) PostgresType {
	a := PostgresType{OID: t.Array, Name: "_" + t.Name, Size: -1, Category: 'A', Kind: 'b'}
	if t.Name == "record" {
		a.Category, a.Kind = 'P', 'p'
	}
	return a
}

// LookupType finds a built-in type, array types included.
func LookupType(oid uint32) (PostgresType, bool) {
	if t, ok := typeByOID[oid]; ok {
		return t, true
	}
	if t, ok := typeByElem[oid]; ok {
		return arrayOf(t), true
	}
	return PostgresType{}, false
}

// TypeByName finds a built-in type by its internal name ("int4", "_int4").
func TypeByName(name string) (PostgresType, bool) {
	if t, ok := typeByName[name]; ok {
		return t, true
	}
	if len(name) > 1 && name[0] == '_' {
		if t, ok := typeByName[name[1:]]; ok && t.Array != 0 {
			return arrayOf(t), true
		}
	}
	return PostgresType{}, false
}

// ElementOID is the element type of an array type, 0 if oid is not one.
func ElementOID(oid uint32) uint32 { return typeByElem[oid].OID }

// ArrayOID is the array type of an element type, 0 if there is none.
func ArrayOID(oid uint32) uint32 { return typeByOID[oid].Array }

// TypeSize is pg_type.typlen, as RowDescription announces it; -1 for an oid that is not
// built in.
func TypeSize(oid uint32) int16 {
	if t, ok := LookupType(oid); ok {
		return t.Size
	}
	return -1
}
