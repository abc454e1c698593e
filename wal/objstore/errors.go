package objstore

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound says that there is no object under the key.
	ErrNotFound = errors.New("object does not exist")
	// ErrPrecondition says that the condition of a Put did not hold. This request did
	// nothing; an earlier attempt with the same bytes may have.
	ErrPrecondition = errors.New("object is not in the expected state")
	// ErrConflict says that the store refused a write, without effect, since another
	// write of the key was under way.
	ErrConflict = errors.New("object is being written by another request")
	// ErrUnavailable says that the store did not serve the request; it had no effect.
	ErrUnavailable = errors.New("object store is unavailable")
	// ErrUnknown says that a write may have happened, may not have, or may still
	// happen. Reading the object back settles it if the write is found, or another one
	// that precludes it; else a conditional write of the same bytes does.
	ErrUnknown = errors.New("outcome of the write is unknown")
	// ErrRange says that a range begins at or beyond the end of the object.
	ErrRange = errors.New("range is beyond the end of the object")
	// ErrDamaged says that an answer does not match the checksum the store keeps. It
	// may be the way or the object: read once more, and if it stays it is corruption.
	ErrDamaged = errors.New("object does not match its checksum")
	// ErrKey says that a key is malformed, or is a directory of another one.
	ErrKey = errors.New("key is not allowed")
	// ErrUnsuitable says that a store does not do what the contract asks for. Nothing
	// that commits may be kept in it.
	ErrUnsuitable = errors.New("object store cannot keep a log safely")
)

// IsRetryable says whether the same request with the same bytes may succeed when it
// is made again: after a conflict, an unavailable store, an unknown outcome.
func IsRetryable(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown)
}

// KeyError is what happened to one key of a Delete.
type KeyError struct {
	Key string
	Err error
}

// DeleteError says which keys a Delete did not remove, or may not have (ErrUnknown).
// All others are removed.
type DeleteError struct {
	Failed []KeyError // at least one
}

// Error names the first of the keys.
func (e *DeleteError) Error() string {
	return fmt.Sprintf("delete: %d keys are left, %s first: %v", len(e.Failed), e.Failed[0].Key, e.Failed[0].Err)
}

// Unwrap gives the errors of all keys.
func (e *DeleteError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		out[i] = f.Err
	}
	return out
}
