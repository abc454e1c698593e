package catalog

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// LiveSlices are the slices of a table that are not in the lake, of its current
// generation, in log order. The caller owns the result.
func (r *reader) LiveSlices(table change.TableID) ([]Slice, error) {
	var out []Slice
	err := r.eachLive(table, func(s *Slice) error {
		out = append(out, *s)
		return nil
	})
	return out, err
}

func (r *reader) eachLive(table change.TableID, fn func(*Slice) error) error {
	return r.eachLiveFrom(table, r.facts.lakes[table].LiveFrom, fn)
}

// eachLiveFrom visits live slices at or above from. The slice is valid during the call.
func (r *reader) eachLiveFrom(table change.TableID, from segment.SliceRef, fn func(*Slice) error) error {
	lower, upper := liveRange(table, from)
	var s Slice
	err := r.kv.Iterate(lower, upper, func(key, row []byte) error {
		if err := decodeSlice(key, row, &s); err != nil {
			return err
		}
		return fn(&s)
	})
	if err != nil {
		return fmt.Errorf("read live slices of table %d: %w", table, err)
	}
	return nil
}

func decodeSlice(key, row []byte, s *Slice) error {
	id, ref, ok := splitSliceKey(key)
	if !ok {
		return fmt.Errorf("slice key: %w", ErrCorrupt)
	}
	if err := decodeSliceRow(row, s); err != nil {
		return fmt.Errorf("slice %s: %w", ref, err)
	}
	s.Ref, s.Pending = ref, key[0] == prefixPending
	owner := uint32(s.Table)
	if key[0] != prefixLive {
		owner = uint32(s.Pipeline)
	}
	if owner != id {
		return fmt.Errorf("slice %s: misplaced row: %w", ref, ErrCorrupt)
	}
	return nil
}

// Slices are all slices of a pipeline whose segments are not reclaimed, in log order,
// but for those that a reset or drop of their table made obsolete, and void ones.
func (r *reader) Slices(pipeline change.PipelineID) ([]Slice, error) {
	var out []Slice
	var s Slice
	err := kv.IteratePrefix(r.kv, pipelineKey(prefixDone, pipeline), func(key, row []byte) error {
		if err := decodeSlice(key, row, &s); err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read slices of pipeline %d: %w", pipeline, err)
	}
	for _, id := range r.facts.sorted().everyOf[pipeline] {
		err := r.eachLive(id, func(s *Slice) error {
			out = append(out, *s)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	pending, err := r.pendingSlices(pipeline)
	if err != nil {
		return nil, err
	}
	out = append(out, pending...)
	slices.SortFunc(out, func(a, b Slice) int {
		if a.Ref.Less(b.Ref) {
			return -1
		}
		return 1
	})
	return out, nil
}

// Segments are a pipeline's segments that are not reclaimed, by seq.
func (r *reader) Segments(pipeline change.PipelineID) ([]Segment, error) {
	var out []Segment
	err := kv.IteratePrefix(r.kv, pipelineKey(prefixSegment, pipeline), func(key, row []byte) error {
		if len(key) != 1+4+8 {
			return fmt.Errorf("segment key: %w", ErrCorrupt)
		}
		s := Segment{Pipeline: pipeline, Seq: segment.Seq(binary.BigEndian.Uint64(key[5:]))}
		if err := decodeSegmentRow(row, &s); err != nil {
			return fmt.Errorf("segment %d: %w", s.Seq, err)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read segments of pipeline %d: %w", pipeline, err)
	}
	return out, nil
}

// ReclaimableSegments are the segments below active (the one being written) that have no
// live or pending slice (R1), by seq.
func (r *reader) ReclaimableSegments(pipeline change.PipelineID, active segment.Seq) ([]segment.Seq, error) {
	all, err := r.Segments(pipeline)
	if err != nil {
		return nil, err
	}
	var out []segment.Seq
	for _, s := range all {
		if s.Seq < active && (s.Live == 0 || mutant.On(mutant.ReclaimPartly) && s.Live < s.Slices) {
			out = append(out, s.Seq)
		}
	}
	return out, nil
}

// NewestSlice is the last slice of a table that a reader sees, in the lake or live, the
// zero value when there is none. It changes with every change of the table, and with
// nothing else.
func (s *Snapshot) NewestSlice(table change.TableID) (segment.SliceRef, error) {
	newest := s.facts.lakes[table].MaxRef
	live, err := s.LiveSlices(table)
	if n := len(live); n > 0 && newest.Less(live[n-1].Ref) {
		newest = live[n-1].Ref
	}
	return newest, err
}

// NewerThanLake says that each change in live, which are the table's live slices or some
// of them, supersedes each lake row of its key, so that a reader need not compare order
// tokens. It is true when there are none.
func (r *reader) NewerThanLake(table change.TableID, live []Slice) bool {
	lake := r.facts.lakes[table]
	if lake.Snapshot == 0 {
		return true
	}
	for i := range live {
		s := &live[i]
		if s.Rows == 0 {
			continue
		}
		// Of equal tokens the later in the log wins (M1).
		tie := s.Counts.MinToken == lake.MaxToken && lake.MaxRef.Less(s.Ref)
		if s.Counts.MinToken <= lake.MaxToken && !tie {
			return false
		}
	}
	return true
}
