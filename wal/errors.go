package wal

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/protocol"
)

var (
	// ErrPoisoned says that a write or sync failed. What the caller appended is not
	// committed, unless this process ends before the log has healed. Before it
	// appends again the caller calls Log.Settle and then looks up its position.
	ErrPoisoned = protocol.ErrPoisoned
	// ErrUnpublished says that groups are durable which the catalog did not take;
	// they will be published. The caller proceeds as after ErrPoisoned.
	ErrUnpublished = protocol.ErrUnpublished
	// ErrActive says that a segment cannot be reclaimed since it is not sealed.
	ErrActive = protocol.ErrActive
	// ErrBehind says that the catalog knows groups which the log lost.
	ErrBehind = protocol.ErrBehind
	// ErrFenced says that another host has taken the log over; this one is closed for
	// good. What was not acknowledged may be in the log.
	ErrFenced = protocol.ErrFenced
	// ErrHeld says that a segment cannot be reclaimed before an earlier one. The error is a
	// *HeldError, which says how far the reclaim came.
	ErrHeld = protocol.ErrHeld
	// ErrClosed says that the log is closed. What was appended is not committed.
	ErrClosed = errors.New("log is closed")
	// ErrFull says that there is no space for another segment. Nothing was written;
	// the log goes on when space returns.
	ErrFull = errors.New("log is full")
	// ErrQuota is the ErrFull of a log that has used up its quota: what fills it is its
	// own, while a full disk may be full of something else.
	ErrQuota = fmt.Errorf("%w up to its quota", ErrFull)
	// ErrBusy says that nothing was taken since too much is under way; ask again later.
	ErrBusy = errors.New("log is busy")
	// ErrSliceLost says that a slice was reclaimed.
	ErrSliceLost = errors.New("slice was reclaimed")
	// ErrLocked says that another process has the log open.
	ErrLocked = errors.New("log is in use by another process")
)

// HeldError is an ErrHeld: what was to be reclaimed below its Low is gone, the rest
// stays.
type HeldError = protocol.HeldError
