package protocol

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// Reclaim deletes sealed segments: markers first, durably, then bodies (R2). What a
// crash leaves in between, recovery recognises. It may be run again at any point.
// Whether they may go at all (R1) is the caller's knowledge.
type Reclaim struct {
	seqs    []segment.Seq
	markers bool // deleted
}

// NewReclaim makes a reclaim of seqs. Those at or above unsealed (Writer.Unsealed)
// are not sealed and refused.
func NewReclaim(seqs []segment.Seq, unsealed segment.Seq) (*Reclaim, error) {
	for _, seq := range seqs {
		if seq >= unsealed {
			return nil, fmt.Errorf("reclaim segment %s: %w", seq.ID(), ErrActive)
		}
	}
	return &Reclaim{seqs: seqs}, nil
}

// Step takes an event and returns the next effect. Finished or Refused is the last.
func (r *Reclaim) Step(ev Event) Effect {
	switch ev := ev.(type) {
	case Start:
		if len(r.seqs) == 0 {
			return Finished{}
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
