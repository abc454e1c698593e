package loops

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/segment"
)

const (
	logPrefix    = "p1"
	backupKey    = "catalog"
	leaseTTL     = 3 * time.Second
	segmentBytes = 4 << 10
)

func (p *process) storeConfig(pipeline change.PipelineID) wal.Config {
	return wal.Config{
		Dir: logDir(pipeline), Pipeline: pipeline, GroupBytes: segmentBytes, Prefix: logPrefix, Owner: p.host.name,
		Linger: 20 * time.Millisecond, LeaseTTL: leaseTTL,
	}
}

// openLog is a process's log of a pipeline: its loops are its own.
type openLog struct {
	*wal.Log
	p        *process
	pipeline change.PipelineID
}

var (
	_ ingest.Log  = (*openLog)(nil)
	_ compact.Log = (*openLog)(nil)
)

func (p *process) openLog(ctx context.Context, pipeline change.PipelineID) (ingest.Log, error) {
	if p.fencedOff.Load() {
		return nil, wal.ErrFenced // another host has it
	}
	w := p.host.w
	cfg := wal.Config{
		Dir: logDir(pipeline), Pipeline: pipeline, SegmentBytes: segmentBytes, Spares: 1, GroupBytes: segmentBytes,
		QuotaBytes: w.options.quota,
	}
	deps := wal.Deps{
		Publisher: publisher{p}, Clock: p.clock, IDs: p.ids, Log: w.logger(), Failpoints: failpoints{p},
		FS: disk{p, p.host.disk}, SegmentBytesMin: segmentBytes,
	}
	if p.way != nil {
		cfg, deps.Store = p.storeConfig(pipeline), p.way
		deps.FenceLake = func(ctx context.Context, epoch segment.Epoch) error {
			p.mu.Lock()
			p.mu.epoch = epoch
			p.mu.Unlock()
			return compact.FenceTables(ctx, p.catalog.Load(), warehouse{p}, pipeline, epoch)
		}
	}
	l, err := wal.Open(ctx, cfg, deps)
	p.emit(check.Opened{Host: p.host.name, Incarnation: p.incarnation, Epoch: p.epoch(), Err: err})
	if err != nil {
		p.fenced(err)
		return nil, err
	}
	out := &openLog{Log: l, p: p, pipeline: pipeline}
	p.mu.Lock()
	p.mu.logs[pipeline] = out
	p.mu.Unlock()
	if !p.dead.Load() {
		w.events.Lock()
		w.reign = max(w.reign, p.epoch())
		w.events.Unlock()
	}
	return out, nil
}

// Append implements ingest.Log.
func (l *openLog) Append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error) {
	if err := l.p.at("append"); err != nil {
		return wal.CommittedGroup{}, err
	}
	out, err := l.Log.Append(ctx, g)
	if err == nil {
		l.p.emit(check.Committed{Host: l.p.host.name, Pipeline: l.pipeline, Group: out})
	}
	l.p.fenced(err)
	return out, err
}

// Reclaim implements compact.Log.
func (l *openLog) Reclaim(ctx context.Context, seqs []segment.Seq) error {
	l.p.emit(check.ReclaimAsked{Host: l.p.host.name, Pipeline: l.pipeline, Seqs: seqs})
	if err := l.p.at("reclaim"); err != nil {
		return err
	}
	return l.Log.Reclaim(ctx, seqs)
}

// Close implements ingest.Log.
func (l *openLog) Close() error {
	l.p.mu.Lock()
	if l.p.mu.logs[l.pipeline] == l {
		delete(l.p.mu.logs, l.pipeline)
	}
	l.p.mu.Unlock()
	return l.Log.Close()
}

// removeLog deletes a dropped pipeline's log.
func (p *process) removeLog(pipeline change.PipelineID) error {
	d := disk{p, p.host.disk}
	files, err := d.List(logDir(pipeline))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := d.Remove(filepath.Join(logDir(pipeline), f.Name)); err != nil {
			return err
		}
	}
	return d.SyncDir(logDir(pipeline))
}

// publisher is a process's catalog as its logs see it.
type publisher struct{ p *process }

var _ wal.Publisher = publisher{}

// Publish implements wal.Publisher.
func (b publisher) Publish(ctx context.Context, pipeline change.PipelineID, groups []wal.CommittedGroup) error {
	return b.p.exchange("publish", func() error {
		if err := b.p.catalog.Load().Publish(ctx, pipeline, groups); err != nil {
			return err
		}
		b.p.emit(check.Published{Host: b.p.host.name, Pipeline: pipeline, Groups: groups})
		return nil
	})
}

// Published implements wal.Publisher.
func (b publisher) Published(ctx context.Context, pipeline change.PipelineID) (segment.Seq, uint32, error) {
	return b.p.catalog.Load().Published(ctx, pipeline)
}

// beforeRequest and afterRequest are where requests to the object store meet the world.
func (p *process) beforeRequest(_ context.Context, op faultstore.Op) faultstore.Fault {
	if op.Verb == faultstore.Delete {
		for _, key := range op.Keys {
			p.emit(check.Removed{Name: key})
		}
	}
	return p.request("object " + op.String())
}

func (p *process) afterRequest(_ context.Context, op faultstore.Op, _ error) faultstore.Fault {
	if !op.Write() {
		return faultstore.Fault{}
	}
	f := p.request("done object " + op.String())
	if f.Kind == faultstore.Failed {
		f.Kind = faultstore.LostReply
	}
	return f
}

func (p *process) request(place string) faultstore.Fault {
	out := p.host.w.gate.pass(p, place)
	if out.err != nil {
		return faultstore.Fault{Kind: faultstore.Failed, Err: out.err}
	}
	return out.fault
}

// disk is a process's view of its machine's file system.
type disk struct {
	p  *process
	fs wal.FS
}

var _ wal.FS = disk{}

// MkdirAll implements wal.FS.
func (d disk) MkdirAll(dir string) error { return d.fs.MkdirAll(dir) }

// Lock implements wal.FS.
func (d disk) Lock(name string) (io.Closer, error) { return d.fs.Lock(name) }

// List implements wal.FS.
func (d disk) List(dir string) ([]wal.FileInfo, error) {
	if err := d.p.at("list " + dir); err != nil {
		return nil, err
	}
	return d.fs.List(dir)
}

// Open implements wal.FS.
func (d disk) Open(name string, mode wal.OpenMode) (wal.File, error) {
	if err := d.p.at("open " + name); err != nil {
		return nil, err
	}
	f, err := d.fs.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return &file{f, d.p, name}, nil
}

// Rename implements wal.FS.
func (d disk) Rename(from, to string) error {
	return d.p.exchange("rename "+from, func() error {
		d.removed(from)
		return d.fs.Rename(from, to)
	})
}

// Remove implements wal.FS.
func (d disk) Remove(name string) error {
	return d.p.exchange("remove "+name, func() error {
		d.removed(name)
		return d.fs.Remove(name)
	})
}

// removed tells of a name that is about to vanish. A mirror's are no loss.
func (d disk) removed(name string) {
	if d.p.way == nil {
		d.p.emit(check.Removed{Host: d.p.host.name, Name: name})
	}
}

// SyncDir implements wal.FS.
func (d disk) SyncDir(dir string) error {
	return d.p.exchange("syncdir "+dir, func() error { return d.fs.SyncDir(dir) })
}

// file is an open file of a process.
type file struct {
	wal.File
	p    *process
	name string
}

// ReadAt implements wal.File.
func (f *file) ReadAt(b []byte, at int64) (int, error) {
	if err := f.p.at("read " + f.name); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

// WriteAt implements wal.File.
func (f *file) WriteAt(b []byte, at int64) (int, error) {
	if err := f.p.at("write " + f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

// Sync implements wal.File.
func (f *file) Sync() error { return f.p.exchange("sync "+f.name, f.File.Sync) }

// warehouse is a process's view of the lake.
type warehouse struct{ p *process }

var _ lake.Warehouse = warehouse{}

// Table implements lake.Warehouse.
func (h warehouse) Table(ctx context.Context, spec lake.Spec) (lake.Table, error) {
	if err := h.p.at("lake table"); err != nil {
		return nil, err
	}
	t, err := h.p.host.w.lake.Table(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &lakeTable{Table: t, p: h.p, id: spec.Table}, nil
}

// Snapshot implements lake.Warehouse.
func (h warehouse) Snapshot(ctx context.Context, ident, metadata string, id int64) (*lake.Snapshot, error) {
	if err := h.p.at("lake snapshot"); err != nil {
		return nil, err
	}
	return h.p.host.w.lake.Snapshot(ctx, ident, metadata, id)
}

// Drop implements lake.Warehouse.
func (h warehouse) Drop(ctx context.Context, table change.TableID) error {
	return h.p.exchange("lake drop", func() error {
		h.p.emit(check.LakeDropped{Host: h.p.host.name, Table: table})
		return h.p.host.w.lake.Drop(ctx, table)
	})
}

// Recover implements lake.Warehouse.
func (h warehouse) Recover(ctx context.Context, tables []lake.Lost) (*lake.Recovery, error) {
	if err := h.p.at("lake recover"); err != nil {
		return nil, err
	}
	return h.p.host.w.lake.Recover(ctx, tables)
}

// Hold implements planner.Pins.
func (h warehouse) Hold(_ string, snapshot int64) (release func()) {
	mu := &h.p.mu
	mu.Lock()
	defer mu.Unlock()
	mu.pins[snapshot]++
	done := false
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return
		}
		done = true
		if mu.pins[snapshot]--; mu.pins[snapshot] == 0 {
			delete(mu.pins, snapshot)
		}
	}
}

// lakeTable is a process's view of a lake table.
type lakeTable struct {
	lake.Table
	p  *process
	id change.TableID
}

// Find implements lake.Table.
func (t *lakeTable) Find(ctx context.Context, id string) (*lake.Snapshot, error) {
	if err := t.p.at("lake find"); err != nil {
		return nil, err
	}
	return t.Table.Find(ctx, id)
}

// NewWriter implements lake.Table.
func (t *lakeTable) NewWriter(s *schema.Table) (lake.Writer, error) {
	w, err := t.Table.NewWriter(s)
	return &lakeWriter{w, t.p}, err
}

// WriteDeletes implements lake.Table.
func (t *lakeTable) WriteDeletes(ctx context.Context, at []lake.Position) (*lake.DeleteFile, error) {
	if err := t.p.at("lake deletes"); err != nil {
		return nil, err
	}
	return t.Table.WriteDeletes(ctx, at)
}

// Commit implements lake.Table. An error afterwards is a reply that was lost.
func (t *lakeTable) Commit(ctx context.Context, c lake.Commit) (*lake.Snapshot, error) {
	if err := t.p.at("lake commit"); err != nil {
		return nil, err
	}
	before := t.Head().ID
	out, err := t.Table.Commit(ctx, c)
	if err != nil {
		return nil, err
	}
	ev := check.LakeCommitted{Host: t.p.host.name, Table: t.id, Commit: c}
	if t.Head().ID != before {
		ev.Head = out
	}
	t.p.emit(ev)
	if err := t.p.at("done lake commit"); err != nil {
		return nil, fmt.Errorf("%w: %w", lake.ErrOutcomeUnknown, err)
	}
	return out, nil
}

// Abort implements lake.Table.
func (t *lakeTable) Abort(ctx context.Context, files []lake.DataFile, deletes []lake.DeleteFile) {
	if !t.p.dead.Load() {
		t.Table.Abort(ctx, files, deletes)
	}
}

// Maintain implements lake.Table.
func (t *lakeTable) Maintain(ctx context.Context, r lake.Retention) error {
	return t.p.exchange("lake maintain", func() error {
		for _, h := range t.p.host.w.hosts {
			if p := h.proc; p != nil {
				p.mu.Lock()
				for id := range p.mu.pins { // a set
					r.Protect = append(r.Protect, id)
				}
				p.mu.Unlock()
			}
		}
		return t.Table.Maintain(ctx, r)
	})
}

// lakeWriter is a process's writer of a lake table.
type lakeWriter struct {
	lake.Writer
	p *process
}

// Close implements lake.Writer.
func (w *lakeWriter) Close(ctx context.Context) ([]lake.DataFile, error) {
	if err := w.p.at("lake files"); err != nil {
		w.Discard()
		return nil, err
	}
	return w.Writer.Close(ctx)
}

// lakeFiles are the data files of the lake, as a process reads them.
type lakeFiles struct{ p *process }

var _ query.Files = lakeFiles{}

// File implements query.Files.
func (l lakeFiles) File(path string) ([]arrow.RecordBatch, error) {
	if err := l.p.at("lake read " + path); err != nil {
		return nil, err
	}
	return l.p.host.w.lake.File(path)
}

// FileSchema implements query.Files.
func (l lakeFiles) FileSchema(path string) (*schema.Table, error) {
	return l.p.host.w.lake.FileSchema(path)
}

// Deletes implements query.Files.
func (l lakeFiles) Deletes(path string) ([]lake.Position, error) {
	return l.p.host.w.lake.Deletes(path)
}

// searcher answers the compactions of several tables at once.
type searcher struct{ p *process }

// Superseded implements compact.Searcher.
func (s searcher) Superseded(ctx context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error] {
	return s.p.executor().Superseded(ctx, plan)
}
