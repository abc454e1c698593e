package protocol

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

var (
	// ErrPoisoned says that a write or sync failed. The append is not committed,
	// unless the process ends before the log has healed.
	ErrPoisoned = errors.New("log poisoned by a failed write")
	// ErrUnpublished says that groups are durable that the catalog has not taken.
	ErrUnpublished = errors.New("log has unpublished groups")
	// ErrBehind says that the catalog has groups which the log has not.
	ErrBehind = errors.New("log is behind its catalog")
	// ErrActive says that a segment is still being written.
	ErrActive = errors.New("segment is not sealed")
	// ErrFenced says that another host writes this log now. What was not acknowledged
	// may be in the log or not; its successor knows.
	ErrFenced = errors.New("log was taken over by another host")
	// ErrHeld says that a segment stays because one before it does: a log on an object
	// store is reclaimed from its beginning.
	ErrHeld = errors.New("an earlier segment is still needed")
)

// HeldError is an ErrHeld that says how far the reclaim came.
type HeldError struct {
	Seq segment.Seq // the first that was asked for and stays
	Low segment.Seq // what was asked for below is gone
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("reclaim segment %s before %s: %v", e.Seq.ID(), e.Low.ID(), ErrHeld)
}

// Unwrap is ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }
