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
	if c.Base != t.head.ID {
		return nil, fmt.Errorf("%w: base %d, head %d", lake.ErrConflict, c.Base, t.head.ID)
	}
	st, err := t.stage(ctx, c)
	if err != nil {
		st.undo(t.w.io)
		return nil, err
	}
	meta, location, err := t.w.catalog.CommitTable(ctx, identifier(t.ident), st.requirements, st.updates)
	if err != nil {
		return t.resolve(ctx, c.CompactionID, st, err)
	}
	t.adopt(c, st, meta, location)
	t.w.log.Info("snapshot committed", env.KeyTable, t.ident.String(), env.KeySnapshot, t.head.ID,
		env.KeyCompaction, c.CompactionID, "files", len(c.AddFiles), "delete_files", len(c.AddDeletes), env.KeyRows,
		t.head.Rows)
	return t.head, nil
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
	if errors.Is(cause, table.ErrCommitFailed) {
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
func (t *tableHandle) stage(ctx context.Context, c lake.Commit) (*staged, error) {
	st := &staged{}
	m, err := t.newManifests(c)
	if err != nil {
		return st, err
	}
	all, err := m.build(ctx, c)
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
	props := checkpoint(c, t.head)
	snap.Summary = &table.Summary{Operation: operation(c), Properties: t.summary(c, props, m)}
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

// summary has our keys, and Iceberg's counts of this snapshot and in total.
func (t *tableHandle) summary(c lake.Commit, props icebergo.Properties, m *manifests) icebergo.Properties {
	p := maps.Clone(props)
	p[lake.KeyPipeline] = c.Pipeline
	p[lake.KeySlices] = lake.FormatSlices(c.Slices)
	var rows, bytes, deleted, deleteBytes int64
	for _, f := range c.AddFiles {
		rows, bytes = rows+f.Rows, bytes+f.Bytes
	}
	for _, f := range c.AddDeletes {
		deleted, deleteBytes = deleted+f.Rows, deleteBytes+f.Bytes
	}
	put := func(key string, n int64) {
		if n != 0 {
			p[key] = strconv.FormatInt(n, 10)
		}
	}
	put("added-data-files", int64(len(c.AddFiles)))
	put("added-records", rows)
	put("added-files-size", bytes+deleteBytes)
	put("added-delete-files", int64(len(c.AddDeletes)))
	put("added-position-delete-files", int64(len(c.AddDeletes)))
	put("added-position-deletes", deleted)
	files, deletes := len(t.head.Files), len(t.head.PositionDeletes)
	totalRows, totalBytes, totalDeleted := int64(0), int64(0), int64(0)
	for _, f := range t.head.Files {
		totalRows, totalBytes = totalRows+f.Rows, totalBytes+f.Bytes
	}
	for _, f := range t.head.PositionDeletes {
		totalDeleted, totalBytes = totalDeleted+f.Rows, totalBytes+f.Bytes
	}
	if c.ReplaceAll {
		put("deleted-data-files", int64(files))
		put("deleted-records", totalRows)
		put("removed-delete-files", int64(deletes))
		put("removed-position-delete-files", int64(deletes))
		put("removed-position-deletes", totalDeleted)
		put("removed-files-size", totalBytes)
		files, deletes, totalRows, totalBytes, totalDeleted = 0, 0, 0, 0, 0
	}
	total := func(key string, n int64) { p[key] = strconv.FormatInt(n, 10) }
	total("total-data-files", int64(files+len(c.AddFiles)))
	total("total-records", totalRows+rows)
	total("total-files-size", totalBytes+bytes+deleteBytes)
	total("total-delete-files", int64(deletes+len(c.AddDeletes)))
	total("total-position-deletes", totalDeleted+deleted)
	total("total-equality-deletes", 0)
	return p
}

// adopt makes the committed state the handle's, without reading anything.
func (t *tableHandle) adopt(c lake.Commit, st *staged, meta table.Metadata, location string) {
	old := t.head
	next := &lake.Snapshot{
		ID: st.snapshot.SnapshotID, Metadata: location, Properties: st.snapshot.Summary.Properties,
		MaxToken: maxToken(c, old),
	}
	if !c.ReplaceAll {
		next.Files = append(next.Files, old.Files...)
		next.PositionDeletes = append(next.PositionDeletes, old.PositionDeletes...)
		next.Rows, next.Bytes = old.Rows, old.Bytes
	}
	touched := map[string]struct{}{}
	for _, d := range c.AddDeletes {
		maps.Copy(touched, t.pending[d.Path].names)
		next.PositionDeletes = append(next.PositionDeletes, d)
		next.Rows, next.Bytes = next.Rows-d.Rows, next.Bytes+d.Bytes
		delete(t.pending, d.Path)
	}
	for i := range next.Files {
		if _, ok := touched[next.Files[i].Path]; ok {
			next.Files[i].HasDeletes = true
		}
	}
	for _, f := range c.AddFiles {
		next.Files = append(next.Files, f)
		next.Rows, next.Bytes = next.Rows+f.Rows, next.Bytes+f.Bytes
		delete(t.pending, f.Path)
	}
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
