package iceberg

import (
	"context"
	"fmt"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/lake"
)

// tableHandle is one table at one state of its metadata, and the files written for
// its next commit. Not safe for concurrent use.
type tableHandle struct {
	w        *Warehouse
	ident    lake.Ident
	meta     table.Metadata
	location string // of meta
	head     *lake.Snapshot
	// manifests of head that have live entries.
	manifests []icebergo.ManifestFile
	// pending are written files that no commit has taken yet, by path.
	pending map[string]pendingFile
}

var _ lake.Table = (*tableHandle)(nil)

// pendingFile is a finished file in Iceberg's terms.
type pendingFile struct {
	file icebergo.DataFile
	// names are the data files that a delete file names.
	names map[string]struct{}
}

func (w *Warehouse) open(
	ctx context.Context, ident lake.Ident, meta table.Metadata, location string,
) (*tableHandle, error) {
	t := &tableHandle{w: w, ident: ident, pending: map[string]pendingFile{}}
	if err := t.load(ctx, meta, location); err != nil {
		return nil, err
	}
	return t, nil
}

// load takes over the state that meta describes.
func (t *tableHandle) load(ctx context.Context, meta table.Metadata, location string) error {
	current := meta.CurrentSnapshot()
	if current == nil {
		t.meta, t.location, t.manifests = meta, location, nil
		t.head = &lake.Snapshot{Metadata: location, Properties: map[string]string{}}
		return nil
	}
	manifests, err := current.Manifests(t.w.io)
	if err != nil {
		return fmt.Errorf("read manifest list: %w", err)
	}
	head, err := t.w.snapshotOf(ctx, meta, location, current)
	if err != nil {
		return err
	}
	t.meta, t.location, t.head, t.manifests = meta, location, head, liveManifests(manifests)
	return nil
}

// reload goes to the table's current state.
func (t *tableHandle) reload(ctx context.Context) error {
	meta, location, err := t.w.catalog.current(identifier(t.ident))
	if err != nil {
		return err
	}
	return t.load(ctx, meta, location)
}

// Head implements lake.Table.
func (t *tableHandle) Head() *lake.Snapshot { return t.head }

// Find implements lake.Table.
func (t *tableHandle) Find(ctx context.Context, compactionID string) (*lake.Snapshot, error) {
	if compactionID == "" {
		return nil, nil
	}
	for _, s := range t.meta.Snapshots() {
		if s.Summary != nil && s.Summary.Properties[lake.KeyCompactionID] == compactionID {
			found, err := t.w.snapshotOf(ctx, t.meta, t.location, &s)
			if err != nil {
				return nil, fmt.Errorf("lake table %s: %w", t.ident, err)
			}
			return found, nil
		}
	}
	return nil, nil
}

// Abort implements lake.Table.
func (t *tableHandle) Abort(_ context.Context, files []lake.DataFile, deletes []lake.DeleteFile) {
	for _, f := range files {
		t.discard(f.Path)
	}
	for _, d := range deletes {
		t.discard(d.Path)
	}
}

// discard removes a file that nothing names. What cannot be removed now is an orphan
// for Maintain.
func (t *tableHandle) discard(path string) {
	delete(t.pending, path)
	_ = t.w.io.Remove(path)
}

// dataPath names a new file so that names sort by the commit they were made for:
// the bounds of a delete file's file_path column then tell old files from new ones.
func (t *tableHandle) dataPath(suffix string) string {
	return fmt.Sprintf("%s/data/%010d-%x%s.parquet", t.meta.Location(), t.meta.LastSequenceNumber()+1,
		t.w.ids.UUID(), suffix)
}
