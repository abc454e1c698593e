package protocol

import "errors"

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
)
