package schema

import "fmt"

// DecimalPrecisionMax is the greatest precision of a lake decimal.
const DecimalPrecisionMax = 38

// varHeader is Postgres's VARHDRSZ, which it adds to length typmods.
const varHeader = 4

// FromPostgres is the lake type of a Postgres type. ndims is pg_attribute.attndims.
// exactText says that the values are kept as the exact text that Postgres writes,
// because no lake type holds them all. A type of the source's own (enum, domain,
// composite) is exact text; resolve a domain to its base type first.
func FromPostgres(oid uint32, typmod int32, ndims int) (t Type, exactText bool) {
	if t, ok := scalarFromPostgres(oid, typmod); ok {
		return t, false
	}
	if elem := ElementOID(oid); elem != 0 && ndims <= 1 {
		if t, ok := scalarFromPostgres(elem, typmod); ok {
			return Type{Kind: List, Elem: &t}, false
		}
	}
	return Type{Kind: String}, true
}

func scalarFromPostgres(oid uint32, typmod int32) (Type, bool) {
	if oid == OIDNumeric {
		p, s, ok := NumericTypMod(typmod)
		if !ok || p > DecimalPrecisionMax || s < 0 || s > p {
			return Type{}, false
		}
		return Type{Kind: Decimal, Precision: p, Scale: s}, true
	}
	k, ok := nativeKinds[oid]
	return Type{Kind: k}, ok
}

var nativeKinds = map[uint32]Kind{
	OIDBool: Bool, OIDBytea: Binary, OIDChar: String, OIDName: String, OIDInt8: Int64,
	OIDInt2: Int32, OIDInt4: Int32, OIDText: String, OIDOid: Int64, OIDFloat4: Float32,
	OIDFloat8: Float64, OIDBpchar: String, OIDVarchar: String, OIDDate: Date, OIDTime: Time,
	OIDTimestamp: Timestamp, OIDTimestampTZ: TimestampTZ, OIDUUID: UUID,
}

// ToPostgres is the Postgres type and typmod that a lake type has when no source says
// another: what the wire announces for a computed column.
func ToPostgres(t Type) (oid uint32, typmod int32) {
	switch t.Kind {
	case Decimal:
		return OIDNumeric, (t.Precision<<16 | t.Scale) + varHeader
	case List:
		if t.Elem == nil {
			return OIDText, -1
		}
		elem, mod := ToPostgres(*t.Elem)
		return ArrayOID(elem), mod
	}
	if oid, ok := wireOIDs[t.Kind]; ok {
		return oid, -1
	}
	return OIDText, -1
}

var wireOIDs = map[Kind]uint32{
	Bool: OIDBool, Int32: OIDInt4, Int64: OIDInt8, Float32: OIDFloat4, Float64: OIDFloat8,
	Date: OIDDate, Time: OIDTime, Timestamp: OIDTimestamp, TimestampTZ: OIDTimestampTZ,
	String: OIDText, Binary: OIDBytea, UUID: OIDUUID,
}

// NumericTypMod takes a numeric's typmod apart; ok is false for a numeric without
// precision. scale may be negative or exceed precision.
func NumericTypMod(typmod int32) (precision, scale int32, ok bool) {
	if typmod < varHeader {
		return 0, 0, false
	}
	m := typmod - varHeader
	return m >> 16 & 0xffff, (m&0x7ff ^ 1024) - 1024, true
}

// PostgresTypeName is what Postgres's format_type(oid, typmod) gives for a built-in
// type: the name with its modifiers, "-" for 0 and "???" for an unknown oid.
func PostgresTypeName(oid uint32, typmod int32) string {
	if oid == 0 {
		return "-"
	}
	if elem := ElementOID(oid); elem != 0 {
		return PostgresTypeName(elem, typmod) + "[]"
	}
	t, ok := LookupType(oid)
	if !ok {
		return "???"
	}
	switch oid {
	case OIDBpchar, OIDVarchar:
		if typmod > varHeader {
			return fmt.Sprintf("%s(%d)", t.sqlNameWithMod(), typmod-varHeader)
		}
		if typmod >= 0 {
			return t.sqlNameWithMod()
		}
	case OIDBit, OIDVarbit:
		if typmod >= 0 {
			return fmt.Sprintf("%s(%d)", t.sqlNameWithMod(), typmod)
		}
	case OIDNumeric:
		if p, s, ok := NumericTypMod(typmod); ok {
			return fmt.Sprintf("numeric(%d,%d)", p, s)
		}
	case OIDTime, OIDTimeTZ, OIDTimestamp, OIDTimestampTZ:
		return timeTypeName(oid, typmod)
	case OIDInterval:
		return "interval" + intervalModifier(typmod)
	}
	return t.SQLName()
}

func timeTypeName(oid uint32, typmod int32) string {
	name, zone := "time", " without time zone"
	if oid == OIDTimestamp || oid == OIDTimestampTZ {
		name = "timestamp"
	}
	if oid == OIDTimeTZ || oid == OIDTimestampTZ {
		zone = " with time zone"
	}
	if typmod >= 0 {
		return fmt.Sprintf("%s(%d)%s", name, typmod, zone)
	}
	return name + zone
}

// Bits of an interval's typmod, from Postgres's utils/timestamp.h.
const (
	intervalMonth, intervalYear, intervalDay           = 1 << 1, 1 << 2, 1 << 3
	intervalHour, intervalMinute, intervalSecond       = 1 << 10, 1 << 11, 1 << 12
	intervalFullRange, intervalFullPrecision     int32 = 0x7fff, 0xffff
)

var intervalFields = map[int32]string{
	intervalYear:                 " year",
	intervalMonth:                " month",
	intervalDay:                  " day",
	intervalHour:                 " hour",
	intervalMinute:               " minute",
	intervalSecond:               " second",
	intervalYear | intervalMonth: " year to month",
	intervalDay | intervalHour:   " day to hour",
	intervalDay | intervalHour | intervalMinute:                  " day to minute",
	intervalHour | intervalMinute:                                " hour to minute",
	intervalMinute | intervalSecond:                              " minute to second",
	intervalHour | intervalMinute | intervalSecond:               " hour to second",
	intervalDay | intervalHour | intervalMinute | intervalSecond: " day to second",
}

func intervalModifier(typmod int32) string {
	if typmod < 0 {
		return ""
	}
	out := ""
	if fields := typmod >> 16 & intervalFullRange; fields != intervalFullRange {
		out = intervalFields[fields]
	}
	if p := typmod & intervalFullPrecision; p != intervalFullPrecision {
		out += fmt.Sprintf("(%d)", p)
	}
	return out
}
