package planner

import (
	"context"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/planner/setting"
)

// limitTime puts statement_timeout on a statement. stop ends the watch and waits for
// it; it must be called.
func (s *session) limitTime(ctx context.Context) (limited context.Context, stop func()) {
	d := setting.Duration(s.values.Value("statement_timeout"))
	if d <= 0 {
		return ctx, func() {}
	}
	limited, cancel := context.WithCancelCause(ctx)
	fired, release := s.engine.deps.Clock.Timer(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-fired:
			cancel(pgwire.ErrStatementTimeout)
		case <-limited.Done():
		}
	}()
	return limited, func() {
		cancel(context.Canceled)
		<-done
		release()
	}
}
