package pgwire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/env"
)

// smallBytesMax bounds messages that hold a name at most, as in PostgreSQL.
const smallBytesMax = 10000

// step reads and serves one message. An error ends the session.
func (s *session) step() error {
	kind, n, err := s.await()
	if err != nil {
		return err
	}
	switch kind {
	case 'd', 'c', 'f': // left over from a COPY that failed
		return s.conn.discard(n)
	case 'X':
		return errDone
	}
	if n > smallBytesMax && strings.IndexByte("DECHS", kind) >= 0 {
		return errLength()
	}
	if n > s.conn.bodyMax && strings.IndexByte("QPBF", kind) >= 0 {
		return s.tooLong(kind, n)
	}
	body, err := s.conn.readBody(n)
	if err != nil {
		return err
	}
	if kind == 'S' {
		return s.sync(body)
	}
	if s.skipping {
		return nil
	}
	switch kind {
	case 'Q':
		return s.query(body)
	case 'P', 'B', 'D', 'E', 'C', 'H':
		return s.extended(kind, body)
	case 'F':
		return s.functionCall(body)
	}
	return fatal(codes.ProtocolViolation, "invalid frontend message type %d", kind)
}

// tooLong refuses a message that PostgreSQL would take, without keeping any of it: an error of its
// statement, and the session goes on.
func (s *session) tooLong(kind byte, n int) error {
	if err := s.conn.discard(n); err != nil || s.skipping {
		return err
	}
	err := pgerr.New(codes.ProgramLimitExceeded, "message of %d bytes exceeds the limit of %d", n, s.conn.bodyMax).
		WithHint("COPY FROM STDIN takes rows without a limit.")
	if kind == 'Q' || kind == 'F' {
		return s.finishQuery(context.Background(), err)
	}
	s.skipping = true
	return s.failedIn(context.Background(), err)
}

// await waits for the next message's header, as long as the session may idle.
func (s *session) await() (kind byte, n int, err error) {
	timeout := s.server.config.IdleTimeout
	if s.sql.Status() != Idle {
		timeout = s.server.config.IdleTxTimeout
	}
	if l, ok := s.sql.(IdleLimiter); ok {
		timeout = cmp.Or(l.IdleTimeout(), timeout)
	}
	deadline := time.Time{}
	if timeout > 0 {
		deadline = s.server.deps.Clock.Now().Add(timeout)
	}
	if err = s.dropCopy(deadline); err != nil {
		return 0, 0, err
	}
	for {
		kind, n, err = s.header(deadline)
		if !isTimeout(err) || !deadline.IsZero() && !s.server.deps.Clock.Now().Before(deadline) || s.endingError() != nil {
			break
		} // else it was woken
	}
	if err == nil {
		return kind, n, nil
	}
	switch {
	case isTimeout(err):
		if e := s.endingError(); e != nil {
			return 0, 0, e
		}
		if s.sql.Status() == Idle {
			return 0, 0, fatal("57P05", "terminating connection due to idle-session timeout")
		}
		return 0, 0, fatal("25P03", "terminating connection due to idle-in-transaction timeout")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return 0, 0, errDone
	}
	return 0, 0, err
}

// dropCopy skips what is on its way of a COPY that failed.
func (s *session) dropCopy(deadline time.Time) error {
	if s.copyLeft == 0 {
		return nil
	}
	_ = s.conn.tcp.SetReadDeadline(deadline) // fails on a closed socket only
	if err := s.endingError(); err != nil {
		return err
	}
	left := s.copyLeft
	s.copyLeft = 0
	return s.conn.discard(left)
}

// header reads the next message's header, once what has come meanwhile is told.
func (s *session) header(deadline time.Time) (kind byte, n int, err error) {
	s.wait(deadline)
	defer s.woken(deadline)
	// Looked at after the deadline was set: who ends the session sets these first and
	// the deadline then.
	if err := s.endingError(); err != nil {
		return 0, 0, err
	}
	if told, err := s.tellNotifications(); told || err != nil {
		if err = cmp.Or(err, s.conn.flush()); err != nil {
			return 0, 0, err
		}
	}
	return s.conn.readHeader()
}

// endingError is the reason to end now, nil when there is none.
func (s *session) endingError() error {
	if s.server.closing.Load() || s.ending.Load() != nil {
		return errAdminShutdown()
	}
	return nil
}

func errAdminShutdown() *pgerr.Error {
	return fatal(codes.AdminShutdown, "terminating connection due to administrator command")
}

// sync ends a sequence of the extended protocol.
func (s *session) sync(body []byte) error {
	failed := s.skipping
	s.skipping = false
	if err := (&reader{body: body}).end(); err != nil {
		failed = true
		if err := s.failed(err); err != nil {
			return err
		}
	}
	ctx, end := s.cancelable()
	err := s.endImplicit(ctx, failed)
	end()
	if err != nil {
		if err := s.failedIn(ctx, err); err != nil {
			return err
		}
	}
	return s.ready()
}

// endImplicit ends the implicit transaction, whose commit may have to wait. A statement error
// is returned for the caller to send.
func (s *session) endImplicit(ctx context.Context, failed bool) error { return s.sql.Sync(ctx, failed) }

// failed reports a statement's error to the client and the SQL session. It returns
// an error when the session is over.
func (s *session) failed(err error) error {
	return s.failedIn(context.Background(), err)
}

func (s *session) failedIn(ctx context.Context, err error) error {
	var lost *connError
	if errors.As(err, &lost) {
		return err
	}
	e := Translate(ctx, err)
	if e.Code == codes.Internal || e.Code == codes.DataCorrupted {
		s.server.deps.Log.Error("statement failed", "sqlstate", string(e.Code), "message", e.Message, env.KeyError, e.Cause)
	}
	if w, ok := s.sql.(StatementWatcher); ok {
		w.Failed(s.served.step, s.served.text, e)
	}
	if e.Severity == "FATAL" {
		return e
	}
	m := s.response(e) // before the error takes back the encoding
	s.sql.Fail()
	s.undone()
	if err := s.sendResponse(e, m); err != nil || !s.lost {
		return err
	}
	return fatal(codes.ProtocolViolation, "terminating connection because protocol synchronization was lost")
}

// undone has the client told of the settings that an error has taken back.
func (s *session) undone() {
	for name, value := range s.sql.Parameters() {
		s.change(name, value)
	}
}
