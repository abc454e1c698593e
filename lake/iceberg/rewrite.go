package iceberg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// A file is small below this part of the target size, and has many deletes from this
// percentage on. Positions beyond the limit are not held in memory: then nothing is
// rewritten.
const (
	smallFilePart      = 8
	manyDeletesPercent = 30
	positionsMax       = 20_000_000
)

// rewrite merges small files, files with many deletes and all delete files, when there
// are enough of them. The new snapshot has the same rows. Its one delete file stands
// for all earlier ones; positions in files that were rewritten are gone with them.
func (t *tableHandle) rewrite(ctx context.Context, epoch segment.Epoch) error {
	head := t.head
	values, err := initialValues(t.meta)
	if err != nil {
		return err
	}
	lacks := lacksInitial(values)
	if !t.mayRewrite(head) && !slices.ContainsFunc(head.Files, lacks) {
		return nil
	}
	gone, err := t.deletedPositions(ctx, head)
	if err != nil {
		return err
	}
	victims := t.victims(head, gone, lacks)
	if len(victims) == 0 && len(head.PositionDeletes) < t.w.cfg.RewriteFiles {
		return nil
	}
	u := update{operation: table.OpReplace, remove: map[string]struct{}{}}
	u.Epoch = epoch
	u.props = icebergo.Properties{lake.KeyMaxToken: strconv.FormatInt(head.MaxToken, 10)}
	if g, ok := head.Properties[lake.KeyGeneration]; ok {
		u.props[lake.KeyGeneration] = g
	}
	if err := t.rewriteInto(ctx, &u, head, victims, gone); err != nil {
		t.Abort(ctx, u.AddFiles, u.AddDeletes)
		return err
	}
	return t.replace(ctx, u)
}

// replace commits a rewrite. Nothing depends on its outcome: what a failure leaves is
// found by a later Maintain.
func (t *tableHandle) replace(ctx context.Context, u update) error {
	before := t.head.ID
	st, err := t.stage(ctx, u)
	if err != nil {
		st.undo(t.w.io)
		t.Abort(ctx, u.AddFiles, u.AddDeletes)
		return err
	}
	reqs := append(st.requirements, notFenced{u.Epoch})
	meta, location, err := t.w.catalog.CommitTable(ctx, identifier(t.ident), reqs, st.updates)
	if err != nil {
		return errors.Join(err, t.reload(context.WithoutCancel(ctx)))
	}
	t.adopt(u, st, meta, location)
	t.w.log.Info("lake files rewritten", env.KeyTable, t.ident.String(), env.KeySnapshot, t.head.ID, "before", before,
		"removed", len(u.remove), "files", len(u.AddFiles))
	return nil
}

// mayRewrite is the cheap look before delete files are read.
func (t *tableHandle) mayRewrite(head *lake.Snapshot) bool {
	var deleted int64
	for _, d := range head.PositionDeletes {
		deleted += d.Rows
	}
	if deleted > positionsMax {
		return false
	}
	small := 0
	for _, f := range head.Files {
		if t.small(f) {
			small++
		}
	}
	return small >= t.w.cfg.RewriteFiles || len(head.PositionDeletes) >= t.w.cfg.RewriteFiles
}

func (t *tableHandle) small(f lake.DataFile) bool { return f.Bytes < t.w.cfg.FileBytes/smallFilePart }

// victims are the files to rewrite: those with many deletes, those that lack a column's
// initial value, and the small ones when there are enough.
func (t *tableHandle) victims(
	head *lake.Snapshot, gone map[string][]int64, lacks func(lake.DataFile) bool,
) []lake.DataFile {
	var many, small []lake.DataFile
	for _, f := range head.Files {
		switch {
		case int64(len(gone[f.Path]))*100 >= f.Rows*manyDeletesPercent && len(gone[f.Path]) > 0, lacks(f):
			many = append(many, f)
		case t.small(f):
			small = append(small, f)
		}
	}
	if len(small) >= t.w.cfg.RewriteFiles {
		many = append(many, small...)
	}
	var bytes int64
	for i, f := range many {
		if bytes += f.Bytes; bytes > t.w.cfg.RewriteBytes && i > 0 {
			return many[:i]
		}
	}
	return many
}

// rewriteInto writes the new files and says in u what they stand for.
func (t *tableHandle) rewriteInto(
	ctx context.Context, u *update, head *lake.Snapshot, victims []lake.DataFile, gone map[string][]int64,
) error {
	if len(victims) > 0 {
		var err error
		if u.AddFiles, err = t.copyRows(ctx, victims, gone); err != nil {
			return err
		}
	}
	for _, f := range victims {
		u.remove[f.Path] = struct{}{}
	}
	for _, d := range head.PositionDeletes {
		u.remove[d.Path] = struct{}{}
	}
	var left []lake.Position
	for _, f := range head.Files {
		if _, rewritten := u.remove[f.Path]; rewritten {
			continue
		}
		for _, row := range gone[f.Path] {
			left = append(left, lake.Position{File: f.Path, Row: row})
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b lake.Position) int {
		if positionLess(a, b) {
			return -1
		}
		return 1
	})
	d, err := t.writeDeletes(ctx, left)
	if err != nil {
		return err
	}
	u.AddDeletes = []lake.DeleteFile{*d}
	return nil
}

// deletedPositions reads all delete files: the deleted rows of each file, sorted.
func (t *tableHandle) deletedPositions(ctx context.Context, head *lake.Snapshot) (map[string][]int64, error) {
	gone := map[string][]int64{}
	for _, d := range head.PositionDeletes {
		err := t.eachBatch(ctx, d.Path, func(rec arrow.RecordBatch) error {
			names, okName := rec.Column(0).(*array.String)
			rows, okRow := rec.Column(1).(*array.Int64)
			if !okName || !okRow {
				return fmt.Errorf("columns are %s", rec.Schema())
			}
			for i := range int(rec.NumRows()) {
				name := plainPath(names.Value(i))
				if _, ok := gone[name]; !ok {
					name = string([]byte(name)) // the batch's memory goes
				}
				gone[name] = append(gone[name], rows.Value(i))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("delete file %s: %w", d.Path, err)
		}
	}
	for name, rows := range gone {
		slices.Sort(rows)
		gone[name] = slices.Compact(rows)
	}
	return gone, nil
}

// copyRows writes the rows of files that are not deleted into new ones, in the table's
// current schema.
func (t *tableHandle) copyRows(
	ctx context.Context, files []lake.DataFile, gone map[string][]int64,
) (out []lake.DataFile, err error) {
	sc := t.meta.CurrentSchema()
	as, err := arrowSchema(sc)
	if err != nil {
		return nil, err
	}
	lay, err := newLayout(as, t.w.cfg)
	if err != nil {
		return nil, err
	}
	values, err := initialValues(t.meta)
	if err != nil {
		return nil, err
	}
	w := &writer{t: t, schema: sc, arrow: as, layout: lay, kinds: boundKinds(sc), initial: initialByID(values)}
	for _, f := range files {
		at, deleted := int64(0), gone[f.Path]
		err := t.eachBatch(ctx, f.Path, func(rec arrow.RecordBatch) error {
			keep := keptRows(rec.NumRows(), at, &deleted)
			at += rec.NumRows()
			return w.copyBatch(ctx, rec, keep)
		})
		if err != nil {
			w.Discard()
			return nil, fmt.Errorf("rewrite %s: %w", f.Path, err)
		}
	}
	return w.Close(ctx)
}

// keptRows are the rows of [at, at+n) that are not deleted, counted from at; nil when
// none is deleted. It drops what it used from deleted.
func keptRows(n, at int64, deleted *[]int64) []int64 {
	d := *deleted
	if len(d) == 0 || d[0] >= at+n {
		return nil
	}
	keep := make([]int64, 0, n)
	for row := range n {
		if len(d) > 0 && d[0] == at+row {
			d = d[1:]
			continue
		}
		keep = append(keep, row)
	}
	*deleted = d
	return keep
}

// copyBatch writes the kept rows (nil: all) of a file's batch.
func (w *writer) copyBatch(ctx context.Context, rec arrow.RecordBatch, keep []int64) error {
	if keep != nil && len(keep) == 0 {
		return nil
	}
	var idx arrow.Array
	n := rec.NumRows()
	if keep != nil {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(keep, nil)
		idx, n = b.NewArray(), int64(len(keep))
		b.Release()
		defer idx.Release()
	}
	cols := make([]arrow.Array, 0, w.arrow.NumFields())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for _, f := range w.arrow.Fields() {
		c, err := w.columnByID(ctx, rec, f, idx)
		if err != nil {
			return fmt.Errorf("column %s: %w", f.Name, err)
		}
		cols = append(cols, c)
	}
	out := array.NewRecordBatch(w.arrow, cols, n)
	defer out.Release()
	return w.write(ctx, out)
}

// columnByID finds a column by its field id, takes the rows of idx (nil: all) and gives
// it the wanted type; a file older than the column has its initial value, or nulls.
func (w *writer) columnByID(ctx context.Context, rec arrow.RecordBatch, f arrow.Field, idx arrow.Array) (arrow.Array, error) {
	id, _ := f.Metadata.GetValue(fieldIDKey)
	n := int(rec.NumRows())
	if idx != nil {
		n = idx.Len()
	}
	for i, have := range rec.Schema().Fields() {
		if v, ok := have.Metadata.GetValue(fieldIDKey); !ok || v != id {
			continue
		}
		col := rec.Column(i)
		if ext, ok := col.(array.ExtensionArray); ok {
			col = ext.Storage()
		}
		if idx != nil {
			taken, err := compute.TakeArrayOpts(ctx, col, idx, compute.TakeOptions{BoundsCheck: false})
			if err != nil {
				return nil, err
			}
			defer taken.Release()
			col = taken
		}
		if typed, err := retype(col, f.Type); err == nil {
			return typed, nil
		}
		return lake.Widen(col, f.Type)
	}
	initial, ok := w.initial[id]
	if !ok {
		return array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, n), nil
	}
	col, err := schema.InitialColumn(initial, n)
	if err != nil {
		return nil, err
	}
	defer col.Release()
	return retype(col, f.Type)
}

// eachBatch reads a Parquet file in bounded batches.
func (t *tableHandle) eachBatch(ctx context.Context, path string, fn func(arrow.RecordBatch) error) error {
	f, err := t.w.io.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	pf, err := file.NewParquetReader(f, file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		return err
	}
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: writeChunkRows}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	rows, err := r.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer rows.Release()
	for rows.Next() {
		if err := fn(rows.RecordBatch()); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
