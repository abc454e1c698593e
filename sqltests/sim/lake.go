package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal/change"
)

// warehouse is a process's view of the lake.
type warehouse struct{ p *process }

var _ lake.Warehouse = warehouse{}

// Table implements lake.Warehouse.
func (h warehouse) Table(ctx context.Context, spec lake.Spec) (out lake.Table, err error) {
	err = h.p.exchange(atLakeRead, "open lake table", func() error {
		t, err := h.p.world.lake.Table(ctx, spec)
		out = &lakeTable{Table: t, p: h.p, id: spec.Table}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Snapshot implements lake.Warehouse.
func (h warehouse) Snapshot(ctx context.Context, ident, metadata string, id int64) (out *lake.Snapshot, err error) {
	err = h.p.exchange(atLakeRead, "lake snapshot", func() error {
		out, err = h.p.world.lake.Snapshot(ctx, ident, metadata, id)
		return err
	})
	return out, err
}

// Drop implements lake.Warehouse.
func (h warehouse) Drop(ctx context.Context, table change.TableID) error {
	return h.p.exchange(atLakeWrite, "drop lake table", func() error {
		h.p.world.mark("lake table dropped")
		h.p.world.emit(check.LakeDropped{Host: h.p.host.name, Table: table})
		return h.p.world.lake.Drop(ctx, table)
	})
}

// Recover implements lake.Warehouse.
func (h warehouse) Recover(ctx context.Context, tables []lake.Lost) (out *lake.Recovery, err error) {
	err = h.p.exchange(atLakeRead, "recover lake", func() error {
		out, err = h.p.world.lake.Recover(ctx, tables)
		return err
	})
	return out, err
}

// Hold implements planner.Pins.
func (h warehouse) Hold(_ string, snapshot int64) (release func()) {
	held := h.p.held
	held[snapshot]++
	done := false
	return func() {
		if done {
			return
		}
		done = true
		if held[snapshot]--; held[snapshot] == 0 {
			delete(held, snapshot)
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
func (t *lakeTable) Find(ctx context.Context, id string) (out *lake.Snapshot, err error) {
	err = t.p.exchange(atLakeRead, "find compaction", func() error {
		out, err = t.Table.Find(ctx, id)
		if out != nil {
			t.p.world.mark("compaction found in the lake")
		}
		return err
	})
	return out, err
}

// Commits implements lake.Table.
func (t *lakeTable) Commits(ctx context.Context) (out []lake.Committed, err error) {
	err = t.p.exchange(atLakeRead, "lake commits", func() error {
		out, err = t.Table.Commits(ctx)
		return err
	})
	return out, err
}

// NewWriter implements lake.Table.
func (t *lakeTable) NewWriter(s *schema.Table) (lake.Writer, error) {
	w, err := t.Table.NewWriter(s)
	return &lakeWriter{w, t.p}, err
}

// WriteDeletes implements lake.Table.
func (t *lakeTable) WriteDeletes(ctx context.Context, at []lake.Position) (out *lake.DeleteFile, err error) {
	err = t.p.exchange(atLakeWrite, "write deletes", func() error {
		t.p.world.mark("lake deletes written")
		out, err = t.Table.WriteDeletes(ctx, at)
		return err
	})
	return out, err
}

// Commit implements lake.Table.
func (t *lakeTable) Commit(ctx context.Context, c lake.Commit) (*lake.Snapshot, error) {
	w := t.p.world
	f, err := t.p.at(atLakeCommit, "commit")
	switch {
	case err != nil:
		return nil, err
	case f == LakeConflict:
		return nil, fmt.Errorf("%w: %w", lake.ErrConflict, injected(f, "commit"))
	case f != NoFault && f != FailAfter:
		return nil, injected(f, "commit")
	}
	before := t.Head().ID
	out, err := t.Table.Commit(ctx, c)
	if err != nil {
		w.mark("lake commit refused")
		return nil, err
	}
	ev := check.LakeCommitted{Host: t.p.host.name, Table: t.id, Commit: c}
	if t.Head().ID != before {
		ev.Head = out
		w.mark("lake commit")
	}
	w.emit(ev)
	if f == FailAfter {
		return nil, fmt.Errorf("%w: %w", lake.ErrOutcomeUnknown, injected(f, "commit"))
	}
	if _, err := t.p.at(atDone, "lake commit"); err != nil {
		return nil, err
	}
	return out, nil
}

// Abort implements lake.Table.
func (t *lakeTable) Abort(ctx context.Context, files []lake.DataFile, deletes []lake.DeleteFile) {
	if !t.p.dead {
		t.Table.Abort(ctx, files, deletes)
	}
}

// Maintain implements lake.Table.
func (t *lakeTable) Maintain(ctx context.Context, r lake.Retention) error {
	return t.p.exchange(atLakeWrite, "maintain", func() error {
		for _, h := range t.p.world.hosts {
			if h.proc == nil {
				continue
			}
			for id := range h.proc.held { // a set: the order is no matter
				r.Protect = append(r.Protect, id)
			}
		}
		t.p.world.mark("lake maintained")
		return t.Table.Maintain(ctx, r)
	})
}

// lakeWriter is a process's writer of a lake table.
type lakeWriter struct {
	lake.Writer
	p *process
}

// Write implements lake.Writer.
func (w *lakeWriter) Write(ctx context.Context, rows arrow.RecordBatch) error {
	return w.Writer.Write(ctx, rows)
}

// Close implements lake.Writer.
func (w *lakeWriter) Close(ctx context.Context) (out []lake.DataFile, err error) {
	f, err := w.p.at(atLakeWrite, "write data files")
	if err == nil && f != NoFault {
		err = injected(f, "write data files")
	}
	if err != nil {
		w.Writer.Discard()
		return nil, err
	}
	return w.Writer.Close(ctx)
}

// lakeFiles are the data files of the lake, as a process reads them.
type lakeFiles struct{ p *process }

var _ query.Files = lakeFiles{}

// File implements query.Files.
func (l lakeFiles) File(path string) (out []arrow.RecordBatch, err error) {
	err = l.p.exchange(atLakeRead, path, func() error {
		out, err = l.p.world.lake.File(path)
		return err
	})
	return out, err
}

// FileSchema implements query.Files.
func (l lakeFiles) FileSchema(path string) (*schema.Table, error) {
	return l.p.world.lake.FileSchema(path)
}

// Deletes implements query.Files.
func (l lakeFiles) Deletes(path string) (out []lake.Position, err error) {
	err = l.p.exchange(atLakeRead, path, func() error {
		out, err = l.p.world.lake.Deletes(path)
		return err
	})
	return out, err
}

// grace is of no use to a lake in memory.
const grace = time.Second
