package iceberg

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/lake"
)

// Snapshot implements lake.Warehouse.
func (w *Warehouse) Snapshot(ctx context.Context, ident, metadata string, snapshot int64) (*lake.Snapshot, error) {
	if snapshot == 0 {
		return &lake.Snapshot{Metadata: metadata, Properties: map[string]string{}}, nil
	}
	if s := w.snapshots.get(tableLocation(metadata), snapshot); s != nil {
		return s, nil
	}
	meta, err := w.catalog.metadata(metadata)
	if errors.Is(err, fs.ErrNotExist) {
		meta, metadata, err = w.currentOf(tableLocation(metadata)) // trimmed; the current one may still have the snapshot
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot %d of lake table %s: %w", snapshot, ident, err)
	}
	s := meta.SnapshotByID(snapshot)
	if s == nil {
		return nil, fmt.Errorf("snapshot %d of lake table %s: %w", snapshot, ident, lake.ErrNoSnapshot)
	}
	out, err := w.snapshotOf(ctx, meta, metadata, s)
	if errors.Is(err, fs.ErrNotExist) { // an older metadata file names it, its manifests went with expiry
		err = fmt.Errorf("%w: %w", lake.ErrNoSnapshot, err)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot %d of lake table %s: %w", snapshot, ident, err)
	}
	return out, nil
}

// tableLocation is the table's directory, of a metadata file's path.
func tableLocation(metadata string) string { return path.Dir(path.Dir(metadata)) }

// currentOf finds the current metadata of the table in a directory.
func (w *Warehouse) currentOf(location string) (meta table.Metadata, file string, err error) {
	err = kv.IteratePrefix(w.catalog.store, []byte("t"), func(_, v []byte) error {
		if tableLocation(string(v)) == location {
			file = string(v)
			return kv.Stop
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	if file == "" {
		return nil, "", lake.ErrNoSnapshot
	}
	meta, err = w.catalog.metadata(file)
	return meta, file, err
}

// snapshotOf lists a snapshot's files, through the cache.
func (w *Warehouse) snapshotOf(
	ctx context.Context, meta table.Metadata, metadata string, s *table.Snapshot,
) (*lake.Snapshot, error) {
	if cached := w.snapshots.get(meta.Location(), s.SnapshotID); cached != nil {
		return cached, nil
	}
	out, err := readSnapshot(ctx, w.io, meta, metadata, s)
	if err != nil {
		return nil, err
	}
	w.snapshots.put(meta.Location(), out, w.cfg.SnapshotCache)
	return out, nil
}

type orderedFile struct {
	seq  int64
	file lake.DataFile
}

func readSnapshot(
	ctx context.Context, io *fileIO, meta table.Metadata, metadata string, s *table.Snapshot,
) (*lake.Snapshot, error) {
	out := &lake.Snapshot{ID: s.SnapshotID, Metadata: metadata, Properties: map[string]string{}}
	if s.Summary != nil {
		maps.Copy(out.Properties, s.Summary.Properties)
	}
	for _, k := range []string{lake.KeyGeneration, lake.KeyMaxToken} {
		if v, ok := meta.Properties()[k]; ok && out.Properties[k] == "" {
			out.Properties[k] = v // another engine's snapshot: the table's still hold
		}
	}
	out.MaxToken, _ = strconv.ParseInt(out.Properties[lake.KeyMaxToken], 10, 64) // absent in a table that others wrote: 0
	list, err := s.Manifests(io)
	if err != nil {
		return nil, fmt.Errorf("read manifest list: %w", err)
	}
	kinds := boundKinds(meta.CurrentSchema())
	var files []orderedFile
	for _, m := range list {
		for e, err := range m.Entries(io, true) {
			if err != nil {
				return nil, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
			}
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			switch e.DataFile().ContentType() {
			case icebergo.EntryContentData:
				files = append(files, orderedFile{e.SequenceNum(), dataFile(e.DataFile(), kinds)})
			case icebergo.EntryContentPosDeletes:
				out.PositionDeletes = append(out.PositionDeletes, deleteFile(e.DataFile()))
			default:
				return nil, fmt.Errorf("file %s: equality deletes are not supported", e.DataFile().FilePath())
			}
		}
	}
	slices.SortStableFunc(files, func(a, b orderedFile) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.file.Path, b.file.Path))
	})
	slices.SortFunc(out.PositionDeletes, func(a, b lake.DeleteFile) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		f.file.HasDeletes = mayBeNamed(out.PositionDeletes, f.file.Path)
		out.Files = append(out.Files, f.file)
		out.Rows, out.Bytes = out.Rows+f.file.Rows, out.Bytes+f.file.Bytes
	}
	for _, d := range out.PositionDeletes {
		out.Rows, out.Bytes = out.Rows-d.Rows, out.Bytes+d.Bytes
	}
	return out, nil
}

// mayBeNamed says whether a delete file's bounds include a data file.
func mayBeNamed(deletes []lake.DeleteFile, file string) bool {
	return slices.ContainsFunc(deletes, func(d lake.DeleteFile) bool {
		return d.MinFile <= file && (d.MaxFile == "" || file <= d.MaxFile)
	})
}

func dataFile(f icebergo.DataFile, kinds map[int]boundKind) lake.DataFile {
	out := lake.DataFile{
		Path: plainPath(f.FilePath()), Rows: f.Count(), Bytes: f.FileSizeBytes(),
		Bounds: make(map[int32]lake.Bounds, len(kinds)),
	}
	lower, upper := f.LowerBoundValues(), f.UpperBoundValues()
	for id, lo := range lower {
		hi, ok := upper[id]
		if !ok {
			continue
		}
		if b, ok := decodeBounds(kinds[id], lo, hi); ok {
			out.Bounds[int32(id)] = b
		}
	}
	return out
}

// The id of file_path in position delete files, set by the Iceberg specification.
const filePathFieldID = 2147483546

func deleteFile(f icebergo.DataFile) lake.DeleteFile {
	return lake.DeleteFile{
		Path: plainPath(f.FilePath()), Rows: f.Count(), Bytes: f.FileSizeBytes(),
		MinFile: plainPath(string(f.LowerBoundValues()[filePathFieldID])),
		MaxFile: plainPath(string(f.UpperBoundValues()[filePathFieldID])),
	}
}

// boundKind says how a column's bounds are encoded.
type boundKind uint8

const (
	boundNone  boundKind = iota
	boundInt             // little endian, 1, 4 or 8 bytes
	boundBytes           // compared bytewise
)

func boundKinds(s *icebergo.Schema) map[int]boundKind {
	kinds := make(map[int]boundKind, s.NumFields())
	for _, f := range s.Fields() {
		switch f.Type.(type) {
		case icebergo.BooleanType, icebergo.Int32Type, icebergo.Int64Type, icebergo.DateType, icebergo.TimeType,
			icebergo.TimestampType, icebergo.TimestampTzType:
			kinds[f.ID] = boundInt
		case icebergo.StringType, icebergo.BinaryType, icebergo.UUIDType:
			kinds[f.ID] = boundBytes
		}
	}
	return kinds
}

func decodeBounds(k boundKind, lo, hi []byte) (b lake.Bounds, ok bool) {
	switch k {
	case boundInt:
		minimum, okMin := decodeInt(lo)
		maximum, okMax := decodeInt(hi)
		return lake.Bounds{IsInt: true, MinInt: minimum, MaxInt: maximum}, okMin && okMax
	case boundBytes:
		return lake.Bounds{MinBytes: lo, MaxBytes: hi}, true
	}
	return b, false
}

// decodeInt reads a bound written at any width: a column may have been widened since.
func decodeInt(b []byte) (int64, bool) {
	switch len(b) {
	case 1:
		return int64(b[0]), true
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
	return 0, false
}

// snapshotCache holds file lists of snapshots; the least recently used goes first.
// Safe for concurrent use.
type snapshotCache struct {
	mu    sync.Mutex
	clock uint64
	byKey map[snapshotKey]*snapshotEntry
}

type snapshotKey struct {
	location string
	id       int64
}

type snapshotEntry struct {
	snapshot *lake.Snapshot
	used     uint64
}

func (c *snapshotCache) get(location string, id int64) *lake.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[snapshotKey{location, id}]
	if e == nil {
		return nil
	}
	c.clock++
	e.used = c.clock
	return e.snapshot
}

func (c *snapshotCache) put(location string, s *lake.Snapshot, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[snapshotKey]*snapshotEntry{}
	}
	c.clock++
	c.byKey[snapshotKey{location, s.ID}] = &snapshotEntry{snapshot: s, used: c.clock}
	for len(c.byKey) > most {
		var oldest snapshotKey
		at := c.clock + 1
		for k, e := range c.byKey {
			if e.used < at {
				oldest, at = k, e.used
			}
		}
		delete(c.byKey, oldest)
	}
}

// drop forgets a snapshot.
func (c *snapshotCache) drop(location string, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, snapshotKey{location, id})
}
