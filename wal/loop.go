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
	for _, cfg := range []env.LoopConfig{
		{Name: "log owner", Step: l.owner.loopStep, Wake: l.wake, Interval: retryInterval},
		{Name: "log commits", Step: l.commits.step, Wake: l.commits.wake},
		{Name: "log background", Step: l.background.step, Wake: l.background.wake},
	} {
		cfg.Clock = l.deps.Clock
		l.group.Go(func() error { return env.RunLoop(ctx, cfg) })
	}
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

// executor runs jobs one after the other, in order, and posts what they return to
// the owner.
type executor struct {
	l    *Log
	wake chan struct{}
	rest func() (more bool) // a bounded piece of work for when there is no job
	mu   struct {
		sync.Mutex
		jobs []func() protocol.Event
	}
}

func newExecutor(l *Log, rest func() bool) *executor {
	return &executor{l: l, rest: rest, wake: make(chan struct{}, 1)}
}

// submit queues a job; the protocol bounds how many there are.
func (x *executor) submit(job func() protocol.Event) {
	x.mu.Lock()
	x.mu.jobs = append(x.mu.jobs, job)
	x.mu.Unlock()
	x.poke()
}

func (x *executor) poke() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *executor) step(context.Context) (more bool, err error) {
	x.mu.Lock()
	var job func() protocol.Event
	if len(x.mu.jobs) > 0 {
		job = x.mu.jobs[0]
		x.mu.jobs = x.mu.jobs[1:]
	}
	x.mu.Unlock()
	if job == nil {
		return x.rest != nil && x.rest(), nil
	}
	ev := job()
	x.l.mu.Lock()
	x.l.mu.inbox.events = append(x.l.mu.inbox.events, ev)
	x.l.mu.Unlock()
	x.l.signal()
	return true, nil
}
