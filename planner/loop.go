package planner

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/wal/env"
)

// limitTime puts statement_timeout on a statement. stop ends the watch and waits for
// it; it must be called.
func (s *session) limitTime(ctx context.Context) (limited context.Context, stop func()) {
	return withTimeout(ctx, s.engine.deps.Clock, setting.Duration(s.values.Value("statement_timeout")), pgwire.ErrStatementTimeout)
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
