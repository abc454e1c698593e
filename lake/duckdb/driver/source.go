package driver

/*
#include "scan.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	b "github.com/duckdb/duckdb-go-bindings"
)

// ErrArrowType says that the scan does not take an Arrow type.
var ErrArrowType = errors.New("arrow type not supported by the scan")

// pieceRows is how many rows one thread takes at a time: 16 of the engine's vectors,
// enough to pay for the hand-out, few enough to share out a single batch.
const pieceRows = 32 << 10

// Part is rows of a block: those of Rows, or all of them when All.
type Part struct {
	Block *Block
	Rows  []int32
	All   bool
}

// Source is what skippr_scan returns for one id: rows of blocks of one schema. It may be
// scanned any number of times, also at once, until Close; Close only after every
// stream whose SQL names it was closed.
type Source struct {
	id     uint64
	rows   int64
	blocks []*Block
	memory arena
}

// NewSource publishes the parts, whose records all have the given schema. It takes a
// reference to each block and copies the row numbers.
func NewSource(schema *arrow.Schema, parts []Part) (*Source, error) {
	s := &Source{}
	source := &allocate[C.struct_sk_source](&s.memory, 1)[0]
	n := schema.NumFields()
	names := allocate[*C.char](&s.memory, n)
	types := allocate[C.struct_sk_type](&s.memory, n)
	for i, f := range schema.Fields() {
		names[i] = s.memory.text(f.Name)
		if err := s.describe(&types[i], f.Type); err != nil {
			s.memory.free()
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	pieces := s.pieces(parts)
	source.column_count, source.names, source.types = C.int64_t(n), unsafe.SliceData(names), unsafe.SliceData(types)
	source.piece_count, source.pieces = C.int64_t(len(pieces)), unsafe.SliceData(pieces)
	source.row_count = C.int64_t(s.rows)
	s.id = uint64(C.sk_publish(C.SK_SOURCE, unsafe.Pointer(source)))
	if s.id == 0 {
		s.memory.free()
		return nil, fmt.Errorf("publish source: %w", ErrOutOfMemory)
	}
	for _, p := range parts {
		p.Block.Retain()
		s.blocks = append(s.blocks, p.Block)
	}
	return s, nil
}

// SQL is the source as a table expression.
func (s *Source) SQL() string { return fmt.Sprintf("skippr_scan(%d::UBIGINT)", s.id) }

// Rows is the number of rows a scan returns.
func (s *Source) Rows() int64 { return s.rows }

// Close withdraws the source and frees it.
func (s *Source) Close() {
	C.sk_withdraw(C.uint64_t(s.id))
	s.memory.free()
	for _, b := range s.blocks {
		b.Release()
	}
	s.blocks = nil
}

func (s *Source) pieces(parts []Part) []C.struct_sk_piece {
	count := 0
	for _, p := range parts {
		count += (p.len() + pieceRows - 1) / pieceRows
	}
	pieces := allocate[C.struct_sk_piece](&s.memory, count)
	at := 0
	for _, p := range parts {
		var rows []C.int32_t
		if !p.All && len(p.Rows) > 0 {
			rows = allocate[C.int32_t](&s.memory, len(p.Rows))
			copy(unsafe.Slice((*int32)(unsafe.Pointer(&rows[0])), len(rows)), p.Rows)
		}
		for start := 0; start < p.len(); start += pieceRows {
			piece := &pieces[at]
			at++
			piece.columns = p.Block.columns
			piece.n = C.int64_t(min(pieceRows, p.len()-start))
			if rows != nil {
				piece.rows = &rows[start]
			} else {
				piece.start = C.int64_t(start)
			}
		}
		s.rows += int64(p.len())
	}
	return pieces
}

func (p Part) len() int {
	if p.All {
		return int(p.Block.record.NumRows())
	}
	return len(p.Rows)
}

// fixedTypes are the types whose values are the same bytes on both sides.
var fixedTypes = map[arrow.Type]struct {
	logical b.Type
	width   C.int
}{
	arrow.INT8: {b.TypeTinyInt, 1}, arrow.INT16: {b.TypeSmallInt, 2},
	arrow.INT32: {b.TypeInteger, 4}, arrow.INT64: {b.TypeBigInt, 8},
	arrow.UINT8: {b.TypeUTinyInt, 1}, arrow.UINT16: {b.TypeUSmallInt, 2},
	arrow.UINT32: {b.TypeUInteger, 4}, arrow.UINT64: {b.TypeUBigInt, 8},
	arrow.FLOAT32: {b.TypeFloat, 4}, arrow.FLOAT64: {b.TypeDouble, 8},
	arrow.DATE32: {b.TypeDate, 4}, arrow.TIME64: {b.TypeTime, 8},
}

func (s *Source) describe(t *C.struct_sk_type, typ arrow.DataType) error {
	if fixed, ok := fixedTypes[typ.ID()]; ok {
		if unit, ok := typ.(*arrow.Time64Type); ok && unit.Unit != arrow.Microsecond {
			return fmt.Errorf("type %s: %w", typ, ErrArrowType)
		}
		t.kind, t.width, t.logical = C.SK_FIXED, fixed.width, C.int(fixed.logical)
		return nil
	}
	set := func(kind, logical int) { t.kind, t.logical = C.int(kind), C.int(logical) }
	switch typ := typ.(type) {
	case *arrow.BooleanType:
		set(C.SK_BOOL, int(b.TypeBoolean))
	case *arrow.StringType:
		set(C.SK_BYTES, int(b.TypeVarchar))
	case *arrow.LargeStringType:
		set(C.SK_BYTES64, int(b.TypeVarchar))
	case *arrow.BinaryType:
		set(C.SK_BYTES, int(b.TypeBlob))
	case *arrow.LargeBinaryType:
		set(C.SK_BYTES64, int(b.TypeBlob))
	case *arrow.NullType: // a column of the null type is announced as INTEGER; callers cast
		set(C.SK_NULL, int(b.TypeInteger))
	case *arrow.TimestampType:
		if typ.Unit != arrow.Microsecond {
			return fmt.Errorf("type %s: %w", typ, ErrArrowType)
		}
		set(C.SK_FIXED, int(b.TypeTimestamp))
		if typ.TimeZone != "" {
			t.logical = C.int(b.TypeTimestampTZ)
		}
		t.width = 8
	case *arrow.FixedSizeBinaryType:
		if typ.ByteWidth != 16 {
			return fmt.Errorf("type %s: %w", typ, ErrArrowType)
		}
		set(C.SK_UUID, int(b.TypeUUID))
	case *arrow.Decimal128Type:
		set(C.SK_DECIMAL, int(b.TypeDecimal))
		t.precision, t.scale = C.uint8_t(typ.Precision), C.uint8_t(typ.Scale)
		t.width = C.int(decimalBytes(int(typ.Precision)))
	case *arrow.ListType:
		set(C.SK_LIST, int(b.TypeList))
		child := allocate[C.struct_sk_type](&s.memory, 1)
		t.child = &child[0]
		return s.describe(t.child, typ.Elem())
	default:
		return fmt.Errorf("type %s: %w", typ, ErrArrowType)
	}
	return nil
}

// decimalBytes is the engine's physical width of a decimal.
func decimalBytes(precision int) int {
	switch {
	case precision <= 4:
		return 2
	case precision <= 9:
		return 4
	case precision <= 18:
		return 8
	}
	return 16
}
