package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// leaseBeats is how often a writer beats within the time to live.
const leaseBeats = 3

// lease keeps the fence of an open log beating. One step at a time.
type lease struct {
	l       *Log
	r       *remote
	machine *protocol.Lease
	every   time.Duration
	last    time.Time
	over    bool // fenced or released
}

func newLease(l *Log, r *remote, tail protocol.StoreTail) *lease {
	return &lease{
		l: l, r: r, machine: protocol.NewLease(tail.Fence, tail.FenceVersion),
		every: l.cfg.LeaseTTL / leaseBeats, last: l.deps.Clock.Now(),
	}
}

// step beats when it is time to.
func (s *lease) step(ctx context.Context) (did bool, err error) {
	if s.over || s.l.deps.Clock.Since(s.last) < s.every {
		return false, nil
	}
	s.last = s.l.deps.Clock.Now()
	return true, s.run(ctx, s.machine.Beat(false))
}

// release gives the log up, so that nobody needs to wait for the lease to end. Safety
// does not need it.
func (s *lease) release(ctx context.Context) error {
	if s.over {
		return nil
	}
	err := s.run(ctx, s.machine.Beat(true))
	s.over = true
	return err
}

func (s *lease) run(ctx context.Context, e protocol.Effect) error {
	for {
		var ev protocol.Event
		switch x := e.(type) {
		case nil:
			return nil
		case protocol.WriteFence:
			out := s.r.writeFence(ctx, x)
			if out.Outcome == protocol.PutNot {
				s.l.deps.Log.Warn("lease not renewed", env.KeyError, out.Err)
			}
			ev = out
		case protocol.ReadFence:
			ev = s.r.readFence(ctx)
		case protocol.Fenced:
			s.over = true
			s.l.supersede(x.Err)
			return nil
		}
		e = s.machine.Step(ev)
	}
}

// supersede tells the owner that the log is another host's.
func (l *Log) supersede(err error) {
	l.mu.Lock()
	l.mu.inbox.superseded = err
	l.mu.Unlock()
	l.signal()
}

// Candidate watches a log on an object store that another host has, until it may be
// opened here. Not safe for concurrent use.
type Candidate struct {
	r     *remote
	watch *protocol.Watch
	clock env.Clock
	began time.Time
}

// NewCandidate makes a candidate for the log of cfg. Of deps it needs Store and Clock.
func NewCandidate(cfg Config, deps Deps) (*Candidate, error) {
	cfg = cfg.withDefaults()
	if deps.Store == nil || deps.Clock == nil || cfg.LeaseTTL <= 0 {
		return nil, errors.New("wal: a candidate needs Store, Clock and LeaseTTL")
	}
	return &Candidate{
		r: newRemote(cfg, deps, nil), watch: protocol.NewWatch(int64(cfg.LeaseTTL)),
		clock: deps.Clock, began: deps.Clock.Now(),
	}, nil
}

// Step looks at the log once and says whether it is free: never opened, given up, or
// without a sign of life for LeaseTTL on this host's clock. The caller looks a few times
// per LeaseTTL and opens the log when it is. Opening one that is not free is safe too:
// it fences the host that has it.
func (c *Candidate) Step(ctx context.Context) (free bool, holder segment.Fence, err error) {
	free, err = c.watch.Look(c.r.readFence(ctx), int64(c.clock.Since(c.began)))
	if err != nil {
		return false, segment.Fence{}, fmt.Errorf("watch log: %w", err)
	}
	return free, c.watch.Holder(), nil
}
