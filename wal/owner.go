package wal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// owner is the one goroutine that moves the protocol: it feeds events in and hands
// effects out. Everything here is its own.
type owner struct {
	l       *Log
	writer  writer
	store   *storeOwner // nil on a disk
	replies map[uint64]chan reply
	// underway counts jobs of the executors.
	underway int
	queue    []protocol.Event
	stats    Stats
	closing  bool
}

// writer is the machine that an owner moves.
type writer interface {
	Step(ev protocol.Event) []protocol.Effect
	Busy() bool
	Refuses() error
	NeedsRetry() bool
	Active() segment.Seq
}

// retryInterval is how long the log waits before it repeats what failed.
const retryInterval = 200 * time.Millisecond

func (o *owner) init(l *Log, w writer) {
	o.l, o.writer = l, w
	o.replies = map[uint64]chan reply{}
	o.stats.Active = w.Active()
	l.mu.stats = o.stats
}

// loopStep is the Step of the owner's loop. What step posts to itself wakes it.
func (o *owner) loopStep(ctx context.Context) (more bool, err error) {
	o.step(ctx)
	return false, nil
}

// step handles what has come in and says whether anything had.
func (o *owner) step(ctx context.Context) (did bool) {
	in := o.take()
	idle := len(in.events) == 0 && len(in.controls) == 0
	for _, ev := range in.events {
		o.underway--
		if done, ok := ev.(reclaimedStore); ok {
			o.reclaimed(done)
			continue
		}
		o.feed(ctx, ev)
	}
	appended := 0
	if o.store != nil && (len(in.controls) > 0 || in.superseded != nil) {
		appended += o.appends(ctx, o.gather(true)) // what came before the wish to seal
	}
	if in.superseded != nil {
		o.feed(ctx, protocol.Superseded{Err: in.superseded})
	}
	for _, r := range in.controls {
		o.replies[r.id] = r.reply
		o.feed(ctx, protocol.SealWanted{ID: r.id})
	}
	for _, r := range in.reclaims {
		o.reclaim(r)
	}
	if idle && o.writer.NeedsRetry() && !o.closing && o.retryDue() {
		o.feed(ctx, protocol.Retry{})
	}
	if !o.writer.Busy() || o.closing {
		appended += o.appends(ctx, o.gather(o.closing))
	}
	o.report()
	if o.closing && o.underway == 0 {
		o.failAll()
		o.l.stop(ErrClosed)
	}
	return !idle || len(in.reclaims) > 0 || appended > 0
}

// take empties the inbox but for the appends.
func (o *owner) take() inbox {
	l := o.l
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.mu.inbox
	l.mu.inbox = inbox{appends: in.appends}
	o.closing = l.mu.closed
	return in
}

// gatherYields is how often the owner lets others run before it closes a group, as
// long as the group grows.
const gatherYields = 4

// gather takes the appends for the next commit. The producers that the last commit
// has just answered are about to append again: letting them do so first makes one
// sync serve all of them instead of every other one half.
//
// On an object store a commit costs money and time, so it waits for more, unless all
// are wanted now.
func (o *owner) gather(all bool) []request {
	l := o.l
	n := 0
	for range gatherYields {
		if l.stepped || o.store != nil {
			break // who runs when is not for us to say, or does not matter
		}
		l.mu.Lock()
		now := len(l.mu.inbox.appends)
		l.mu.Unlock()
		if now == n && n > 0 {
			break
		}
		n = now
		runtime.Gosched()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.store != nil && !all && l.mu.queued < l.cfg.GroupBytes &&
		l.deps.Clock.Since(l.mu.since) < l.cfg.Linger {
		return nil
	}
	out := l.mu.inbox.appends
	l.mu.inbox.appends, l.mu.queued = nil, 0
	return out
}

// appends hands groups to the protocol and says how many there were.
func (o *owner) appends(ctx context.Context, requests []request) int {
	if len(requests) == 0 {
		return 0
	}
	items := make([]protocol.Item, 0, len(requests))
	for _, r := range requests {
		if o.closing {
			r.reply <- reply{err: ErrClosed}
			continue
		}
		o.replies[r.id] = r.reply
		items = append(items, protocol.Item{ID: r.id, Group: r.group})
	}
	if len(items) > 0 {
		o.feed(ctx, protocol.Append{Items: items, Nanos: o.l.deps.Clock.Now().UnixNano()})
	}
	return len(requests)
}

// feed gives ev to the protocol, executes the effects, and what completes at once is
// fed again.
func (o *owner) feed(ctx context.Context, ev protocol.Event) {
	o.queue = append(o.queue[:0], ev)
	for i := 0; i < len(o.queue); i++ {
		for _, e := range o.writer.Step(o.queue[i]) {
			o.execute(ctx, e)
		}
	}
	o.writer.Step(protocol.Settle{})
}

func (o *owner) execute(ctx context.Context, e protocol.Effect) {
	switch e := e.(type) {
	case protocol.Publish:
		o.queue = append(o.queue, o.publish(ctx, e))
	case protocol.Done:
		o.reply(e.ID, reply{group: committedGroup(e.Placed)})
	case protocol.Failed:
		o.report() // first: who is told of a failure may ask Settle about it
		o.reply(e.ID, reply{err: e.Err})
	default:
		if o.store != nil {
			o.executeStore(e)
			return
		}
		o.executeDisk(e)
	}
}

func (o *owner) executeDisk(e protocol.Effect) {
	d := o.l.disk
	switch e := e.(type) {
	case protocol.Write:
		o.submit(o.l.commits, func(context.Context) protocol.Event { return d.write(e) })
		o.stats.Bytes += uint64(len(e.Data))
	case protocol.Open:
		o.submit(o.l.commits, func(context.Context) protocol.Event { return o.opened(d.open(e)) })
	case protocol.Seal:
		o.submit(o.l.background, func(context.Context) protocol.Event { return o.sealed(e, d.seal(e)) })
	case protocol.Inspect:
		o.submit(o.l.background, func(context.Context) protocol.Event { return d.inspect(e) })
	case protocol.Discard:
		o.submit(o.l.background, func(context.Context) protocol.Event { return d.discard(e) })
	}
}

func (o *owner) submit(x *executor, run func(context.Context) protocol.Event) {
	o.underway++
	x.submit(run)
}

func (o *owner) publish(ctx context.Context, e protocol.Publish) protocol.Event {
	groups := committedGroups(e.Groups)
	err := o.l.deps.Publisher.Publish(ctx, o.l.cfg.Pipeline, groups)
	if err == nil {
		err = o.l.deps.Failpoints.Hit(env.AfterPublish)
	}
	if err != nil {
		o.l.deps.Log.Warn("groups not published", env.KeyCount, len(groups), env.KeyError, err)
		return protocol.Published{Err: fmt.Errorf("publish: %w", err)}
	}
	if o.store == nil {
	}
	o.stats.Commits++
	o.stats.Groups += uint64(len(groups))
	return protocol.Published{}
}

func (o *owner) reply(id uint64, r reply) {
	o.replies[id] <- r
	delete(o.replies, id)
}

// failAll answers everyone who is still waiting when the log closes.
func (o *owner) failAll() {
	for _, id := range slices.Sorted(maps.Keys(o.replies)) {
		o.reply(id, reply{err: ErrClosed})
	}
}

// report lets others see how the log is.
func (o *owner) report() {
	refuses := o.writer.Refuses()
	o.stats.Active, o.stats.Refuses = o.writer.Active(), refuses
	l := o.l
	l.mu.Lock()
	o.stats.Full = l.mu.stats.Full
	if o.store != nil {
		o.stats.Stalled = o.store.writer.Stalled()
		o.stats.Full = errors.Is(o.stats.Stalled, ErrFull)
	}
	l.mu.stats = o.stats
	changed := (refuses == nil) != (l.mu.health.refuses == nil)
	l.mu.health.refuses = refuses
	if changed {
		close(l.mu.health.changed)
		l.mu.health.changed = make(chan struct{})
	}
	l.mu.Unlock()
	if changed && refuses != nil {
		l.deps.Log.Error("log refuses appends", env.KeyError, refuses)
	} else if changed {
		l.deps.Log.Info("log takes appends again")
	}
}

// opened says what became of an Open; runs in the executor.
func (o *owner) opened(ev protocol.Opened) protocol.Event {
	l := o.l
	full := errors.Is(ev.Err, ErrFull)
	l.mu.Lock()
	l.mu.stats.Full = full
	l.mu.Unlock()
	switch {
	case full:
		l.deps.Log.Warn("log is full", env.KeyError, ev.Err)
	case ev.Err != nil:
		l.deps.Log.Error("segment not opened", env.KeyError, ev.Err)
	default:
		l.deps.Log.Info("segment opened", env.KeySeq, uint64(ev.Header.Seq))
	}
	l.background.poke()
	return ev
}

// sealed says what became of a Seal; runs in the executor.
func (o *owner) sealed(e protocol.Seal, ev protocol.Sealed) protocol.Event {
	if ev.Err != nil {
		o.l.deps.Log.Error("segment not sealed", env.KeySeq, uint64(e.Seq), env.KeyError, ev.Err)
	} else {
		o.l.deps.Log.Info("segment sealed", env.KeySeq, uint64(e.Seq),
			env.KeyBytes, e.Marker.Length, env.KeyCount, e.Marker.Groups)
	}
	return ev
}

func committedGroups(placed []protocol.Placed) []CommittedGroup {
	out := make([]CommittedGroup, len(placed))
	for i, p := range placed {
		out[i] = committedGroup(p)
	}
	return out
}

func committedGroup(p protocol.Placed) CommittedGroup {
	g := CommittedGroup{
		Seq: p.Seq, End: p.Group.End, Position: p.Group.Position,
		CommittedAt: p.Group.CommittedAt, State: p.Group.State,
	}
	if n := len(p.Group.Slices); n > 0 {
		g.Slices = make([]Slice, n)
	}
	for i := range g.Slices {
		g.Slices[i] = sliceOf(p.Seq, &p.Group.Slices[i])
	}
	return g
}
