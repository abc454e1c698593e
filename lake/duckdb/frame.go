package duckdb

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Between server and worker travel frames: u32 length of what follows, u8 kind, body;
// little-endian. Requests and answers are gob values of one gob stream a direction,
// so that types are described once a connection. Both ends are one build.
const (
	frameQuery    = byte(1) // request; the rest answers it
	frameDescribe = byte(2)
	frameCancel   = byte(3) // no body, no answer of its own
	frameRows     = byte(4) // u32 rows, encoded rows
	frameDone     = byte(5) // end of a query
	frameFailed   = byte(6) // failure, instead of frameDone or frameDescribed
	frameTold     = byte(7) // Description
)

const (
	frameHeader = 5
	rowsHeader  = frameHeader + 4
	// frameBytesMax bounds a frame: a plan with all its inline relations, or one chunk
	// of very long rows.
	frameBytesMax = 1 << 30
	// rowsKept is the buffer of rows that a connection keeps: a usual frame fits.
	rowsKept = frameRowsBytes + frameRowsBytes/2
)

// failure is an error that crosses the socket.
type failure struct {
	Kind    failureKind
	Engine  ErrorKind // of failureEngine
	Message string
}

type failureKind uint8

const (
	failureEngine failureKind = iota + 1
	failureSliceLost
	failurePlan
	failureCanceled
	failureCorrupt
	failureOther
)

func failureOf(err error) failure {
	var engine *EngineError
	switch {
	case errors.Is(err, ErrSliceLost):
		return failure{Kind: failureSliceLost, Message: err.Error()}
	case errors.Is(err, ErrCorrupt):
		return failure{Kind: failureCorrupt, Message: err.Error()}
	case errors.Is(err, ErrPlan):
		return failure{Kind: failurePlan, Message: err.Error()}
	case errors.As(err, &engine):
		return failure{Kind: failureEngine, Engine: engine.Kind, Message: engine.Message}
	case errors.Is(err, errCanceled):
		return failure{Kind: failureCanceled, Message: err.Error()}
	}
	return failure{Kind: failureOther, Message: err.Error()}
}

func (f failure) err() error {
	switch f.Kind {
	case failureEngine:
		return &EngineError{Kind: f.Engine, Message: f.Message}
	case failureSliceLost:
		return fmt.Errorf("worker: %s: %w", f.Message, ErrSliceLost)
	case failurePlan:
		return fmt.Errorf("worker: %s: %w", f.Message, ErrPlan)
	case failureCorrupt:
		return fmt.Errorf("worker: %s: %w", f.Message, ErrCorrupt)
	case failureCanceled:
		return &EngineError{Kind: KindInterrupted, Message: f.Message}
	}
	return fmt.Errorf("worker: %s", f.Message)
}

// planMessage is a Plan on its way: gob has no null in a list.
type planMessage struct {
	Plan   Plan
	Params []string
	Null   []bool
}

func messageOf(p *Plan) planMessage {
	m := planMessage{Plan: *p, Params: make([]string, len(p.Params)), Null: make([]bool, len(p.Params))}
	m.Plan.Params = nil
	for i, v := range p.Params {
		if v == nil {
			m.Null[i] = true
		} else {
			m.Params[i] = *v
		}
	}
	return m
}

// plan takes the message apart again.
func (m *planMessage) plan() (*Plan, error) {
	if len(m.Params) != len(m.Null) {
		return nil, fmt.Errorf("%d parameters, %d nulls: %w", len(m.Params), len(m.Null), ErrPlan)
	}
	for i := range m.Params {
		if m.Null[i] {
			m.Plan.Params = append(m.Plan.Params, nil)
		} else {
			m.Plan.Params = append(m.Plan.Params, &m.Params[i])
		}
	}
	return &m.Plan, nil
}

// messages are the gob streams of one end of a connection. Reading and writing may go
// on at once, each by one goroutine.
type messages struct {
	in      io.Reader
	out     io.Writer
	inBody  bytes.Buffer
	outBody bytes.Buffer
	decoder *gob.Decoder
	encoder *gob.Encoder
	header  [frameHeader]byte
	rows    []byte
}

func newMessages(in io.Reader, out io.Writer) *messages {
	m := &messages{in: in, out: out}
	m.decoder, m.encoder = gob.NewDecoder(&m.inBody), gob.NewEncoder(&m.outBody)
	return m
}

// send writes a frame whose body is v, or empty for nil.
func (m *messages) send(kind byte, v any) error {
	m.outBody.Reset()
	m.outBody.Write(make([]byte, frameHeader))
	if v != nil {
		if err := m.encoder.Encode(v); err != nil {
			return fmt.Errorf("encode frame %d: %w: %w", kind, ErrPlan, err)
		}
	}
	frame := m.outBody.Bytes()
	if len(frame) > frameBytesMax {
		return fmt.Errorf("frame of %d bytes: %w", len(frame), ErrPlan)
	}
	putHeader(frame, kind)
	_, err := m.out.Write(frame)
	return err
}

// receive reads the next frame. A rows frame's body is returned, valid until the next
// call; any other body waits for decode.
func (m *messages) receive() (kind byte, rows []byte, err error) {
	if _, err := io.ReadFull(m.in, m.header[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint32(m.header[:])) - 1
	kind = m.header[4]
	if n < 0 || n > frameBytesMax {
		return 0, nil, fmt.Errorf("frame %d of %d bytes", kind, n)
	}
	if kind == frameRows {
		if n < 4 {
			return 0, nil, fmt.Errorf("rows frame of %d bytes", n)
		}
		err = m.readRows(n)
		return kind, m.rows, err
	}
	m.inBody.Reset()
	_, err = io.CopyN(&m.inBody, m.in, int64(n))
	return kind, nil, err
}

// readRows reads n bytes into rows, which grows by what has come: the length is only
// what the other end says.
func (m *messages) readRows(n int) error {
	if cap(m.rows) > rowsKept && n <= rowsKept {
		m.rows = nil
	}
	m.rows = m.rows[:0]
	for len(m.rows) < n {
		at := len(m.rows)
		step := min(n-at, max(at, rowsKept))
		m.rows = slices.Grow(m.rows, step)[:at+step]
		if _, err := io.ReadFull(m.in, m.rows[at:]); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the body of the frame received last.
func (m *messages) decode(v any) error {
	if err := m.decoder.Decode(v); err != nil {
		return fmt.Errorf("decode frame: %w", err)
	}
	return nil
}

// sendRows writes a rows frame; frame has rowsHeader bytes of room in front.
func (m *messages) sendRows(frame []byte, rows int) error {
	if len(frame) > frameBytesMax {
		return &EngineError{Kind: KindOutOfMemory, Message: "row is too long"}
	}
	putHeader(frame, frameRows)
	binary.LittleEndian.PutUint32(frame[frameHeader:], uint32(rows))
	_, err := m.out.Write(frame)
	return err
}

func putHeader(frame []byte, kind byte) {
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHeader+1))
	frame[4] = kind
}

// writeBlock writes u32 length and body.
func writeBlock(w io.Writer, body []byte) error {
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err := w.Write(append(head, body...))
	return err
}

func readBlock(r io.Reader, limit uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > limit {
		return nil, fmt.Errorf("block of %d bytes, limit is %d", n, limit)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
