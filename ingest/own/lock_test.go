package own_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/skipprd/skipprd/ingest/own"
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
		a, b, c, d := l.Holder(1), l.Holder(1), l.Holder(1), l.Holder(1)
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
			lock(t, l.Holder(1), table).want(t, "all released", nil)
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
				holders = append(holders, l.Holder(1))
				lock(t, holders[i], change.TableID(i+1)).want(t, "free", nil)
			}
			var waiting []*waiter
			for i := range n - 1 {
				w := lock(t, holders[i], change.TableID(i+2))
				w.waits(t, "held by the next")
				waiting = append(waiting, w)
			}
			outside := lock(t, l.Holder(1), 1)
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
		a, b := l.Holder(1), l.Holder(1)
		lock(t, a, 1).want(t, "free", nil)
		w := lock(t, b, 1)
		w.cancel(context.Canceled)
		a.Release()
		synctest.Wait()
		<-w.done
		b.Release()
		lock(t, l.Holder(1), 1).want(t, "given back", nil)
	})
}

// What was got since a mark goes back, in turn, and nothing else; a table held before the mark
// and asked for again stays.
func TestReleaseToMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		a := l.Holder(1)
		lock(t, a, 1).want(t, "free", nil)
		mark := a.Mark()
		lock(t, a, 1).want(t, "held by itself", nil)
		lock(t, a, 2).want(t, "free", nil)
		lock(t, a, 3).want(t, "free", nil)
		first, second, third := lock(t, l.Holder(1), 1), lock(t, l.Holder(1), 2), lock(t, l.Holder(1), 2)
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
		lock(t, l.Holder(1), 3).want(t, "released", nil)
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
