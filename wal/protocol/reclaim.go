package protocol

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/wal/segment"
)

// Reclaim deletes sealed segments: the checkpoint lets them go first, for whoever loses
// the catalog; then markers, durably, then bodies (R2). What a crash leaves in between,
// recovery recognises. It may be run again at any point. Whether they may go at all
// (R1) is the caller's knowledge.
type Reclaim struct {
	seqs       []segment.Seq
	checkpoint segment.Checkpoint
	markers    bool // deleted
}

// NewReclaim makes a reclaim of seqs. Those at or above unsealed (Writer.Unsealed)
// are not sealed and refused. c is the checkpoint that will hold (CheckpointAfter).
func NewReclaim(seqs []segment.Seq, unsealed segment.Seq, c segment.Checkpoint) (*Reclaim, error) {
	for _, seq := range seqs {
		if seq >= unsealed {
			return nil, fmt.Errorf("reclaim segment %s: %w", seq.ID(), ErrActive)
		}
	}
	return &Reclaim{seqs: seqs, checkpoint: c}, nil
}

// CheckpointAfter is c after a reclaim of seqs on a disk: live are the segments there
// are, in order, and next where the log goes on. What lies between and is no more is
// gone.
func CheckpointAfter(c segment.Checkpoint, live []LiveSegment, seqs []segment.Seq, next Tail) segment.Checkpoint {
	c.Serial++
	c.Gone = nil
	var left []LiveSegment
	for _, s := range live {
		if s.Seq < next.Seq && !slices.Contains(seqs, s.Seq) {
			left = append(left, s)
		}
	}
	left = append(left, LiveSegment{Seq: next.Seq, Group: next.Group, Previous: next.Previous})
	c.Low, c.Group, c.Previous = left[0].Seq, left[0].Group, left[0].Previous
	at := c.Low
	for _, s := range left {
		for at++; at < s.Seq; at++ {
			c.Gone = append(c.Gone, at)
		}
		at = s.Seq
	}
	return c
}

// Step takes an event and returns the next effect. Finished or Refused is the last.
func (r *Reclaim) Step(ev Event) Effect {
	switch ev := ev.(type) {
	case Start:
		if len(r.seqs) == 0 {
			return Finished{}
		}
		return WriteCheckpoint{Checkpoint: r.checkpoint}
	case CheckpointWritten:
		if ev.Err != nil {
			return Refused{Err: fmt.Errorf("write checkpoint: %w", ev.Err)}
		}
		return DeleteMarkers{Seqs: r.seqs}
	case Deleted:
		if ev.Err != nil {
			return Refused(ev)
		}
		if r.markers {
			return Finished{}
		}
		r.markers = true
		return RecycleBodies{Seqs: r.seqs}
	}
	return Refused{Err: fmt.Errorf("reclaim: unexpected event %T", ev)}
}
