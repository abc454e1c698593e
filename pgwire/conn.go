package pgwire

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const (
	// flushBytes is where the output buffer is written out.
	flushBytes = 64 << 10
	// keepBytes is the largest buffer that survives its message.
	keepBytes = 128 << 10
	readBytes = 8 << 10
	// growBytes is how much of a message is allocated ahead of its bytes.
	growBytes = 1 << 20
	// authBytesMax bounds messages before authentication.
	authBytesMax = 16 << 10
)

// conn frames messages on a socket and buffers output. Owned by the session's
// goroutine; only interrupt and the deadlines of tcp may be used from others.
type conn struct {
	tcp net.Conn // the socket, for deadlines and peer checks
	net.Conn
	in   *bufio.Reader
	body []byte
	out  []byte
	// bodyMax bounds a message's body.
	bodyMax int
	bytes   *counter
	// writing is told of a write that may take its time, and returns what is called behind it.
	writing func() (done func())
}

func newConn(tcp net.Conn, sent *counter) *conn {
	return &conn{tcp: tcp, Conn: tcp, bodyMax: authBytesMax, bytes: sent}
}

// startReading begins buffered reading: from here on nothing changes the transport.
func (c *conn) startReading() { c.in = bufio.NewReaderSize(c.Conn, readBytes) }

// readHeader reads a message's type and the length of its body.
func (c *conn) readHeader() (kind byte, n int, err error) {
	h, err := c.in.Peek(5) // a read that is interrupted half-way loses nothing
	if err != nil {
		return 0, 0, &connError{err}
	}
	length := binary.BigEndian.Uint32(h[1:])
	if length < 4 || length > 1<<30+4 {
		return 0, 0, errLength()
	}
	kind = h[0]
	_, _ = c.in.Discard(5) // just peeked
	return kind, int(length) - 4, nil
}

// readBody reads n bytes, which are valid until the next call.
func (c *conn) readBody(n int) ([]byte, error) {
	if n > c.bodyMax {
		return nil, fatal(codes.ProgramLimitExceeded, "message of %d bytes exceeds the limit of %d", n, c.bodyMax)
	}
	if cap(c.body) > keepBytes {
		c.body = nil
	}
	c.body = c.body[:0]
	for len(c.body) < n {
		at := len(c.body)
		step := min(n-at, growBytes)
		if cap(c.body) < at+step {
			grown := make([]byte, at, max(at+step, min(2*at, n), 512))
			copy(grown, c.body)
			c.body = grown
		}
		c.body = c.body[:at+step]
		if _, err := io.ReadFull(c.in, c.body[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, &connError{err}
		}
	}
	return c.body, nil
}

// discard drops n bytes of input.
func (c *conn) discard(n int) error {
	if _, err := io.CopyN(io.Discard, c.in, int64(n)); err != nil {
		return &connError{err}
	}
	return nil
}

// send buffers a message.
func (c *conn) send(m pgproto3.BackendMessage) error {
	out, err := m.Encode(c.out)
	if err != nil {
		return err
	}
	c.out = out
	return c.flushIfFull()
}

func (c *conn) flushIfFull() error {
	if len(c.out) >= flushBytes {
		return c.flush()
	}
	return nil
}

// write sends finished messages, in order with what is buffered. Large pieces are
// not copied.
func (c *conn) write(messages []byte) error {
	if len(c.out)+len(messages) < flushBytes {
		c.out = append(c.out, messages...)
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	if len(messages) < flushBytes {
		c.out = append(c.out, messages...)
		return nil
	}
	return c.put(messages)
}

// flush writes the output buffer out.
func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.put(c.out)
	if cap(c.out) > keepBytes {
		c.out = nil
	}
	c.out = c.out[:0]
	return err
}

func (c *conn) put(b []byte) error {
	if len(b) >= flushBytes { // smaller ones fit into the socket's buffer, or nearly so
		defer c.writing()()
	}
	n, err := c.Write(b)
	c.bytes.add(int64(n))
	if err != nil {
		return &connError{err}
	}
	return nil
}

// past is a deadline that ends a blocked read or write at once.
var past = time.Unix(1, 0)

// interruptRead ends a blocked read. Safe for concurrent use.
func (c *conn) interruptRead() { _ = c.tcp.SetReadDeadline(past) } // fails on a closed socket only

// tls returns the TLS layer, nil in plaintext.
func (c *conn) tls() *tls.Conn {
	t, _ := c.Conn.(*tls.Conn)
	return t
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func errLength() *pgerr.Error { return fatal(codes.ProtocolViolation, "invalid message length") }

// fatal is an error that ends the session after it was sent.
func fatal(code codes.Code, format string, args ...any) *pgerr.Error {
	e := pgerr.New(code, format, args...)
	e.Severity = "FATAL"
	return e
}

// errorResponse renders an error or a notice.
func errorResponse(e *pgerr.Error) pgproto3.ErrorResponse {
	severity := e.Severity
	if severity == "" {
		severity = "ERROR"
	}
	return pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: string(e.Code), Message: e.Message,
		Detail: e.Detail, Hint: e.Hint, Position: e.Position, Where: e.Where, SchemaName: e.Schema,
		TableName: e.Table, ColumnName: e.Column, DataTypeName: e.DataType, ConstraintName: e.Constraint,
	}
}
