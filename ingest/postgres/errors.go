package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/ingest"
)

// ErrSlotLost means that the pipeline's replication slot is gone or invalid, or has
// moved past what is durable here: changes are missing for good and the tables need a
// new copy.
var ErrSlotLost error = lost("replication slot is lost")

// lost is an error that is ingest.ErrLost, too.
type lost string

// Error says what is lost.
func (l lost) Error() string { return string(l) }

// Is says whether target is ingest.ErrLost.
func (lost) Is(target error) bool { return target == ingest.ErrLost }

// ErrSlotInUse means that another process reads the pipeline's replication slot.
var ErrSlotInUse = errors.New("replication slot is in use")

// ErrOtherServer means that the connection leads to another server or database than
// the one in which the pipeline began.
var ErrOtherServer = errors.New("connection leads to another server")

// ErrDiverged means that the server's history has left what is durable here: it was
// promoted before it had all that we have, or restored from a copy.
var ErrDiverged error = lost("source has another history")

// ErrNotSetUp means that Setup has not run on this source.
var ErrNotSetUp = errors.New("source is not set up")

// Problem is one thing at the source that is in the way.
type Problem struct {
	What string // a clause
	Fix  string // the SQL, or the sentence, that helps
}

// SetupError lists everything that is in the way at once.
type SetupError struct {
	Problems []Problem
}

// Error has a line per problem, with what fixes it.
func (e *SetupError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.What
		if p.Fix != "" {
			lines[i] += " (fix: " + p.Fix + ")"
		}
	}
	return strings.Join(lines, "; ")
}

// The SQLSTATEs of a source that make a difference to us.
const (
	codeUndefinedColumn   = "42703"
	codeUndefinedTable    = "42P01"
	codeUndefinedObject   = "42704"
	codeInvalidObject     = "42P17"
	codePrivilege         = "42501"
	codeReadOnly          = "25006"
	codeObjectInUse       = "55006"
	codeNotInPrerequisite = "55000"
	codeLockTimeout       = "55P03"
)

// code is the SQLSTATE of a server's error, "" for any other error.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
