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

// storeOwner is what an owner knows besides when the log is on an object store.
type storeOwner struct {
	writer     *protocol.StoreWriter
	checkpoint segment.Checkpoint
	version    protocol.Version
	// retries counts those since nothing needed one; retried is when the last was.
	retries int
	retried time.Time
}

// retryDue says whether it is time to repeat what failed. A disk is asked at every
// interval; a store that does not answer, ever less often.
func (o *owner) retryDue() bool {
	s := o.store
	if s == nil {
		return true
	}
	clock := o.l.deps.Clock
	if s.retries > 0 && clock.Since(s.retried) < pause(s.retries) {
		return false
	}
	s.retries++
	s.retried = clock.Now()
	return true
}

func (o *owner) executeStore(e protocol.Effect) {
	l, r := o.l, o.l.remote
	switch e := e.(type) {
	case protocol.PutBody:
		o.submit(l.bodies, func(ctx context.Context) protocol.Event { return r.putBody(ctx, e) })
	case protocol.CompareBody:
		o.submit(l.bodies, func(ctx context.Context) protocol.Event { return r.compareBody(ctx, e) })
	case protocol.PutMarker:
		o.submit(l.commits, func(ctx context.Context) protocol.Event {
			ev := r.putMarker(ctx, e)
			if ev.Outcome == protocol.PutDone {
				l.deps.Log.Debug("segment committed", env.KeySeq, uint64(ev.Seq), env.KeyBytes, e.Marker.Length,
					env.KeyCount, e.Marker.Groups)
			}
			return ev
		})
		o.stats.Bytes += uint64(e.Marker.Length)
	case protocol.ReadMarker:
		o.submit(l.commits, func(ctx context.Context) protocol.Event { return r.readMarker(ctx, e) })
	case protocol.ReadFence:
		o.submit(l.commits, func(ctx context.Context) protocol.Event { return r.readFence(ctx) })
	case protocol.Fenced:
		l.deps.Log.Error("writer fenced", env.KeyEpoch, uint32(r.epoch), env.KeyReason, e.Err)
	}
	if !o.writer.NeedsRetry() {
		o.store.retries = 0
	}
}

// reclaimStore moves the log's beginning. One is under way at a time.
func (o *owner) reclaimStore(r *reclaim) {
	s := o.store
	err := o.writer.Refuses()
	if o.closing {
		err = ErrClosed
	}
	if err != nil {
		o.l.answerReclaim(r, fmt.Errorf("reclaim: %w", err))
		return
	}
	live, position := s.writer.Ledger()
	cfg := protocol.StoreReclaimConfig{
		Seqs: r.seqs, Live: live, Next: s.writer.Next(), Checkpoint: s.checkpoint, Version: s.version,
	}
	cfg.Checkpoint.Position, cfg.Checkpoint.Facts = position, nil // the catalog's backup has these
	o.submit(o.l.background, func(ctx context.Context) protocol.Event {
		machine, err := protocol.NewStoreReclaim(cfg)
		if err == nil {
			err = o.l.remote.reclaim(ctx, machine)
		}
		return reclaimedStore{request: r, machine: machine, err: err}
	})
}

// reclaimedStore is what a reclaim's job tells the owner. machine is nil when there was
// nothing to do.
type reclaimedStore struct {
	protocol.Event
	request *reclaim
	machine *protocol.StoreReclaim
	err     error
}

func (r *remote) reclaim(ctx context.Context, machine *protocol.StoreReclaim) error {
	ev := protocol.Event(protocol.Start{})
	for {
		switch e := machine.Step(ev).(type) {
		case protocol.Finished:
			return r.mirror.reclaim(machine.Low())
		case protocol.Refused:
			err := fmt.Errorf("reclaim: %w", e.Err)
			if errors.Is(err, ErrHeld) {
				err = errors.Join(err, r.mirror.reclaim(machine.Low()))
			}
			return err
		default:
			ev = r.execute(ctx, e)
		}
	}
}

// reclaimed takes note of where the log begins now, and answers.
func (o *owner) reclaimed(done reclaimedStore) {
	s := o.store
	if done.machine == nil {
		o.l.answerReclaim(done.request, done.err)
		return
	}
	s.checkpoint, s.version = done.machine.Checkpoint()
	if done.err == nil || errors.Is(done.err, ErrHeld) {
		s.writer.Forget(done.machine.Low())
		o.l.deps.Log.Info("log reclaimed", env.KeySeq, uint64(done.machine.Low()))
	}
	if errors.Is(done.err, ErrFenced) {
		o.l.supersede(done.err)
	}
	o.l.answerReclaim(done.request, done.err)
}
