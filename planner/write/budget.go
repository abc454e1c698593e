package write

import (
	"sync/atomic"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Budget bounds what the temporary tables of all sessions take together. Safe for concurrent
// use.
type Budget struct {
	max  int64
	used atomic.Int64
}

// Bytes that rows of temporary tables take.
const (
	TempBytesMax    = 256 << 20 // of a session
	TempBytesMaxAll = 1 << 30   // of all
)

// NewBudget returns one of which nothing is used.
func NewBudget(bytes int64) *Budget { return &Budget{max: bytes} }

// take takes bytes, all or none.
func (b *Budget) take(n int64) error {
	if b.used.Add(n) <= b.max {
		return nil
	}
	b.used.Add(-n)
	return pgerr.New(codes.OutOfMemory, "temporary tables take too much memory").
		WithDetail("Those of all sessions may take %d MiB together.", b.max>>20).
		WithHint("DROP temporary tables that are not needed, or try again later.")
}

func (b *Budget) give(n int64) { b.used.Add(-n) }

// Used is how much is taken.
func (b *Budget) Used() int64 { return b.used.Load() }

func tooMuchTemp() *pgerr.Error {
	return pgerr.New(codes.ProgramLimitExceeded, "temporary tables of the session take too much").
		WithDetail("They may take %d MiB, with what a transaction has changed in them.", TempBytesMax>>20).
		WithHint("Make a table instead, and DROP TABLE it in the end.")
}
