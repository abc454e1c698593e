// Package cut bounds what a row takes in memory while it is received. PostgreSQL sends a
// row in one message, whose length may be nearly 1 GiB; a Reader below the protocol's
// decoder takes the large values out of messages that are too long, as they arrive.
package cut

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// Omitted is the length, in a binary COPY, of a value that was taken out.
	Omitted = -2
	// OmittedKind is the kind, in a tuple of pgoutput, of a value that was taken out.
	OmittedKind = 'x'
)

const (
	// keepMost is the longest value that is kept of a row that is cut: keys are shorter,
	// since an index holds them.
	keepMost   = 16 << 10
	columnsMax = 1664
	headBytes  = 5      // a message's type and length
	copyData   = 'd'    // its type
	walData    = 1 + 24 // what precedes a message of the output plugin
	copyHead   = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

var errMalformed = errors.New("a row that is too long is malformed")

// Reader passes on a server's messages. Of rows in CopyData messages with more than a
// number of bytes it leaves out every value of more than 16 KiB. Not safe for concurrent
// use.
type Reader struct {
	in    *bufio.Reader
	limit int
	left  int    // of the message that is being passed on
	out   []byte // of the message that was cut, what was not read yet
	err   error  // for ever, once a message was broken off
}

// NewReader reads from r by pieces of size bytes, and cuts messages longer than limit.
func NewReader(r io.Reader, size, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, size), limit: limit}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case r.err != nil:
			return 0, r.err
		case len(r.out) > 0:
			n := copy(p, r.out)
			if r.out = r.out[n:]; len(r.out) == 0 {
				r.out = nil
			}
			return n, nil
		case r.left > 0 && r.in.Buffered() == 0:
			n, err := r.in.Read(p[:min(len(p), r.left)])
			r.left -= n
			return n, err
		}
		need := headBytes
		if r.left > 0 {
			need = 1
		}
		if _, err := r.in.Peek(need); err != nil {
			return 0, err
		}
		b, _ := r.in.Peek(min(len(p), r.in.Buffered())) // no more than there is
		if n := r.pass(b); n > 0 {
			_ = copy(p, b[:n])
			_, err := r.in.Discard(n)
			return n, err
		}
		if err := r.cut(); err != nil {
			r.err = err
		}
	}
	return 0, nil
}

// pass is how many bytes of b can be passed on: up to a message that is too long, or whose
// head is not all there.
func (r *Reader) pass(b []byte) int {
	at := 0
	for {
		n := min(r.left, len(b)-at)
		at, r.left = at+n, r.left-n
		if r.left > 0 || len(b)-at < headBytes {
			return at
		}
		size := int(binary.BigEndian.Uint32(b[at+1:]))
		if b[at] == copyData && size > r.limit {
			return at
		}
		r.left = 1 + size
	}
}

// cut takes in the message that comes without its large values, or lets it pass as it is
// if it is no row.
func (r *Reader) cut() error {
	head, err := r.in.Peek(headBytes)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head[1:]))
	if head[0] != copyData || size <= r.limit { // p was shorter than a head
		r.left = 1 + size
		return nil
	}
	b, err := r.in.Peek(headBytes + walData + 16)
	if err != nil {
		return err
	}
	c := cutter{in: r.in, left: size + 1}
	switch b = b[headBytes:]; {
	case b[0] == 'w':
		if head := tupleAt(b[walData:]); head > 0 {
			c.keep(headBytes + walData + head)
			c.tuples()
			break
		}
		r.left = 1 + size
		return nil
	case strings.HasPrefix(string(b), copyHead):
		c.keep(headBytes + len(copyHead))
		c.row()
	case b[0] < 'P':
		c.keep(headBytes)
		c.row()
	default:
		r.left = 1 + size
		return nil
	}
	if c.err == nil && c.left != 0 {
		c.err = fmt.Errorf("%w: %d bytes are left", errMalformed, c.left)
	}
	if errors.Is(c.err, io.EOF) {
		c.err = io.ErrUnexpectedEOF
	}
	if c.err != nil {
		return c.err
	}
	binary.BigEndian.PutUint32(c.out[1:], uint32(len(c.out)-1))
	r.out = c.out
	return nil
}

// tupleAt is where the first tuple of a row message is: behind the relation, and, in a
// block of a transaction that runs still, behind the transaction. 0 is no row, or one that
// can be read both ways.
func tupleAt(b []byte) int {
	if b[0] != 'I' && b[0] != 'U' && b[0] != 'D' {
		return 0
	}
	found := 0
	for _, at := range []int{5, 9} {
		columns := int(binary.BigEndian.Uint16(b[at+1:]))
		if !strings.ContainsRune("NKO", rune(b[at])) || columns == 0 || columns > columnsMax ||
			!strings.ContainsRune("nutb", rune(b[at+3])) {
			continue
		}
		if found > 0 {
			return 0
		}
		found = at
	}
	return found
}

// cutter copies a message piece by piece. It keeps its first error.
type cutter struct {
	in   *bufio.Reader
	left int // of the message
	out  []byte
	err  error
}

// keep copies n bytes, and returns them.
func (c *cutter) keep(n int) []byte {
	if c.err == nil && n > c.left {
		c.err = fmt.Errorf("%w: it is too short", errMalformed)
	}
	at := len(c.out)
	c.out = append(c.out, make([]byte, n)...)
	if c.err == nil {
		_, c.err = io.ReadFull(c.in, c.out[at:])
		c.left -= n
	}
	return c.out[at:]
}

// value copies a value with its length, or leaves it out.
func (c *cutter) value() (kept bool) {
	n := int(int32(binary.BigEndian.Uint32(c.keep(4))))
	if n <= keepMost {
		c.keep(max(n, 0))
		return true
	}
	c.out = c.out[:len(c.out)-4]
	if c.err == nil && n > c.left {
		c.err = fmt.Errorf("%w: it is too short", errMalformed)
	}
	if c.err == nil {
		_, c.err = c.in.Discard(n)
		c.left -= n
	}
	return false
}

// row copies a row of a binary COPY.
func (c *cutter) row() {
	for range min(int(binary.BigEndian.Uint16(c.keep(2))), columnsMax) {
		if !c.value() {
			c.out = binary.BigEndian.AppendUint32(c.out, uint32(0xffff_ffff+Omitted+1))
		}
		if c.err != nil {
			return
		}
	}
}

// tuples copies the tuples of a row message.
func (c *cutter) tuples() {
	for c.left > 0 && c.err == nil {
		c.keep(1)
		for range min(int(binary.BigEndian.Uint16(c.keep(2))), columnsMax) {
			kind := c.keep(1)[0]
			if (kind == 't' || kind == 'b') && !c.value() {
				c.out[len(c.out)-1] = OmittedKind
			}
			if c.err != nil {
				return
			}
		}
	}
}
