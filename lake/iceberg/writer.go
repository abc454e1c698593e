package iceberg

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
)

// writeChunkRows is how many rows go to the encoder between two looks at the sizes
// of the row group and the file.
const writeChunkRows = 64 << 10

// writer writes data files of one schema.
type writer struct {
	t        *tableHandle
	schema   *icebergo.Schema
	arrow    *arrow.Schema
	layout   *layout
	kinds    map[int]boundKind
	initial  map[string]schema.Field // of a rewrite, by field id
	open     *parquetFile
	finished []lake.DataFile
}

// NewWriter implements lake.Table.
func (t *tableHandle) NewWriter(s *schema.Table) (lake.Writer, error) {
	w, err := t.newWriter(s)
	if err != nil {
		return nil, fmt.Errorf("write to lake table %s: %w", t.ident, err)
	}
	return w, nil
}

func (t *tableHandle) newWriter(s *schema.Table) (*writer, error) {
	sc, err := icebergSchema(s)
	if err != nil {
		return nil, err
	}
	as := parquetSchema(s)
	lay, err := newLayout(as, t.w.cfg)
	if err != nil {
		return nil, err
	}
	return &writer{t: t, schema: sc, arrow: as, layout: lay, kinds: boundKinds(sc)}, nil
}

// Write implements lake.Writer.
func (w *writer) Write(ctx context.Context, rows arrow.RecordBatch) error {
	if err := w.write(ctx, rows); err != nil {
		return fmt.Errorf("write to lake table %s: %w", w.t.ident, err)
	}
	return nil
}

func (w *writer) write(ctx context.Context, rows arrow.RecordBatch) error {
	if int(rows.NumCols()) != w.arrow.NumFields() {
		return fmt.Errorf("got %d columns, want %d", rows.NumCols(), w.arrow.NumFields())
	}
	cols := make([]arrow.Array, w.arrow.NumFields())
	for i, f := range w.arrow.Fields() {
		col := rows.Column(i)
		if !f.Nullable && col.NullN() > 0 {
			return fmt.Errorf("key column %s has %d nulls", f.Name, col.NullN())
		}
		var err error
		if cols[i], err = retype(col, f.Type); err != nil {
			return fmt.Errorf("column %s: %w", f.Name, err)
		}
		defer cols[i].Release()
		if data, changed := withBytes(cols[i].Data()); changed {
			cols[i] = array.MakeFromData(data)
			data.Release()
			defer cols[i].Release()
		}
	}
	rec := array.NewRecordBatch(w.arrow, cols, rows.NumRows())
	defer rec.Release()
	for at := int64(0); at < rec.NumRows(); at += writeChunkRows {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		chunk := rec.NewSlice(at, min(at+writeChunkRows, rec.NumRows()))
		err := w.chunk(chunk)
		chunk.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) chunk(rows arrow.RecordBatch) error {
	if w.open == nil {
		f, err := w.t.createParquet(w.t.dataPath(""), w.arrow, w.layout.properties(rows))
		if err != nil {
			return err
		}
		w.open = f
	}
	pw := w.open.pw
	if err := pw.WriteBuffered(rows); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	w.open.rows += rows.NumRows()
	group := pw.RowGroupTotalBytesWritten()
	if w.open.file.n+group >= w.t.w.cfg.FileBytes {
		return w.finish()
	}
	if group >= w.t.w.cfg.RowGroupBytes {
		return pw.NewBufferedRowGroupChecked()
	}
	return nil
}

// finish closes the open file and describes it.
func (w *writer) finish() error {
	f := w.open
	if f == nil {
		return nil
	}
	w.open = nil
	df, err := f.close(w.schema, icebergo.EntryContentData, nil)
	if err != nil {
		f.discard()
		return err
	}
	w.t.pending[f.path] = pendingFile{file: df}
	w.finished = append(w.finished, dataFile(df, w.kinds))
	return nil
}

// Close implements lake.Writer.
func (w *writer) Close(context.Context) ([]lake.DataFile, error) {
	if err := w.finish(); err != nil {
		w.Discard()
		return nil, fmt.Errorf("write to lake table %s: %w", w.t.ident, err)
	}
	return w.finished, nil
}

// Discard implements lake.Writer.
func (w *writer) Discard() {
	if w.open != nil {
		w.open.discard()
		w.open = nil
	}
	for _, f := range w.finished {
		w.t.discard(f.Path)
	}
	w.finished = nil
}

// parquetFile is a Parquet file being written.
type parquetFile struct {
	t    *tableHandle
	path string
	file *syncedFile
	pw   *pqarrow.FileWriter
	rows int64
}

func (t *tableHandle) createParquet(
	path string, as *arrow.Schema, props *parquet.WriterProperties,
) (*parquetFile, error) {
	file, err := t.w.io.create(path)
	if err != nil {
		return nil, err
	}
	f := &parquetFile{t: t, path: path, file: file}
	f.pw, err = pqarrow.NewFileWriter(as, file, props,
		pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(memory.DefaultAllocator)))
	if err != nil {
		f.discard()
		return nil, fmt.Errorf("begin %s: %w", path, err)
	}
	return f, nil
}

// close makes the file durable and describes it from the writer's own metadata.
func (f *parquetFile) close(
	sc *icebergo.Schema, content icebergo.ManifestEntryContent, metrics icebergo.Properties,
) (icebergo.DataFile, error) {
	if err := errors.Join(f.pw.Close(), f.file.Close()); err != nil {
		return nil, fmt.Errorf("finish %s: %w", f.path, err)
	}
	md, err := f.pw.FileMetadata()
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", f.path, err)
	}
	df, err := table.DataFileFromMetadata(table.DataFileArgs{
		Schema: sc, Spec: *icebergo.UnpartitionedSpec, Format: icebergo.ParquetFile, Metadata: md,
		FilePath: f.path, FileSize: f.file.n, Content: content, Properties: metrics, FormatVersion: formatVersion,
	})
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", f.path, err)
	}
	return df, nil
}

func (f *parquetFile) discard() {
	_ = f.file.Close() // the file goes
	f.t.discard(f.path)
}

// retype wraps 16-byte columns as the UUIDs they are, also inside lists. The caller
// releases the result.
func retype(a arrow.Array, want arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), want) {
		a.Retain()
		return a, nil
	}
	switch want := want.(type) {
	case arrow.ExtensionType:
		if arrow.TypeEqual(a.DataType(), want.StorageType()) {
			return array.NewExtensionArrayWithStorage(want, a), nil
		}
	case *arrow.ListType:
		list, ok := a.(*array.List)
		if !ok {
			break
		}
		elem, err := retype(list.ListValues(), want.Elem())
		if err != nil {
			return nil, err
		}
		defer elem.Release()
		data := array.NewData(want, list.Len(), list.Data().Buffers(), []arrow.ArrayData{elem.Data()}, list.NullN(),
			list.Data().Offset())
		defer data.Release()
		return array.NewListData(data), nil
	}
	return nil, fmt.Errorf("type is %s, want %s", a.DataType(), want)
}

// withBytes gives text and binary arrays that have no bytes of values, since all their values
// are empty, a buffer that is empty rather than none: to the encoder's statistics a value
// of no buffer is none, and the bounds of the file would exclude it. The caller releases
// the result when it is another.
func withBytes(a arrow.ArrayData) (out arrow.ArrayData, changed bool) {
	switch a.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		if b := a.Buffers(); b[2] != nil && b[2].Bytes() == nil {
			return array.NewData(a.DataType(), a.Len(), []*memory.Buffer{b[0], b[1], nil}, nil, a.NullN(), a.Offset()), true
		}
	case arrow.LIST:
		elem, changed := withBytes(a.Children()[0])
		if changed {
			defer elem.Release()
			return array.NewData(a.DataType(), a.Len(), a.Buffers(), []arrow.ArrayData{elem}, a.NullN(), a.Offset()), true
		}
	}
	return a, false
}
