package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// ackedMax bounds the acked compactions kept per table.
const ackedMax = 20

// compactionRow is the durable form of Compaction.
type compactionRow struct {
	Compaction
	Slices []byte // packed refs; hides Compaction.Slices
}

func encodeCompaction(c *Compaction) ([]byte, error) {
	row := compactionRow{Compaction: *c, Slices: packRefs(c.Slices)}
	return encodeJSON(&row)
}

func decodeCompaction(row []byte) (*Compaction, error) {
	var r compactionRow
	if err := decodeJSON(row, &r); err != nil {
		return nil, err
	}
	c := r.Compaction
	var err error
	c.Slices, err = unpackRefs(r.Slices)
	return &c, err
}

// PlanCompaction records a compaction before its files are written, or again with other
// numbers (Rows, Deletes, Bytes). State, Generation, SliceCount and a zero PlannedAt are
// set here. It wraps ErrCompactionAcked, ErrTableNotFound, or ErrStale when a slice is
// not live.
func (t *Txn) PlanCompaction(c *Compaction) error {
	if c.ID == "" || len(c.ID) > compactionIDBytesMax {
		return fmt.Errorf("plan compaction: id of %d bytes", len(c.ID))
	}
	tbl, err := t.reader.TableByID(c.Table)
	if err != nil {
		return err
	}
	if acked, err := t.acked(c.ID); err != nil || acked {
		return errors.Join(err, fmt.Errorf("plan compaction %s: %w", c.ID, ErrCompactionAcked))
	}
	c = c.Clone()
	slices.SortFunc(c.Slices, compareRefs)
	if old, ok := t.facts.planned[c.ID]; ok && (old.Table != c.Table || !slices.Equal(old.Slices, c.Slices)) {
		return fmt.Errorf("plan compaction %s: other slices under the same id: %w", c.ID, ErrStale)
	}
	if _, err := t.livesOf(c.Table, c.Slices); err != nil {
		return fmt.Errorf("plan compaction %s: %w", c.ID, err)
	}
	c.State, c.Generation, c.SliceCount = CompactionPlanned, tbl.Generation, len(c.Slices)
	if c.PlannedAt.IsZero() {
		c.PlannedAt = t.now
	}
	own(&t.facts.planned, &t.owned.planned)
	t.facts.planned[c.ID] = c
	return t.putCompaction(c)
}

// DropCompaction forgets a planned compaction whose output is given up. Of one that does
// not exist it does nothing; of an acked one it wraps ErrCompactionAcked.
func (t *Txn) DropCompaction(id string) error {
	c, ok := t.facts.planned[id]
	if !ok {
		acked, err := t.acked(id)
		if acked {
			err = ErrCompactionAcked
		}
		if err != nil {
			return fmt.Errorf("drop compaction %s: %w", id, err)
		}
		return nil
	}
	own(&t.facts.planned, &t.owned.planned)
	delete(t.facts.planned, id)
	if err := t.delete(compactionKey(c.Table, id)); err != nil {
		return fmt.Errorf("drop compaction %s: %w", id, err)
	}
	return nil
}

// AckCompaction makes the outcome of a planned compaction visible: the table's lake state
// is replaced by lake and its slices are no longer live, in one transaction. refs must be
// the planned slices (N1), or nil to take those. Acked before, it does nothing (C2).
// It wraps ErrCompactionNotFound or ErrStale.
func (t *Txn) AckCompaction(id string, lake LakeState, refs []segment.SliceRef) error {
	if t.publishing {
		return errPublishing
	}
	plan, ok := t.facts.planned[id]
	if !ok {
		acked, err := t.acked(id)
		if err != nil || acked {
			return err
		}
		return &NotFoundError{KindCompaction, id}
	}
	if refs != nil {
		given := slices.SortedFunc(slices.Values(refs), compareRefs)
		if !slices.Equal(given, plan.Slices) {
			return fmt.Errorf("ack compaction %s: slices are not the planned ones: %w", id, ErrStale)
		}
	}
	live, err := t.livesOf(plan.Table, plan.Slices)
	if err != nil {
		return fmt.Errorf("ack compaction %s: %w", id, err)
	}
	if err := t.moveSlices(id, live); err != nil {
		return fmt.Errorf("ack compaction %s: %w", id, err)
	}
	if err := t.ackLake(plan, lake); err != nil {
		return fmt.Errorf("ack compaction %s: %w", id, err)
	}
	c := *plan
	c.State, c.Slices, c.Snapshot, c.FinishedAt = CompactionAcked, nil, lake.Snapshot, t.now
	own(&t.facts.planned, &t.owned.planned)
	delete(t.facts.planned, id)
	t.dirty = true
	if err := t.batch.Set(ackedKey(id), tableKey(prefixCompaction, c.Table)); err != nil {
		return fmt.Errorf("ack compaction %s: %w", id, err)
	}
	if err := t.putCompaction(&c); err != nil {
		return err
	}
	return t.trimAcked(c.Table)
}

// moveSlices marks live slices compacted.
func (t *Txn) moveSlices(id string, live []Slice) error {
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
		key = liveKey(key[:0], s.Table, s.Ref)
		if err := t.batch.Delete(key); err != nil {
			return fmt.Errorf("slice %s: %w", s.Ref, err)
		}
		key, row = doneKey(key[:0], s.Pipeline, s.Ref), appendSliceRow(row[:0], s)
		if err := t.batch.Set(key, row); err != nil {
			return fmt.Errorf("slice %s: %w", s.Ref, err)
		}
	}
	return t.flushSegments()
}

// ackLake replaces the lake state after the slices were moved.
func (t *Txn) ackLake(c *Compaction, lake LakeState) error {
	row := t.facts.lakes[c.Table]
	row.LakeState = lake
	if n := len(c.Slices); n > 0 {
		if last := c.Slices[n-1]; row.MaxRef.Less(last) {
			row.MaxRef = last
		}
	}
	// What is live now is at or above the first live slice, or, if there is none, above
	// all slices so far, since the log grows upward.
	next := row.MaxRef
	next.Start++
	lower, upper := liveRange(c.Table, row.LiveFrom)
	err := t.kv.Iterate(lower, upper, func(key, _ []byte) error {
		_, ref, ok := splitSliceKey(key)
		if !ok {
			return fmt.Errorf("slice key: %w", ErrCorrupt)
		}
		next = ref
		return kv.Stop
	})
	if err != nil {
		return fmt.Errorf("first live slice: %w", err)
	}
	row.LiveFrom = next
	return t.putLakeRow(c.Table, &row)
}

// PutLakeState replaces a table's lake state without touching slices: maintenance of the
// lake.
func (t *Txn) PutLakeState(table change.TableID, lake LakeState) error {
	if _, err := t.reader.TableByID(table); err != nil {
		return err
	}
	row := t.facts.lakes[table]
	row.LakeState = lake
	return t.putLakeRow(table, &row)
}

// putLakeRow stores the row, or removes it if nil.
func (t *Txn) putLakeRow(table change.TableID, row *lakeRow) error {
	own(&t.facts.lakes, &t.owned.lakes)
	key := tableKey(prefixLake, table)
	if row == nil {
		delete(t.facts.lakes, table)
		return t.delete(key)
	}
	t.facts.lakes[table] = *row
	if err := t.setJSON(key, row); err != nil {
		return fmt.Errorf("put lake state of table %d: %w", table, err)
	}
	return nil
}

// DeleteSegment removes a segment and its slices from the catalog. Do it after its marker
// is gone and before its body may be used again, or the other way round if the log can
// tell. It wraps ErrSegmentLive (R1); of a segment that does not exist it does nothing.
func (t *Txn) DeleteSegment(pipeline change.PipelineID, seq segment.Seq) error {
	if t.publishing {
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
// not live.
func (t *Txn) livesOf(table change.TableID, refs []segment.SliceRef) ([]Slice, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	out := make([]Slice, 0, len(refs))
	lower := liveKey(nil, table, refs[0])
	upper := append(liveKey(nil, table, refs[len(refs)-1]), 0)
	var want []byte
	err := t.kv.Iterate(lower, upper, func(key, row []byte) error {
		want = liveKey(want[:0], table, refs[len(out)])
		switch c := bytes.Compare(key, want); {
		case c < 0: // not one of refs
			return nil
		case c > 0:
			return kv.Stop
		}
		var s Slice
		if err := decodeSlice(key, row, &s); err != nil {
			return err
		}
		out = append(out, s)
		return nil // the last of refs is the last key in range
	})
	if err != nil {
		return nil, fmt.Errorf("read slices: %w", err)
	}
	if len(out) < len(refs) {
		return nil, fmt.Errorf("slice %s is not live: %w", refs[len(out)], ErrStale)
	}
	return out, nil
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

func (t *Txn) acked(id string) (bool, error) {
	_, err := t.kv.Get(ackedKey(id))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read compaction %s: %w", id, err)
	}
	return true, nil
}

func (t *Txn) putCompaction(c *Compaction) error {
	row, err := encodeCompaction(c)
	if err != nil {
		return err
	}
	t.dirty = true
	if err := t.batch.Set(compactionKey(c.Table, c.ID), row); err != nil {
		return fmt.Errorf("put compaction %s: %w", c.ID, err)
	}
	return nil
}

// trimAcked forgets all but the latest acked compactions of a table. One so old is not
// acked again: its slices are no longer live.
func (t *Txn) trimAcked(table change.TableID) error {
	all, err := t.Compactions(table)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c *Compaction) bool { return c.State != CompactionAcked })
	for len(all) > ackedMax {
		if err := t.deleteCompaction(all[0]); err != nil {
			return err
		}
		all = all[1:]
	}
	return nil
}

func (t *Txn) deleteCompactions(table change.TableID) error {
	all, err := t.Compactions(table)
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := t.deleteCompaction(c); err != nil {
			return err
		}
	}
	return nil
}

func (t *Txn) deleteCompaction(c *Compaction) error {
	err := errors.Join(t.delete(compactionKey(c.Table, c.ID)), t.delete(ackedKey(c.ID)))
	if err != nil {
		return fmt.Errorf("delete compaction %s: %w", c.ID, err)
	}
	return nil
}
