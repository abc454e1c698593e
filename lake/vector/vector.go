// Package vector is a chunk of query results as raw column vectors in the
// engine's memory layout, without any dependency on the engine. lake/duckdb fills
// chunks; pgwire/encode turns them into wire bytes without allocating per row.
//
// Layouts (little-endian, as DuckDB keeps them):
//
//	Bool 1 byte · Int8..Int64, UInt8..UInt64 · HugeInt, UHugeInt 16 bytes (lower u64, upper i64)
//	Float32 · Float64 · Date int32 days since 1970-01-01 · Time int64 µs · TimeTZ uint64 packed
//	Timestamp, TimestampTZ int64 µs since 1970 (int64 max / -max are ±infinity)
//	TimestampS/MS/NS int64 · Interval {int32 months, int32 days, int64 µs}
//	Decimal: physical int16 (width ≤4), int32 (≤9), int64 (≤18) or HugeInt (≤38), see Type.Width
//	String, Blob, Bit: 16-byte duckdb_string_t {u32 len; ≤12 inline bytes | 4 prefix + pointer}
//	UUID: HugeInt with the top bit flipped · Enum: u8/u16/u32 index into Type.Dict (see Type.Width)
//	List: {u64 offset, u64 length} per row into Child[0] · Struct: Child per member · Map: a List of Struct(key, value)
package vector

import "unsafe"

// Kind is the logical type of a vector.
type Kind uint8

// The kinds. Zero is invalid; Null is the type of an untyped NULL.
const (
	Null Kind = iota + 1
	Bool
	Int8
	Int16
	Int32
	Int64
	UInt8
	UInt16
	UInt32
	UInt64
	HugeInt
	UHugeInt
	Float32
	Float64
	Decimal
	Date
	Time
	TimeTZ
	Timestamp
	TimestampTZ
	TimestampS
	TimestampMS
	TimestampNS
	Interval
	String
	Blob
	Bit
	UUID
	Enum
	List
	Struct
	Map
)

// Type is a logical type with its parameters. Values are immutable.
type Type struct {
	Kind Kind
	// Width is a Decimal's precision, or an Enum's index size in bytes.
	Width uint8
	// Scale is a Decimal's scale.
	Scale uint8
	// Dict is an Enum's labels.
	Dict []string
	// Elem holds the element type of a List, the member types of a Struct, key
	// and value of a Map.
	Elem []Type
	// Names are the member names of a Struct.
	Names []string
}

// Vector is one column of a chunk. Data and Validity point into engine memory and
// are valid only until the chunk is released.
type Vector struct {
	Type Type
	Data unsafe.Pointer
	// Validity is a bitmap, bit i of word i/64 set when row i is not null; nil when
	// no row is null.
	Validity unsafe.Pointer
	Child    []Vector
	// ChildRows is the number of entries in Child[0] of a List or Map.
	ChildRows int
}

// Chunk is a run of rows, column by column.
type Chunk struct {
	Rows    int
	Columns []Vector
}

// Valid reports whether row i is not null.
func (v *Vector) Valid(i int) bool {
	if v.Validity == nil {
		return true
	}
	w := *(*uint64)(unsafe.Add(v.Validity, i>>6<<3))
	return w>>(uint(i)&63)&1 != 0
}

// Bytes returns the bytes of row i of a String, Blob or Bit vector, aliasing
// engine memory.
func (v *Vector) Bytes(i int) []byte {
	p := unsafe.Add(v.Data, i*16)
	n := *(*uint32)(p)
	if n <= 12 {
		return unsafe.Slice((*byte)(unsafe.Add(p, 4)), n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Add(p, 8)), n)
}

// Int64 returns row i of a vector whose values have eight bytes.
func (v *Vector) Int64(i int) int64 { return *(*int64)(unsafe.Add(v.Data, i*8)) }
