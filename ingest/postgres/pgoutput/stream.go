package pgoutput

import "fmt"

// StreamStart begins a block of changes of a transaction that has not ended; a
// StreamStop ends it. In a block the kind byte of each change, description and type is
// followed by the number of the subtransaction that it belongs to: see Streamed.
type StreamStart struct {
	XID uint32
	// First says that the transaction had no block before.
	First bool
}

// ParseStreamStart reads a StreamStart.
func ParseStreamStart(b []byte) (StreamStart, error) {
	r := reader{b: b}
	r.take(1)
	m := StreamStart{XID: r.uint32(), First: r.uint8() != 0}
	return m, r.done("stream start")
}

// ParseStreamStop checks a StreamStop, which says nothing more.
func ParseStreamStop(b []byte) error {
	r := reader{b: b}
	r.take(1)
	return r.done("stream stop")
}

// StreamCommit ends a transaction of which blocks were sent.
type StreamCommit struct {
	XID uint32
	Commit
}

// ParseStreamCommit reads a StreamCommit.
func ParseStreamCommit(b []byte) (StreamCommit, error) {
	r := reader{b: b}
	r.take(1)
	m := StreamCommit{XID: r.uint32()}
	r.take(1) // flags, which are unused
	m.Commit = Commit{CommitLSN: r.uint64(), EndLSN: r.uint64(), CommittedAt: int64(r.uint64())}
	return m, r.done("stream commit")
}

// StreamAbort says that a subtransaction of which changes were sent is rolled back, or
// the whole transaction when both numbers are the same.
type StreamAbort struct {
	XID, SubXID uint32
}

// ParseStreamAbort reads a StreamAbort.
func ParseStreamAbort(b []byte) (StreamAbort, error) {
	r := reader{b: b}
	r.take(1)
	m := StreamAbort{XID: r.uint32(), SubXID: r.uint32()}
	return m, r.done("stream abort")
}

// Streamed takes a message of a block apart: kind and rest, one after the other, are the
// message as it would be outside of a block.
func Streamed(b []byte) (kind byte, sub uint32, rest []byte, err error) {
	r := reader{b: b}
	kind, sub = r.uint8(), r.uint32()
	if r.short {
		return 0, 0, nil, fmt.Errorf("%w: message of a block is too short", ErrMalformed)
	}
	return kind, sub, r.b, nil
}

// RelationOf is the table that an insert, update, delete or description is of, given
// the message without its kind byte.
func RelationOf(rest []byte) (uint32, error) {
	r := reader{b: rest}
	oid := r.uint32()
	if r.short {
		return 0, fmt.Errorf("%w: change is too short", ErrMalformed)
	}
	return oid, nil
}
