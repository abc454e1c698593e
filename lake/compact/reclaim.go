package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// reclaimMost bounds one step.
const reclaimMost = 32

// Reclaim deletes segments of a pipeline's log that hold no live slice and lie below the
// active one and every hold (R1), once they have been so for the delay. The lake has had the
// rows, durably, since the slices were acked; so a pin that still wants a slice loses
// it and never sees a hole (P3). The catalog forgets a segment last (P4), so a crash in
// between repeats the deletion. did says that something was reclaimed.
func (s *Service) Reclaim(ctx context.Context, pipeline change.PipelineID) (did bool, err error) {
	log, ok := s.deps.Log(pipeline)
	if !ok {
		return false, nil
	}
	due, err := s.reclaimable(pipeline)
	if err != nil || len(due) == 0 {
		return false, err
	}
	if mutant.On(mutant.ForgetFirst) {
		return true, errors.Join(s.forgetSegments(ctx, pipeline, due), log.Reclaim(ctx, due))
	}
	// A segment may have become free by groups that were published and not synced: without
	// them a log that lacks it cannot be opened.
	if err := s.deps.Catalog.Sync(ctx); err != nil {
		s.postpone(pipeline, due)
		return false, fmt.Errorf("reclaim segments of pipeline %d: %w", pipeline, err)
	}
	if err := s.deps.Catalog.Backup(ctx); err != nil { // it says what the segments said that go
		s.postpone(pipeline, due)
		return false, fmt.Errorf("reclaim segments of pipeline %d: %w", pipeline, err)
	}
	err = log.Reclaim(ctx, due)
	var held *wal.HeldError
	if errors.As(err, &held) {
		i, _ := slices.BinarySearch(due, held.Low)
		s.leaveAlone(pipeline)
		if due = due[:i]; i == 0 {
			return false, nil
		}
		err = nil
	}
	if err != nil {
		s.postpone(pipeline, due)
		return false, fmt.Errorf("reclaim segments of pipeline %d: %w", pipeline, err)
	}
	if err := s.forgetSegments(ctx, pipeline, due); err != nil {
		return false, err
	}
	s.mu.Lock()
	for _, seq := range due {
		delete(s.mu.idle, segmentKey{pipeline, seq})
	}
	s.mu.Unlock()
	s.log.Info("segments reclaimed", env.KeyPipeline, uint32(pipeline), env.KeyCount, len(due),
		env.KeySeq, uint64(due[len(due)-1]))
	return true, nil
}

// forgetSegments takes the segments out of the catalog.
func (s *Service) forgetSegments(ctx context.Context, pipeline change.PipelineID, seqs []segment.Seq) error {
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		for _, seq := range seqs {
			if err := txn.DeleteSegment(pipeline, seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget segments of pipeline %d: %w", pipeline, err)
	}
	return nil
}

// postpone begins the delay of segments anew.
func (s *Service) postpone(pipeline change.PipelineID, seqs []segment.Seq) {
	now := s.deps.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seq := range seqs {
		s.mu.idle[segmentKey{pipeline, seq}] = now
	}
}

// leaveAlone keeps Reclaim from a pipeline's log for the delay: it is reclaimed from its
// beginning, which is still needed, and to ask costs a sync and an image of the catalog.
func (s *Service) leaveAlone(pipeline change.PipelineID) {
	now := s.deps.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.stuck[pipeline] = now
}

// reclaimable are the segments whose delay is over.
func (s *Service) reclaimable(pipeline change.PipelineID) ([]segment.Seq, error) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	at, err := snap.Offset(pipeline)
	if err != nil {
		return nil, fmt.Errorf("reclaim segments of pipeline %d: %w", pipeline, err)
	}
	idle, err := snap.ReclaimableSegments(pipeline, at.Seq)
	if err != nil {
		return nil, fmt.Errorf("reclaim segments of pipeline %d: %w", pipeline, err)
	}
	now := s.deps.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	heldFrom, isHeld := s.heldFromLocked(pipeline, now)
	var due []segment.Seq
	for _, seq := range idle {
		if isHeld && seq >= heldFrom && !mutant.On(mutant.ReclaimHeld) { // R1
			break
		}
		key := segmentKey{pipeline, seq}
		since, ok := s.mu.idle[key]
		if !ok {
			s.mu.idle[key] = now
			since = now
		}
		if now.Sub(since) >= s.cfg.ReclaimDelay && len(due) < reclaimMost {
			due = append(due, seq)
		}
	}
	if at, ok := s.mu.stuck[pipeline]; ok && now.Sub(at) < s.cfg.ReclaimDelay {
		return nil, nil
	}
	delete(s.mu.stuck, pipeline)
	return due, nil
}
