package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/wal/env"
)

// table is a queue with the seats of one test.
type table struct {
	*testing.T
	q *Queue
}

func run(t *testing.T, l Limits, f func(t *table)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock, _ := env.System()
		f(&table{T: t, q: New(l, clock)})
	})
}

// enter starts to enter; the channel has the outcome.
func (t *table) enter(ctx context.Context, s *Seat) <-chan error {
	done := make(chan error, 1)
	go func() { done <- t.q.Enter(ctx, s) }()
	synctest.Wait()
	return done
}

func (t *table) seated(who string, done <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", who, err)
		}
	default:
		t.Errorf("%s waits", who)
	}
}

func (t *table) waiting(who string, done <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		t.Errorf("%s does not wait: %v", who, err)
	default:
	}
}

func TestHeavyOnesWaitInOrder(t *testing.T) {
	run(t, Limits{Heavy: 1, Light: 1}, func(t *table) {
		ctx := t.Context()
		a, b, c := &Seat{}, &Seat{}, &Seat{}
		t.seated("a", t.enter(ctx, a))
		forB := t.enter(ctx, b)
		forC := t.enter(ctx, c)
		t.waiting("b", forB)
		t.seated("light", t.enter(ctx, &Seat{Light: true}))
		t.q.Leave(a)
		t.seated("b", forB)
		t.waiting("c", forC)
		t.q.Leave(b)
		t.seated("c", forC)
		t.seated("c again", t.enter(ctx, c))
		t.q.Leave(c)
		t.q.Leave(c)
		if n := t.q.Held(); n != 1 {
			t.Errorf("%d places are held by one light query", n)
		}
	})
}

func TestLightOnesWaitForLightOnes(t *testing.T) {
	run(t, Limits{Heavy: 1, Light: 1}, func(t *table) {
		first := &Seat{Light: true}
		t.seated("first", t.enter(t.Context(), first))
		second := t.enter(t.Context(), &Seat{Light: true})
		t.waiting("second", second)
		t.seated("heavy", t.enter(t.Context(), &Seat{}))
		t.q.Leave(first)
		t.seated("second", second)
	})
}

// TestOutOfMemoryRunsAlone: a query that ran out of memory beside others waits for their end,
// and those that come meanwhile for its own.
func TestOutOfMemoryRunsAlone(t *testing.T) {
	run(t, Limits{Heavy: 2, Light: 1}, func(t *table) {
		ctx := t.Context()
		a, b, c := &Seat{}, &Seat{}, &Seat{}
		t.seated("a", t.enter(ctx, a))
		t.seated("b", t.enter(ctx, b))
		forC := t.enter(ctx, c)
		if !t.q.Again(a) {
			t.Error("a ran beside b, and may not run again")
		}
		t.seated("c has the place of a", forC)
		forA := t.enter(ctx, a)
		d := &Seat{}
		forD := t.enter(ctx, d)
		if !t.q.Again(b) {
			t.Error("b ran beside a, and may not run again")
		}
		forB := t.enter(ctx, b)
		t.waiting("a", forA)
		t.q.Leave(c)
		t.seated("a", forA)
		t.waiting("b", forB)
		t.waiting("d", forD)
		t.seated("light", t.enter(ctx, &Seat{Light: true}))
		if t.q.Again(a) {
			t.Error("a ran alone, and may run again")
		}
		t.q.Leave(a)
		t.seated("b", forB)
		t.waiting("d", forD)
		t.q.Leave(b)
		t.seated("d", forD)
		if t.q.Again(d) {
			t.Error("d ran alone, and may run again")
		}
	})
}

func TestLightOnesMayRunAlone(t *testing.T) {
	run(t, Limits{Heavy: 2, Light: 2}, func(t *table) {
		light, heavy := &Seat{Light: true}, &Seat{}
		t.seated("light", t.enter(t.Context(), light))
		t.seated("heavy", t.enter(t.Context(), heavy))
		if !t.q.Again(light) {
			t.Error("it may not run again")
		}
		again := t.enter(t.Context(), light)
		t.waiting("light", again)
		t.q.Leave(heavy)
		t.seated("light", again)
		if t.q.Again(light) {
			t.Error("it ran alone, and may run again")
		}
	})
}

func TestIdleSeatsGiveWay(t *testing.T) {
	run(t, Limits{Heavy: 1, Light: 1}, func(t *table) {
		ctx := t.Context()
		cursor, query := &Seat{}, &Seat{}
		t.seated("cursor", t.enter(ctx, cursor))
		t.q.Idle(cursor)
		forQuery := t.enter(ctx, query)
		t.waiting("query", forQuery)
		time.Sleep(idleMin + idleCheck)
		t.seated("query", forQuery)
		forCursor := t.enter(ctx, cursor)
		time.Sleep(2 * idleMin)
		t.waiting("cursor", forCursor)
		t.q.Leave(query)
		t.seated("cursor", forCursor)

		alone := &Seat{Light: true}
		t.seated("light", t.enter(ctx, alone))
		t.q.Again(alone)
		forAlone := t.enter(ctx, alone)
		t.q.Idle(cursor)
		time.Sleep(idleMin + idleCheck)
		t.seated("alone, beside an idle cursor", forAlone)
		t.q.Idle(alone)
		time.Sleep(idleMin)
		t.seated("who comes while it idles", func() <-chan error {
			done := t.enter(ctx, query)
			time.Sleep(idleCheck)
			return done
		}())
	})
}

func TestWaitsEnd(t *testing.T) {
	run(t, Limits{Heavy: 1, Light: 1}, func(t *table) {
		a, b := &Seat{}, &Seat{}
		t.seated("a", t.enter(t.Context(), a))
		var w watch
		cause := errors.New("time is up")
		ctx, cancel := context.WithCancelCause(waits.With(t.Context(), &w))
		forB := t.enter(ctx, b)
		if w.now != waits.EngineSlot {
			t.Errorf("waits for %v", w.now)
		}
		cancel(cause)
		if err := <-forB; !errors.Is(err, cause) {
			t.Errorf("err = %v", err)
		}
		if w.now != (waits.Event{}) {
			t.Errorf("waits for %v still", w.now)
		}
		t.q.Leave(a)
		if n := t.q.Held(); n != 0 {
			t.Errorf("%d places are held", n)
		}
	})
}

type watch struct{ now waits.Event }

func (w *watch) Waiting(e waits.Event) { w.now = e }
