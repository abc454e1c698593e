package pgsql

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/skipprd/skipprd/planner/pgfunc/span"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Type is a PostgreSQL type: its oid and modifier (-1: none).
type Type struct {
	OID uint32
	Mod int32
	// User is what a type has that users have made, nil for any other.
	User *UserType
}

// The oids of the types that the analysis names.
const (
	OIDBool        = 16
	OIDBytea       = 17
	OIDChar        = 18
	OIDName        = 19
	OIDInt8        = 20
	OIDInt2        = 21
	OIDInt2Vector  = 22
	OIDInt4        = 23
	OIDRegproc     = 24
	OIDText        = 25
	OIDOid         = 26
	OIDXid         = 28
	OIDOidVector   = 30
	OIDJSON        = 114
	OIDXML         = 142
	OIDBit         = 1560
	OIDVarbit      = 1562
	OIDFloat4      = 700
	OIDFloat8      = 701
	OIDUnknown     = 705
	OIDInet        = 869
	OIDBpchar      = 1042
	OIDVarchar     = 1043
	OIDDate        = 1082
	OIDTime        = 1083
	OIDTimestamp   = 1114
	OIDTimestamptz = 1184
	OIDInterval    = 1186
	OIDTimetz      = 1266
	OIDNumeric     = 1700
	OIDRegclass    = 2205
	OIDRegtype     = 2206
	OIDRecord      = 2249
	OIDAny         = 2276
	OIDAnyArray    = 2277
	OIDVoid        = 2278
	OIDAnyElement  = 2283
	OIDUUID        = 2950
	OIDJSONB       = 3802
	OIDJSONPath    = 4072
	OIDRegnsp      = 4089
	OIDRegrole     = 4096
)

// pgType is what the analysis knows of a type.
type pgType struct {
	oid   uint32
	array uint32
	// name is what messages say; internal is pg_type.typname.
	name, internal string
	category       byte
	preferred      bool
	// engine is the engine's type of its values; VARCHAR for exact text.
	engine string
	size   int16
	elem   uint32 // of an array
}

// scalars: oid, array oid, SQL name, typname, category, engine type, size. A "*"
// after the category marks the preferred type of its category.
const scalars = `
16 1000 boolean|bool B* BOOLEAN 1
17 1001 bytea|bytea U BLOB -1
18 1002 "char"|char Z VARCHAR 1
19 1003 name|name S VARCHAR 64
20 1016 bigint|int8 N BIGINT 8
21 1005 smallint|int2 N SMALLINT 2
22 1006 int2vector|int2vector A SMALLINT[] -1
23 1007 integer|int4 N INTEGER 4
24 1008 regproc|regproc N BIGINT 4
25 1009 text|text S* VARCHAR -1
26 1028 oid|oid N* BIGINT 4
28 1011 xid|xid U BIGINT 4
29 1012 cid|cid U BIGINT 4
27 1010 tid|tid U VARCHAR 6
30 1013 oidvector|oidvector A BIGINT[] -1
114 199 json|json U VARCHAR -1
142 143 xml|xml U VARCHAR -1
194 0 pg_node_tree|pg_node_tree Z VARCHAR -1
650 651 cidr|cidr I VARCHAR -1
700 1021 real|float4 N FLOAT 4
701 1022 double_precision|float8 N* DOUBLE 8
774 775 macaddr8|macaddr8 U VARCHAR 8
790 791 money|money N VARCHAR 8
829 1040 macaddr|macaddr U VARCHAR 6
869 1041 inet|inet I* VARCHAR -1
1033 1034 aclitem|aclitem U VARCHAR 12
1042 1014 character|bpchar S VARCHAR -1
1043 1015 character_varying|varchar S VARCHAR -1
1082 1182 date|date D DATE 4
1083 1183 time_without_time_zone|time D TIME 8
1114 1115 timestamp_without_time_zone|timestamp D TIMESTAMP 8
1184 1185 timestamp_with_time_zone|timestamptz D* TIMESTAMPTZ 8
1186 1187 interval|interval T* INTERVAL 16
1266 1270 time_with_time_zone|timetz D TIMETZ 12
1560 1561 bit|bit V VARCHAR -1
1562 1563 bit_varying|varbit V* VARCHAR -1
1700 1231 numeric|numeric N DECIMAL -1
2202 2207 regprocedure|regprocedure N BIGINT 4
2203 2208 regoper|regoper N BIGINT 4
2205 2210 regclass|regclass N BIGINT 4
2206 2211 regtype|regtype N BIGINT 4
2249 2287 record|record P VARCHAR -1
2275 1263 cstring|cstring P VARCHAR -2
2276 0 "any"|any P VARCHAR 4
2277 0 anyarray|anyarray P VARCHAR -1
2278 0 void|void P VARCHAR 4
2283 0 anyelement|anyelement P VARCHAR 4
705 0 unknown|unknown X VARCHAR -2
2950 2951 uuid|uuid U UUID 16
3220 3221 pg_lsn|pg_lsn U VARCHAR 8
3802 3807 jsonb|jsonb U VARCHAR -1
4072 4073 jsonpath|jsonpath U VARCHAR -1
3904 3905 int4range|int4range R VARCHAR -1
3906 3907 numrange|numrange R VARCHAR -1
3908 3909 tsrange|tsrange R VARCHAR -1
3910 3911 tstzrange|tstzrange R VARCHAR -1
3912 3913 daterange|daterange R VARCHAR -1
3926 3927 int8range|int8range R VARCHAR -1
4451 6150 int4multirange|int4multirange R VARCHAR -1
4532 6151 nummultirange|nummultirange R VARCHAR -1
4533 6152 tsmultirange|tsmultirange R VARCHAR -1
4534 6153 tstzmultirange|tstzmultirange R VARCHAR -1
4535 6155 datemultirange|datemultirange R VARCHAR -1
4536 6157 int8multirange|int8multirange R VARCHAR -1
600 1017 point|point G VARCHAR 16
601 1018 lseg|lseg G VARCHAR 32
602 1019 path|path G VARCHAR -1
603 1020 box|box G VARCHAR 32
604 1027 polygon|polygon G VARCHAR -1
628 629 line|line G VARCHAR 24
718 719 circle|circle G VARCHAR 24
2204 2209 regoperator|regoperator N BIGINT 4
3734 3735 regconfig|regconfig N BIGINT 4
3769 3770 regdictionary|regdictionary N BIGINT 4
4191 4192 regcollation|regcollation N BIGINT 4
4089 4090 regnamespace|regnamespace N BIGINT 4
4096 4097 regrole|regrole N BIGINT 4
` + storedOnly

// storedOnly are types that columns have and no expression makes: their values are the
// source's exact text.
const storedOnly = `1790 2201 refcursor|refcursor U VARCHAR -1
2970 2949 txid_snapshot|txid_snapshot U VARCHAR -1
3614 3643 tsvector|tsvector U VARCHAR -1
3615 3645 tsquery|tsquery U VARCHAR -1
5038 5039 pg_snapshot|pg_snapshot U VARCHAR -1
5069 271 xid8|xid8 U VARCHAR 8
`

type typeTable struct {
	byOID  map[uint32]*pgType
	byName map[string]*pgType // internal names
}

var typeIndex = sync.OnceValue(func() *typeTable {
	t := &typeTable{byOID: map[uint32]*pgType{}, byName: map[string]*pgType{}}
	for line := range strings.Lines(strings.TrimSpace(scalars)) {
		f := strings.Fields(line)
		oid, _ := strconv.ParseUint(f[0], 10, 32)
		arr, _ := strconv.ParseUint(f[1], 10, 32)
		name, internal, _ := strings.Cut(f[2], "|")
		size, _ := strconv.ParseInt(f[5], 10, 16)
		p := &pgType{
			oid: uint32(oid), array: uint32(arr), name: strings.ReplaceAll(name, "_", " "),
			internal: internal, category: f[3][0], preferred: strings.HasSuffix(f[3], "*"),
			engine: f[4], size: int16(size),
		}
		if name == internal {
			p.name = name
		}
		switch p.oid {
		case OIDInt2Vector:
			p.elem = OIDInt2
		case OIDOidVector:
			p.elem = OIDOid
		}
		t.add(p)
		if p.array != 0 {
			t.add(&pgType{
				oid: p.array, name: p.name + "[]", internal: "_" + p.internal, category: 'A',
				engine: p.engine + "[]", size: -1, elem: p.oid,
			})
		}
	}
	for alias, of := range map[string]string{
		"int": "int4", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4",
		"boolean": "bool", "decimal": "numeric", "string": "text",
	} {
		t.byName[alias] = t.byName[of]
	}
	return t
})

func (t *typeTable) add(p *pgType) {
	t.byOID[p.oid] = p
	t.byName[p.internal] = p
}

// lookupType returns the type of an oid; a type of a source's own (unknown oid) is
// exact text.
func lookupType(oid uint32) *pgType {
	if p, ok := typeIndex().byOID[oid]; ok {
		return p
	}
	return &pgType{oid: oid, name: "user-defined", internal: "unknown", category: 'U', engine: "VARCHAR", size: -1}
}

// KnownType reports whether an oid is a built-in type of ours.
func KnownType(oid uint32) bool {
	_, ok := typeIndex().byOID[oid]
	return ok
}

// TypeSize is pg_type.typlen of an oid, as RowDescription announces it.
func TypeSize(oid uint32) int16 { return lookupType(oid).size }

// Size is pg_type.typlen of the type.
func (t Type) Size() int16 {
	if t.User != nil {
		return t.User.Length
	}
	return TypeSize(t.OID)
}

// ArrayOf returns the oid of the array type of an element type, 0 when none.
func ArrayOf(oid uint32) uint32 { return lookupType(oid).array }

// ElemOf returns the oid of the element type of an array type, 0 when oid is none.
func ElemOf(oid uint32) uint32 { return lookupType(oid).elem }

// TypeNamed finds a type by its pg_type name ("int4", "_text", "timestamptz").
func TypeNamed(name string) (uint32, bool) {
	p, ok := typeIndex().byName[name]
	if !ok {
		return 0, false
	}
	return p.oid, true
}

// Name renders a type as format_type does, without the modifier.
func (t Type) Name() string {
	if t.User != nil {
		return t.User.SQLName()
	}
	return lookupType(t.OID).name
}

// isArray reports whether the type's values are engine lists.
func (t Type) isArray() bool { return lookupType(t.OID).elem != 0 }

func (t Type) category() byte {
	if t.folded() {
		return 'S'
	}
	return lookupType(t.OID).category
}

// decimal splits a numeric modifier.
func (t Type) decimal() (precision, scale int, ok bool) {
	if t.OID != OIDNumeric || t.Mod < 4 {
		return 0, 0, false
	}
	m := t.Mod - 4
	return int(m>>16) & 0xffff, int(int16(m<<5) >> 5), true
}

// Digits is decimal for other packages.
func (t Type) Digits() (precision, scale int, ok bool) { return t.decimal() }

func numericMod(precision, scale int) int32 {
	return int32(precision<<16|scale&0x7ff) + 4
}

// engineType is the engine's type of a value of t, in the canonical form that
// expressions of t have. A numeric without a modifier has no single one: "".
func (t Type) engineType() string {
	if t.OID == OIDNumeric {
		p, s, ok := t.decimal()
		if !ok || p > maxDigits || s < 0 || s > p {
			return ""
		}
		return fmt.Sprintf("DECIMAL(%d,%d)", p, s)
	}
	if t.OID == 1231 {
		p, s, ok := Type{OID: OIDNumeric, Mod: t.Mod}.decimal()
		if !ok || p > maxDigits || s < 0 || s > p {
			return "VARCHAR[]" // exact text
		}
		return fmt.Sprintf("DECIMAL(%d,%d)[]", p, s)
	}
	return lookupType(t.OID).engine
}

// engineDecimal takes the engine's type DECIMAL(p,s) apart.
func engineDecimal(engine string) (precision, scale int, ok bool) {
	n, err := fmt.Sscanf(strings.ToUpper(engine), "DECIMAL(%d,%d)", &precision, &scale)
	return precision, scale, err == nil && n == 2
}

// maxDigits is the engine's greatest decimal precision.
const maxDigits = 38

func plain(oid uint32) Type { return Type{OID: oid, Mod: -1} }

// bare is a type without its modifier.
func bare(t Type) Type { return Type{OID: t.OID, Mod: -1, User: t.User} }

func sortedOIDs() []uint32 {
	return slices.Sorted(maps.Keys(typeIndex().byOID))
}

// typeName resolves a type name of a statement.
func (a *analyzer) typeName(n *pg.TypeName) (Type, error) {
	if len(n.Names) == 2 && n.Names[0].GetString_().GetSval() == "information_schema" && len(n.ArrayBounds) == 0 {
		if t, ok := plainDomains[n.Names[1].GetString_().GetSval()]; ok {
			return plain(t), nil
		}
	}
	t, err := a.env.ResolveType(n)
	if err != nil {
		return t, a.errAt(n.Location, err)
	}
	return t, nil
}

// plainDomains are the domains of information_schema whose values are all those of their
// type; as that an expression shows them anyway.
var plainDomains = map[string]uint32{"sql_identifier": OIDName, "character_data": OIDVarchar}

// ResolveTypeName resolves a parsed type name; 42704 when there is no such type.
func ResolveTypeName(n *pg.TypeName) (Type, error) {
	var names []string
	for _, x := range n.Names {
		names = append(names, x.GetString_().GetSval())
	}
	name := names[len(names)-1]
	if len(names) > 1 && names[len(names)-2] != "pg_catalog" {
		return Type{}, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", strings.Join(names, "."))
	}
	p, ok := typeIndex().byName[name]
	if ok && strings.Contains(storedOnly, "|"+strings.TrimPrefix(p.internal, "_")+" ") {
		return Type{}, unsupported("type \"%s\" is not supported in expressions", name).
			WithHint("Columns of that type can be read, and cast to text.")
	}
	if !ok || p.category == 'X' {
		return Type{}, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", strings.Join(names, "."))
	}
	mod, err := typeMod(p.oid, n.Typmods)
	if err != nil {
		return Type{}, err
	}
	t := Type{OID: p.oid, Mod: mod}
	if len(n.ArrayBounds) > 0 {
		arr := p.array
		if p.elem != 0 {
			arr = p.oid
		}
		t.OID = arr
	}
	return t, nil
}

func typeMod(oid uint32, mods []*pg.Node) (int32, error) {
	if len(mods) == 0 {
		return -1, nil
	}
	var v []int
	for _, m := range mods {
		c := m.GetAConst()
		if c == nil || c.GetIval() == nil {
			return -1, pgerr.New(codes.Syntax, "type modifiers must be simple constants or identifiers")
		}
		v = append(v, int(c.GetIval().Ival))
	}
	switch oid {
	case OIDNumeric:
		scale := 0
		if len(v) > 1 {
			scale = v[1]
		}
		if v[0] < 1 || v[0] > 1000 {
			return -1, pgerr.New(codes.InvalidParameterValue, "NUMERIC precision %d must be between 1 and 1000", v[0])
		}
		if scale < -1000 || scale > 1000 {
			return -1, pgerr.New(codes.InvalidParameterValue, "NUMERIC scale %d must be between -1000 and 1000", scale)
		}
		return numericMod(v[0], scale), nil
	case OIDVarchar, OIDBpchar:
		if v[0] < 1 {
			return -1, pgerr.New(codes.InvalidParameterValue, "length for type %s must be at least 1",
				strings.TrimPrefix(lookupType(oid).internal, "bp"))
		}
		return int32(v[0]) + 4, nil
	case OIDTimestamp, OIDTimestamptz, OIDTime, OIDTimetz:
		return int32(min(v[0], 6)), nil
	case OIDInterval:
		return intervalMod(v), nil
	}
	if lookupType(oid).category == 'V' {
		if v[0] < 1 {
			return -1, pgerr.New(codes.InvalidParameterValue, "length for type %s must be at least 1", lookupType(oid).internal)
		}
		return int32(v[0]), nil
	}
	return -1, pgerr.New(codes.Syntax, "type modifier is not allowed for type \"%s\"", lookupType(oid).internal)
}

// Indexable says whether PostgreSQL has an order, and so unique indexes, of values of the type.
func (t Type) Indexable() bool {
	switch t.OID {
	case OIDJSON, OIDXML, OIDJSONPath, OIDXid, 29, 1790, 1033:
		return false
	}
	return t.category() != 'G'
}

// equatable says whether PostgreSQL can tell values of the type apart in arrays, rows and sets.
func (t Type) equatable() bool {
	return t.OID != OIDJSON && t.OID != OIDXML && t.OID != OIDJSONPath && t.category() != 'G'
}

// SeveralTexts says whether values of the type that are equal may be kept as different texts, as
// ranges from 1.0 and from 1 are.
func (t Type) SeveralTexts() bool {
	oid := t.OID
	if elem := ElemOf(oid); elem != 0 {
		oid = elem
	}
	kind, _, ok := span.KindOf(oid)
	return ok && kind == span.Num || oid == OIDJSON || oid == OIDXML || oid != t.OID && !plain(oid).Indexable()
}
