package lake

import "errors"

// ErrNoSnapshot says that a snapshot is not, or no longer, in the table.
var ErrNoSnapshot = errors.New("no such lake snapshot")

// ErrConflict says that the table has moved on since the commit's base.
var ErrConflict = errors.New("lake table has moved on")

// ErrOutcomeUnknown says that a commit may or may not have happened. Its files must
// stay; Find tells later.
var ErrOutcomeUnknown = errors.New("outcome of lake commit is unknown")

// ErrNoWidening says that a column's type cannot become the wanted one.
var ErrNoWidening = errors.New("no conversion between column types")

// ErrFenced says that the table belongs to a writer of a later epoch (F1).
var ErrFenced = errors.New("lake table is fenced against this writer")
