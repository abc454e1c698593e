package iceberg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/env"
)

// Commit implements lake.Table.
func (t *tableHandle) Commit(ctx context.Context, c lake.Commit) (*lake.Snapshot, error) {
	s, err := t.commit(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("commit to lake table %s: %w", t.ident, err)
	}
	return s, nil
}

func (t *tableHandle) commit(ctx context.Context, c lake.Commit) (*lake.Snapshot, error) {
	if err := t.reload(ctx); err != nil {
		return nil, err
	}
	if done, err := t.Find(ctx, c.CompactionID); done != nil || err != nil {
		return done, err
	}
	if err := (notFenced{c.Epoch}).Validate(t.meta); err != nil {
		return nil, err
	}
	if c.Base != t.head.ID {
		return nil, fmt.Errorf("%w: base %d, head %d", lake.ErrConflict, c.Base, t.head.ID)
	}
	u := update{Commit: c, props: checkpoint(c, t.head), operation: operation(c)}
	if c.ReplaceAll {
		u.remove = everyFile(t.head)
	}
	st, err := t.stage(ctx, u)
	if err != nil {
		st.undo(t.w.io)
		return nil, err
	}
	reqs := append(st.requirements, notFenced{c.Epoch})
	st.updates = append(st.updates, t.raiseFence(c.Epoch)...)
	meta, location, err := t.w.catalog.CommitTable(ctx, identifier(t.ident), reqs, st.updates)
	if err != nil {
		return t.resolve(ctx, c.CompactionID, st, err)
	}
	t.adopt(u, st, meta, location)
	t.w.log.Info("snapshot committed", env.KeyTable, t.ident.String(), env.KeySnapshot, t.head.ID,
		env.KeyCompaction, c.CompactionID, "files", len(c.AddFiles), "delete_files", len(c.AddDeletes), env.KeyRows,
		t.head.Rows)
	return t.head, nil
}

// update is the difference between a snapshot and the next.
type update struct {
	lake.Commit
	// remove are the paths of data and delete files that go.
	remove    map[string]struct{}
	operation table.Operation
	// props go into the summary and the table's properties.
	props icebergo.Properties
}

func everyFile(s *lake.Snapshot) map[string]struct{} {
	all := make(map[string]struct{}, len(s.Files)+len(s.PositionDeletes))
	for _, f := range s.Files {
		all[f.Path] = struct{}{}
	}
	for _, d := range s.PositionDeletes {
		all[d.Path] = struct{}{}
	}
	return all
}

// resolve decides what a failed commit did: the table's snapshots know (C3).
func (t *tableHandle) resolve(
	ctx context.Context, compactionID string, st *staged, cause error,
) (*lake.Snapshot, error) {
	ctx = context.WithoutCancel(ctx) // the question must be answered
	if err := t.reload(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", lake.ErrOutcomeUnknown, errors.Join(cause, err))
	}
	done, err := t.Find(ctx, compactionID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", lake.ErrOutcomeUnknown, errors.Join(cause, err))
	}
	if done != nil {
		return done, nil
	}
	st.undo(t.w.io)
	if errors.Is(cause, table.ErrCommitFailed) && !errors.Is(cause, lake.ErrFenced) {
		return nil, fmt.Errorf("%w: %w", lake.ErrConflict, cause)
	}
	return nil, cause
}

// staged is a snapshot that is written and not yet current.
type staged struct {
	snapshot     *table.Snapshot
	requirements []table.Requirement
	updates      []table.Update
	written      []string // files to remove when the commit fails
}

func (s *staged) undo(io *fileIO) {
	if s == nil {
		return
	}
	for _, f := range s.written {
		_ = io.Remove(f) // else an orphan for Maintain
	}
}

// stage writes the manifests and the manifest list of the new snapshot.
func (t *tableHandle) stage(ctx context.Context, u update) (*staged, error) {
	st := &staged{}
	m, err := t.newManifests(u)
	if err != nil {
		return st, err
	}
	all, err := m.build(ctx, u)
	st.written = m.written
	if err != nil {
		return st, err
	}
	snap := &table.Snapshot{
		SnapshotID: m.snapshotID, SequenceNumber: m.sequence,
		TimestampMs: max(t.w.clock.Now().UnixMilli(), t.meta.LastUpdatedMillis()),
		SchemaID:    &m.schemaID,
	}
	if t.head.ID != 0 {
		snap.ParentSnapshotID = &t.head.ID
	}
	snap.ManifestList = fmt.Sprintf("%s/metadata/snap-%d-%x.avro", t.meta.Location(), snap.SnapshotID, t.w.ids.UUID())
	st.written = append(st.written, snap.ManifestList)
	if err := t.writeManifestList(snap, all); err != nil {
		return st, fmt.Errorf("write manifest list: %w", err)
	}
	props, err := t.properties(u)
	if err != nil {
		return st, err
	}
	snap.Summary = &table.Summary{Operation: u.operation, Properties: t.summary(u)}
	st.snapshot = snap
	st.requirements = []table.Requirement{
		table.AssertTableUUID(t.meta.TableUUID()),
		table.AssertRefSnapshotID(table.MainBranch, snap.ParentSnapshotID),
	}
	if m.newSchema != nil {
		st.updates = append(st.updates, table.NewAddSchemaUpdate(m.newSchema), table.NewSetCurrentSchemaUpdate(-1))
	} else if m.schemaID != t.meta.CurrentSchema().ID {
		st.updates = append(st.updates, table.NewSetCurrentSchemaUpdate(m.schemaID))
	}
	st.updates = append(st.updates,
		table.NewAddSnapshotUpdate(snap),
		table.NewSetSnapshotRefUpdate(table.MainBranch, snap.SnapshotID, table.BranchRef, 0, 0, 0),
		table.NewSetPropertiesUpdate(props))
	return st, nil
}

// properties are what a commit sets of the table's.
func (t *tableHandle) properties(u update) (icebergo.Properties, error) {
	if u.Schema == nil {
		return u.props, nil
	}
	text, changed, err := nextInitial(t.meta, u.Schema)
	if err != nil || !changed {
		return u.props, err
	}
	p := maps.Clone(u.props)
	p[keyInitial] = text
	return p, nil
}

func operation(c lake.Commit) table.Operation {
	switch {
	case c.ReplaceAll, len(c.AddFiles) > 0 && len(c.AddDeletes) > 0:
		return table.OpOverwrite
	case len(c.AddDeletes) > 0:
		return table.OpDelete
	}
	return table.OpAppend
}

// checkpoint is what the table's properties keep, since summaries go with expiry.
func checkpoint(c lake.Commit, head *lake.Snapshot) icebergo.Properties {
	p := icebergo.Properties{
		lake.KeyCompactionID: c.CompactionID,
		lake.KeyGeneration:   strconv.FormatUint(uint64(c.Generation), 10),
		lake.KeyMaxToken:     strconv.FormatInt(maxToken(c, head), 10),
	}
	if c.SourcePosition != "" {
		p[lake.KeySourcePosition] = string(c.SourcePosition)
	}
	if len(c.Slices) > 0 {
		p[lake.KeySeq] = strconv.FormatUint(uint64(c.Slices[len(c.Slices)-1].Seq), 10)
	}
	return p
}

func maxToken(c lake.Commit, head *lake.Snapshot) int64 {
	if c.ReplaceAll {
		return c.MaxToken
	}
	return max(c.MaxToken, head.MaxToken)
}

// sums counts files for a summary.
type sums struct {
	files, rows, bytes, deletes, deleted int64
}

func (s *sums) add(f lake.DataFile) {
	s.files, s.rows, s.bytes = s.files+1, s.rows+f.Rows, s.bytes+f.Bytes
}

func (s *sums) addDeletes(d lake.DeleteFile) {
	s.deletes, s.deleted, s.bytes = s.deletes+1, s.deleted+d.Rows, s.bytes+d.Bytes
}

// summary has our keys, and Iceberg's counts of this snapshot and in total.
func (t *tableHandle) summary(u update) icebergo.Properties {
	p := maps.Clone(u.props)
	if u.Pipeline != "" {
		p[lake.KeyPipeline] = u.Pipeline
	}
	if len(u.Slices) > 0 {
		p[lake.KeySlices] = lake.FormatSlices(u.Slices)
	}
	var added, removed, total sums
	for _, f := range u.AddFiles {
		added.add(f)
		total.add(f)
	}
	for _, d := range u.AddDeletes {
		added.addDeletes(d)
		total.addDeletes(d)
	}
	for _, f := range t.head.Files {
		if _, gone := u.remove[f.Path]; gone {
			removed.add(f)
			continue
		}
		total.add(f)
	}
	for _, d := range t.head.PositionDeletes {
		if _, gone := u.remove[d.Path]; gone {
			removed.addDeletes(d)
			continue
		}
		total.addDeletes(d)
	}
	put := func(key string, n int64) {
		if n != 0 {
			p[key] = strconv.FormatInt(n, 10)
		}
	}
	put("added-data-files", added.files)
	put("added-records", added.rows)
	put("added-files-size", added.bytes)
	put("added-delete-files", added.deletes)
	put("added-position-delete-files", added.deletes)
	put("added-position-deletes", added.deleted)
	put("deleted-data-files", removed.files)
	put("deleted-records", removed.rows)
	put("removed-files-size", removed.bytes)
	put("removed-delete-files", removed.deletes)
	put("removed-position-delete-files", removed.deletes)
	put("removed-position-deletes", removed.deleted)
	always := func(key string, n int64) { p[key] = strconv.FormatInt(n, 10) }
	always("total-data-files", total.files)
	always("total-records", total.rows)
	always("total-files-size", total.bytes)
	always("total-delete-files", total.deletes)
	always("total-position-deletes", total.deleted)
	always("total-equality-deletes", 0)
	return p
}

// adopt makes the committed state the handle's, without reading anything.
func (t *tableHandle) adopt(u update, st *staged, meta table.Metadata, location string) {
	old := t.head
	next := &lake.Snapshot{
		ID: st.snapshot.SnapshotID, Metadata: location, Properties: st.snapshot.Summary.Properties,
		MaxToken: maxToken(u.Commit, old),
	}
	for _, f := range old.Files {
		if _, gone := u.remove[f.Path]; !gone {
			next.Files = append(next.Files, f)
		}
	}
	for _, d := range old.PositionDeletes {
		if _, gone := u.remove[d.Path]; !gone {
			next.PositionDeletes = append(next.PositionDeletes, d)
		}
	}
	named := map[string]struct{}{}
	for _, d := range u.AddDeletes {
		maps.Copy(named, t.pending[d.Path].names)
		next.PositionDeletes = append(next.PositionDeletes, d)
		delete(t.pending, d.Path)
	}
	for i := range next.Files {
		_, ok := named[next.Files[i].Path]
		// A rewrite's delete file stands for all before it.
		next.Files[i].HasDeletes = ok || next.Files[i].HasDeletes && u.operation != table.OpReplace
	}
	for _, f := range u.AddFiles {
		next.Files = append(next.Files, f)
		delete(t.pending, f.Path)
	}
	var total sums
	for _, f := range next.Files {
		total.add(f)
	}
	for _, d := range next.PositionDeletes {
		total.addDeletes(d)
	}
	next.Rows, next.Bytes = total.rows-total.deleted, total.bytes
	// The next commit reads the manifest list: what the writers returned lacks the
	// sequence numbers that the list assigned.
	t.meta, t.location, t.head, t.manifests = meta, location, next, nil
	t.w.snapshots.put(meta.Location(), next, t.w.cfg.SnapshotCache)
}

// schemaFor finds the schema of a commit among the table's, or says that it is new.
func (t *tableHandle) schemaFor(s *schema.Table) (id int, added, current *icebergo.Schema, err error) {
	current = t.meta.CurrentSchema()
	if s == nil {
		return current.ID, nil, current, nil
	}
	want, err := icebergSchema(s)
	if err != nil {
		return 0, nil, nil, err
	}
	last := 0
	for _, have := range t.meta.Schemas() {
		if have.Equals(want) {
			return have.ID, nil, have, nil
		}
		last = max(last, have.ID)
	}
	return last + 1, want, want, nil
}
