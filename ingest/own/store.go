package own

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
)

// ErrInDoubt means that a commit was interrupted when it was on its way into the log: it
// takes place, or not, and who asks later will see which.
var ErrInDoubt = errors.New("the commit was interrupted while it was being made durable")

// ErrTableGone means that a table was dropped, or has stopped, before the transaction came
// to be committed. Nothing of it takes place.
var ErrTableGone = errors.New("table is not there any more")

// ErrNoRoom means that the log, empty but for the transaction, has no room for it. Nothing
// of it takes place.
var ErrNoRoom = errors.New("transaction does not fit the log")

// ErrGivenUp means that a transaction was given to the log several times, each time in
// vain. Nothing of it takes place.
var ErrGivenUp = errors.New("transaction could not be made durable")

// triesMax is how often a transaction is given to the log: it may itself be what is wrong.
const triesMax = 10

// Changes are those of one transaction, in the order in which they apply.
type Changes interface {
	// Each hands over the batches, whose order tokens and ordinals count for nothing; they
	// are the callee's only during the call. It may be called several times, with the same
	// result, and not at the same time. Rows have the schema version that their table has
	// when the transaction ends.
	Each(f func(*change.Batch) error) error
}

// Deps are a Store's collaborators.
type Deps struct {
	Clock env.Clock
	Tasks env.Tasks
	// Settled is asked before transactions are given to the log: an error means that the next
	// host may find definitions which are undone here, beside which no rows may be written. The
	// stream begins anew then. Nil: that cannot be.
	Settled func(context.Context) error
}

// Store takes the transactions of sessions, and gives them to the source of the one
// pipeline that has their tables. Safe for concurrent use.
type Store struct {
	deps Deps

	mu struct {
		sync.Mutex
		// queue are the transactions that are not known to be durable, in commit order; the
		// first handed of them are given to the stream that runs.
		queue  []*entry
		handed int
		// newest is the greatest token given out, acked that of the newest that is durable.
		newest, acked int64
	}
	wake chan struct{}
}

// entry is a transaction in the queue.
type entry struct {
	changes Changes
	// token is its order token, 0 until it is given to a stream first.
	token int64
	// tries is how often it was the first that was given to a stream.
	tries int
	// settled is called once, when its fate is known.
	settled func()
	// left is why nobody waits for it any more: it is given up as soon as it is known not
	// to be in the log. Nil while somebody waits.
	left error
	done chan struct{}
	err  error // once done is closed
	// hold is set of a transaction that somebody else commits.
	hold *hold
}

// NewStore returns an empty store.
func NewStore(deps Deps) *Store {
	return &Store{deps: deps, wake: make(chan struct{}, 1)}
}

// Commit makes a transaction durable and visible, or returns why nothing of it takes
// place. It waits for as long as the log does; when ctx ends, a transaction that has not
// been given to the log is taken back, and the cause returned. Else the error wraps
// ErrInDoubt, and the transaction goes on. settled is called when its fate is known, which
// may be after Commit has returned, from any goroutine; it must not call back.
func (s *Store) Commit(ctx context.Context, c Changes, settled func()) error {
	e := &entry{changes: c, settled: settled, done: make(chan struct{})}
	s.mu.Lock()
	s.mu.queue = append(s.mu.queue, e)
	s.mu.Unlock()
	signal(s.wake)
	if mutant.On(mutant.OwnToldEarly) {
		return nil
	}
	err := s.deps.Tasks.Wait(ctx, 0, e.done)
	if err == nil {
		return e.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.mu.queue, e)
	switch {
	case at < 0: // its fate was known at the same moment
		return e.err
	case at >= s.mu.handed && e.token == 0:
		if mutant.On(mutant.OwnTakenBackKept) {
			return err
		}
		s.mu.queue = slices.Delete(s.mu.queue, at, at+1)
		e.settle(err)
		return err
	}
	e.left = err
	return fmt.Errorf("%w: %w", ErrInDoubt, err)
}

// settle tells the transaction's fate. Callers hold the store's mutex.
func (e *entry) settle(err error) {
	e.err = err
	close(e.done)
	if e.settled != nil {
		e.settled()
	}
}

// resume is told where a stream begins: what is at or below is durable, and the rest is
// not in the log, whatever the stream before was given.
func (s *Store) resume(from int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mutant.On(mutant.OwnSettledAnew) {
		from = max(from, s.mu.newest)
	}
	s.settleTo(from)
	if s.mu.handed > 0 {
		if s.mu.queue[0].tries++; s.mu.queue[0].tries >= triesMax {
			s.giveUp(0, ErrGivenUp)
		}
	}
	s.mu.handed = 0
	if !mutant.On(mutant.OwnTokensAnew) {
		s.mu.newest = max(s.mu.newest, from)
	}
	s.mu.queue = slices.DeleteFunc(s.mu.queue, func(e *entry) bool {
		if e.left != nil {
			e.settle(e.left)
		}
		return e.left != nil
	})
}

// settleTo settles the transactions up to a token. Callers hold the mutex.
func (s *Store) settleTo(token int64) {
	s.mu.acked = max(s.mu.acked, token)
	n := 0
	for n < len(s.mu.queue) && s.mu.queue[n].token != 0 && s.mu.queue[n].token <= token {
		s.mu.queue[n].settle(nil)
		n++
	}
	s.mu.queue = slices.Delete(s.mu.queue, 0, n)
	s.mu.handed = max(0, s.mu.handed-n)
}

// next hands the next transaction to the stream, nil when there is none. It has a token
// greater than all before.
func (s *Store) next() *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.handed == len(s.mu.queue) {
		return nil
	}
	e := s.mu.queue[s.mu.handed]
	if e.token == 0 {
		s.mu.newest++
		e.token = s.mu.newest
	}
	s.mu.handed++
	return e
}

// refuse settles a transaction that was handed to the stream and that the stream does not
// take.
func (s *Store) refuse(e *entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.mu.queue, e); at >= 0 {
		s.giveUp(at, err)
	}
}

// giveUp settles a transaction that was handed to a stream. Callers hold the mutex.
func (s *Store) giveUp(at int, err error) {
	e := s.mu.queue[at]
	s.mu.queue = slices.Delete(s.mu.queue, at, at+1)
	s.mu.handed--
	e.settle(err)
}

// durable says that everything up to a token is durable and visible.
func (s *Store) durable(token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settleTo(token)
}

// signal wakes who waits on ch, of size 1, or whoever comes next.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
