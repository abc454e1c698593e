// Package schema describes tables: fields with permanent ids, the mapping between
// Postgres, Arrow, Iceberg and engine types, and evolution as pure functions.
//
// Values are immutable once published; functions are pure. No I/O, no logging.
package schema

// Kind is a lake type. The values are durable.
type Kind uint8

// The kinds. Zero is invalid.
const (
	Bool        Kind = 1
	Int32       Kind = 2 // also int2
	Int64       Kind = 3
	Float32     Kind = 4
	Float64     Kind = 5
	Decimal     Kind = 6 // Precision ≤ 38, 0 ≤ Scale ≤ Precision
	Date        Kind = 7 // days since 1970-01-01
	Time        Kind = 8 // µs since midnight
	Timestamp   Kind = 9 // µs since 1970, no zone
	TimestampTZ Kind = 10
	String      Kind = 11 // also exact text of types without a lossless lake type
	Binary      Kind = 12
	UUID        Kind = 13
	List        Kind = 14
)

// Type is a lake type.
type Type struct {
	Kind      Kind  `json:"kind"`
	Precision int32 `json:"precision,omitempty"`
	Scale     int32 `json:"scale,omitempty"`
	// Elem is a List's element type; its elements may be null.
	Elem *Type `json:"elem,omitempty"`
}

// Field is a column. ID is permanent within the table and never reused (S1); it is
// also the Iceberg field id.
type Field struct {
	ID   int32  `json:"id"`
	Name string `json:"name"`
	Type Type   `json:"type"`
	// OID and TypMod are the source's Postgres type, announced on our wire. TypeName
	// is its SQL name as the source writes it (format_type), for types of the
	// source's own (OID ≥ 16384); see catalog/usertype.
	OID      uint32 `json:"oid"`
	TypMod   int32  `json:"typmod"`
	TypeName string `json:"type_name,omitempty"`
	// Enum says of a table of our own that OID is that of a type that users have made, as here.
	Enum    bool `json:"enum,omitempty"`
	NotNull bool `json:"not_null,omitempty"`
	// Collation is the number of the column's collation, 0 for the default.
	Collation uint32 `json:"collation,omitempty"`
	// AttNum is the source's permanent number for the column (pg_attribute.attnum).
	AttNum int16 `json:"attnum,omitempty"`
	// Initial is what rows older than the field have in it, in the text of FormatInitial;
	// nil: null. It never changes, but for its form when the type is widened.
	Initial *string `json:"initial,omitempty"`
	// Computed is how the source computes the column from others of the row; nil: it does not.
	Computed *Computed `json:"computed,omitempty"`
}

// Table is a table's columns at one schema version.
type Table struct {
	Version uint32  `json:"version"`
	Fields  []Field `json:"fields"`
	// Key holds the ids of the fields of the row key, in key order; empty for a
	// table without a key.
	Key []int32 `json:"key,omitempty"`
	// WholeRow says of a table without a key that its rows are told apart by all their
	// columns: equal ones are counted, and a delete, which carries all columns, takes one
	// of them away. Without it a table without a key is append only.
	WholeRow bool `json:"whole_row,omitempty"`
	// LastFieldID is the highest field id ever given out.
	LastFieldID int32 `json:"last_field_id"`
}

// The lake's hidden column that keeps a row's order token has this field id, far
// above any user column.
const TokenFieldID int32 = 2_000_000_001
