package spill

import "errors"

// ErrFull means that the store has reached its limit, or that the disk is too full for
// it to go on. What it holds is of no use then.
var ErrFull = errors.New("no room to keep a large transaction of the source until it ends")

// ErrDamaged means that a file does not hold what was written to it.
var ErrDamaged = errors.New("spilled transaction is damaged")

// ErrProtocol means that blocks were not opened and closed in turn.
var ErrProtocol = errors.New("spilled transaction is out of order")
