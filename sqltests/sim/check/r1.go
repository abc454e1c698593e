package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// r1 checks "R1 Reclaim only when every slice is compacted and below every hold", when the
// segments are handed to the log: each slice in their bytes is named by a commit of the
// lake, or of no use to anyone any more (its table is gone or was begun anew, its
// transaction never ended).
type r1 struct{ f *facts }

// Label implements Checker.
func (*r1) Label() string { return "R1" }

// Check implements Checker.
func (c *r1) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(ReclaimAsked)
		if !ok {
			continue
		}
		for _, seq := range x.Seqs {
			k := segmentKey{x.Pipeline, seq}
			if name := c.f.heldBy(v, x.Host, k); name != "" {
				return fmt.Errorf("segment %d is to be reclaimed, hold %s keeps it", seq, name)
			}
			if err := c.segment(v, x.Host, k); err != nil {
				return fmt.Errorf("segment %d is to be reclaimed: %w", seq, err)
			}
		}
	}
	return nil
}

func (c *r1) segment(v *View, host string, k segmentKey) error {
	s := c.f.logOf(v, host).segs[k.seq]
	if s == nil {
		return nil // gone already: an earlier attempt
	}
	for _, start := range slices.Sorted(maps.Keys(s.slices)) {
		table := s.slices[start].Table
		ref := segment.SliceRef{Seq: k.seq, Start: start}
		if l := c.f.lakes[table]; l != nil && l.has(ref) {
			continue
		}
		if c.f.wasLive(host, table, ref) {
			return fmt.Errorf("slice %s of table %d is not in the lake", ref, table)
		}
	}
	return nil
}

// wasLive says whether a slice was live in its table's present generation.
func (f *facts) wasLive(host string, table change.TableID, ref segment.SliceRef) bool {
	h := f.hosts[host]
	if h == nil || h.now == nil {
		return false
	}
	known, t := h.known[table], h.now.table(table)
	if t == nil || known == nil || known.generation != t.table.Generation {
		return false
	}
	_, ok := known.refs[ref]
	return ok
}
