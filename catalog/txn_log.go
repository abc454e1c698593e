package catalog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// moveSlices marks live slices compacted. The log order of live says where each is among
// all live slices of the table, so that runs of neighbours go by one range.
func (t *Txn) moveSlices(id string, live []Slice, neighbours []bool) error {
	var key, row []byte
	t.dirty = true
	for i := range live {
		s := &live[i]
		seg, err := t.segment(s.Pipeline, s.Ref.Seq)
		if err != nil {
			return err
		}
		seg.Live--
		s.Compacted = id
		key, row = doneKey(key[:0], s.Pipeline, s.Ref), appendSliceRow(row[:0], s)
		if err := t.batch.Set(key, row); err != nil {
			return fmt.Errorf("slice %s: %w", s.Ref, err)
		}
	}
	for from := 0; from < len(live); {
		to := from
		for to+1 < len(live) && neighbours[to+1] {
			to++
		}
		if err := t.deleteLive(live[from].Table, live[from].Ref, live[to].Ref); err != nil {
			return fmt.Errorf("slices %s to %s: %w", live[from].Ref, live[to].Ref, err)
		}
		from = to + 1
	}
	return t.flushSegments()
}

// deleteLive removes the live rows from first to last.
func (t *Txn) deleteLive(table change.TableID, first, last segment.SliceRef) error {
	lower := liveKey(nil, table, first)
	if first == last {
		return t.delete(lower)
	}
	return t.deleteRange(lower, append(liveKey(nil, table, last), 0))
}

// DeleteSegment removes a segment and its slices from the catalog. Do it after its marker
// is gone and before its body may be used again, or the other way round if the log can
// tell. It wraps ErrSegmentLive (R1); of a segment that does not exist it does nothing.
func (t *Txn) DeleteSegment(pipeline change.PipelineID, seq segment.Seq) error {
	if t.publication != nil {
		return errPublishing
	}
	seg, err := t.segment(pipeline, seq)
	if errors.Is(err, ErrSegmentNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if seg.Live > 0 {
		return fmt.Errorf("delete segment %d: %d: %w", seq, seg.Live, ErrSegmentLive)
	}
	t.segments[segmentID{pipeline, seq}] = nil
	lower, upper := doneRange(pipeline, seq)
	if err := errors.Join(t.deleteRange(lower, upper), t.delete(segmentKey(nil, pipeline, seq))); err != nil {
		return fmt.Errorf("delete segment %d: %w", seq, err)
	}
	return nil
}

// segment is the transaction's own copy of a segment row, written by flushSegments.
func (t *Txn) segment(pipeline change.PipelineID, seq segment.Seq) (*Segment, error) {
	if p := t.publication; p != nil && pipeline == p.pipeline && seq == p.rows.segment.Seq {
		return &p.rows.segment, nil // the publication writes it
	}
	id := segmentID{pipeline, seq}
	if s, ok := t.segments[id]; ok {
		if s == nil {
			return nil, fmt.Errorf("segment %d: %w", seq, ErrSegmentNotFound)
		}
		return s, nil
	}
	row, err := t.kv.Get(segmentKey(nil, pipeline, seq))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("segment %d: %w", seq, ErrSegmentNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", seq, err)
	}
	s := &Segment{Pipeline: pipeline, Seq: seq}
	if err := decodeSegmentRow(row, s); err != nil {
		return nil, fmt.Errorf("segment %d: %w", seq, err)
	}
	t.segments[id] = s
	t.cooled[pipeline] = struct{}{}
	return s, nil
}

// flushSegments adds the segment rows that were changed to the batch.
func (t *Txn) flushSegments() error {
	for id, s := range t.segments {
		if s == nil { // deleted
			continue
		}
		t.dirty = true
		if err := t.batch.Set(segmentKey(nil, id.pipeline, id.seq), appendSegmentRow(nil, s)); err != nil {
			return fmt.Errorf("put segment %d: %w", id.seq, err)
		}
	}
	return nil
}

// livesOf finds the live slices with the given refs, which are sorted; ErrStale if one is
// not live. neighbours[i] says that no other live slice is between the i-th and the one
// before.
func (t *Txn) livesOf(table change.TableID, refs []segment.SliceRef) (
	out []Slice, neighbours []bool, err error,
) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	lower := liveKey(nil, table, refs[0])
	upper := append(liveKey(nil, table, refs[len(refs)-1]), 0)
	var want []byte
	neighbour := false
	err = t.kv.Iterate(lower, upper, func(key, row []byte) error {
		want = liveKey(want[:0], table, refs[len(out)])
		switch c := bytes.Compare(key, want); {
		case c < 0: // not one of refs
			neighbour = false
			return nil
		case c > 0:
			return kv.Stop
		}
		var s Slice
		if err := decodeSlice(key, row, &s); err != nil {
			return err
		}
		out, neighbours = append(out, s), append(neighbours, neighbour)
		neighbour = true
		return nil // the last of refs is the last key in range
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read slices: %w", err)
	}
	if len(out) < len(refs) {
		return nil, nil, fmt.Errorf("slice %s is not live: %w", refs[len(out)], ErrStale)
	}
	return out, neighbours, nil
}

func compareRefs(a, b segment.SliceRef) int {
	switch {
	case a == b:
		return 0
	case a.Less(b):
		return -1
	}
	return 1
}
