package segment

import (
	"errors"
	"fmt"
)

// CorruptError says that bytes which must be whole are not.
type CorruptError struct {
	Seq    Seq
	Offset uint32 // of the body, where the damage was found
	Cause  error
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("segment %s corrupt at byte %d: %v", e.Seq.ID(), e.Offset, e.Cause)
}

// Unwrap is the cause.
func (e *CorruptError) Unwrap() error { return e.Cause }

// The causes of a CorruptError and of a marker or header that does not parse.
var (
	ErrChecksum = errors.New("checksum mismatch")
	ErrMagic    = errors.New("magic mismatch")
	ErrVersion  = errors.New("unknown format version")
	ErrReserved = errors.New("reserved bytes set")
	ErrLength   = errors.New("length out of bounds")
	ErrIdentity = errors.New("belongs to another segment")
	ErrDigest   = errors.New("digest mismatch")
	ErrGroup    = errors.New("group incomplete")
	ErrPromise  = errors.New("bytes promised durable are damaged")
	ErrKind     = errors.New("unexpected record type")
)

// ErrTooLarge says that a group cannot be encoded within the format's limits.
var ErrTooLarge = errors.New("group exceeds the limits of a segment")
