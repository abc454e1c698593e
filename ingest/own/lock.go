package own

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// ErrDeadlock means that transactions wait for each other in a circle; the one that closed
// it is told.
var ErrDeadlock = errors.New("deadlock detected")

// Locks are those on tables that transactions change: one transaction a table. Who waits
// gets a table in turn. Safe for concurrent use.
type Locks struct {
	tasks env.Tasks

	mu struct {
		sync.Mutex
		tables map[change.TableID]*lock
	}
}

// lock is the lock of one table, while somebody holds it.
type lock struct {
	holder *Holder
	queue  []*Holder
}

// Holder is a transaction as a holder of locks. Its methods but Release are called by one
// goroutine.
type Holder struct {
	locks *Locks
	pid   uint32
	held  []change.TableID // guarded by locks.mu
	// waits is the table that it waits for, and got is signalled when it has it.
	waits change.TableID
	got   chan struct{}
}

// NewLocks returns locks that nobody holds.
func NewLocks(tasks env.Tasks) *Locks {
	l := &Locks{tasks: tasks}
	l.mu.tables = map[change.TableID]*lock{}
	return l
}

// Holder returns a holder of nothing, of the session pid.
func (l *Locks) Holder(pid uint32) *Holder {
	return &Holder{locks: l, pid: pid, got: make(chan struct{}, 1)}
}

// LockInfo is a lock that a session has or, if it is not granted, waits for.
type LockInfo struct {
	Table   change.TableID
	PID     uint32
	Granted bool
}

// List is what is locked, by table, and of each who has it and then who waits, in turn.
func (l *Locks) List() (out []LockInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, table := range slices.Sorted(maps.Keys(l.mu.tables)) {
		at := l.mu.tables[table]
		out = append(out, LockInfo{table, at.holder.pid, true})
		for _, w := range at.queue {
			out = append(out, LockInfo{table, w.pid, false})
		}
	}
	return out
}

// Lock waits until the table is the holder's, ErrDeadlock, or the end of ctx, whose cause
// it returns. A table that it holds already is no wait.
func (h *Holder) Lock(ctx context.Context, table change.TableID) error {
	l := h.locks
	l.mu.Lock()
	at := l.mu.tables[table]
	switch {
	case at == nil:
		l.mu.tables[table] = &lock{holder: h}
		h.held = append(h.held, table)
		l.mu.Unlock()
		return nil
	case at.holder == h:
		l.mu.Unlock()
		return nil
	}
	if l.circleLocked(h, at) {
		l.mu.Unlock()
		return ErrDeadlock
	}
	at.queue = append(at.queue, h)
	h.waits = table
	l.mu.Unlock()
	err := l.tasks.Wait(ctx, 0, h.got)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.waits == 0 { // it got the table at the same moment, and gives it back with the rest
		<-h.got
		return err
	}
	at.queue = slices.DeleteFunc(at.queue, func(w *Holder) bool { return w == h })
	h.waits = 0
	return err
}

// circleLocked says whether h would wait for itself if it waited for a lock: who waits for
// a lock waits for its holder, in the end.
func (l *Locks) circleLocked(h *Holder, at *lock) bool {
	for at.holder != h {
		if at.holder.waits == 0 {
			return false
		}
		at = l.mu.tables[at.holder.waits]
	}
	return true
}

// Mark is how many tables it holds, to come back to.
func (h *Holder) Mark() int {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	return len(h.held)
}

// Release gives all tables back, each to who has waited for it longest. It may be called
// again, from any goroutine.
func (h *Holder) Release() { h.ReleaseTo(0) }

// ReleaseTo gives back the tables that it has got since a mark, and returns which.
func (h *Holder) ReleaseTo(mark int) []change.TableID {
	l := h.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := h.held[min(mark, len(h.held)):]
	h.held = slices.Clip(h.held[:len(h.held)-len(gone)])
	for _, table := range gone {
		at := l.mu.tables[table]
		if len(at.queue) == 0 {
			delete(l.mu.tables, table)
			continue
		}
		next := at.queue[0]
		at.holder, at.queue = next, at.queue[1:]
		next.held, next.waits = append(next.held, table), 0
		next.got <- struct{}{}
	}
	return gone
}
