package segment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
)

// Encoded is a group as bytes that have no place in a body yet. It is made by the
// producer, outside of any lock, and placed by a Builder.
type Encoded struct {
	Position    change.Position
	CommittedAt time.Time
	State       []byte

	slices []encodedSlice
	buffer []byte
	// scratch is used while a batch is encoded, and empty otherwise.
	scratch []messageBuffer
}

// encodedSlice is a slice of an Encoded.
type encodedSlice struct {
	Slice
	schema []byte // Arrow schema message, shared by all slices of a table version
	// The record in the Encoded's buffer: room for its header, slice header, message.
	from, to int
}

// Encoder turns groups into bytes. Safe for concurrent use.
type Encoder struct {
	pool sync.Pool
	mu   struct {
		sync.Mutex
		schemas map[change.TableID]encodedSchema
	}
}

// encodedSchema is what is known of a table version. Its parts are immutable.
type encodedSchema struct {
	version uint32
	schema  *arrow.Schema
	message []byte
	columns []columnLayout // nil when a template is impossible
	// template renders its batches; nil until Arrow has rendered one.
	template *messageTemplate
}

// pooledBytesMax is the largest buffer kept for reuse: larger groups are rare, and
// a pool of them would hold the memory of a burst.
const pooledBytesMax = 4 << 20

// NewEncoder makes an encoder.
func NewEncoder() *Encoder {
	e := &Encoder{}
	e.mu.schemas = map[change.TableID]encodedSchema{}
	return e
}

// Encode renders g. It keeps neither g nor its batches. The result goes back
// through Release when it has been placed.
func (e *Encoder) Encode(g *change.Group) (*Encoded, error) {
	if len(g.Position) > PositionBytesMax || len(g.State) > StateBytesMax {
		return nil, fmt.Errorf("position of %d and state of %d bytes: %w",
			len(g.Position), len(g.State), ErrTooLarge)
	}
	out, _ := e.pool.Get().(*Encoded)
	if out == nil {
		out = &Encoded{}
	}
	out.Position, out.CommittedAt = g.Position, g.CommittedAt
	out.State = append([]byte(nil), g.State...)
	if n := largeBytes(g); n > 0 {
		out.buffer = slices.Grow(out.buffer, n)
	}
	for i, b := range g.Batches {
		if err := e.encodeBatch(out, b); err != nil {
			e.Release(out)
			return nil, fmt.Errorf("encode batch %d of table %d: %w", i, b.Table, err)
		}
	}
	return out, nil
}

// largeBytes is about how much the rows of a large group take, so that its buffer is
// not copied as it grows; 0 for others.
func largeBytes(g *change.Group) int {
	const largeRows = 16 << 10
	var n uint64
	for _, b := range g.Batches {
		if b.Rows() < largeRows {
			continue
		}
		for _, c := range b.Record.Columns() {
			n += c.Data().SizeInBytes()
		}
	}
	return int(min(n, BodyBytesMax/2))
}

// Release takes x back for reuse. The caller must not use it any more.
func (e *Encoder) Release(x *Encoded) {
	if cap(x.buffer) > pooledBytesMax {
		return
	}
	clear(x.slices)
	*x = Encoded{slices: x.slices[:0], buffer: x.buffer[:0], scratch: x.scratch}
	e.pool.Put(x)
}

// Bytes is about how much the group takes in a body.
func (x *Encoded) Bytes() int { return len(x.buffer) + len(x.State) + groupEndBytes }

func (e *Encoder) encodeBatch(out *Encoded, b *change.Batch) error {
	if b.Table == 0 {
		return errors.New("batch without a table")
	}
	if n := len(b.Unchanged); n > 0 {
		return fmt.Errorf("batch of table %d with %d values that are not filled in", b.Table, n)
	}
	if b.Computes {
		return fmt.Errorf("batch of table %d with columns that are not computed", b.Table)
	}
	if b.Rows() > math.MaxInt32 {
		return fmt.Errorf("%d rows: %w", b.Rows(), ErrTooLarge)
	}
	s := encodedSlice{from: len(out.buffer)}
	s.Slice = Slice{
		Table: b.Table, SchemaVersion: b.SchemaVersion, Rows: uint32(b.Rows()),
		Counts: b.Counts, Truncate: b.Truncate, Backfill: b.Backfill,
	}
	out.buffer = appendZeros(out.buffer, recordHeaderBytes+sliceHeaderBytes)
	if b.Rows() > 0 {
		known, err := e.schemaOf(b)
		if err != nil {
			return err
		}
		s.schema = known.message
		if err := e.encodeRecord(out, b, known); err != nil {
			return err
		}
	}
	n := len(out.buffer) - s.from - recordHeaderBytes
	out.buffer = appendZeros(out.buffer, recordBytes(n)-recordHeaderBytes-n)
	s.to = len(out.buffer)
	if len(out.buffer) > BodyBytesMax/2 {
		return fmt.Errorf("more than %d bytes: %w", BodyBytesMax/2, ErrTooLarge)
	}
	out.slices = append(out.slices, s)
	return nil
}

// encodeRecord appends the message of b's rows.
func (e *Encoder) encodeRecord(out *Encoded, b *change.Batch, known encodedSchema) error {
	if t := known.template; t != nil {
		buffers, ok := t.split(out.scratch[:0], b.Record)
		if ok {
			out.buffer = t.render(out.buffer, b.Record, buffers)
		}
		clear(buffers) // they are the batch's
		out.scratch = buffers[:0]
		if ok {
			return nil
		}
	}
	from := len(out.buffer)
	p, err := ipc.GetRecordBatchPayload(b.Record)
	if err != nil {
		return err
	}
	_, err = p.WritePayload((*appender)(&out.buffer))
	p.Release()
	if err != nil {
		return err
	}
	if known.template == nil && known.columns != nil {
		e.learn(b.Table, known, newTemplate(known.columns, b.Record, out.buffer[from:]))
	}
	return nil
}

// learn remembers a template unless the table has changed meanwhile.
func (e *Encoder) learn(table change.TableID, known encodedSchema, t *messageTemplate) {
	if t == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.mu.schemas[table]; now.version == known.version && now.schema == known.schema {
		now.template = t
		e.mu.schemas[table] = now
	}
}

// schemaOf is what is known of b's schema; it is rendered once per version of its
// table.
func (e *Encoder) schemaOf(b *change.Batch) (encodedSchema, error) {
	schema := b.Record.Schema()
	e.mu.Lock()
	have, ok := e.mu.schemas[b.Table]
	e.mu.Unlock()
	if ok && have.version == b.SchemaVersion {
		if have.schema != schema && !have.schema.Equal(schema) {
			return encodedSchema{}, fmt.Errorf("version %d with two schemas", b.SchemaVersion)
		}
		return have, nil
	}
	p := ipc.GetSchemaPayload(schema, memory.DefaultAllocator)
	defer p.Release()
	var message []byte
	if _, err := p.WritePayload((*appender)(&message)); err != nil {
		return encodedSchema{}, err
	}
	have = encodedSchema{version: b.SchemaVersion, schema: schema, message: message}
	have.columns, _ = layoutOf(schema)
	e.mu.Lock()
	e.mu.schemas[b.Table] = have
	e.mu.Unlock()
	return have, nil
}

// appender is an io.Writer at the end of a slice.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// appendZeros appends n zeros.
func appendZeros(dst []byte, n int) []byte {
	dst = slices.Grow(dst, n)
	clear(dst[len(dst) : len(dst)+n])
	return dst[:len(dst)+n]
}
