package planner

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/querylog"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/wal/env"
)

// limitTime puts statement_timeout on a statement. stop ends the watch and waits for
// it; it must be called.
func (s *session) limitTime(ctx context.Context) (limited context.Context, stop func()) {
	return withTimeout(ctx, s.engine.deps.Clock, setting.Duration(s.values.Value("statement_timeout")), pgwire.ErrStatementTimeout)
}

var _ pgwire.StatementWatcher = (*session)(nil)

// Began implements pgwire.StatementWatcher.
func (s *session) Began(step, text string) {
	if s.log.Log != nil {
		s.log.Began(step, text)
	}
}

// Ended implements pgwire.StatementWatcher.
func (s *session) Ended(step, text string, took time.Duration) {
	if s.log.Log != nil {
		s.log.Ended(step, text, took)
	}
}

// Failed implements pgwire.StatementWatcher.
func (s *session) Failed(step, text string, e *pgerr.Error) {
	if s.log.Log != nil {
		s.log.Failed(step, text, e)
	}
}

// opened has the session log, if there is a log.
func (s *session) opened() {
	if d := &s.engine.deps; d.Log != nil {
		st := &s.startup
		s.log = querylog.Session{Log: d.Log.With("pid", st.PID, "user", st.User, "database", st.Database, "remote", st.RemoteAddr), Values: s.values}
		s.began = d.Clock.Now()
		s.log.Opened()
	}
}

// closed logs the session's end.
func (s *session) closed() {
	if s.log.Log != nil {
		s.log.Closed(s.engine.deps.Clock.Since(s.began))
	}
}

// withTimeout ends ctx with cause after d; 0 is no limit. stop ends the watch and waits
// for it; it must be called.
func withTimeout(ctx context.Context, clock env.Clock, d time.Duration, cause error) (limited context.Context, stop func()) {
	if d <= 0 {
		return ctx, func() {}
	}
	limited, cancel := context.WithCancelCause(ctx)
	fired, release := clock.Timer(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-fired:
			cancel(cause)
		case <-limited.Done():
		}
	}()
	return limited, func() {
		cancel(context.Canceled)
		<-done
		release()
	}
}
