package protocol

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// StoreReclaimConfig is what a reclaim on an object store knows.
type StoreReclaimConfig struct {
	Seqs []segment.Seq
	// Live is the writer's ledger, Next where the log goes on behind it.
	Live []LiveSegment
	Next Tail
	// Checkpoint and Version are the one in force, as far as is known; its Facts and
	// Position are those to be written.
	Checkpoint segment.Checkpoint
	Version    Version
}

// StoreReclaim deletes the beginning of a log on an object store: the checkpoint's low
// seq goes on first, by compare-and-swap, so that a fenced writer deletes nothing; then
// markers, then bodies (R2). Takeover markers stay for ever: without them a fenced
// writer that slept through everything would find its next seq absent again.
//
// Low never passes a segment that is still needed. What is wanted beyond that is
// refused with ErrHeld, after the rest is done. It may be run again at any point.
type StoreReclaim struct {
	cfg     StoreReclaimConfig
	wanted  map[segment.Seq]bool
	low     segment.Seq
	tries   int
	held    error
	markers []segment.Seq
	bodies  []BodyKey
	phase   reclaimPhase
}

type reclaimPhase uint8

const (
	reclaimCheckpoint reclaimPhase = iota
	reclaimMarkers
	reclaimBodies
)

// NewStoreReclaim makes a reclaim. Seqs at or above Next are refused.
func NewStoreReclaim(cfg StoreReclaimConfig) (*StoreReclaim, error) {
	r := &StoreReclaim{cfg: cfg, wanted: map[segment.Seq]bool{}, low: cfg.Checkpoint.Low}
	for _, seq := range cfg.Seqs {
		if seq >= cfg.Next.Seq {
			return nil, fmt.Errorf("reclaim segment %s: %w", seq.ID(), ErrActive)
		}
		r.wanted[seq] = true
	}
	next := cfg.Next
	for _, s := range cfg.Live {
		if s.Seq < r.low {
			continue // deleted from the log, perhaps not from the store
		}
		if !s.Takeover && !r.wanted[s.Seq] {
			next = Tail{Seq: s.Seq, Group: s.Group, Previous: s.Previous}
			break
		}
	}
	if next.Seq > r.low {
		r.low = next.Seq
		r.cfg.Checkpoint.Group, r.cfg.Checkpoint.Previous = next.Group, next.Previous
	}
	for _, s := range cfg.Live {
		if s.Seq >= r.low {
			break
		}
		if !s.Takeover {
			r.bodies = append(r.bodies, BodyKey{Seq: s.Seq, Epoch: s.Epoch})
		}
		if !s.Takeover || mutant.On(mutant.TakeoverMarkerReclaimed) {
			r.markers = append(r.markers, s.Seq)
		}
	}
	for _, seq := range cfg.Seqs {
		if seq >= r.low {
			r.held = &HeldError{Seq: seq, Low: r.low}
			break
		}
	}
	return r, nil
}

// Low is the log's low seq when the reclaim has Finished.
func (r *StoreReclaim) Low() segment.Seq { return r.low }

// Checkpoint is the one in force, with its version, whatever the end.
func (r *StoreReclaim) Checkpoint() (segment.Checkpoint, Version) {
	return r.cfg.Checkpoint, r.cfg.Version
}

// Step takes an event and returns the next effect. Finished or Refused is the last.
func (r *StoreReclaim) Step(ev Event) Effect {
	switch ev := ev.(type) {
	case Start:
		if r.low == r.cfg.Checkpoint.Low {
			return r.delete()
		}
		return r.write()
	case Retry:
		return ReadCheckpoint{}
	case CheckpointWritten:
		return r.written(ev)
	case CheckpointRead:
		return r.read(ev)
	case Deleted:
		if ev.Err != nil {
			return Refused(ev)
		}
		r.phase++
		return r.delete()
	}
	return Refused{Err: fmt.Errorf("reclaim: unexpected event %T", ev)}
}

// attempt is the checkpoint to be written.
func (r *StoreReclaim) attempt() segment.Checkpoint {
	c := r.cfg.Checkpoint
	c.Low = r.low
	c.Serial++
	return c
}

func (r *StoreReclaim) write() Effect {
	return WriteCheckpoint{Checkpoint: r.attempt(), Version: r.cfg.Version}
}

func (r *StoreReclaim) written(ev CheckpointWritten) Effect {
	switch {
	case ev.Outcome == PutDone:
		r.cfg.Checkpoint, r.cfg.Version = r.attempt(), ev.Version
		return r.delete()
	case ev.Outcome == PutRefused:
		return ReadCheckpoint{}
	}
	r.tries++
	if r.tries > triesMax {
		return Refused{Err: fmt.Errorf("write checkpoint: %w", ev.Err)}
	}
	return Wait{Attempt: r.tries}
}

// read says what the write of an unknown outcome, or somebody else, left.
func (r *StoreReclaim) read(ev CheckpointRead) Effect {
	if ev.Err != nil || ev.Data == nil {
		return Refused{Err: fmt.Errorf("read checkpoint: %w", errors.Join(ev.Err, errMissing(ev.Data)))}
	}
	c, err := segment.ParseCheckpoint(ev.Data)
	if err != nil {
		return Refused{Err: err}
	}
	if c.Epoch != r.cfg.Checkpoint.Epoch {
		return Refused{Err: fmt.Errorf("%w: the checkpoint is of epoch %d", ErrFenced, c.Epoch)}
	}
	// Ours: this attempt, or one before it.
	r.cfg.Version = ev.Version
	if c.Low >= r.low {
		r.cfg.Checkpoint = c
		return r.delete()
	}
	r.cfg.Checkpoint.Serial = c.Serial
	r.tries++
	if r.tries > triesMax {
		return Refused{Err: errors.New("write checkpoint: it changes all the time")}
	}
	return r.write()
}

func errMissing(data []byte) error {
	if data == nil {
		return errors.New("there is none")
	}
	return nil
}

// delete goes on with the deletions.
func (r *StoreReclaim) delete() Effect {
	if r.phase == reclaimCheckpoint {
		r.phase = reclaimMarkers
		if mutant.On(mutant.MarkerLast) && len(r.bodies) > 0 {
			bodies := r.bodies
			r.bodies = nil
			r.phase = reclaimCheckpoint
			return DeleteBodies{Bodies: bodies}
		}
	}
	if r.phase == reclaimMarkers {
		if len(r.markers) > 0 {
			return DeleteMarkers{Seqs: r.markers}
		}
		r.phase = reclaimBodies
	}
	if r.phase == reclaimBodies && len(r.bodies) > 0 {
		return DeleteBodies{Bodies: r.bodies}
	}
	if r.held != nil {
		return Refused{Err: r.held}
	}
	return Finished{}
}
