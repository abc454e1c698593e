package wal

import (
	"context"
	"errors"
	"fmt"
)

// Part is a part of a log that moves by itself.
type Part uint8

// The parts of a log.
const (
	// Owner moves the protocol: it takes what was asked and what was done, publishes
	// and answers.
	Owner Part = iota
	// Commits opens segments and writes groups.
	Commits
	// Background seals, reads anew, deletes, and writes spare files.
	Background
	// Bodies puts bodies to an object store. Its steps may overlap, up to four.
	Bodies
	// Lease shows that the writer of a log on an object store lives.
	Lease

	partEnd
)

// String names the part.
func (p Part) String() string {
	if p >= partEnd {
		return fmt.Sprintf("part(%d)", uint8(p))
	}
	return [partEnd]string{Owner: "owner", Commits: "commits", Background: "background", Bodies: "bodies", Lease: "lease"}[p]
}

// Stepped is a log without goroutines: whoever has it moves its parts, in any order.
// It is the same log otherwise; what waits in a Log (Append, SealActive, Reclaim,
// Settle) needs somebody else to step, so there are the Start methods.
//
// Steps of different parts may overlap, as a part's I/O may hand control to another;
// steps of one part may not.
type Stepped struct{ l *Log }

// OpenStepped is Open without the goroutines.
func OpenStepped(ctx context.Context, cfg Config, deps Deps) (*Stepped, error) {
	l, err := open(ctx, cfg, deps, true)
	if err != nil {
		return nil, err
	}
	l.stop = func(error) { l.ended = true }
	return &Stepped{l: l}, nil
}

// Log is the log that is stepped.
func (s *Stepped) Log() *Log { return s.l }

// Step does a bounded piece of the part's work, if there is any. did says that there
// was. An Owner with nothing else to do repeats what failed, as a Log does every 200
// ms, and does not count that. err is ErrClosed once the log has ended.
func (s *Stepped) Step(ctx context.Context, part Part) (did bool, err error) {
	l := s.l
	if l.ended || l.isAbandoned() {
		return false, ErrClosed
	}
	switch part {
	case Owner:
		return l.owner.step(ctx), nil
	case Commits:
		return l.commits.step(ctx)
	case Background:
		return l.background.step(ctx)
	case Bodies:
		return l.bodies.step(ctx)
	case Lease:
		if l.lease == nil {
			return false, nil
		}
		return l.lease.step(ctx)
	}
	return false, fmt.Errorf("step log: unknown %v", part)
}

// Abandon drops the log without any I/O, as a process that dies does: its lock and
// files stay as they are. What was not answered never is, except with ErrClosed.
func (s *Stepped) Abandon() {
	l := s.l
	l.mu.Lock()
	l.mu.abandoned = true
	l.closeLocked()
	l.mu.Unlock()
}

// finish steps a closing log to its end. A part that somebody else is stepping is
// waited for by the clock.
func (l *Log) finish(ctx context.Context) error {
	for !l.ended && !l.isAbandoned() {
		did := false
		for part := Owner; part < partEnd; part++ {
			more, err := (&Stepped{l}).Step(ctx, part)
			if err != nil && !errors.Is(err, ErrClosed) {
				return err
			}
			did = did || more
		}
		if did || l.ended {
			continue
		}
		if err := l.deps.Clock.Sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
	return nil
}
