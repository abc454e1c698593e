package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// PendingTxn is a source transaction that is in the log in parts and has not ended. Its
// slices are pending: they keep their segments (R1), and no reader sees them (T1) before
// the group that completes it makes them live, or never. A pipeline has one at most,
// since its stream delivers one transaction after the other.
type PendingTxn struct {
	ID     string
	Groups int // its parts
	// Slices, Rows and Bytes are what its parts brought, of tables that there were, but
	// for what is void since.
	Slices      int
	Rows, Bytes int64
	Since       time.Time
}

// partIDBytesMax bounds the id of a transaction in parts.
const partIDBytesMax = 64

// Pending is the pipeline's transaction in parts, if it has one.
func (r *reader) Pending(pipeline change.PipelineID) (PendingTxn, bool) {
	p, ok := r.facts.pending[pipeline]
	return p, ok
}

// eachPending visits a pipeline's pending slices in log order. The slice is valid during
// the call.
func (r *reader) eachPending(pipeline change.PipelineID, fn func(*Slice) error) error {
	var s Slice
	err := kv.IteratePrefix(r.kv, pipelineKey(prefixPending, pipeline), func(key, row []byte) error {
		if err := decodeSlice(key, row, &s); err != nil {
			return err
		}
		return fn(&s)
	})
	if err != nil {
		return fmt.Errorf("read pending slices of pipeline %d: %w", pipeline, err)
	}
	return nil
}

func (r *reader) pendingSlices(pipeline change.PipelineID) ([]Slice, error) {
	if _, ok := r.facts.pending[pipeline]; !ok {
		return nil, nil
	}
	var out []Slice
	err := r.eachPending(pipeline, func(s *Slice) error {
		out = append(out, *s)
		return nil
	})
	return out, err
}

// PendingSlices are a table's pending slices, in log order.
func (r *reader) PendingSlices(pipeline change.PipelineID, table change.TableID) ([]Slice, error) {
	all, err := r.pendingSlices(pipeline)
	return slices.DeleteFunc(all, func(s Slice) bool { return s.Table != table }), err
}

// PendingBySegment counts a pipeline's pending slices.
func (r *reader) PendingBySegment(pipeline change.PipelineID) (map[segment.Seq]int, error) {
	all, err := r.pendingSlices(pipeline)
	if err != nil {
		return nil, err
	}
	out := map[segment.Seq]int{}
	for i := range all {
		out[all[i].Ref.Seq]++
	}
	return out, nil
}

// PartOf says that the group being published is a part of the transaction id: its slices
// become pending. Those of another transaction become void: a stream that begins a
// transaction has given up the one before. For Deps.ApplyState.
func (t *Txn) PartOf(id string) error {
	if t.publication == nil || id == "" || len(id) > partIDBytesMax {
		return fmt.Errorf("part of transaction %q: %w", id, errDisorder)
	}
	pipeline := t.publication.pipeline
	cur, ok := t.facts.pending[pipeline]
	if ok && cur.ID != id {
		if err := t.VoidPending(pipeline); err != nil {
			return err
		}
		ok = false
	}
	if !ok {
		cur = PendingTxn{ID: id, Since: t.now}
	}
	cur.Groups++
	t.publication.part = true
	return t.putPending(pipeline, &cur)
}

// Complete makes the pending slices of the transaction id live, in log order, with those
// of the group being published. The transaction has so many parts, the first of them in
// segment first; when that is no longer in the log, those that are may be fewer. For
// Deps.ApplyState.
func (t *Txn) Complete(id string, parts int, first segment.Seq) error {
	if t.publication == nil {
		return fmt.Errorf("complete transaction %q: %w", id, errDisorder)
	}
	pipeline := t.publication.pipeline
	cur, ok := t.facts.pending[pipeline]
	if !ok || cur.ID != id || cur.Groups != parts {
		_, err := t.segment(pipeline, first)
		if err == nil {
			return fmt.Errorf("complete transaction %q of %d parts: %q has %d: %w", id, parts, cur.ID, cur.Groups, errDisorder)
		}
		if !errors.Is(err, ErrSegmentNotFound) {
			return err
		}
	}
	if !ok || cur.ID != id {
		return nil // the void one goes with the next part, or session
	}
	all, err := t.pendingSlices(pipeline)
	if err != nil {
		return err
	}
	for i := range all {
		if err := t.enliven(&all[i]); err != nil {
			return fmt.Errorf("complete transaction %q: slice %s: %w", id, all[i].Ref, err)
		}
	}
	if err := t.listAnew(all); err != nil {
		return fmt.Errorf("complete transaction %q: %w", id, err)
	}
	t.publication.completed = true
	return t.forgetPending(pipeline)
}

// CompleteHeld makes the pending slices of the transaction id live, in log order: its point of
// commit is that of this transaction, and no group's. false: they, or some of its so many parts,
// are not pending (any more), and nothing is done. No group of the pipeline is under way.
func (t *Txn) CompleteHeld(pipeline change.PipelineID, id string, parts int) (bool, error) {
	if t.publication != nil {
		return false, errPublishing
	}
	cur, ok := t.facts.pending[pipeline]
	if !ok || cur.ID != id || cur.Groups != parts {
		return false, nil
	}
	all, err := t.pendingSlices(pipeline)
	if err != nil {
		return false, err
	}
	t.defines = true // the log says nothing of it
	for i := range all {
		all[i].CommittedAt = t.now
		if err := t.enliven(&all[i]); err != nil {
			return false, fmt.Errorf("complete transaction %q: slice %s: %w", id, all[i].Ref, err)
		}
	}
	if err := t.listAnew(all); err != nil {
		return false, fmt.Errorf("complete transaction %q: %w", id, err)
	}
	return true, t.forgetPending(pipeline)
}

// enliven makes a pending slice live. Its rows are read from now on.
func (t *Txn) enliven(s *Slice) error {
	s.PublishedAt = t.now
	if t.publication != nil {
		s.CommittedAt = t.publication.group.CommittedAt
	}
	t.dirty = true
	return t.batch.Set(liveKey(nil, s.Table, s.Ref), appendSliceRow(nil, s))
}

// listAnew begins an epoch of the tables whose live slices grew before their end.
func (t *Txn) listAnew(added []Slice) error {
	lowest := map[change.TableID]segment.SliceRef{}
	for i := range added { // in log order
		if _, ok := lowest[added[i].Table]; !ok {
			lowest[added[i].Table] = added[i].Ref
		}
	}
	for _, table := range slices.Sorted(maps.Keys(lowest)) {
		ref := lowest[table]
		row := t.facts.lakes[table]
		if ref.Less(row.LiveFrom) {
			row.LiveFrom = ref
		}
		row.epoch = t.nextEpoch()
		if err := t.putLakeRow(table, &row); err != nil {
			return err
		}
	}
	return nil
}

// VoidPending makes the pipeline's pending slices void: they never become visible, and
// do not keep their segments. Without any it does nothing. The caller knows that no part
// of the transaction is under way any more.
func (t *Txn) VoidPending(pipeline change.PipelineID) error {
	if _, ok := t.facts.pending[pipeline]; !ok {
		return nil
	}
	t.defines = t.defines || t.publication == nil // else the log says so again
	if err := t.voidSlices(pipeline, 0); err != nil {
		return err
	}
	return t.forgetPending(pipeline)
}

// VoidPendingOf makes the pending slices of one table void: what becomes visible when
// their transaction is complete has none of them.
func (t *Txn) VoidPendingOf(table change.TableID) error {
	tbl, ok := t.facts.tables[table]
	if !ok {
		return nil
	}
	cur, ok := t.facts.pending[tbl.Pipeline]
	if !ok {
		return nil
	}
	all, err := t.pendingSlices(tbl.Pipeline)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Table == table {
			cur.Slices--
			cur.Rows -= int64(all[i].Rows)
			cur.Bytes -= int64(all[i].Length)
		}
	}
	return errors.Join(t.voidSlices(tbl.Pipeline, table), t.putPending(tbl.Pipeline, &cur))
}

// voidSlices removes the pending slices of a table, or of all if it is 0.
func (t *Txn) voidSlices(pipeline change.PipelineID, table change.TableID) error {
	all, err := t.pendingSlices(pipeline)
	if err != nil {
		return err
	}
	var key []byte
	versions := map[change.TableID]uint32{}
	for i := range all {
		s := &all[i]
		if table != 0 && s.Table != table {
			continue
		}
		if mutant.On(mutant.KeepVoidParts) {
			if err := t.enliven(s); err != nil {
				return err
			}
			continue
		}
		seg, err := t.segment(pipeline, s.Ref.Seq)
		if err != nil {
			return err
		}
		seg.Live--
		versions[s.Table] = max(versions[s.Table], s.SchemaVersion)
		key = pendingKey(key[:0], pipeline, s.Ref)
		if err := t.delete(key); err != nil {
			return fmt.Errorf("slice %s: %w", s.Ref, err)
		}
	}
	return errors.Join(t.voidVersions(versions), t.flushSegments())
}

// voidVersions notes the schema versions of void slices that tables do not have: their
// transaction was to bring them.
func (t *Txn) voidVersions(versions map[change.TableID]uint32) error {
	for _, id := range slices.Sorted(maps.Keys(versions)) {
		v := versions[id]
		tbl, err := t.TableByID(id)
		if errors.Is(err, ErrTableNotFound) || err == nil && (tbl.Current == nil || v <= max(tbl.Current.Version, tbl.VoidVersion)) {
			continue
		}
		if err == nil {
			tbl.VoidVersion = v
			err = t.PutTable(tbl)
		}
		if err != nil {
			return fmt.Errorf("note void schema version %d: %w", v, err)
		}
	}
	return nil
}

func (t *Txn) putPending(pipeline change.PipelineID, p *PendingTxn) error {
	own(&t.facts.pending, &t.owned.pending)
	t.facts.pending[pipeline] = *p
	if err := t.setJSON(pipelineKey(prefixPendingTxn, pipeline), p); err != nil {
		return fmt.Errorf("put transaction %q: %w", p.ID, err)
	}
	return nil
}

func (t *Txn) forgetPending(pipeline change.PipelineID) error {
	own(&t.facts.pending, &t.owned.pending)
	delete(t.facts.pending, pipeline)
	lower := pipelineKey(prefixPending, pipeline)
	err := errors.Join(t.deleteRange(lower, kv.PrefixEnd(lower)), t.delete(pipelineKey(prefixPendingTxn, pipeline)))
	if err != nil {
		return fmt.Errorf("forget pending transaction of pipeline %d: %w", pipeline, err)
	}
	return nil
}
