package clienttext

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/skipprd/skipprd/pgwire/charmap"
)

// kind is where a value in binary form has texts.
type kind uint8

const (
	none      kind = iota
	whole          // all of it is a text
	versioned      // a text behind a byte
	list           // an array, which says what its elements are
	row            // fields, which say what they are
	users          // of a type that is no system type: a label, or an array of labels
)

// firstUserOID is where the types of users begin.
const firstUserOID = 16384

// kinds are those of the types that have texts, by their numbers.
var kinds = map[uint32]kind{
	19: whole, 25: whole, 114: whole, 142: whole, 194: whole, 705: whole, 1042: whole, 1043: whole, 1790: whole, 2275: whole,
	3802: versioned, 4072: versioned,
	143: list, 199: list, 1003: list, 1009: list, 1014: list, 1015: list, 1263: list, 2201: list, 2287: list, 3807: list, 4073: list,
	2249: row,
}

func kindOf(oid uint32) kind {
	if oid >= firstUserOID {
		return users
	}
	return kinds[oid]
}

// convert is a conversion of texts.
type convert func(dst, src []byte) ([]byte, *charmap.Error)

// nestMax is how deep values may lie in one another.
const nestMax = 64

// binaryValue appends a value in binary form with its texts converted. What is not built as its
// type says is appended as it is: who reads it says so.
func (f convert) binaryValue(dst, v []byte, oid uint32, depth int) ([]byte, *charmap.Error) {
	k := kindOf(oid)
	if k == users {
		k = whole
		if len(v) >= arrayHead && v[0] == 0 { // no label has a zero byte
			k = list
		}
	}
	if depth > nestMax {
		return append(dst, v...), nil
	}
	switch k {
	case whole:
		return f(dst, v)
	case versioned:
		if len(v) > 0 {
			return f(append(dst, v[0]), v[1:])
		}
	case list:
		return f.array(dst, v, depth)
	case row:
		return f.record(dst, v, depth)
	}
	return append(dst, v...), nil
}

// arrayHead is how many bytes an array has before its dimensions.
const arrayHead = 12

// array converts the elements of an array: the number of dimensions, a flag, the elements' type,
// for each dimension its length and first index, and the elements, each behind its length.
func (f convert) array(dst, v []byte, depth int) ([]byte, *charmap.Error) {
	const dimension = 8
	if len(v) < arrayHead {
		return append(dst, v...), nil
	}
	element := binary.BigEndian.Uint32(v[8:])
	head := uint64(arrayHead) + dimension*uint64(binary.BigEndian.Uint32(v))
	if head > uint64(len(v)) || kindOf(element) == none {
		return append(dst, v...), nil
	}
	begin := len(dst)
	out := append(dst, v[:head]...)
	for rest := v[head:]; len(rest) > 0; {
		var field []byte
		var ok bool
		if field, rest, ok = cut(rest); !ok {
			return append(out[:begin], v...), nil
		}
		var problem *charmap.Error
		if out, problem = f.field(out, field, element, depth); problem != nil {
			return out, problem
		}
	}
	return out, nil
}

// record converts the fields of a composite value: their number, and of each its type and the
// value behind its length.
func (f convert) record(dst, v []byte, depth int) ([]byte, *charmap.Error) {
	const count, number = 4, 4
	if len(v) < count {
		return append(dst, v...), nil
	}
	begin := len(dst)
	out := append(dst, v[:count]...)
	for rest := v[count:]; len(rest) > 0; {
		if len(rest) < number {
			return append(out[:begin], v...), nil
		}
		oid := binary.BigEndian.Uint32(rest)
		out = append(out, rest[:number]...)
		var field []byte
		var ok bool
		if field, rest, ok = cut(rest[number:]); !ok {
			return append(out[:begin], v...), nil
		}
		var problem *charmap.Error
		if out, problem = f.field(out, field, oid, depth); problem != nil {
			return out, problem
		}
	}
	return out, nil
}

// lengthBytes is the length before a value, of which -1 is null's.
const lengthBytes = 4

// cut takes the first value off b; it is nil for null.
func cut(b []byte) (v, rest []byte, ok bool) {
	if len(b) < lengthBytes {
		return nil, nil, false
	}
	n := int32(binary.BigEndian.Uint32(b))
	switch b = b[lengthBytes:]; {
	case n == -1:
		return nil, b, true
	case n < 0 || int(n) > len(b):
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// field appends a value in binary form behind its length.
func (f convert) field(dst, v []byte, oid uint32, depth int) ([]byte, *charmap.Error) {
	if v == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff), nil
	}
	return measured(dst, func(dst []byte) ([]byte, *charmap.Error) { return f.binaryValue(dst, v, oid, depth+1) })
}

// measured appends what f appends behind its length.
func measured(dst []byte, f func([]byte) ([]byte, *charmap.Error)) ([]byte, *charmap.Error) {
	at := len(dst)
	out, problem := f(append(dst, 0, 0, 0, 0))
	if problem == nil {
		binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-lengthBytes))
	}
	return out, problem
}

// Parameter is a parameter's value as UTF-8: v itself where nothing changes.
func Parameter(c *charmap.Charmap, v []byte, oid uint32, format int16) ([]byte, *charmap.Error) {
	switch {
	case c == nil || v == nil:
		return v, nil
	case format == 0:
		if charmap.IsASCII(v) && bytes.IndexByte(v, 0) < 0 {
			return v, nil
		}
		return c.Decode(make([]byte, 0, len(v)+len(v)/2), v)
	case kindOf(oid) == none:
		return v, nil
	}
	return convert(c.Decode).binaryValue(make([]byte, 0, len(v)+len(v)/2), v, oid, 0)
}

// Value is a value in the client's encoding: v itself where nothing changes.
func Value(c *charmap.Charmap, v []byte, oid uint32, format int16) ([]byte, *charmap.Error) {
	switch {
	case c == nil || v == nil || charmap.IsASCII(v):
		return v, nil
	case format == 0:
		return c.Encode(make([]byte, 0, len(v)), v)
	}
	return convert(c.Encode).binaryValue(make([]byte, 0, len(v)), v, oid, 0)
}

// Column is how a column of rows is written.
type Column struct {
	OID    uint32
	Format int16 // 0 text, 1 binary
}

// Rows appends DataRow messages with their values in the client's encoding, or those before the
// error. What is framed as no such messages is an error that is no *charmap.Error.
func Rows(dst []byte, c *charmap.Charmap, messages []byte, columns []Column) ([]byte, error) {
	texts := slices.ContainsFunc(columns, func(c Column) bool { return c.Format == 0 || kindOf(c.OID) != none })
	if !texts || charmap.IsASCII(messages) {
		return append(dst, messages...), nil
	}
	for len(messages) > 0 {
		out, rest, err := oneRow(dst, c, messages, columns)
		if err != nil {
			return dst, err
		}
		dst, messages = out, rest
	}
	return dst, nil
}

// oneRow converts the first message.
func oneRow(dst []byte, c *charmap.Charmap, messages []byte, columns []Column) (out, rest []byte, err error) {
	const head = 1 + 4 + 2 // kind, length, number of values
	if len(messages) < head {
		return nil, nil, errFrame
	}
	size := uint64(binary.BigEndian.Uint32(messages[1:])) + 1
	if size < head || size > uint64(len(messages)) || int(binary.BigEndian.Uint16(messages[5:])) != len(columns) {
		return nil, nil, errFrame
	}
	at := len(dst)
	out = append(dst, messages[:head]...)
	values := messages[head:size]
	for _, column := range columns {
		v, after, ok := cut(values)
		if !ok {
			return nil, nil, errFrame
		}
		values = after
		if v == nil {
			out = append(out, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		var problem *charmap.Error
		out, problem = measured(out, func(dst []byte) ([]byte, *charmap.Error) {
			switch {
			case charmap.IsASCII(v):
				return append(dst, v...), nil
			case column.Format == 0:
				return c.Encode(dst, v)
			}
			return convert(c.Encode).binaryValue(dst, v, column.OID, 0)
		})
		if problem != nil {
			return nil, nil, problem
		}
	}
	binary.BigEndian.PutUint32(out[at+1:], uint32(len(out)-at-1))
	return out, messages[size:], nil
}
