package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// A catalog whose store was lost begins with its image: the facts as of a moment, the
// offset of each pipeline among them. What came after is in the logs, whose recovery
// publishes it, and in the lake, whose commits are adopted. Until both are done for a
// pipeline it is being rebuilt: only Replay publishes, and nothing is compacted.

// rebuildRow is the durable form of an unfinished rebuild.
type rebuildRow struct {
	Since time.Time
	// Problem is why the last attempt failed, "" before its end.
	Problem string `json:",omitempty"`
}

func rebuildKey(id change.PipelineID) []byte { return pipelineKey(prefixRebuild, id) }

// restore fills an empty store with the backup's image, if there is one.
func (c *Catalog) restore() (done bool, err error) {
	if c.deps.Backup == nil {
		return false, nil
	}
	image, err := c.deps.Backup.Read()
	if err != nil {
		return false, fmt.Errorf("read backup: %w", err)
	}
	if image == nil {
		return false, nil
	}
	rows, err := c.checkedImage(image)
	if err != nil {
		return false, fmt.Errorf("read backup: %w", err)
	}
	b := c.store.NewBatch()
	defer func() { _ = b.Close() }() // nothing is lost: committed or given up
	mark, err := encodeJSON(rebuildRow{Since: c.deps.Clock.Now().UTC()})
	if err != nil {
		return false, err
	}
	err = b.Set([]byte{prefixRebuild}, mark)
	for _, r := range rows {
		err = errors.Join(err, b.Set(r.key, r.value))
		if id, ok := ownerOfKey(r.key); ok && r.key[0] == prefixPipeline {
			err = errors.Join(err, b.Set(rebuildKey(change.PipelineID(id)), mark))
		}
	}
	if err == nil {
		err = b.Commit(true)
	}
	if err != nil {
		return false, fmt.Errorf("restore backup: %w", err)
	}
	c.deps.Log.Warn("catalog restored from its backup", env.KeyCount, len(rows), env.KeyBytes, len(image))
	return true, nil
}

// checkedImage takes an image apart that this program can read, sealed with this key.
func (c *Catalog) checkedImage(image []byte) ([]imageRow, error) {
	rows, err := parseImage(image)
	if err != nil {
		return nil, err
	}
	value := func(prefix byte) []byte {
		i := slices.IndexFunc(rows, func(r imageRow) bool { return len(r.key) == 1 && r.key[0] == prefix })
		if i < 0 {
			return nil
		}
		return rows[i].value
	}
	if err := checkFormatRow(value(prefixFormat)); err != nil {
		return nil, err
	}
	return rows, c.checkKeyRow(value(prefixKeyCheck))
}

// BeingRebuilt says whether the rebuild of a pipeline is not finished.
func (r *reader) BeingRebuilt(id change.PipelineID) bool {
	_, ok := r.facts.rebuilding[id]
	return ok
}

// RebuildProblem is why a pipeline could not be rebuilt, "" when it is whole, or nobody has
// tried yet. Its tables lack rows that were there before the catalog was lost.
func (r *reader) RebuildProblem(id change.PipelineID) string { return r.facts.rebuilding[id].Problem }

// Rebuilding are the pipelines that are being rebuilt, by id. restored says that the
// catalog began with its backup and has not been told that all is done.
func (r *reader) Rebuilding() (pipelines []change.PipelineID, restored bool) {
	return slices.Sorted(maps.Keys(r.facts.rebuilding)), r.facts.restored
}

// Replay has recover publish what the log of a pipeline holds, also while the pipeline is
// being rebuilt.
func (c *Catalog) Replay(ctx context.Context, id change.PipelineID, recover func(context.Context) error) error {
	set := func(on bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.replaying == nil {
			c.mu.replaying = map[change.PipelineID]bool{}
		}
		c.mu.replaying[id] = on
	}
	set(true)
	defer set(false)
	return recover(ctx)
}

// mayPublishLocked keeps a log from being opened by others than Replay while its pipeline
// is being rebuilt: what it published next could be in the lake already.
func (c *Catalog) mayPublishLocked(id change.PipelineID) error {
	c.view.Lock()
	row, rebuilding := c.view.facts.rebuilding[id]
	c.view.Unlock()
	switch {
	case !rebuilding || c.mu.replaying[id]:
		return nil
	case row.Problem != "":
		return fmt.Errorf("%w, which failed: %s", ErrRebuilding, row.Problem)
	}
	return fmt.Errorf("pipeline %d: %w", id, ErrRebuilding)
}

// Committed is a compaction that the lake names.
type Committed struct {
	ID     string
	Slices []segment.SliceRef
}

// AdoptCompactions makes known what the lake says of a table: its state, and the
// compactions of the table's present generation that are in it. Their slices that are
// live are so no more, whoever put them there (N1); planned compactions of such slices
// are forgotten. It returns how many slices it took.
func (t *Txn) AdoptCompactions(table change.TableID, lake LakeState, all []Committed) (taken int, err error) {
	if t.publication != nil {
		return 0, errPublishing
	}
	if _, err := t.reader.TableByID(table); err != nil {
		return 0, err
	}
	by := map[segment.SliceRef]int{}
	var last Compaction
	last.Table = table
	for i, c := range all {
		for _, ref := range c.Slices {
			by[ref] = i
		}
		last.Slices = append(last.Slices, c.Slices...)
	}
	slices.SortFunc(last.Slices, compareRefs)
	found, err := t.liveAmong(table, by, len(all))
	if err != nil {
		return 0, err
	}
	for i, f := range found {
		if len(f.live) == 0 {
			continue
		}
		taken += len(f.live)
		if err := t.adopt(table, &all[i], lake.Snapshot, f); err != nil {
			return 0, fmt.Errorf("adopt compaction %s: %w", all[i].ID, err)
		}
	}
	if err := t.dropTaken(table, by); err != nil {
		return 0, err
	}
	if err := t.ackLake(&last, lake); err != nil {
		return 0, fmt.Errorf("adopt lake state of table %d: %w", table, err)
	}
	return taken, t.trimAcked(table)
}

// adopted are the live slices that one compaction took; see livesOf.
type adopted struct {
	live       []Slice
	neighbours []bool
}

// liveAmong finds the live slices of a table that by names, each with its compaction.
func (t *Txn) liveAmong(table change.TableID, by map[segment.SliceRef]int, n int) ([]adopted, error) {
	out := make([]adopted, n)
	before := -1 // whose the live slice before is
	err := t.eachLive(table, func(s *Slice) error {
		i, ok := by[s.Ref]
		if !ok {
			before = -1
			return nil
		}
		out[i].live, out[i].neighbours = append(out[i].live, *s), append(out[i].neighbours, before == i)
		before = i
		return nil
	})
	return out, err
}

// adopt marks slices compacted and notes the compaction as acked.
func (t *Txn) adopt(table change.TableID, c *Committed, snapshot int64, f adopted) error {
	tbl, err := t.reader.TableByID(table)
	if err != nil {
		return err
	}
	if err := t.moveSlices(c.ID, f.live, f.neighbours); err != nil {
		return err
	}
	if err := t.batch.Set(ackedKey(c.ID), tableKey(prefixCompaction, table)); err != nil {
		return err
	}
	return t.putCompaction(&Compaction{
		ID: c.ID, Table: table, SliceCount: len(c.Slices), Generation: tbl.Generation, State: CompactionAcked,
		Snapshot: snapshot, PlannedAt: t.now, FinishedAt: t.now,
	})
}

// dropTaken forgets planned compactions that have a slice of by.
func (t *Txn) dropTaken(table change.TableID, by map[segment.SliceRef]int) error {
	for _, p := range t.PlannedCompactions(table) {
		if !slices.ContainsFunc(p.Slices, func(r segment.SliceRef) bool { _, ok := by[r]; return ok }) {
			continue
		}
		own(&t.facts.planned, &t.owned.planned)
		delete(t.facts.planned, p.ID)
		acked, err := t.acked(p.ID)
		if err == nil && !acked {
			err = t.delete(compactionKey(table, p.ID))
		}
		if err != nil {
			return fmt.Errorf("forget compaction %s: %w", p.ID, err)
		}
	}
	return nil
}

// FinishRebuild says that a pipeline's log was replayed and its lake commits adopted.
func (t *Txn) FinishRebuild(id change.PipelineID) error {
	own(&t.facts.rebuilding, &t.owned.rebuilding)
	delete(t.facts.rebuilding, id)
	return t.delete(rebuildKey(id))
}

// FailRebuild notes why a pipeline could not be rebuilt, in a clause.
func (t *Txn) FailRebuild(id change.PipelineID, problem string) error {
	row, ok := t.facts.rebuilding[id]
	if !ok {
		return nil
	}
	own(&t.facts.rebuilding, &t.owned.rebuilding)
	row.Problem = problem
	t.facts.rebuilding[id] = row
	return t.setJSON(rebuildKey(id), row)
}

// FinishRestore says that nothing of a lost catalog is left to be done.
func (t *Txn) FinishRestore() error {
	t.facts.restored = false
	return t.delete([]byte{prefixRebuild})
}

func (f *facts) loadRebuild(key, row []byte) error {
	if len(key) == 0 {
		f.restored = true
		return nil
	}
	id, err := decodeID(key)
	if err != nil {
		return err
	}
	var r rebuildRow
	err = decodeJSON(row, &r)
	f.rebuilding[change.PipelineID(id)] = r
	return err
}

// Leftovers are what dropped tables and pipelines still have outside the catalog. A
// drop notes them with the rows it deletes, so that who removes them may be killed and
// begin again.
type Leftovers struct {
	Lakes []change.TableID    // lake sides, by the id of their table
	Logs  []change.PipelineID // logs
}

// LeaveLake notes that the lake side of a deleted table is to be removed.
func (t *Txn) LeaveLake(id change.TableID) error {
	if err := t.setJSON(tableKey(prefixLeftLake, id), struct{}{}); err != nil {
		return fmt.Errorf("note lake side of table %d: %w", id, err)
	}
	return nil
}

// LeaveLog notes that the log of a deleted pipeline is to be removed.
func (t *Txn) LeaveLog(id change.PipelineID) error {
	if err := t.setJSON(pipelineKey(prefixLeftLog, id), struct{}{}); err != nil {
		return fmt.Errorf("note log of pipeline %d: %w", id, err)
	}
	return nil
}

// ForgetLeftovers notes that what l names has been removed. What is not noted is no
// error.
func (t *Txn) ForgetLeftovers(l Leftovers) error {
	var err error
	for _, id := range l.Lakes {
		err = errors.Join(err, t.delete(tableKey(prefixLeftLake, id)))
	}
	for _, id := range l.Logs {
		err = errors.Join(err, t.delete(pipelineKey(prefixLeftLog, id)))
	}
	if err != nil {
		return fmt.Errorf("forget leftovers: %w", err)
	}
	return nil
}

// Leftovers are what is still to be removed.
func (r *reader) Leftovers() (l Leftovers, err error) {
	err = errors.Join(
		r.leftovers(prefixLeftLake, func(id uint32) { l.Lakes = append(l.Lakes, change.TableID(id)) }),
		r.leftovers(prefixLeftLog, func(id uint32) { l.Logs = append(l.Logs, change.PipelineID(id)) }),
	)
	return l, err
}

func (r *reader) leftovers(prefix byte, add func(id uint32)) error {
	err := kv.IteratePrefix(r.kv, []byte{prefix}, func(k, _ []byte) error {
		if len(k) != 5 {
			return fmt.Errorf("key %x: %w", k, ErrCorrupt)
		}
		add(binary.BigEndian.Uint32(k[1:]))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read leftovers: %w", err)
	}
	return nil
}
