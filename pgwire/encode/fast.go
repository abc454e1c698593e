package encode

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/skipprd/skipprd/lake/vector"
)

// Cells of the common types do not go through an appendFunc: their values are written
// in place, into room that is reserved a row at a time.

// operation is how a cell is written. Zero is by its appendFunc.
type operation uint8

const (
	opCall operation = iota
	opNull
	opString // bytes as they are, in both formats
	opBool
	opFixed4
	opFixed8
	opDate
	opStamp
	opNumeric
	opBoolText
	opInt16Text
	opInt32Text
	opInt64Text
	opFloatText
	opDecimalText
	opDateText // from here on with a dayCache
	opStampText
	opStampTZText
)

const (
	// cellRoom is the room of a cell that has no long string, with its length.
	cellRoom = 4 + 48
	// rowRoom is that of a row's header.
	rowRoom = 16
	// growRoom is the least by which a full buffer grows.
	growRoom = 4 << 10
)

// fastCell is a column of the chunk that is being written.
type fastCell struct {
	op       operation
	width    uint8
	scale    uint8
	data     unsafe.Pointer
	validity unsafe.Pointer
}

// chooseOperation is the way to write a value of t announced as oid, opCall unless it
// gives the very bytes that chooseCell's function does.
func (s *state) chooseOperation(t vector.Type, oid uint32, binaryForm bool) operation {
	switch {
	case t.Kind == vector.Null:
		return opNull
	case binaryForm:
		return binaryOperation(t, oid)
	}
	return s.textOperation(t, oid)
}

func binaryOperation(t vector.Type, oid uint32) operation {
	switch {
	case t.Kind == vector.Bool && oid == oidBool:
		return opBool
	case t.Kind == vector.Int64 && oid == oidInt8, t.Kind == vector.Float64 && oid == oidFloat8,
		t.Kind == vector.Time && oid == oidTime:
		return opFixed8
	case t.Kind == vector.Int32 && oid == oidInt4, t.Kind == vector.Float32 && oid == oidFloat4:
		return opFixed4
	case t.Kind == vector.Date && oid == oidDate:
		return opDate
	case (t.Kind == vector.Timestamp || t.Kind == vector.TimestampTZ) && (oid == oidTimestamp || oid == oidTimestampTZ):
		return opStamp
	case t.Kind == vector.Decimal && t.Width <= 18 && oid == oidNumeric:
		return opNumeric
	case t.Kind == vector.String && oid != oidJSONB && (isUserText(oid) || isTextual(oid)),
		t.Kind == vector.Blob && oid == oidBytea:
		return opString
	}
	return opCall
}

func (s *state) textOperation(t vector.Type, oid uint32) operation {
	iso := s.dates == dateISO
	switch {
	case t.Kind == vector.String && (oid != oidInterval || s.intervals == intervalPostgres):
		return opString
	case t.Kind == vector.Bool && oid == oidBool:
		return opBoolText
	case t.Kind == vector.Int16 && (oid == oidInt2 || oid == oidInt4 || oid == oidInt8):
		return opInt16Text
	case t.Kind == vector.Int32 && (oid == oidInt4 || oid == oidInt8):
		return opInt32Text
	case t.Kind == vector.Int64 && oid == oidInt8:
		return opInt64Text
	case t.Kind == vector.Float64 && oid == oidFloat8 && s.floatDigits > 0:
		return opFloatText
	case t.Kind == vector.Decimal && t.Width <= 18 && oid == oidNumeric:
		return opDecimalText
	case t.Kind == vector.Date && oid == oidDate && iso:
		return opDateText
	case t.Kind == vector.Timestamp && oid == oidTimestamp && iso:
		return opStampText
	case t.Kind == vector.TimestampTZ && oid == oidTimestampTZ && iso:
		return opStampTZText
	}
	return opCall
}

// rows appends all rows of a chunk as messages of a kind: DataRow, or CopyData with a
// row of COPY BINARY, whose bodies are the same.
func (e *Encoder) rows(dst []byte, kind byte, c *vector.Chunk) ([]byte, error) {
	for j := range e.fast {
		e.fast[j].data, e.fast[j].validity = c.Columns[j].Data, c.Columns[j].Validity
	}
	for i := range c.Rows {
		dst = e.row(dst, kind, c, i)
		if e.err != nil {
			return dst, e.err
		}
	}
	return dst, nil
}

// row appends the message of row i.
func (e *Encoder) row(dst []byte, kind byte, c *vector.Chunk, i int) []byte {
	n := len(e.fast)
	room := rowRoom + n*cellRoom
	start, p := len(dst), len(dst)+7
	b := reserve(dst, room)
	b[start], b[start+5], b[start+6] = kind, byte(n>>8), byte(n)
	for j := range e.fast {
		k := &e.fast[j]
		if k.op == opNull || k.validity != nil && *(*uint64)(unsafe.Add(k.validity, i>>6<<3))>>(uint(i)&63)&1 == 0 {
			binary.BigEndian.PutUint32(b[p:], 0xffffffff)
			p += 4
			continue
		}
		at := p
		p += 4
		switch k.op {
		case opString:
			s := unsafe.Add(k.data, i*16)
			size := int(*(*uint32)(s))
			if size <= 12 { // all of the field is copied: that is one move
				*(*[12]byte)(b[p:]) = *(*[12]byte)(unsafe.Add(s, 4))
			} else {
				if len(b)-p < size+room {
					b = reserve(b[:p], size+room)
				}
				copy(b[p:], unsafe.Slice(*(**byte)(unsafe.Add(s, 8)), size))
			}
			p += size
		case opFixed8:
			binary.BigEndian.PutUint64(b[p:], *(*uint64)(unsafe.Add(k.data, i*8)))
			p += 8
		case opFixed4:
			binary.BigEndian.PutUint32(b[p:], *(*uint32)(unsafe.Add(k.data, i*4)))
			p += 4
		case opBool:
			b[p] = boolByte(*(*uint8)(unsafe.Add(k.data, i)) != 0)
			p++
		case opCall:
			dst = e.cells[j](&e.state, b[:p], &c.Columns[j], i)
			p = len(dst)
			b = reserve(dst, room)
		default:
			p += e.put(b[p:], k, i)
		}
		binary.BigEndian.PutUint32(b[at:], uint32(p-at-4))
	}
	return e.closeMessage(b[:p], start)
}

// put writes the value of row i, which has at most cellRoom-4 bytes, and returns its
// length.
func (s *state) put(b []byte, k *fastCell, i int) int {
	switch k.op {
	case opDate:
		return len(appendDateBinary(b[:0], *(*int32)(unsafe.Add(k.data, i*4))))
	case opStamp:
		return len(appendStampBinary(b[:0], *(*int64)(unsafe.Add(k.data, i*8))))
	case opNumeric:
		return putNumeric(b, k.decimal(i), int(k.scale))
	case opBoolText:
		b[0] = 'f'
		if *(*uint8)(unsafe.Add(k.data, i)) != 0 {
			b[0] = 't'
		}
		return 1
	case opInt16Text:
		return putInt(b, int64(*(*int16)(unsafe.Add(k.data, i*2))))
	case opInt32Text:
		return putInt(b, int64(*(*int32)(unsafe.Add(k.data, i*4))))
	case opInt64Text:
		return putInt(b, *(*int64)(unsafe.Add(k.data, i*8)))
	case opFloatText:
		return putFloat(b, *(*float64)(unsafe.Add(k.data, i*8)))
	case opDecimalText:
		return putDecimal(b, k.decimal(i), int(k.scale))
	case opDateText:
		return s.putDate(b, *(*int32)(unsafe.Add(k.data, i*4)))
	case opStampText:
		return s.putStamp(b, *(*int64)(unsafe.Add(k.data, i*8)), false)
	default: // opStampTZText
		return s.putStamp(b, *(*int64)(unsafe.Add(k.data, i*8)), true)
	}
}

// decimal is the unscaled value of a decimal of at most 18 digits.
func (k *fastCell) decimal(i int) int64 {
	switch {
	case k.width <= 4:
		return int64(*(*int16)(unsafe.Add(k.data, i*2)))
	case k.width <= 9:
		return int64(*(*int32)(unsafe.Add(k.data, i*4)))
	}
	return *(*int64)(unsafe.Add(k.data, i*8))
}

// reserve returns dst with at least room bytes behind it, as one slice.
func reserve(dst []byte, room int) []byte {
	if cap(dst)-len(dst) < room {
		dst = slices.Grow(dst, max(room, growRoom))
	}
	return dst[:cap(dst)]
}
