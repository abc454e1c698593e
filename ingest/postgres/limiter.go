package postgres

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// limiter spreads rows over time. Safe for concurrent use.
type limiter struct {
	clock env.Clock
	// perSecond is how many rows there may be now; 0: no limit.
	perSecond func() int64

	mu struct {
		sync.Mutex
		// next is when the rows let through so far have had their time.
		next time.Time
	}
}

// wait returns when rows more have had their time. Another limit counts within a second.
func (l *limiter) wait(ctx context.Context, rows int) error {
	for rows > 0 {
		perSecond := l.perSecond()
		if perSecond <= 0 {
			return nil
		}
		some := int(min(int64(rows), perSecond))
		rows -= some
		now := l.clock.Now()
		l.mu.Lock()
		if l.mu.next.Before(now) {
			l.mu.next = now
		}
		l.mu.next = l.mu.next.Add(time.Duration(some) * time.Second / time.Duration(perSecond))
		pause := l.mu.next.Sub(now)
		l.mu.Unlock()
		if err := l.clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// rowsPerSecond is the limit of a backfill as it is now.
func (s *Source) rowsPerSecond() int64 {
	if s.option == nil {
		return s.cfg.rowsPerSecond
	}
	n, err := strconv.ParseInt(s.option("backfill_rows_per_second"), 10, 64)
	if err != nil {
		return 0 // not set, or not by us
	}
	return n
}
