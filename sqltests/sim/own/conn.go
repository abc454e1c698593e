package own

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// conn is a client's connection as its server sees it: a net.Conn in memory whose reads and
// writes are exchanges with the world. It has no deadlines.
type conn struct {
	client *Client
	hooks  Hooks
	in     []byte // sent by the client and not read
	// closed says that the client is gone: what it has sent can still be read.
	closed bool
	// cancelled: the statement was, so that a read ends at once.
	cancelled bool
	broken    error // what reads and writes fail with
}

var _ net.Conn = (*conn)(nil)

var errBroken = errors.New("connection is broken")

// Read implements net.Conn. The bytes come in pieces that the world cuts.
func (c *conn) Read(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if err := c.hooks.Wait(func() bool { return len(c.in) > 0 || c.closed || c.cancelled }); err != nil {
		return 0, c.breaks(err)
	}
	if err := c.hooks.Point("receive"); err != nil {
		return 0, c.breaks(err)
	}
	switch {
	case c.cancelled:
		return 0, os.ErrDeadlineExceeded
	case len(c.in) == 0:
		return 0, io.EOF
	}
	n := copy(b, c.in[:c.hooks.Split(len(c.in))])
	c.in = c.in[n:]
	return n, nil
}

// Write implements net.Conn. What the server says is checked when it says it, whether or not
// its client gets to hear it.
func (c *conn) Write(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if !c.hooks.Alive() || c.client.conn != c {
		return 0, c.breaks(io.ErrClosedPipe)
	}
	c.client.hear(b)
	if err := c.hooks.Point("reply"); err != nil {
		return 0, c.breaks(err)
	}
	if c.closed {
		return 0, c.breaks(io.ErrClosedPipe)
	}
	return len(b), nil
}

func (c *conn) breaks(err error) error {
	c.broken, c.closed = errors.Join(errBroken, err), true
	return c.broken
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closed = true
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return loopback }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return loopback }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5432}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// message appends a message of the wire protocol; kind 0 has no type.
func message(dst []byte, kind byte, body ...[]byte) []byte {
	if kind != 0 {
		dst = append(dst, kind)
	}
	n := 4
	for _, b := range body {
		n += len(b)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	for _, b := range body {
		dst = append(dst, b...)
	}
	return dst
}

// protocol3 is the version of the protocol that clients ask for.
const protocol3 = 3 << 16

// startup is a client's first message.
func startup(name string) []byte {
	body := binary.BigEndian.AppendUint32(nil, protocol3)
	body = append(body, "user\x00postgres\x00database\x00lake\x00application_name\x00"...)
	return message(nil, 0, append(append(body, name...), 0, 0))
}

// cancelCode is the version that a cancel request has in place of one.
const cancelCode = 80877102

func cancelRequest(key []byte) []byte {
	return message(nil, 0, binary.BigEndian.AppendUint32(nil, cancelCode), key)
}

// eachMessage yields the messages of what a server says, which ends with whole ones.
func eachMessage(b []byte, f func(kind byte, body []byte)) {
	for len(b) >= 5 {
		n := int(binary.BigEndian.Uint32(b[1:])) + 1
		if n > len(b) {
			return
		}
		f(b[0], b[5:n])
		b = b[n:]
	}
}
