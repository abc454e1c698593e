package catalog

import (
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
	if t.BeingRebuilt(tbl.Pipeline) {
		return fmt.Errorf("plan compaction %s: %w", c.ID, ErrRebuilding)
	}
	if acked, err := t.acked(c.ID); err != nil || acked {
		return errors.Join(err, fmt.Errorf("plan compaction %s: %w", c.ID, ErrCompactionAcked))
	}
	c = c.Clone()
	slices.SortFunc(c.Slices, compareRefs)
	if old, ok := t.facts.planned[c.ID]; ok && (old.Table != c.Table || !slices.Equal(old.Slices, c.Slices)) {
		return fmt.Errorf("plan compaction %s: other slices under the same id: %w", c.ID, ErrStale)
	}
	if _, _, err := t.livesOf(c.Table, c.Slices); err != nil {
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
	if t.publication != nil {
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
	live, neighbours, err := t.livesOf(plan.Table, plan.Slices)
	if err != nil {
		return fmt.Errorf("ack compaction %s: %w", id, err)
	}
	if err := t.moveSlices(id, live, neighbours); err != nil {
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
	row.LiveFrom, row.epoch = next, t.nextEpoch()
	return t.putLakeRow(c.Table, &row)
}

// nextEpoch is the epoch of a table whose live slices this transaction removes.
func (t *Txn) nextEpoch() uint64 { return t.facts.version + 1 }

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
	rows := 0 // decoding them is dear, and there are rarely too many
	err := kv.IteratePrefix(t.kv, tableKey(prefixCompaction, table), func(_, _ []byte) error {
		rows++
		return nil
	})
	if err != nil {
		return fmt.Errorf("count compactions of table %d: %w", table, err)
	}
	if rows <= ackedMax {
		return nil
	}
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
