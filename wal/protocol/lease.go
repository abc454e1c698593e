package protocol

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// Watch decides when a candidate may take a log over: when its writer has released it,
// or has not beaten for TTL on the candidate's own clock. It serves liveness alone: a
// writer that is alive all the same is fenced, and nothing is lost. Not safe for
// concurrent use.
type Watch struct {
	ttl   int64
	fence segment.Fence
	since int64
	seen  bool
}

// NewWatch makes a watch with a time to live in nanoseconds.
func NewWatch(ttlNanos int64) *Watch { return &Watch{ttl: ttlNanos} }

// Look takes the fence as read at a moment of the candidate's monotonic clock, in
// nanoseconds, and says whether the log is free.
func (w *Watch) Look(ev FenceRead, nanos int64) (free bool, err error) {
	if ev.Err != nil {
		return false, fmt.Errorf("watch fence: %w", ev.Err)
	}
	if ev.Data == nil {
		return true, nil
	}
	f, err := segment.ParseFence(ev.Data)
	if err != nil {
		return false, err
	}
	if !w.seen || f != w.fence {
		w.seen, w.fence, w.since = true, f, nanos
	}
	return f.Released || nanos-w.since >= w.ttl, nil
}

// Holder is the host that has the log, as far as Look has seen.
func (w *Watch) Holder() segment.Fence { return w.fence }

// Lease keeps a writer's fence beating, so that no candidate takes over. Not safe for
// concurrent use.
type Lease struct {
	fence   segment.Fence
	version Version
	attempt segment.Fence
	fenced  error
}

// NewLease makes a lease of the fence that a takeover wrote.
func NewLease(fence segment.Fence, version Version) *Lease {
	return &Lease{fence: fence, version: version}
}

// Beat is the write that shows that the writer lives. release says that it is its
// last.
func (l *Lease) Beat(release bool) Effect {
	if l.fenced != nil {
		return Fenced{Err: l.fenced}
	}
	l.attempt = l.fence
	l.attempt.Beat++
	l.attempt.Released = release
	return WriteFence{Fence: l.attempt, Version: l.version}
}

// Step takes the outcome of a beat, and returns what is to be done about it: ReadFence,
// Fenced, or nil when there is nothing until the next beat.
func (l *Lease) Step(ev Event) Effect {
	switch ev := ev.(type) {
	case FenceWritten:
		switch ev.Outcome {
		case PutDone:
			l.fence, l.version = l.attempt, ev.Version
			return nil
		case PutNot:
			return nil // the next beat says it again
		}
		return ReadFence{}
	case FenceRead:
		return l.read(ev)
	}
	return nil
}

func (l *Lease) read(ev FenceRead) Effect {
	f, err := readFence(ev, l.fence.Pipeline)
	if err != nil {
		return nil // the next beat will be refused again
	}
	if f.Epoch == l.fence.Epoch && f.Writer == l.fence.Writer {
		l.fence, l.version = f, ev.Version
		return nil
	}
	l.fenced = fencedBy(f)
	return Fenced{Err: l.fenced}
}
