package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// limiter spreads rows over time. Safe for concurrent use.
type limiter struct {
	clock     env.Clock
	perSecond int64 // 0: no limit

	mu struct {
		sync.Mutex
		// next is when the rows let through so far have had their time.
		next time.Time
	}
}

// wait returns when rows more have had their time.
func (l *limiter) wait(ctx context.Context, rows int) error {
	if l.perSecond <= 0 {
		return nil
	}
	now := l.clock.Now()
	l.mu.Lock()
	if l.mu.next.Before(now) {
		l.mu.next = now
	}
	l.mu.next = l.mu.next.Add(time.Duration(rows) * time.Second / time.Duration(l.perSecond))
	pause := l.mu.next.Sub(now)
	l.mu.Unlock()
	return l.clock.Sleep(ctx, pause)
}
