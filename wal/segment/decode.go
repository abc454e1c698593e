package segment

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Decoder turns the messages of slices of one schema into rows. Not safe for
// concurrent use; after an error it is spent.
type Decoder struct {
	feed   *feeder
	reader *ipc.Reader
	// empty is a batch without rows: the reader holds on to its last batch, so it is
	// given this one to let go of the real ones.
	empty *ipc.Message
}

// NewDecoder makes a decoder from the message of a schema record.
func NewDecoder(message []byte) (*Decoder, error) {
	m, err := parseMessage(message)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	feed := &feeder{next: m}
	r, err := ipc.NewReaderFromMessageReader(feed)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	d := &Decoder{feed: feed, reader: r}
	if d.empty, err = emptyMessage(r.Schema()); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return d, nil
}

func emptyMessage(s *arrow.Schema) (*ipc.Message, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	rec := b.NewRecordBatch()
	defer rec.Release()
	p, err := ipc.GetRecordBatchPayload(rec)
	if err != nil {
		return nil, err
	}
	defer p.Release()
	var out []byte
	if _, err := p.WritePayload((*appender)(&out)); err != nil {
		return nil, err
	}
	return parseMessage(out)
}

// Schema of the rows.
func (d *Decoder) Schema() *arrow.Schema { return d.reader.Schema() }

// Decode returns the rows of a slice's message. They point into it: the caller
// leaves message alone from now on. It releases the batch.
func (d *Decoder) Decode(message []byte) (arrow.RecordBatch, error) {
	m, err := parseMessage(message)
	if err != nil {
		return nil, err
	}
	d.feed.next = m
	rec, err := d.reader.Read()
	if err != nil {
		return nil, fmt.Errorf("arrow message: %w", err)
	}
	rec.Retain()
	d.feed.next = d.empty
	if _, err := d.reader.Read(); err != nil {
		rec.Release()
		return nil, fmt.Errorf("arrow message: %w", err)
	}
	return rec, nil
}

// feeder is an ipc.MessageReader that is handed one message at a time.
type feeder struct{ next *ipc.Message }

func (f *feeder) Message() (*ipc.Message, error) {
	if f.next == nil {
		return nil, io.ErrUnexpectedEOF
	}
	m := f.next
	f.next = nil
	return m, nil
}

func (f *feeder) Retain()  {}
func (f *feeder) Release() {}

const ipcContinuation = 0xffffffff

// parseMessage splits an encapsulated Arrow message without copying it.
func parseMessage(b []byte) (m *ipc.Message, err error) {
	le := binary.LittleEndian
	if len(b) < 8 || le.Uint32(b) != ipcContinuation {
		return nil, fmt.Errorf("arrow message: %w", ErrMagic)
	}
	n := int64(le.Uint32(b[4:]))
	if n < 8 || n > int64(len(b)-8) {
		return nil, fmt.Errorf("arrow metadata of %d bytes: %w", n, ErrLength)
	}
	defer func() { // flatbuffers index without checks
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("arrow metadata: %v: %w", p, ErrLength)
		}
	}()
	meta, body := b[8:8+n], b[8+n:]
	m = ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body))
	if m.BodyLen() < 0 || m.BodyLen() > int64(len(body)) {
		return nil, fmt.Errorf("arrow body of %d bytes: %w", m.BodyLen(), ErrLength)
	}
	return m, nil
}
