package wal

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
)

// run starts the log's three goroutines. They end when the owner has seen the log
// closed and nothing is under way; Close waits for them.
func (l *Log) run(ctx context.Context) {
	ctx, l.stop = context.WithCancelCause(ctx)
	l.group, ctx = errgroup.WithContext(ctx)
	loops := []env.LoopConfig{
		{Name: "log owner", Step: l.owner.loopStep, Wake: l.wake, Interval: retryInterval},
		{Name: "log commits", Step: l.commits.step, Wake: l.commits.wake},
		{Name: "log background", Step: l.background.step, Wake: l.background.wake},
	}
	if l.remote != nil {
		loops = append(loops,
			env.LoopConfig{Name: "log lease", Step: l.lease.step, Interval: l.lease.every},
			env.LoopConfig{Name: "log linger", Step: l.linger, Wake: l.lingering})
		for range bodiesMax {
			loops = append(loops, env.LoopConfig{Name: "log bodies", Step: l.bodies.step, Wake: l.bodies.wake})
		}
	}
	for _, cfg := range loops {
		cfg.Clock = l.deps.Clock
		l.group.Go(func() error { return env.RunLoop(ctx, cfg) })
	}
}

// linger wakes the owner when the first append has waited long enough.
func (l *Log) linger(ctx context.Context) (more bool, err error) {
	l.mu.Lock()
	since, waiting := l.mu.since, len(l.mu.inbox.appends) > 0
	l.mu.Unlock()
	if !waiting {
		return false, nil
	}
	if rest := l.cfg.Linger - l.deps.Clock.Since(since); rest > 0 {
		if err := l.deps.Clock.Sleep(ctx, rest); err != nil {
			return false, err
		}
	}
	l.signal()
	return false, nil
}

// sideBySide executes effects and returns their completions in the same order; one
// after the other in a log that is stepped.
func sideBySide(
	effects []protocol.Effect, stepped bool, execute func(protocol.Effect) protocol.Event,
) []protocol.Event {
	events := make([]protocol.Event, len(effects))
	var group errgroup.Group
	for i, e := range effects {
		if stepped || len(effects) == 1 {
			events[i] = execute(e)
			continue
		}
		group.Go(func() error {
			events[i] = execute(e)
			return nil
		})
	}
	_ = group.Wait() // executions report in their events
	return events
}

// await waits for the end of a log that is closed.
func (l *Log) await() error {
	if l.stepped {
		return l.finish(context.Background())
	}
	return l.group.Wait()
}

// fillSpares is what the background does when it has nothing else to do. The pool is
// filled once the log is in use: an idle pipeline costs no space.
func (l *Log) fillSpares() bool {
	if n, _ := l.disk.live(); n == 0 {
		return false
	}
	more, err := l.disk.spares.fill()
	if err != nil && !errors.Is(err, ErrFull) {
		l.deps.Log.Warn("spare segment not written", env.KeyError, err)
	}
	return more
}

// executor runs jobs in order and posts what they return to the owner. One loop runs
// them one after the other, several side by side.
type executor struct {
	l    *Log
	wake chan struct{}
	rest func() (more bool) // a bounded piece of work for when there is no job
	mu   struct {
		sync.Mutex
		jobs []func(context.Context) protocol.Event
	}
}

func newExecutor(l *Log, rest func() bool) *executor {
	return &executor{l: l, rest: rest, wake: make(chan struct{}, 1)}
}

// submit queues a job; the protocol bounds how many there are.
func (x *executor) submit(job func(context.Context) protocol.Event) {
	x.mu.Lock()
	x.mu.jobs = append(x.mu.jobs, job)
	x.mu.Unlock()
	x.poke()
}

func (x *executor) poke() { poke(x.wake) }

func (x *executor) step(ctx context.Context) (more bool, err error) {
	x.mu.Lock()
	var job func(context.Context) protocol.Event
	if len(x.mu.jobs) > 0 {
		job = x.mu.jobs[0]
		x.mu.jobs = x.mu.jobs[1:]
	}
	rest := len(x.mu.jobs)
	x.mu.Unlock()
	if rest > 0 {
		x.poke() // another loop of the same executor, if there is one
	}
	if job == nil {
		return x.rest != nil && x.rest(), nil
	}
	ev := job(ctx)
	x.l.mu.Lock()
	x.l.mu.inbox.events = append(x.l.mu.inbox.events, ev)
	x.l.mu.Unlock()
	x.l.signal()
	return true, nil
}
