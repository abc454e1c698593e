// Package signal does what pg_cancel_backend and pg_terminate_backend do.
package signal

import (
	"context"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/env"
)

// Target is a session that may be signalled, with the role that it was opened for.
type Target struct {
	PID  uint32
	User string
}

// Sender is who signals, and how. Used by one goroutine.
type Sender struct {
	Rights *right.Book
	// Role is who asks, by its id.
	Role uint32
	// Find finds a session; false when there is none.
	Find func(pid uint32) (Target, bool)
	// Send cancels what a session runs, or ends it; false when there is no such session.
	Send  func(pid uint32, terminate bool) bool
	Clock env.Clock
}

// Call is one call. Wait, of one that terminates, is how long it waits for the session's end; 0
// does not.
type Call struct {
	PID       int64
	Terminate bool
	Wait      time.Duration
}

// endCheck is how often a session that was told to end is looked for.
const endCheck = 10 * time.Millisecond

// Do makes a call. done is its result; a notice, if there is one, is for the client. An error is
// a *pgerr.Error, or that of ctx.
func (s *Sender) Do(ctx context.Context, c Call) (done bool, notice *pgerr.Error, err error) {
	if c.Wait < 0 {
		return false, nil, pgerr.New(codes.NumericValueOutOfRange, "\"timeout\" must not be negative")
	}
	pid := uint32(c.PID)
	t, ok := s.Find(pid)
	if !ok || int64(pid) != c.PID {
		return false, s.unknown(c), nil
	}
	if err := s.may(t, c.Terminate); err != nil {
		return false, nil, err
	}
	if !s.Send(pid, c.Terminate) {
		return false, s.unknown(c), nil
	}
	if !c.Terminate || c.Wait == 0 {
		return true, nil, nil
	}
	for until := s.Clock.Now().Add(c.Wait); ; {
		if _, there := s.Find(pid); !there {
			return true, nil, nil
		}
		left := until.Sub(s.Clock.Now())
		if left <= 0 {
			return false, warning("backend with PID %d did not terminate within %d milliseconds", c.PID, c.Wait.Milliseconds()), nil
		}
		if err := s.Clock.Sleep(ctx, min(left, endCheck)); err != nil {
			return false, nil, err
		}
	}
}

func (s *Sender) unknown(c Call) *pgerr.Error {
	return warning("PID %d is not a PostgreSQL backend process", c.PID)
}

func warning(format string, args ...any) *pgerr.Error {
	w := pgerr.New("01000", format, args...)
	w.Severity = "WARNING"
	return w
}

// may says whether the role may cancel or end a session.
func (s *Sender) may(t Target, terminate bool) error {
	if s.Rights.Superuser(s.Role) {
		return nil
	}
	r := s.Rights.Named(t.User)
	if r != nil && r.Superuser {
		return pgerr.New(codes.InsufficientPrivilege, "must be a superuser to %s", superWords[terminate])
	}
	if r == nil || !s.Rights.HasRole(s.Role, r.OID) && !s.Rights.HasRole(s.Role, right.SignalBackend) {
		return pgerr.New(codes.InsufficientPrivilege,
			"must be a member of the role whose %s is being %s or member of pg_signal_backend", words[terminate][0], words[terminate][1])
	}
	return nil
}

// superWords and words are PostgreSQL's in the errors of may.
var superWords = map[bool]string{false: "cancel superuser query", true: "terminate superuser process"}

var words = map[bool][2]string{false: {"query", "canceled"}, true: {"process", "terminated"}}
