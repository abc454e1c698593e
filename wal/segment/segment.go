package segment

import "fmt"

// Seq numbers the segments of a pipeline: gapless, never reused, from 1.
type Seq uint64

// Epoch numbers a writer's reign; larger supersedes.
type Epoch uint32

// ID renders the segment id, the name of its files: 16 hex digits.
func (s Seq) ID() string { return fmt.Sprintf("%016x", uint64(s)) }

// SliceRef names a slice: the segment and the byte in its body where the slice's
// record starts.
type SliceRef struct {
	Seq   Seq
	Start uint32
}

// Less orders refs by place in the log.
func (r SliceRef) Less(o SliceRef) bool {
	return r.Seq < o.Seq || r.Seq == o.Seq && r.Start < o.Start
}

// String renders "seq:start" in decimal, the form used in snapshot summaries.
func (r SliceRef) String() string { return fmt.Sprintf("%d:%d", uint64(r.Seq), r.Start) }
