package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// errDead is what everything says to a process that has crashed.
var errDead = errors.New("process is dead")

// task is an activity: a coroutine that the world resumes when it is ready.
type task struct {
	*coroutine
	id   int
	name string
	p    *process // nil: of the world
	// ready says whether a parked task can go on; nil: it can. deadline is when it can in
	// any case, zero: never.
	ready    func() bool
	deadline time.Time
	ended    bool
	// misread says that it was given wrong bytes: of a file that gives wrong bytes twice in a
	// row nobody can tell whether it is still the same file.
	misread bool
	// stopped: a script has it stay where it is. fault happens to it there when it goes on.
	stopped bool
	fault   Fault
	// unwinds counts how often a dead task has asked for something since.
	unwinds int
}

// unwindMost bounds what a dead task may do before it is cut off.
const unwindMost = 1000

// cutOff unwinds a dead task that does not end by itself.
type cutOff struct{}

// spawn starts an activity. It runs when the world resumes it.
func (w *World) spawn(p *process, name string, fn func()) *task {
	w.taskCount++
	t := &task{id: w.taskCount, name: name, p: p}
	if n := len(w.idle); n > 0 {
		t.coroutine, w.idle = w.idle[n-1], w.idle[:n-1]
	} else {
		t.coroutine = newCoroutine()
	}
	t.coroutine.job = func() {
		defer func() {
			t.ended = true
			if r := recover(); r != nil && r != any(cutOff{}) {
				w.fail("PANIC", fmt.Sprintf("%s: %v\n%s", name, r, debug.Stack()))
			}
		}()
		fn()
	}
	w.tasks = append(w.tasks, t)
	return t
}

// coroutine runs one job after the other: making one, and growing its stack, takes longer
// than most jobs.
type coroutine struct {
	job   func()
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

func newCoroutine() *coroutine {
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			c.job()
		}
	})
	return c
}

// coroutines are idle ones, between runs.
var coroutines struct {
	sync.Mutex
	idle [][]*coroutine
}

// coroutinesMost bounds what a run leaves to the next.
const coroutinesMost = 64

// borrowCoroutines takes what an earlier run has left.
func (w *World) borrowCoroutines() {
	coroutines.Lock()
	defer coroutines.Unlock()
	if n := len(coroutines.idle); n > 0 {
		w.idle, coroutines.idle = coroutines.idle[n-1], coroutines.idle[:n-1]
	}
}

// returnCoroutines leaves them to the next run.
func (w *World) returnCoroutines() {
	for len(w.idle) > coroutinesMost {
		w.idle[len(w.idle)-1].stop()
		w.idle = w.idle[:len(w.idle)-1]
	}
	coroutines.Lock()
	defer coroutines.Unlock()
	coroutines.idle = append(coroutines.idle, w.idle)
	w.idle = nil
}

func (t *task) dead() bool { return t.p != nil && t.p.dead }

// isReady says whether t can go on now.
func (w *World) isReady(t *task) bool {
	switch {
	case t.ended, t.p != nil && t.p.host.paused && !t.p.dead, t.stopped && !t.dead():
		return false
	case t.ready == nil, t.dead():
		return true
	case !t.deadline.IsZero() && !w.now.Before(t.deadline):
		return true
	}
	return t.ready()
}

// resume lets t run to its next yield.
func (w *World) resume(t *task) {
	w.current = t
	t.next()
	w.current = nil
	if t.ended {
		w.ended++
		w.idle = append(w.idle, t.coroutine)
	}
}

// park gives the control to the world until ready says so, or deadline (zero: none) has
// come. Outside of a task it does nothing.
func (w *World) park(ready func() bool, deadline time.Time) error {
	t := w.current
	if t == nil {
		return nil
	}
	if t.dead() {
		if t.unwinds++; t.unwinds > unwindMost {
			panic(cutOff{})
		}
		return errDead
	}
	t.ready, t.deadline = ready, deadline
	w.current = nil
	t.yield(struct{}{})
	t.ready, t.deadline = nil, time.Time{}
	if t.dead() {
		return errDead
	}
	return nil
}

// sweep drops the tasks that have ended.
func (w *World) sweep() {
	if w.ended == 0 {
		return
	}
	kept := w.tasks[:0]
	for _, t := range w.tasks {
		if !t.ended {
			kept = append(kept, t)
		}
	}
	clear(w.tasks[len(kept):])
	w.tasks, w.ended = kept, 0
}

// tasks is an env.Tasks of a process.
type tasks struct{ p *process }

var _ env.Tasks = tasks{}

// Run implements env.Tasks.
func (s tasks) Run(ctx context.Context, parts ...func(context.Context) error) error {
	w := s.p.world
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	left := len(parts)
	var first error
	for _, part := range parts {
		w.spawn(s.p, w.current.name+"/part", func() {
			err := part(ctx)
			if left--; err != nil && first == nil {
				first = err
				cancel(err)
			}
		})
	}
	if err := w.park(func() bool { return left == 0 }, time.Time{}); err != nil {
		return err
	}
	return first
}

// Go implements env.Tasks.
func (s tasks) Go(fn func()) (done <-chan struct{}) {
	ch := make(chan struct{})
	s.p.world.spawn(s.p, "go", func() {
		defer close(ch)
		fn()
	})
	return ch
}

// Wait implements env.Tasks.
func (s tasks) Wait(ctx context.Context, d time.Duration, wake ...<-chan struct{}) error {
	w := s.p.world
	var deadline time.Time
	if d > 0 {
		deadline = w.now.Add(d)
	}
	ready := func() bool { return ctx.Err() != nil || signalled(wake) }
	for {
		if s.p.dead {
			return w.park(nil, time.Time{})
		}
		for _, ch := range wake {
			select {
			case <-ch:
				return nil
			default:
			}
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if d > 0 && !w.now.Before(deadline) {
			return nil
		}
		if err := w.park(ready, deadline); err != nil {
			return err
		}
	}
}

// signalled says whether one of the channels has something, or is closed. Nobody sends to one
// that has no buffer.
func signalled(wake []<-chan struct{}) bool {
	for _, ch := range wake {
		if len(ch) > 0 {
			return true
		}
		if cap(ch) == 0 {
			select {
			case <-ch:
				return true
			default:
			}
		}
	}
	return false
}

// wait parks the current task until ready says so, for code of the world's own.
func (p *process) wait(ctx context.Context, ready func() bool) error {
	for !ready() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := p.world.park(func() bool { return ctx.Err() != nil || ready() }, time.Time{}); err != nil {
			return err
		}
	}
	if p.dead {
		return errDead
	}
	return nil
}
