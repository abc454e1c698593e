package ingest

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
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

// byteMeter is a Measurer of positions that are numbers of bytes.
type byteMeter struct{}

func (byteMeter) Distance(from, to change.Position) int64 {
	return max(0, int64(number(to)-number(from)))
}

func (byteMeter) PositionOf(int64) change.Position { return "" }

func number(at change.Position) int {
	n, _ := strconv.Atoi(string(at))
	return n
}

// idleLog counts groups, and has no more.
type idleLog struct{ groups int }

func (l *idleLog) Append(context.Context, *change.Group) (wal.CommittedGroup, error) {
	l.groups++
	return wal.CommittedGroup{}, nil
}

func (l *idleLog) Close() error { return nil }

// acked is a Source that is only acknowledged.
type acked struct {
	Source
	at []change.Position
}

func (a *acked) Ack(at change.Position) { a.at = append(a.at, at) }

// TestIdlePosition: the position of a stream without changes of ours becomes durable, and
// is acknowledged then, every five seconds; where others write much, after a second. A
// source that says no distances has its positions by time.
func TestIdlePosition(t *testing.T) {
	const tick = 100 * time.Millisecond
	for name, c := range map[string]struct {
		meter  Measurer
		bytes  int // per tick
		groups int // in a minute
	}{
		"rests":               {meter: byteMeter{}, groups: 0},
		"little":              {meter: byteMeter{}, bytes: 1000, groups: 12},
		"a megabyte a second": {meter: byteMeter{}, bytes: 1 << 20 / 10, groups: 54}, // 11 ticks each
		"more":                {meter: byteMeter{}, bytes: 100 << 20, groups: 60},
		"no distances":        {bytes: 100 << 20, groups: 12},
	} {
		t.Run(name, func(t *testing.T) {
			clock := env.NewFake(time.Unix(1000, 0), 1)
			log, source := &idleLog{}, &acked{}
			out := slog.New(slog.DiscardHandler)
			progress := newProgress(func(a, b change.Position) int { return number(a) - number(b) }, "1", nil)
			progress.measurer = c.meter
			sink := newBatcher(t.Context(), batcherConfig{clock: clock, limit: 1 << 20})
			a := &appender{
				sink: sink, progress: progress, source: source, live: newLive(clock), clock: clock, fail: env.NoFailpoints,
				writer:       &writer{log: log, clock: clock, live: newLive(clock), out: out},
				idleInterval: Config{}.withDefaults().IdleInterval, savedAt: clock.Now(), advanced: make(chan struct{}, 1),
			}
			for i := range 600 {
				if c.bytes > 0 {
					if err := sink.Idle(change.Position(strconv.Itoa(2 + i*c.bytes))); err != nil {
						t.Fatal(err)
					}
				}
				clock.Advance(tick)
				for more := true; more; {
					var err error
					if more, _, err = a.step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if n := len(source.at); n > 0 && source.at[n-1] != progress.durable() {
					t.Fatalf("%s is acknowledged, %s durable", source.at[n-1], progress.durable())
				}
			}
			if log.groups != c.groups || len(source.at) != c.groups {
				t.Errorf("%d groups and %d acknowledgements in a minute, want %d", log.groups, len(source.at), c.groups)
			}
		})
	}
}
