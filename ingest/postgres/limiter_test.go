package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// TestLimiter gives rows their time, and takes another limit into account while it waits.
func TestLimiter(t *testing.T) {
	clock := env.NewFake(time.Unix(1000, 0), 1)
	var rate atomic.Int64
	rate.Store(100)
	l := &limiter{clock: clock, perSecond: rate.Load}
	waiting, done := context.WithCancelCause(t.Context())
	go func() { done(l.wait(context.Background(), 1000)) }()
	began := clock.Now()
	for clock.AwaitTimers(waiting, 1) == nil {
		if clock.Since(began) >= 3*time.Second {
			rate.Store(0)
		}
		clock.Advance(time.Second)
	}
	if took := clock.Since(began); took != 4*time.Second {
		t.Errorf("1000 rows took %v", took)
	}
}
