// Package pgoutput reads the messages of PostgreSQL's logical replication protocol,
// versions 1 and 2, as the output plugin pgoutput writes them. Version 2 adds blocks of
// changes of transactions that have not ended: see StreamStart.
//
// Messages are read in place: a parsed message and its tuples refer to the bytes they
// were parsed from and are good until those are overwritten. Row messages parse into
// values that the caller reuses, so that a change costs no allocation. No I/O here.
package pgoutput

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed means that a message does not follow the protocol.
var ErrMalformed = errors.New("malformed replication message")

// The kinds of messages, by their first byte.
const (
	KindBegin    = 'B'
	KindCommit   = 'C'
	KindOrigin   = 'O'
	KindRelation = 'R'
	KindType     = 'Y'
	KindInsert   = 'I'
	KindUpdate   = 'U'
	KindDelete   = 'D'
	KindTruncate = 'T'
	KindMessage  = 'M'

	KindStreamStart  = 'S'
	KindStreamStop   = 'E'
	KindStreamCommit = 'c'
	KindStreamAbort  = 'A'
)

// reader takes bytes off the front of a message; the first shortage sticks.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || n < 0 || n > len(r.b) {
		r.short = true
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string {
	for i, c := range r.b {
		if c == 0 {
			s := string(r.b[:i])
			r.b = r.b[i+1:]
			return s
		}
	}
	r.short = true
	return ""
}

// done says whether the message was as long as it should be.
func (r *reader) done(kind string) error {
	if r.short {
		return fmt.Errorf("%w: %s is too short", ErrMalformed, kind)
	}
	if len(r.b) != 0 {
		return fmt.Errorf("%w: %s is too long", ErrMalformed, kind)
	}
	return nil
}
