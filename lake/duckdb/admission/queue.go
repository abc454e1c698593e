// Package admission decides which queries run in the engine, and which wait.
//
// There are two lanes. Light queries, which need next to no memory, have places of their own and
// never wait for heavy ones. Of the heavy ones as many run as the engine's memory is meant for;
// more wait in the order in which they came. One that ran out of memory in the company of others
// runs again by itself (Again): it waits in front of those that have not begun, until the others
// have ended, and others wait until it has. So what fails fails by itself, and nothing starves:
// who waits in front has been admitted before.
package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/wal/env"
)

// A seat whose reader has asked for nothing during idleMin, as that of a cursor between fetches
// or of a client that does not read, loses its place to a query that waits, which looks for one
// every idleCheck.
const (
	idleMin   = 200 * time.Millisecond
	idleCheck = 100 * time.Millisecond
)

// Limits are how many queries of each lane run at once; both are at least 1.
type Limits struct{ Heavy, Light int }

// Queue is the places of queries that run, and the queries that wait for one. Safe for
// concurrent use.
type Queue struct {
	clock env.Clock
	mu    struct {
		sync.Mutex
		heavy, light lane
		// alone is the seat that no other heavy one may join.
		alone *Seat
	}
}

// lane is one kind of places.
type lane struct {
	limit   int
	held    map[*Seat]struct{}
	waiting []*waiter
}

type waiter struct {
	seat    *Seat
	granted chan struct{} // closed when the seat holds a place
}

// Seat is one query's place, held or not. Light is set before the first Enter; all else is the
// queue's.
type Seat struct {
	Light bool

	held bool
	// idleSince is when its reader was last given something; zero while it waits for more.
	idleSince time.Time
	// company says that another heavy query ran while it did; alone that none may.
	company, alone bool
}

// New makes a queue.
func New(l Limits, clock env.Clock) *Queue {
	q := &Queue{clock: clock}
	q.mu.heavy = lane{limit: max(l.Heavy, 1), held: map[*Seat]struct{}{}}
	q.mu.light = lane{limit: max(l.Light, 1), held: map[*Seat]struct{}{}}
	return q
}

// Enter waits until s has a place, unless it has one, and keeps it until Leave; a seat that is
// idle may lose it, and gets another at the next Enter. When ctx ends first the error wraps its
// cause, and s has no place.
func (q *Queue) Enter(ctx context.Context, s *Seat) error {
	q.mu.Lock()
	s.idleSince = time.Time{}
	if s.held {
		q.mu.Unlock()
		return nil
	}
	w := &waiter{seat: s, granted: make(chan struct{})}
	q.queueLocked(w)
	q.grantLocked()
	held := s.held
	q.mu.Unlock()
	if held {
		return nil
	}
	event := waits.EngineSlot
	if s.alone {
		event = waits.EngineMemory
	}
	defer waits.On(ctx, event)()
	for {
		fired, stop := q.clock.Timer(idleCheck)
		select {
		case <-w.granted:
			stop()
			return nil
		case <-fired:
			q.mu.Lock()
			q.reapLocked(q.laneOf(s))
			q.grantLocked()
			q.mu.Unlock()
		case <-ctx.Done():
			stop()
			q.giveUp(w)
			return fmt.Errorf("wait for an engine slot: %w", context.Cause(ctx))
		}
	}
}

// Idle says that the reader of s has been given something.
func (q *Queue) Idle(s *Seat) {
	now := q.clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s.idleSince = now
}

// Leave gives the place up, if s has it still.
func (q *Queue) Leave(s *Seat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaveLocked(s)
	q.grantLocked()
}

// Again gives the place up after the query ran out of memory; at the next Enter s waits until no
// other heavy query runs. It returns false when none did: then it needs more than there is, and
// nothing helps.
func (q *Queue) Again(s *Seat) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !s.Light && !s.company {
		return false
	}
	q.leaveLocked(s)
	s.Light, s.alone, s.company = false, true, false
	q.grantLocked()
	return true
}

// Held is how many places are held.
func (q *Queue) Held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.heavy.held) + len(q.mu.light.held)
}

func (q *Queue) laneOf(s *Seat) *lane {
	if s.Light {
		return &q.mu.light
	}
	return &q.mu.heavy
}

// queueLocked lets w wait: behind all, or, if it is to be alone, behind those that are to be too.
func (q *Queue) queueLocked(w *waiter) {
	l := q.laneOf(w.seat)
	at := len(l.waiting)
	if w.seat.alone {
		at = 0
		for at < len(l.waiting) && l.waiting[at].seat.alone {
			at++
		}
	}
	l.waiting = slices.Insert(l.waiting, at, w)
}

// grantLocked gives free places to those who wait longest.
func (q *Queue) grantLocked() {
	for l := &q.mu.light; len(l.waiting) > 0 && len(l.held) < l.limit; {
		l.grant()
	}
	for l := &q.mu.heavy; len(l.waiting) > 0 && len(l.held) < l.limit && q.mu.alone == nil; {
		s := l.waiting[0].seat
		if s.alone {
			if len(l.held) > 0 {
				return
			}
			q.mu.alone = s
		}
		l.grant()
		if len(l.held) > 1 {
			for o := range l.held {
				o.company = true
			}
		}
	}
}

// grant gives a place to who waits in front.
func (l *lane) grant() {
	w := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	w.seat.held = true
	l.held[w.seat] = struct{}{}
	close(w.granted)
}

// reapLocked takes places away from seats that are idle: as many as who waits in front needs.
func (q *Queue) reapLocked(l *lane) {
	if len(l.waiting) == 0 {
		return
	}
	for len(l.held) >= l.limit || l == &q.mu.heavy && len(l.held) > 0 && (l.waiting[0].seat.alone || q.mu.alone != nil) {
		var longest *Seat
		for o := range l.held {
			if !o.idleSince.IsZero() && (longest == nil || o.idleSince.Before(longest.idleSince)) {
				longest = o
			}
		}
		if longest == nil || q.clock.Since(longest.idleSince) < idleMin {
			return
		}
		q.leaveLocked(longest)
	}
}

func (q *Queue) leaveLocked(s *Seat) {
	if !s.held {
		return
	}
	s.held = false
	delete(q.laneOf(s).held, s)
	if q.mu.alone == s {
		q.mu.alone = nil
	}
}

// giveUp ends a wait.
func (q *Queue) giveUp(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.laneOf(w.seat)
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	q.leaveLocked(w.seat) // it may have been given a place meanwhile
	q.grantLocked()
}
