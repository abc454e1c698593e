// Package advisory keeps advisory locks: numbers that sessions lock for each other and that
// nothing else minds. Locks are the server's, an Owner is a session's side. They end with
// their session, or with their transaction.
//
// Who waits is served in turn: a request waits behind those before it that it conflicts
// with. One that would close a circle of sessions that wait for each other fails at once.
package advisory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Key is what is locked. Sub is 1 for a key of 64 bits, 2 for one of two times 32.
type Key struct {
	A, B uint32
	Sub  uint16
}

// Big is the key of one bigint, Pair that of two integers.
func Big(n int64) Key { return Key{A: uint32(uint64(n) >> 32), B: uint32(n), Sub: 1} }

// Pair is the key of two integers.
func Pair(a, b int32) Key { return Key{A: uint32(a), B: uint32(b), Sub: 2} }

// Mode is how a key is locked.
type Mode uint8

// The modes.
const (
	Exclusive Mode = iota
	Share
)

// String is PostgreSQL's name of the mode.
func (m Mode) String() string {
	if m == Share {
		return "ShareLock"
	}
	return "ExclusiveLock"
}

// locksMax bounds the locks of a session.
const locksMax = 100000

// Locks are the locks of a server. Safe for concurrent use.
type Locks struct {
	database uint32
	// mu is who waits for whom, also for other locks than these, which it guards.
	mu   *circle.Graph
	keys map[Key]*entry
}

// New makes a server's locks, of the database of an OID. Sessions that wait for other locks are in
// graph too.
func New(database uint32, graph *circle.Graph) *Locks {
	return &Locks{database: database, mu: graph, keys: map[Key]*entry{}}
}

// entry is a key that somebody has or wants.
type entry struct {
	holders []*hold
	waiters []*waiter
}

// hold is what an owner has of a key, by mode: how often for the session, and how often for
// the transaction.
type hold struct {
	owner       *Owner
	session, tx [2]int
}

func (h *hold) has(m Mode) bool { return h.session[m]+h.tx[m] > 0 }

type waiter struct {
	owner *Owner
	key   Key
	mode  Mode
	// ready is closed once the lock is the owner's.
	ready   chan struct{}
	granted bool
	tx      bool
}

// Owner is a session's side. Used by the session's goroutine; what others look at is under
// the locks' mutex.
type Owner struct {
	locks *Locks
	pid   uint32
	holds map[Key]*hold
	// taken are the locks of the transaction in order, for savepoints.
	taken   []taken
	waiting *waiter
}

type taken struct {
	key  Key
	mode Mode
}

// Owner makes the side of the session pid.
func (l *Locks) Owner(pid uint32) *Owner {
	return &Owner{locks: l, pid: pid, holds: map[Key]*hold{}}
}

func conflicts(a, b Mode) bool { return a == Exclusive || b == Exclusive }

// blockers are those for whom a request has to wait: who holds the key, and, unless its
// owner has some of it already, who waits for it before.
func (e *entry) blockers(o *Owner, m Mode, before int) (out []*Owner) {
	mine := false
	for _, h := range e.holders {
		if h.owner == o {
			mine = true
			continue
		}
		if h.has(Exclusive) || m == Exclusive {
			out = append(out, h.owner)
		}
	}
	if mine {
		return out
	}
	for _, w := range e.waiters[:before] {
		if w.owner != o && conflicts(w.mode, m) {
			out = append(out, w.owner)
		}
	}
	return out
}

// Lock takes a lock, for the transaction if tx says so, and waits for it until ctx ends.
func (o *Owner) Lock(ctx context.Context, k Key, m Mode, tx bool) error {
	w, err := o.request(k, m, tx)
	if w == nil || err != nil {
		return err
	}
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		o.giveUp(w)
		return context.Cause(ctx)
	}
}

// request takes the lock, or begins to wait for it.
func (o *Owner) request(k Key, m Mode, tx bool) (*waiter, error) {
	l := o.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok, err := o.tryLocked(k, m, tx); ok || err != nil {
		return nil, err
	}
	e := l.keys[k]
	w := &waiter{owner: o, key: k, mode: m, ready: make(chan struct{}), tx: tx}
	o.waiting = w
	e.waiters = append(e.waiters, w)
	if circle := l.mu.Begin(o.pid, l.waitLocked(w)); circle != nil {
		e.waiters = e.waiters[:len(e.waiters)-1]
		o.waiting = nil
		return nil, pgerr.New("40P01", "deadlock detected").WithDetail("%s", strings.Join(circle, "\n")).
			WithHint("See server log for query details.")
	}
	return w, nil
}

// waitLocked is a wait as the graph has it.
func (l *Locks) waitLocked(w *waiter) circle.Wait {
	return circle.Wait{
		Lock: func() string {
			return fmt.Sprintf("%s on advisory lock [%d,%d,%d,%d]", w.mode, l.database, w.key.A, w.key.B, w.key.Sub)
		},
		Blockers: func() (out []uint32) {
			for _, by := range l.waitsForLocked(w) {
				out = append(out, by.pid)
			}
			return out
		},
	}
}

func (l *Locks) waitsForLocked(w *waiter) []*Owner {
	e := l.keys[w.key]
	return e.blockers(w.owner, w.mode, slices.Index(e.waiters, w))
}

// Try takes a lock if nobody has to be waited for.
func (o *Owner) Try(k Key, m Mode, tx bool) (bool, error) {
	o.locks.mu.Lock()
	defer o.locks.mu.Unlock()
	return o.tryLocked(k, m, tx)
}

func (o *Owner) tryLocked(k Key, m Mode, tx bool) (bool, error) {
	e := o.locks.keys[k]
	if e == nil {
		e = &entry{}
		o.locks.keys[k] = e
	}
	if len(e.blockers(o, m, len(e.waiters))) > 0 {
		return false, nil
	}
	if len(o.holds) >= locksMax && o.holds[k] == nil {
		o.locks.cleanLocked(k)
		return false, pgerr.New(codes.OutOfMemory, "out of shared memory").
			WithDetail("A session may have %d advisory locks.", locksMax)
	}
	o.grantLocked(e, k, m, tx)
	return true, nil
}

func (o *Owner) grantLocked(e *entry, k Key, m Mode, tx bool) {
	h := o.holds[k]
	if h == nil {
		h = &hold{owner: o}
		o.holds[k] = h
		e.holders = append(e.holders, h)
	}
	if tx {
		h.tx[m]++
		o.taken = append(o.taken, taken{k, m})
	} else {
		h.session[m]++
	}
}

// giveUp ends a wait, also if the lock has come meanwhile.
func (o *Owner) giveUp(w *waiter) {
	l := o.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.granted {
		if w.tx {
			o.taken = o.taken[:len(o.taken)-1]
		}
		o.dropLocked(w.key, w.mode, w.tx)
		return
	}
	o.waiting = nil
	l.mu.End(o.pid)
	e := l.keys[w.key]
	e.waiters = slices.DeleteFunc(e.waiters, func(other *waiter) bool { return other == w })
	l.serveLocked(w.key)
}

// dropLocked gives back one lock, which the owner has.
func (o *Owner) dropLocked(k Key, m Mode, tx bool) {
	h := o.holds[k]
	if tx {
		h.tx[m]--
	} else {
		h.session[m]--
	}
	if !h.has(Exclusive) && !h.has(Share) {
		delete(o.holds, k)
		e := o.locks.keys[k]
		e.holders = slices.DeleteFunc(e.holders, func(other *hold) bool { return other == h })
	}
	o.locks.serveLocked(k)
}

// serveLocked gives a key to who waits for it and need not any more.
func (l *Locks) serveLocked(k Key) {
	e := l.keys[k]
	for i := 0; i < len(e.waiters); {
		w := e.waiters[i]
		if len(e.blockers(w.owner, w.mode, i)) > 0 {
			i++
			continue
		}
		e.waiters = slices.Delete(e.waiters, i, i+1)
		w.owner.grantLocked(e, k, w.mode, w.tx)
		w.owner.waiting, w.granted = nil, true
		l.mu.End(w.owner.pid)
		close(w.ready)
	}
	l.cleanLocked(k)
}

func (l *Locks) cleanLocked(k Key) {
	if e := l.keys[k]; e != nil && len(e.holders)+len(e.waiters) == 0 {
		delete(l.keys, k)
	}
}

// Unlock gives back a lock of the session; false means that it has none.
func (o *Owner) Unlock(k Key, m Mode) bool {
	o.locks.mu.Lock()
	defer o.locks.mu.Unlock()
	h := o.holds[k]
	if h == nil || h.session[m] == 0 {
		return false
	}
	o.dropLocked(k, m, false)
	return true
}

// UnlockAll gives back all locks of the session.
func (o *Owner) UnlockAll() {
	o.locks.mu.Lock()
	defer o.locks.mu.Unlock()
	for k, h := range o.holds {
		for m, n := range h.session {
			for range n {
				o.dropLocked(k, Mode(m), false)
			}
		}
	}
}

// Mark is how many locks the transaction has taken.
func (o *Owner) Mark() int { return len(o.taken) }

// Release gives back the locks that the transaction has taken behind a mark.
func (o *Owner) Release(mark int) {
	o.locks.mu.Lock()
	defer o.locks.mu.Unlock()
	for _, t := range o.taken[mark:] {
		o.dropLocked(t.key, t.mode, true)
	}
	o.taken = o.taken[:mark]
}

// Close gives back everything.
func (o *Owner) Close() {
	o.Release(0)
	o.UnlockAll()
}

// Info is a lock as pg_locks shows it.
type Info struct {
	Key
	Mode    Mode
	PID     uint32
	Granted bool
}

// List is what is locked, and what is waited for.
func (l *Locks) List() (out []Info) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.keys {
		for _, h := range e.holders {
			for m := range Share + 1 {
				if h.has(m) {
					out = append(out, Info{k, m, h.owner.pid, true})
				}
			}
		}
		for _, w := range e.waiters {
			out = append(out, Info{k, w.mode, w.owner.pid, false})
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) })
	return out
}
