// Package memlake is the fake of a lake: tables in memory that behave as lake/iceberg's
// do, for tests and simulation. Files are Arrow batches; a file lives until the last
// snapshot that names it is expired.
package memlake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Warehouse is a lake in memory. Safe for concurrent use.
type Warehouse struct {
	mu     sync.Mutex
	tables map[lake.Ident]*state
	// files and deletes by path, of all tables.
	files   map[string]file
	deletes map[string][]lake.Position
	owners  map[string]change.TableID // of both, by path
	next    int64                     // ids of snapshots and files
	// FailCommit, when set, is asked before and after a commit takes effect; an
	// error from it is what Commit's storage would have said.
	FailCommit func(after bool) error
}

// file is a data file: rows of a schema, then the order token. Immutable.
type file struct {
	schema *schema.Table
	rows   []arrow.RecordBatch
}

// state is a table's retained snapshots, oldest first.
type state struct {
	id        change.TableID
	fence     segment.Epoch
	snapshots []*lake.Snapshot
}

var _ lake.Warehouse = (*Warehouse)(nil)

// New makes an empty warehouse.
func New() *Warehouse {
	return &Warehouse{
		tables: map[lake.Ident]*state{}, files: map[string]file{}, deletes: map[string][]lake.Position{},
		owners: map[string]change.TableID{},
	}
}

// Table implements lake.Warehouse.
func (w *Warehouse) Table(_ context.Context, spec lake.Spec) (lake.Table, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.tables[spec.Ident]
	if s == nil || s.id != spec.Table {
		inTheWay := s
		s = &state{id: spec.Table}
		for ident, other := range w.tables {
			if other.id == spec.Table { // renamed
				s = other
				delete(w.tables, ident)
			}
		}
		w.tables[spec.Ident] = s
		if inTheWay != nil { // set aside, until it is asked for by another name, or dropped
			aside := lake.Ident{Namespace: spec.Ident.Namespace, Name: fmt.Sprintf("%s_kept_%d", spec.Ident.Name, inTheWay.id)}
			w.tables[aside] = inTheWay
		}
	}
	return &table{w: w, ident: spec.Ident, state: s}, nil
}

// Snapshot implements lake.Warehouse.
func (w *Warehouse) Snapshot(_ context.Context, ident, _ string, snapshot int64) (*lake.Snapshot, error) {
	if snapshot == 0 {
		return &lake.Snapshot{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tables {
		for _, s := range t.snapshots {
			if s.ID == snapshot {
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("snapshot %d of lake table %s: %w", snapshot, ident, lake.ErrNoSnapshot)
}

// Recover implements lake.Recoverer. Nothing here is ever lost.
func (w *Warehouse) Recover(ctx context.Context, tables []lake.Lost) (*lake.Recovery, error) {
	out := &lake.Recovery{Tables: make([]lake.Recovered, len(tables))}
	claimed := map[change.TableID]bool{}
	for i, l := range tables {
		if l.Dropped {
			claimed[l.Table] = true
			continue
		}
		t := w.owned(l)
		if t != nil {
			claimed[l.Table] = true
		}
		if t == nil || !t.Head().OfGeneration(l.Generation) {
			if l.Snapshot != 0 {
				out.Tables[i].Problem = fmt.Sprintf("the lake has lost snapshot %d", l.Snapshot)
			}
			continue
		}
		all, err := t.Commits(ctx)
		if err != nil {
			return nil, fmt.Errorf("recover lake table %s: %w", l.Ident, err)
		}
		out.Tables[i] = lake.RecoveredOf(l, t.Head(), all)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for ident, s := range w.tables {
		if !claimed[s.id] {
			out.Kept = append(out.Kept, ident.String())
		}
	}
	slices.Sort(out.Kept)
	return out, nil
}

// owned is the lake table of a catalog table, under its present name; nil if none is.
func (w *Warehouse) owned(l lake.Lost) *table {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ident, s := range w.tables {
		if s.id == l.Table {
			delete(w.tables, ident)
			w.tables[l.Ident] = s
			return &table{w: w, ident: l.Ident, state: s}
		}
	}
	return nil
}

// Drop implements lake.Warehouse.
func (w *Warehouse) Drop(_ context.Context, id change.TableID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.tables, func(_ lake.Ident, s *state) bool { return s.id == id })
	return nil
}

// File returns the rows of a data file.
func (w *Warehouse) File(path string) ([]arrow.RecordBatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.files[path]
	if !ok {
		return nil, fmt.Errorf("data file %s: not found", path)
	}
	return f.rows, nil
}

// FileSchema returns the schema that a data file was written with: its columns are the
// schema's fields, then the order token.
func (w *Warehouse) FileSchema(path string) (*schema.Table, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.files[path]
	if !ok {
		return nil, fmt.Errorf("data file %s: not found", path)
	}
	return f.schema, nil
}

// Deletes returns the positions of a delete file.
func (w *Warehouse) Deletes(path string) ([]lake.Position, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, ok := w.deletes[path]
	if !ok {
		return nil, fmt.Errorf("delete file %s: not found", path)
	}
	return d, nil
}

// FileCount is how many files exist, orphans included.
func (w *Warehouse) FileCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.files) + len(w.deletes)
}

type table struct {
	w     *Warehouse
	ident lake.Ident
	state *state
}

var _ lake.Table = (*table)(nil)

// Head implements lake.Table.
func (t *table) Head() *lake.Snapshot {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.headLocked()
}

func (t *table) headLocked() *lake.Snapshot {
	if n := len(t.state.snapshots); n > 0 {
		return t.state.snapshots[n-1]
	}
	return &lake.Snapshot{Metadata: "mem", Properties: map[string]string{}}
}

// Find implements lake.Table.
func (t *table) Find(_ context.Context, compactionID string) (*lake.Snapshot, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.findLocked(compactionID), nil
}

func (t *table) findLocked(compactionID string) *lake.Snapshot {
	for _, s := range t.state.snapshots {
		if compactionID != "" && s.Properties[lake.KeyCompactionID] == compactionID {
			return s
		}
	}
	return nil
}

// Commits implements lake.History.
func (t *table) Commits(context.Context) ([]lake.Committed, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	var out []lake.Committed
	for _, s := range t.state.snapshots {
		c, ok, err := lake.CommittedOf(s.ID, s.Properties)
		if err != nil {
			return nil, fmt.Errorf("lake table %s: %w", t.ident, err)
		}
		if ok {
			out = append(out, c)
		}
	}
	return out, nil
}

// Fence implements lake.Fencer.
func (t *table) Fence(_ context.Context, epoch segment.Epoch) error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if epoch < t.state.fence {
		return fmt.Errorf("fence lake table %s: %w: epoch %d, fence %d", t.ident, lake.ErrFenced, epoch, t.state.fence)
	}
	t.state.fence = epoch
	return nil
}

// WriteDeletes implements lake.Table.
func (t *table) WriteDeletes(_ context.Context, positions []lake.Position) (*lake.DeleteFile, error) {
	less := func(a, b lake.Position) bool { return a.File < b.File || a.File == b.File && a.Row < b.Row }
	for i := 1; i < len(positions); i++ {
		if !less(positions[i-1], positions[i]) {
			return nil, fmt.Errorf("positions are not in order at %s row %d", positions[i].File, positions[i].Row)
		}
	}
	if len(positions) == 0 {
		return nil, errors.New("no positions")
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	path := t.pathLocked("-deletes")
	t.w.deletes[path] = slices.Clone(positions)
	return &lake.DeleteFile{
		Path: path, Rows: int64(len(positions)), Bytes: int64(16 * len(positions)),
		MinFile: positions[0].File, MaxFile: positions[len(positions)-1].File,
	}, nil
}

func (t *table) pathLocked(suffix string) string {
	t.w.next++
	path := fmt.Sprintf("/mem/%s/%010d%s.parquet", t.ident, t.w.next, suffix)
	t.w.owners[path] = t.state.id
	return path
}

// Commit implements lake.Table.
func (t *table) Commit(_ context.Context, c lake.Commit) (*lake.Snapshot, error) {
	if t.w.FailCommit != nil {
		if err := t.w.FailCommit(false); err != nil {
			return nil, fmt.Errorf("commit to lake table %s: %w", t.ident, err)
		}
	}
	s, err := t.commit(c)
	if err != nil {
		return nil, fmt.Errorf("commit to lake table %s: %w", t.ident, err)
	}
	if t.w.FailCommit != nil && t.w.FailCommit(true) != nil {
		return t.findLocked(c.CompactionID), nil // the outcome is looked up
	}
	return s, nil
}

func (t *table) commit(c lake.Commit) (*lake.Snapshot, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if s := t.findLocked(c.CompactionID); s != nil {
		return s, nil
	}
	if c.Epoch < t.state.fence {
		return nil, fmt.Errorf("%w: epoch %d, fence %d", lake.ErrFenced, c.Epoch, t.state.fence)
	}
	head := t.headLocked()
	if head.ID != c.Base {
		return nil, fmt.Errorf("%w: base %d, head %d", lake.ErrConflict, c.Base, head.ID)
	}
	t.w.next++
	next := &lake.Snapshot{ID: t.w.next, Metadata: "mem", MaxToken: c.MaxToken, Properties: properties(c)}
	if !c.ReplaceAll {
		next.MaxToken = max(head.MaxToken, c.MaxToken)
	}
	next.Properties[lake.KeyMaxToken] = strconv.FormatInt(next.MaxToken, 10)
	if !c.ReplaceAll {
		next.Files, next.PositionDeletes = slices.Clone(head.Files), slices.Clone(head.PositionDeletes)
		next.Rows, next.Bytes = head.Rows, head.Bytes
	}
	named := map[string]bool{}
	for _, d := range c.AddDeletes {
		positions, ok := t.w.deletes[d.Path]
		if !ok {
			return nil, fmt.Errorf("delete file %s was not written by this table", d.Path)
		}
		for _, p := range positions {
			named[p.File] = true
		}
		next.PositionDeletes = append(next.PositionDeletes, d)
		next.Rows, next.Bytes = next.Rows-d.Rows, next.Bytes+d.Bytes
	}
	for i := range next.Files {
		next.Files[i].HasDeletes = next.Files[i].HasDeletes || named[next.Files[i].Path]
	}
	for _, f := range c.AddFiles {
		if _, ok := t.w.files[f.Path]; !ok {
			return nil, fmt.Errorf("data file %s was not written by this table", f.Path)
		}
		next.Files = append(next.Files, f)
		next.Rows, next.Bytes = next.Rows+f.Rows, next.Bytes+f.Bytes
	}
	t.state.snapshots, t.state.fence = append(t.state.snapshots, next), c.Epoch // not lower: see above
	return next, nil
}

func properties(c lake.Commit) map[string]string {
	p := map[string]string{
		lake.KeyPipeline: c.Pipeline, lake.KeyCompactionID: c.CompactionID, lake.KeySlices: lake.FormatSlices(c.Slices),
		lake.KeyGeneration: strconv.FormatUint(uint64(c.Generation), 10),
	}
	if c.SourcePosition != "" {
		p[lake.KeySourcePosition] = string(c.SourcePosition)
	}
	if n := len(c.Slices); n > 0 {
		p[lake.KeySeq] = strconv.FormatUint(uint64(c.Slices[n-1].Seq), 10)
	}
	return p
}

// Abort implements lake.Table.
func (t *table) Abort(_ context.Context, files []lake.DataFile, deletes []lake.DeleteFile) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	for _, f := range files {
		delete(t.w.files, f.Path)
		delete(t.w.owners, f.Path)
	}
	for _, d := range deletes {
		delete(t.w.deletes, d.Path)
		delete(t.w.owners, d.Path)
	}
}

// Maintain implements lake.Table; files of the table go without grace.
func (t *table) Maintain(_ context.Context, p lake.Retention) error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if p.Epoch < t.state.fence {
		return fmt.Errorf("maintain lake table %s: %w: epoch %d, fence %d", t.ident, lake.ErrFenced, p.Epoch, t.state.fence)
	}
	keep := max(p.Snapshots, 2)
	var kept []*lake.Snapshot
	for i, s := range t.state.snapshots {
		if i >= len(t.state.snapshots)-keep || slices.Contains(p.Protect, s.ID) {
			kept = append(kept, s)
		}
	}
	t.state.snapshots = kept
	named := map[string]bool{}
	for _, state := range t.w.tables {
		for _, s := range state.snapshots {
			for _, f := range s.Files {
				named[f.Path] = true
			}
			for _, d := range s.PositionDeletes {
				named[d.Path] = true
			}
		}
	}
	for path, id := range t.w.owners { // a set
		if id == t.state.id && !named[path] {
			delete(t.w.files, path)
			delete(t.w.deletes, path)
			delete(t.w.owners, path)
		}
	}
	return nil
}

// NewWriter implements lake.Table.
func (t *table) NewWriter(s *schema.Table) (lake.Writer, error) {
	return &writer{t: t, schema: s}, nil
}

type writer struct {
	t      *table
	schema *schema.Table
	rows   []arrow.RecordBatch
	files  []lake.DataFile
}

// Write implements lake.Writer.
func (w *writer) Write(_ context.Context, rows arrow.RecordBatch) error {
	if int(rows.NumCols()) != len(w.schema.Fields)+1 {
		return fmt.Errorf("write to lake table %s: got %d columns, want %d", w.t.ident, rows.NumCols(),
			len(w.schema.Fields)+1)
	}
	for i, f := range w.schema.Fields {
		if slices.Contains(w.schema.Key, f.ID) && rows.Column(i).NullN() > 0 {
			return fmt.Errorf("write to lake table %s: key column %s has nulls", w.t.ident, f.Name)
		}
	}
	if rows.NumRows() == 0 {
		return nil
	}
	rows.Retain()
	w.rows = append(w.rows, rows)
	return nil
}

// Close implements lake.Writer.
func (w *writer) Close(context.Context) ([]lake.DataFile, error) {
	if len(w.rows) == 0 {
		return nil, nil
	}
	f := lake.DataFile{Bounds: map[int32]lake.Bounds{}}
	for _, r := range w.rows {
		f.Rows += r.NumRows()
	}
	f.Bytes = 100 * f.Rows
	for i, field := range w.schema.Fields {
		if b, ok := intBounds(w.rows, i); ok {
			f.Bounds[field.ID] = b
		}
	}
	w.t.w.mu.Lock()
	defer w.t.w.mu.Unlock()
	f.Path = w.t.pathLocked("")
	w.t.w.files[f.Path] = file{w.schema, w.rows}
	w.files = []lake.DataFile{f}
	w.rows = nil
	return w.files, nil
}

func intBounds(rows []arrow.RecordBatch, col int) (b lake.Bounds, ok bool) {
	b.IsInt = true
	for _, r := range rows {
		for i := range int(r.NumRows()) {
			var v int64
			switch c := r.Column(col).(type) {
			case *array.Int64:
				v = c.Value(i)
			case *array.Int32:
				v = int64(c.Value(i))
			default:
				return b, false
			}
			if r.Column(col).IsNull(i) {
				continue
			}
			if !ok || v < b.MinInt {
				b.MinInt = v
			}
			if !ok || v > b.MaxInt {
				b.MaxInt = v
			}
			ok = true
		}
	}
	return b, ok
}

// Discard implements lake.Writer.
func (w *writer) Discard() {
	w.t.Abort(context.Background(), w.files, nil)
	w.rows, w.files = nil, nil
}
