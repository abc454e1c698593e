package duckdb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// A stream whose reader has asked for nothing during idleMin, as that of a cursor
// between fetches or of a client that does not read, loses its place to a query that
// waits, which looks for one every idleCheck.
const (
	idleMin   = 200 * time.Millisecond
	idleCheck = 100 * time.Millisecond
)

// places are the places of queries that run. Safe for concurrent use.
type places struct {
	clock env.Clock
	taken chan struct{} // one token a held place
	mu    struct {
		sync.Mutex
		held map[*seat]struct{}
	}
}

// seat is one query's place, held or lost. Its fields are guarded by places.mu.
type seat struct {
	held bool
	// idleSince is when its reader was last given something; zero while it waits.
	idleSince time.Time
}

func newPlaces(n int, clock env.Clock) *places {
	s := &places{clock: clock, taken: make(chan struct{}, n)}
	s.mu.held = map[*seat]struct{}{}
	return s
}

// enter waits until p has a place, if it has none, and keeps it until idle or leave.
func (s *places) enter(ctx context.Context, p *seat) error {
	s.mu.Lock()
	p.idleSince = time.Time{}
	held := p.held
	s.mu.Unlock()
	if held {
		return nil
	}
	select {
	case s.taken <- struct{}{}:
		s.give(p)
		return nil
	default:
	}
	for {
		fired, stop := s.clock.Timer(idleCheck)
		select {
		case s.taken <- struct{}{}:
			stop()
			s.give(p)
			return nil
		case <-fired:
			if s.takeOver(p) {
				return nil
			}
		case <-ctx.Done():
			stop()
			return fmt.Errorf("wait for an engine slot: %w", context.Cause(ctx))
		}
	}
}

func (s *places) give(p *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.held = true
	s.mu.held[p] = struct{}{}
}

// takeOver gives p the place that has been idle for longest, if there is one.
func (s *places) takeOver(p *seat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest *seat
	for o := range s.mu.held {
		if !o.idleSince.IsZero() && (longest == nil || o.idleSince.Before(longest.idleSince)) {
			longest = o
		}
	}
	if longest == nil || s.clock.Since(longest.idleSince) < idleMin {
		return false
	}
	longest.held, p.held = false, true
	delete(s.mu.held, longest)
	s.mu.held[p] = struct{}{}
	return true
}

// idle says that the reader of p has been given something.
func (s *places) idle(p *seat) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.idleSince = now
}

// leave gives the place up, if p has it still.
func (s *places) leave(p *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.held {
		p.held = false
		delete(s.mu.held, p)
		<-s.taken
	}
}
