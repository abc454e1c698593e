package ingest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// fullLog has no room for its first appends.
type fullLog struct {
	full, appends int
	err           error
}

func (l *fullLog) Append(context.Context, *change.Group) (wal.CommittedGroup, error) {
	if l.appends++; l.appends <= l.full {
		return wal.CommittedGroup{}, l.err
	}
	return wal.CommittedGroup{}, nil
}

func (l *fullLog) Close() error { return nil }

// promptClock does not sleep.
type promptClock struct{ *env.Fake }

func (c promptClock) Sleep(_ context.Context, d time.Duration) error {
	c.Advance(d)
	return nil
}

// TestAppendToFullLog waits for room, unless the log stays full although nothing but the
// open transaction is in it. What else there was may have gone since the append failed.
func TestAppendToFullLog(t *testing.T) {
	for name, c := range map[string]struct {
		full    int     // appends that fail
		stuck   []int64 // what is found after each, the last one ever after
		appends int
		large   bool
		disk    bool // it is the disk that is full, not the quota
	}{
		"room after compactions":               {full: 5, stuck: []int64{0}, appends: 6},
		"room made since the append failed":    {full: 1, stuck: []int64{100}, appends: 2},
		"room made since one, others in again": {full: 4, stuck: []int64{100, 0, 100}, appends: 4, large: true},
		"stays full":                           {full: 9, stuck: []int64{100}, appends: 2, large: true},
		"stays full in the end":                {full: 9, stuck: []int64{0, 0, 100}, appends: 4, large: true},
		"others fill the disk":                 {full: 9, stuck: []int64{100}, appends: 10, disk: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := &fullLog{full: c.full, err: wal.ErrQuota}
			if c.disk {
				log.err = wal.ErrFull
			}
			clock := promptClock{env.NewFake(time.Unix(1000, 0), 1)}
			w := &writer{
				log: log, clock: clock, live: newLive(clock), out: slog.New(slog.DiscardHandler),
				stuck: func() (int64, error) { return c.stuck[min(log.appends, len(c.stuck))-1], nil },
			}
			_, err := w.append(context.Background(), &change.Group{})
			var large *TransactionError
			if errors.As(err, &large) != c.large || err != nil && !c.large {
				t.Errorf("append: %v", err)
			}
			if log.appends != c.appends {
				t.Errorf("%d appends, want %d", log.appends, c.appends)
			}
		})
	}
}
