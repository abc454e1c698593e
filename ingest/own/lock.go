package own

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// ErrDeadlock means that sessions wait for each other in a circle; the one that closed it is told,
// with a DeadlockError.
var ErrDeadlock = errors.New("deadlock detected")

// DeadlockError is ErrDeadlock with the circle, a line for each session.
type DeadlockError struct{ Circle []string }

// Error implements error.
func (*DeadlockError) Error() string { return ErrDeadlock.Error() }

// Unwrap makes it an ErrDeadlock.
func (*DeadlockError) Unwrap() error { return ErrDeadlock }

// Locks are those on tables that transactions change: one transaction a table. Who waits
// gets a table in turn. Safe for concurrent use.
type Locks struct {
	tasks env.Tasks
	// graph is who waits for whom, also for other locks than these, which it guards.
	graph circle.Graph
	// tables are guarded by graph.
	tables map[change.TableID]*lock
	name   func(change.TableID) string
}

// Graph is who waits for whom, for other locks to join. name is how the table of a lock is told of
// from now on.
func (l *Locks) Graph(name func(change.TableID) string) *circle.Graph {
	l.graph.Lock()
	defer l.graph.Unlock()
	l.name = name
	return &l.graph
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
	held  []change.TableID // guarded by locks.graph
	// parted says that the session goes on without it; guarded by locks.graph.
	parted bool
	// waits is the table that it waits for, and got is signalled when it has it.
	waits change.TableID
	got   chan struct{}
}

// NewLocks returns locks that nobody holds.
func NewLocks(tasks env.Tasks) *Locks {
	return &Locks{
		tasks: tasks, tables: map[change.TableID]*lock{},
		name: func(id change.TableID) string { return fmt.Sprintf("table %d", id) },
	}
}

// Holder returns a holder of nothing, of the session pid, which has no other that holds or waits.
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
	l.graph.Lock()
	defer l.graph.Unlock()
	for _, table := range slices.Sorted(maps.Keys(l.tables)) {
		at := l.tables[table]
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
	l.graph.Lock()
	at := l.tables[table]
	switch {
	case at == nil:
		l.tables[table] = &lock{holder: h}
		h.held = append(h.held, table)
		l.graph.Unlock()
		return nil
	case at.holder == h:
		l.graph.Unlock()
		return nil
	}
	if c := l.graph.Begin(h.pid, l.waitLocked(table, at)); c != nil {
		l.graph.Unlock()
		return &DeadlockError{c}
	}
	at.queue = append(at.queue, h)
	h.waits = table
	l.graph.Unlock()
	err := l.tasks.Wait(ctx, 0, h.got)
	if err == nil {
		return nil
	}
	l.graph.Lock()
	defer l.graph.Unlock()
	if h.waits == 0 { // it got the table at the same moment, and gives it back with the rest
		<-h.got
		return err
	}
	at.queue = slices.DeleteFunc(at.queue, func(w *Holder) bool { return w == h })
	h.waits = 0
	l.graph.End(h.pid)
	return err
}

// waitLocked is the wait for a table: who waits for it waits for its holder, in the end.
func (l *Locks) waitLocked(table change.TableID, at *lock) circle.Wait {
	return circle.Wait{
		Lock: func() string { return "ExclusiveLock on " + l.name(table) },
		Blockers: func() []uint32 {
			if at.holder.parted {
				return nil
			}
			return []uint32{at.holder.pid}
		},
	}
}

// Part says that its session goes on without it, while its commit is made: it waits for nothing
// any more, and so is in no circle, whatever the session waits for.
func (h *Holder) Part() {
	h.locks.graph.Lock()
	defer h.locks.graph.Unlock()
	h.parted = true
}

// Mark is how many tables it holds, to come back to.
func (h *Holder) Mark() int {
	h.locks.graph.Lock()
	defer h.locks.graph.Unlock()
	return len(h.held)
}

// Release gives all tables back, each to who has waited for it longest. It may be called
// again, from any goroutine.
func (h *Holder) Release() { h.ReleaseTo(0) }

// ReleaseTo gives back the tables that it has got since a mark, and returns which.
func (h *Holder) ReleaseTo(mark int) []change.TableID {
	l := h.locks
	l.graph.Lock()
	defer l.graph.Unlock()
	gone := h.held[min(mark, len(h.held)):]
	h.held = slices.Clip(h.held[:len(h.held)-len(gone)])
	for _, table := range gone {
		at := l.tables[table]
		if len(at.queue) == 0 {
			delete(l.tables, table)
			continue
		}
		next := at.queue[0]
		at.holder, at.queue = next, at.queue[1:]
		next.held, next.waits = append(next.held, table), 0
		l.graph.End(next.pid)
		next.got <- struct{}{}
	}
	return gone
}
