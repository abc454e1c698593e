package own_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// waiter is a holder that asks for a table in a goroutine of its own.
type waiter struct {
	*own.Holder
	done   chan error
	cancel context.CancelCauseFunc
}

func lock(t *testing.T, h *own.Holder, table change.TableID) *waiter {
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &waiter{h, make(chan error, 1), cancel}
	go func() { w.done <- h.Lock(ctx, table) }()
	synctest.Wait()
	return w
}

func (w *waiter) want(t *testing.T, what string, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-w.done:
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	default:
		t.Errorf("%s: it waits", what)
	}
}

func (w *waiter) waits(t *testing.T, what string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-w.done:
		t.Errorf("%s: it does not wait: %v", what, err)
	default:
	}
}

func newLocks() *own.Locks {
	clock, _ := env.System()
	return own.NewLocks(env.Goroutines(clock))
}

// A table goes from one to the next in the order in which they asked; who gives up is
// passed over.
func TestLocksAreTakenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		a, b, c, d := l.Holder(101), l.Holder(102), l.Holder(103), l.Holder(104)
		lock(t, a, 1).want(t, "free", nil)
		lock(t, a, 1).want(t, "held by itself", nil)
		lock(t, b, 2).want(t, "another table", nil)
		second, third, fourth := lock(t, b, 1), lock(t, c, 1), lock(t, d, 1)
		second.waits(t, "held")
		cause := errors.New("lock timeout")
		third.cancel(cause)
		third.want(t, "given up", cause)
		a.Release()
		second.want(t, "released", nil)
		fourth.waits(t, "behind")
		b.Release()
		fourth.want(t, "released", nil)
		d.Release()
		d.Release()
		for _, table := range []change.TableID{1, 2} {
			lock(t, l.Holder(105), table).want(t, "all released", nil)
		}
	})
}

// Who would close a circle is told, whatever its length; the others go on when it lets go.
func TestDeadlock(t *testing.T) {
	for n := 2; n <= 4; n++ {
		synctest.Test(t, func(t *testing.T) {
			l := newLocks()
			var holders []*own.Holder
			for i := range n {
				holders = append(holders, l.Holder(uint32(i+1)))
				lock(t, holders[i], change.TableID(i+1)).want(t, "free", nil)
			}
			var waiting []*waiter
			for i := range n - 1 {
				w := lock(t, holders[i], change.TableID(i+2))
				w.waits(t, "held by the next")
				waiting = append(waiting, w)
			}
			outside := lock(t, l.Holder(107), 1)
			outside.waits(t, "in no circle")
			lock(t, holders[n-1], 1).want(t, "closes the circle", own.ErrDeadlock)
			holders[n-1].Release()
			for i := n - 2; i >= 0; i-- {
				waiting[i].want(t, "in turn", nil)
				holders[i].Release()
			}
			outside.want(t, "at last", nil)
		})
	}
}

// Who is given a table at the moment when it gives up has it, and gives it back.
func TestLockIsGivenAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		a, b := l.Holder(108), l.Holder(109)
		lock(t, a, 1).want(t, "free", nil)
		w := lock(t, b, 1)
		w.cancel(context.Canceled)
		a.Release()
		synctest.Wait()
		<-w.done
		b.Release()
		lock(t, l.Holder(110), 1).want(t, "given back", nil)
	})
}

// What was got since a mark goes back, in turn, and nothing else; a table held before the mark
// and asked for again stays.
func TestReleaseToMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		a := l.Holder(111)
		lock(t, a, 1).want(t, "free", nil)
		mark := a.Mark()
		lock(t, a, 1).want(t, "held by itself", nil)
		lock(t, a, 2).want(t, "free", nil)
		lock(t, a, 3).want(t, "free", nil)
		first, second, third := lock(t, l.Holder(112), 1), lock(t, l.Holder(113), 2), lock(t, l.Holder(114), 2)
		if gone := a.ReleaseTo(mark); !slices.Equal(gone, []change.TableID{2, 3}) || a.Mark() != mark {
			t.Errorf("gave back %v and holds %d", gone, a.Mark())
		}
		second.want(t, "released", nil)
		third.waits(t, "behind")
		first.waits(t, "held before the mark")
		if gone := a.ReleaseTo(mark); len(gone) > 0 {
			t.Errorf("gave back %v again", gone)
		}
		lock(t, a, 3).want(t, "again", nil)
		a.Release()
		first.want(t, "released", nil)
		lock(t, l.Holder(115), 3).want(t, "released", nil)
	})
}

// What is locked is listed with who waits for it, in turn.
func TestLocksAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		a, b, c := l.Holder(7), l.Holder(8), l.Holder(9)
		lock(t, a, 2).want(t, "free", nil)
		lock(t, c, 1).want(t, "free", nil)
		lock(t, b, 2).waits(t, "held")
		lock(t, c, 2).waits(t, "held")
		want := []own.LockInfo{{1, 9, true}, {2, 7, true}, {2, 8, false}, {2, 9, false}}
		if got := l.List(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		a.Release()
		b.Release()
		c.Release()
		synctest.Wait()
		if got := l.List(); len(got) > 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// Who goes on while its commit is made, and waits for it, or for who waits for that commit, is in
// no circle.
func TestPartedHolderIsInNoCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		committing, next, other := l.Holder(1), l.Holder(1), l.Holder(2)
		lock(t, committing, 1).want(t, "free", nil)
		lock(t, other, 2).want(t, "free", nil)
		behind := lock(t, other, 1)
		behind.waits(t, "held")
		committing.Part()
		after := lock(t, next, 2)
		after.waits(t, "held by who waits for the commit")
		committing.Release()
		behind.want(t, "committed", nil)
		other.Release()
		after.want(t, "released", nil)
		next.Release()
	})
}

// A circle goes through locks of another kind in the same graph, and says who waits for what.
func TestDeadlockAcrossKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		a := l.Holder(1)
		lock(t, a, 1).want(t, "free", nil)
		g := l.Graph(func(id change.TableID) string { return fmt.Sprintf("relation %d", id) })
		g.Lock()
		closed := g.Begin(1, circle.Wait{Lock: func() string { return "another lock" }, Blockers: func() []uint32 { return []uint32{2} }})
		g.Unlock()
		if closed != nil {
			t.Fatal(closed)
		}
		err := l.Holder(2).Lock(context.Background(), 1)
		var deadlock *own.DeadlockError
		want := []string{"Process 2 waits for ExclusiveLock on relation 1; blocked by process 1.", "Process 1 waits for another lock; blocked by process 2."}
		if !errors.As(err, &deadlock) || !slices.Equal(deadlock.Circle, want) {
			t.Errorf("%v", err)
		}
	})
}
