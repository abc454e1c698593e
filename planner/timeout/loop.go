// Package timeout ends contexts after a time of an injected clock.
package timeout

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// With ends ctx with cause after d; 0 is no limit. stop ends the watch and waits for it; it
// must be called.
func With(ctx context.Context, clock env.Clock, d time.Duration, cause error) (limited context.Context, stop func()) {
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
