package ingest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// ErrTableStopped means that a builder was asked for a table that has stopped in
// this stream.
var ErrTableStopped = errors.New("table is stopped")

// ErrUnknownTable means that a source delivered a change of a table that it was not
// asked for.
var ErrUnknownTable = errors.New("table is not part of the stream")

// ReasonRowUnknown ends the reason of a table that stopped because a row which an update
// changed is not here, so that what the update left out is not known.
const ReasonRowUnknown = "the row it is of is not here"

// ErrNotRunning means that what was asked needs a running pipeline.
var ErrNotRunning = errors.New("pipeline is not running")

// ErrSourceUnavailable means that the external system did not answer or refused us:
// the wrapped error says why.
var ErrSourceUnavailable = errors.New("source is unavailable")

// ErrLost means that changes of the source are missing for good: no later session of the
// pipeline can go on, until its tables are copied anew.
var ErrLost = errors.New("changes are missing for good")

// SourceError is what an external system, or the way to it, said. It is
// ErrSourceUnavailable, too.
type SourceError struct {
	Message string // a clause for the source's user: "could not connect to the source: …"
	Cause   error  // the rest, for the log
}

// Error renders the cause.
func (e *SourceError) Error() string { return e.Cause.Error() }

// Unwrap returns the sentinel and the cause.
func (e *SourceError) Unwrap() []error { return []error{ErrSourceUnavailable, e.Cause} }

// ErrBadSource means that a connection's kind has no source, or that an option of it
// has a wrong value.
var ErrBadSource = errors.New("connection cannot be used")

// BadSourceError is ErrBadSource with the reason.
type BadSourceError struct {
	Connection string
	Cause      error
}

// Error names the connection.
func (e *BadSourceError) Error() string { return e.Message() + ": " + e.Cause.Error() }

// Message is the error without its cause.
func (e *BadSourceError) Message() string {
	return fmt.Sprintf("connection %s cannot be used", quote.Name(e.Connection))
}

// Unwrap returns the sentinel and the cause.
func (e *BadSourceError) Unwrap() []error { return []error{ErrBadSource, e.Cause} }

// TableError says that one table cannot go on, while its source can. A source wraps
// it in errors of Backfill.Plan and Backfill.Read; the table stops alone.
type TableError struct {
	Reason string // a clause: "column \"x\" is gone"
	Hint   string // a sentence naming what helps, "" if nothing is known
	// Anew says that only the copy is void: it begins from the start by itself, and the
	// table does not stop.
	Anew bool
	// Resync says of a change of columns or key that a new copy takes it in: the table gets
	// one by itself, unless the pipeline has on_schema_change = stop.
	Resync bool
}

// Error renders the reason.
func (e *TableError) Error() string { return "table cannot go on: " + e.Reason }

// TransactionError says that a transaction of the source is larger than the log has room
// for. Trying again does not help before there is more.
type TransactionError struct {
	Bytes int64 // of it that were in the log
}

// Error renders the limit and what helps.
func (e *TransactionError) Error() string {
	size := fmt.Sprintf("%d MiB", e.Bytes>>20)
	if e.Bytes < 1<<20 {
		size = fmt.Sprintf("%d bytes", e.Bytes)
	}
	return fmt.Sprintf("the log is full with %s of one transaction of the source, which has not ended; give the log "+
		"more space and ENABLE the pipeline, or ALTER PIPELINE … RESET, which copies the tables anew and begins after it",
		size)
}

// WaitingError says that a pipeline does not stream yet because its source waits for
// something. It goes on by itself.
type WaitingError struct {
	Reason string // a clause
}

// Error renders the reason.
func (e *WaitingError) Error() string { return "pipeline starts later: " + e.Reason }

// sourceError marks err as coming from the external system.
func sourceError(verb string, err error) error {
	return fmt.Errorf("%s: %w: %w", verb, ErrSourceUnavailable, err)
}

// ofTable says of an error which came while the source was asked about one table alone that it
// is that table's: a source that says which of its conditions it is (SQLSTATE) has answered,
// unless that is of the connection, its rights, resources or the server's state.
func ofTable(err error) bool {
	var said interface{ SQLState() string }
	if !errors.As(err, &said) || len(said.SQLState()) != 5 {
		return false
	}
	switch said.SQLState()[:2] {
	case "08", "25", "28", "3D", "53", "57", "58":
		return false
	}
	return true
}

// reasonOf is err as a pipeline shows it: what a source said in words for its user, else
// all of it but that the source is unavailable, which is said by every layer.
func reasonOf(err error) string {
	if said := (*SourceError)(nil); errors.As(err, &said) {
		return said.Message
	}
	return strings.ReplaceAll(err.Error(), ErrSourceUnavailable.Error()+": ", "")
}
