package segment

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// messageTemplate renders record batches of one schema as the messages that Arrow's
// own encoder makes of them, byte for byte, at a fraction of the cost: within a schema
// only numbers of fixed width differ between the metadata of two batches. It is made
// of a message of Arrow's, and only if it renders that message's batch the same.
// Immutable.
type messageTemplate struct {
	columns  []columnLayout
	metadata []byte // up to the body, prefix and padding included
	// Where the numbers are in it.
	rows, bodyBytes, nodes, buffers int
}

// columnLayout is a column as its buffers.
type columnLayout struct {
	kind  columnKind
	width int // bytes of a value, of columnFixed
}

type columnKind uint8

const (
	columnFixed  columnKind = iota // validity, values
	columnBits                     // validity, bitmap
	columnString                   // validity, offsets of 4 bytes, bytes
)

// messageBuffer is a buffer of a message's body: data, with the bits from bits on
// zero if that is positive, then zeros up to size.
type messageBuffer struct {
	data []byte
	size int
	bits int
}

// arrowAlignment is what Arrow's encoder pads buffers to that it cuts itself.
const arrowAlignment = 64

// layoutOf says how the columns of schema are laid out; not ok when a column has
// children, a dictionary or another type that is left to Arrow.
func layoutOf(schema *arrow.Schema) ([]columnLayout, bool) {
	columns := make([]columnLayout, schema.NumFields())
	for i := range columns {
		switch t := schema.Field(i).Type.(type) {
		case *arrow.BooleanType:
			columns[i].kind = columnBits
		case *arrow.StringType, *arrow.BinaryType:
			columns[i].kind = columnString
		case *arrow.Uint8Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Float32Type, *arrow.Float64Type,
			*arrow.Decimal128Type, *arrow.Date32Type, *arrow.Time64Type, *arrow.TimestampType,
			*arrow.FixedSizeBinaryType:
			columns[i].width = t.(arrow.FixedWidthDataType).BitWidth() / 8
		default:
			return nil, false
		}
	}
	return columns, true
}

// newTemplate makes a template of Arrow's message for rec; nil if it cannot render it.
func newTemplate(columns []columnLayout, rec arrow.RecordBatch, message []byte) *messageTemplate {
	t := &messageTemplate{columns: columns}
	buffers, ok := t.split(nil, rec)
	if !ok || !t.locate(message, len(buffers)) {
		return nil
	}
	if !bytes.Equal(t.render(nil, rec, buffers), message) {
		return nil
	}
	return t
}

// locate finds the metadata of message and the numbers in it.
func (t *messageTemplate) locate(message []byte, buffers int) bool {
	const prefix = 8 // continuation, length of the metadata
	if len(message) < prefix {
		return false
	}
	n := prefix + int64(binary.LittleEndian.Uint32(message[4:]))
	if n > int64(len(message)) {
		return false
	}
	t.metadata = bytes.Clone(message[:n])
	// Fields by their place in Arrow's Message and RecordBatch.
	f := flatTable{b: t.metadata, base: prefix}
	root := f.follow(prefix)
	batch := f.follow(f.field(root, 2))
	t.bodyBytes = f.field(root, 3)
	t.rows = f.field(batch, 0)
	t.nodes = f.vector(f.field(batch, 1), len(t.columns))
	t.buffers = f.vector(f.field(batch, 2), buffers)
	return !f.failed
}

// split appends the buffers of rec's columns to dst, nodes in order. Not ok means that
// Arrow's encoder must have it: a slice of a larger batch, or no rows.
func (t *messageTemplate) split(dst []messageBuffer, rec arrow.RecordBatch) ([]messageBuffer, bool) {
	if m, ok := rec.(arrow.RecordBatchWithMetadata); ok && m.Metadata().Len() > 0 || rec.NumRows() == 0 {
		return dst, false
	}
	n := int(rec.NumRows())
	for i, c := range t.columns {
		array := rec.Column(i)
		data := array.Data()
		from := data.Buffers()
		if data.Offset() != 0 || array.Len() != n || len(from) < 2 {
			return dst, false
		}
		dst = append(dst, validityBuffer(array, from[0]))
		values := bytesOf(from[1])
		switch c.kind {
		case columnBits:
			dst = append(dst, bitmapBuffer(values, n))
		case columnFixed:
			dst = append(dst, fixedBuffer(values, n*c.width))
		case columnString:
			need := 4 * (n + 1)
			if len(from) < 3 || len(values) < need || binary.LittleEndian.Uint32(values) != 0 {
				return dst, false
			}
			text, end := bytesOf(from[2]), int(binary.LittleEndian.Uint32(values[need-4:]))
			if end > len(text) {
				return dst, false
			}
			dst = append(dst, messageBuffer{data: values[:need], size: need},
				messageBuffer{data: text[:end], size: end})
		}
	}
	return dst, true
}

// render appends the message of rec, whose buffers are given.
func (t *messageTemplate) render(dst []byte, rec arrow.RecordBatch, buffers []messageBuffer) []byte {
	le := binary.LittleEndian
	from := len(dst)
	dst = append(dst, t.metadata...)
	meta := dst[from:]
	le.PutUint64(meta[t.rows:], uint64(rec.NumRows()))
	for i := range t.columns {
		le.PutUint64(meta[t.nodes+16*i:], uint64(rec.NumRows()))
		le.PutUint64(meta[t.nodes+16*i+8:], uint64(rec.Column(i).NullN()))
	}
	at := 0
	for i, b := range buffers {
		le.PutUint64(meta[t.buffers+16*i:], uint64(at))
		le.PutUint64(meta[t.buffers+16*i+8:], uint64(b.size))
		at += padded(b.size)
	}
	le.PutUint64(meta[t.bodyBytes:], uint64(at))
	for i := range buffers {
		dst = buffers[i].append(dst)
	}
	return dst
}

func (b *messageBuffer) append(dst []byte) []byte {
	dst = append(dst, b.data...)
	if rest := b.bits % 8; rest > 0 {
		dst[len(dst)-1] &= 1<<rest - 1
	}
	return appendZeros(dst, padded(b.size)-len(b.data))
}

func bytesOf(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// validityBuffer is empty when nothing is null.
func validityBuffer(a arrow.Array, bitmap *memory.Buffer) messageBuffer {
	n := a.Len()
	switch a.NullN() {
	case 0:
		return messageBuffer{}
	case n:
		return messageBuffer{size: aligned((n + 7) / 8)}
	}
	return bitmapBuffer(bytesOf(bitmap), n)
}

func bitmapBuffer(b []byte, bits int) messageBuffer {
	n := (bits + 7) / 8
	if aligned(n) >= len(b) {
		return messageBuffer{data: b, size: len(b)}
	}
	return messageBuffer{data: b[:n], size: aligned(n), bits: bits}
}

func fixedBuffer(b []byte, n int) messageBuffer {
	if aligned(n) < len(b) {
		b = b[:min(padded(n), len(b))]
	}
	return messageBuffer{data: b, size: len(b)}
}

func aligned(n int) int { return (n + arrowAlignment - 1) &^ (arrowAlignment - 1) }

// flatTable reads places in a flatbuffer. What it does not find makes it fail.
type flatTable struct {
	b      []byte
	base   int // where the flatbuffer begins
	failed bool
}

func (f *flatTable) u32(at int) int {
	if f.failed = f.failed || at < f.base || at+4 > len(f.b); f.failed {
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(f.b[at:])))
}

func (f *flatTable) u16(at int) int {
	if f.failed = f.failed || at < f.base || at+2 > len(f.b); f.failed {
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[at:]))
}

// follow is what the offset at a place leads to.
func (f *flatTable) follow(at int) int { return at + f.u32(at) }

// field is the place of a table's field of at least 4 bytes; one that is absent
// because it has its default fails.
func (f *flatTable) field(table, i int) int {
	vtable := table - f.u32(table)
	if slot := 4 + 2*i; slot < f.u16(vtable) {
		if at := f.u16(vtable + slot); at != 0 {
			return table + at
		}
	}
	f.failed = true
	return 0
}

// vector is the place of the first of n structs of 16 bytes in the vector that the
// offset at a place leads to.
func (f *flatTable) vector(at, n int) int {
	v := f.follow(at)
	if f.u32(v) != n || v+4+16*n > len(f.b) {
		f.failed = true
	}
	return v + 4
}
