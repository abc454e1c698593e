package iceberg

import (
	"context"
	"fmt"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// manifests builds the manifests of one new snapshot.
type manifests struct {
	t          *tableHandle
	snapshotID int64
	sequence   int64
	schemaID   int
	schema     *icebergo.Schema
	newSchema  *icebergo.Schema // nil when the table has it
	written    []string
}

func (t *tableHandle) newManifests(u update) (*manifests, error) {
	m := &manifests{t: t, sequence: t.meta.LastSequenceNumber() + 1}
	var err error
	if m.schemaID, m.newSchema, m.schema, err = t.schemaFor(u.Schema); err != nil {
		return nil, err
	}
	for m.snapshotID == 0 || t.meta.SnapshotByID(m.snapshotID) != nil {
		m.snapshotID = int64(t.w.ids.Uint64() >> 1)
	}
	return m, nil
}

// build writes what is new and merges what has become many: the number of manifests
// grows with the logarithm of the number of commits.
func (m *manifests) build(ctx context.Context, u update) ([]icebergo.ManifestFile, error) {
	var data, deletes []icebergo.DataFile
	for _, f := range u.AddFiles {
		p, ok := m.t.pending[f.Path]
		if !ok {
			return nil, fmt.Errorf("data file %s was not written by this table", f.Path)
		}
		data = append(data, p.file)
	}
	for _, f := range u.AddDeletes {
		p, ok := m.t.pending[f.Path]
		if !ok {
			return nil, fmt.Errorf("delete file %s was not written by this table", f.Path)
		}
		deletes = append(deletes, p.file)
	}
	var all []icebergo.ManifestFile
	for _, part := range []struct {
		content icebergo.ManifestContent
		files   []icebergo.DataFile
	}{{icebergo.ManifestContentData, data}, {icebergo.ManifestContentDeletes, deletes}} {
		added, err := m.added(part.content, part.files)
		if err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
		all = append(all, added...)
		inherited, err := m.inherited(ctx, part.content, u.remove)
		if err != nil {
			return nil, err
		}
		all = append(all, inherited...)
	}
	return all, nil
}

func (m *manifests) added(
	content icebergo.ManifestContent, files []icebergo.DataFile,
) ([]icebergo.ManifestFile, error) {
	if len(files) == 0 {
		return nil, nil
	}
	return m.write(content, func(w *icebergo.ManifestWriter) error {
		for _, f := range files {
			if err := w.Add(icebergo.NewManifestEntry(icebergo.EntryStatusADDED, &m.snapshotID, nil, nil, f)); err != nil {
				return err
			}
		}
		return nil
	})
}

// inherited is the base's manifests of one content: merged where a tier is full, and
// those that name files to remove in one.
func (m *manifests) inherited(
	ctx context.Context, content icebergo.ManifestContent, remove map[string]struct{},
) ([]icebergo.ManifestFile, error) {
	var base []icebergo.ManifestFile
	for _, f := range m.t.manifests {
		if f.ManifestContent() == content {
			base = append(base, f)
		}
	}
	touched, base, err := m.split(ctx, base, remove)
	if err != nil {
		return nil, err
	}
	kept, err := m.rewrite(ctx, content, touched, remove)
	if err != nil {
		return nil, err
	}
	for _, tier := range tiers(base, m.t.w.cfg.ManifestFanout) {
		if len(tier) < m.t.w.cfg.ManifestFanout {
			kept = append(kept, tier...)
			continue
		}
		merged, err := m.rewrite(ctx, content, tier, nil)
		if err != nil {
			return nil, err
		}
		kept = append(kept, merged...)
	}
	return kept, nil
}

// split parts the manifests that have an entry to remove from the others.
func (m *manifests) split(
	ctx context.Context, base []icebergo.ManifestFile, remove map[string]struct{},
) (touched, others []icebergo.ManifestFile, err error) {
	if len(remove) == 0 {
		return nil, base, nil
	}
	for _, f := range base {
		hit := false
		for e, err := range f.Entries(m.t.w.io, true) {
			if err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", f.FilePath(), err)
			}
			if _, hit = remove[plainPath(e.DataFile().FilePath())]; hit {
				break
			}
		}
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		if hit {
			touched = append(touched, f)
		} else {
			others = append(others, f)
		}
	}
	return touched, others, nil
}

// tiers groups manifests by the magnitude of their live entries, smallest first.
func tiers(files []icebergo.ManifestFile, fanout int) [][]icebergo.ManifestFile {
	var out [][]icebergo.ManifestFile
	for _, f := range files {
		tier := 0
		for n := liveEntries(f); n >= fanout; n /= fanout {
			tier++
		}
		for len(out) <= tier {
			out = append(out, nil)
		}
		out[tier] = append(out[tier], f)
	}
	return out
}

func liveEntries(f icebergo.ManifestFile) int {
	return int(max(f.AddedDataFiles(), 0)) + int(max(f.ExistingDataFiles(), 0))
}

// liveManifests drops those that only record removals.
func liveManifests(files []icebergo.ManifestFile) []icebergo.ManifestFile {
	var live []icebergo.ManifestFile
	for _, f := range files {
		if liveEntries(f) > 0 {
			live = append(live, f)
		}
	}
	return live
}

// rewrite puts the live entries of files into one new manifest, those of remove as
// deleted by this snapshot.
func (m *manifests) rewrite(
	ctx context.Context, content icebergo.ManifestContent, files []icebergo.ManifestFile, remove map[string]struct{},
) ([]icebergo.ManifestFile, error) {
	if len(files) == 0 {
		return nil, nil
	}
	out, err := m.write(content, func(w *icebergo.ManifestWriter) error {
		for _, f := range files {
			for e, err := range f.Entries(m.t.w.io, true) {
				if err != nil {
					return fmt.Errorf("read %s: %w", f.FilePath(), err)
				}
				if err := context.Cause(ctx); err != nil {
					return err
				}
				if _, gone := remove[plainPath(e.DataFile().FilePath())]; gone {
					err = w.Delete(m.tombstone(e))
				} else {
					err = w.Existing(e)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("merge manifests: %w", err)
	}
	return out, nil
}

func (m *manifests) tombstone(e icebergo.ManifestEntry) icebergo.ManifestEntry {
	seq := e.SequenceNum()
	return icebergo.NewManifestEntry(icebergo.EntryStatusDELETED, &m.snapshotID, &seq, e.FileSequenceNum(), e.DataFile())
}

// write makes one manifest file of the entries that fill adds.
func (m *manifests) write(
	content icebergo.ManifestContent, fill func(*icebergo.ManifestWriter) error,
) ([]icebergo.ManifestFile, error) {
	path := fmt.Sprintf("%s/metadata/%x-m.avro", m.t.meta.Location(), m.t.w.ids.UUID())
	m.written = append(m.written, path)
	f, err := m.t.w.io.create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a no-op after the Close below
	w, err := icebergo.NewManifestWriter(formatVersion, f, *icebergo.UnpartitionedSpec, m.schema, m.snapshotID,
		icebergo.WithManifestWriterContent(content))
	if err != nil {
		return nil, err
	}
	if err := fill(w); err != nil {
		_ = w.Close() // releases its buffers; fill's error says more
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	mf, err := w.ToManifestFile(path, f.n, icebergo.WithManifestFileContent(content))
	if err != nil {
		return nil, err
	}
	return []icebergo.ManifestFile{mf}, nil
}

func (t *tableHandle) writeManifestList(s *table.Snapshot, all []icebergo.ManifestFile) error {
	f, err := t.w.io.create(s.ManifestList)
	if err != nil {
		return err
	}
	defer f.Close() // a no-op after the Close below
	if err := icebergo.WriteManifestList(formatVersion, f, s.SnapshotID, s.ParentSnapshotID, &s.SequenceNumber, 0,
		all); err != nil {
		return err
	}
	return f.Close()
}
