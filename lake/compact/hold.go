package compact

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// LogHold keeps a pipeline's log from a segment on for a reader that comes back to it: a
// transaction that reads at one moment, an open cursor. It lives as long as the process.
// Safe for concurrent use.
type LogHold struct {
	service  *Service
	pipeline change.PipelineID
	number   uint64
}

// held is what the service knows of a hold.
type held struct {
	pipeline change.PipelineID
	from     segment.Seq
	since    time.Time
}

// HoldLog keeps segments at or above from until Release, at most for Config.HoldMost
// since the last Move: a session that was forgotten must not fill the disk. Of what is
// gone, or on its way out, it keeps nothing: the reader meets a lost slice (P3).
func (s *Service) HoldLog(pipeline change.PipelineID, from segment.Seq) *LogHold {
	now := s.deps.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.nextHold++
	s.mu.holds[s.mu.nextHold] = held{pipeline: pipeline, from: from, since: now}
	return &LogHold{service: s, pipeline: pipeline, number: s.mu.nextHold}
}

// Move gives up what lies below to. It does not move back, nor does anything after
// Release or once the hold has lapsed.
func (h *LogHold) Move(to segment.Seq) {
	s := h.service
	now := s.deps.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.mu.holds[h.number]
	if !ok {
		return
	}
	s.mu.holds[h.number] = held{pipeline: h.pipeline, from: max(kept.from, to), since: now}
}

// Release gives up the hold; again it does nothing.
func (h *LogHold) Release() {
	s := h.service
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.holds, h.number)
}

// ErrResting means that a statement keeps a pipeline's changes from the lake for a moment.
var ErrResting = errors.New("pipeline rests from compaction")

// rest is asked for by n, and ends when ended is closed.
type rest struct {
	n     int
	ended chan struct{}
}

// Rest keeps what is published from now on out of the lake until end is called: a
// compaction that has begun ends, of slices that were published before. Calling end again
// does nothing.
func (s *Service) Rest(pipeline change.PipelineID) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.mu.resting[pipeline]
	if r == nil {
		r = &rest{ended: make(chan struct{})}
		s.mu.resting[pipeline] = r
	}
	r.n++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.n--; r.n == 0 {
			delete(s.mu.resting, pipeline)
			close(r.ended)
		}
	})
}

// rests says whether nothing of a pipeline may go into the lake: until its channel is closed, nil
// says no. Who asks after it has read the catalog, and is told no, has read nothing that was
// published during a rest.
func (s *Service) rests(pipeline change.PipelineID) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.mu.resting[pipeline]; r != nil {
		return r.ended
	}
	return nil
}

// awaitRest waits until a table's pipeline does not rest.
func (s *Service) awaitRest(ctx context.Context, id change.TableID) error {
	snap := s.deps.Catalog.Snapshot()
	t, err := snap.TableByID(id)
	snap.Close()
	if errors.Is(err, catalog.ErrTableNotFound) {
		return nil // as a table that is gone
	}
	if err != nil {
		return err
	}
	ended := s.rests(t.Pipeline)
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// heldFromLocked is the lowest segment of a pipeline's log that a hold keeps; ok is false
// without one. Holds that are too old are dropped.
func (s *Service) heldFromLocked(pipeline change.PipelineID, now time.Time) (from segment.Seq, ok bool) {
	for number, h := range s.mu.holds {
		if h.pipeline != pipeline {
			continue
		}
		if now.Sub(h.since) > s.cfg.HoldMost {
			delete(s.mu.holds, number)
			s.log.Warn("hold on the log has lapsed", "from", uint64(h.from))
			continue
		}
		if !ok || h.from < from {
			from, ok = h.from, true
		}
	}
	return from, ok
}
