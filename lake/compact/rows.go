package compact

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// The system columns' places in a batch.
const (
	opColumn    = 0
	tokenColumn = 1
)

// write turns the job's slices into files: rows of a copy made in one go and of tables
// without a key and without deletes pass slice by slice, others are collapsed first. base
// is what the lake keeps.
func (s *Service) write(ctx context.Context, tbl lake.Table, j *job, base *lake.Snapshot, out *output) error {
	switch {
	case !j.target().HasKey() && j.target().WholeRow && j.hasDeletes():
		return s.writeCounted(ctx, tbl, j, base, out)
	case j.shape.AppendOnly && !j.table.Backfill.Resumed || !j.target().HasKey():
		return s.appendSlices(ctx, tbl, j, out)
	}
	batches, err := s.readAll(ctx, j)
	defer release(batches)
	if err != nil {
		return err
	}
	key, err := keyColumns(j.target())
	if err != nil {
		return err
	}
	winners, err := merge.Collapse(key, batches)
	if err != nil {
		return fmt.Errorf("collapse: %w", err)
	}
	positions, err := s.superseded(ctx, j.target(), base, batches, winners)
	if err != nil {
		return err
	}
	return s.writeMerged(ctx, tbl, j, out, positions, batches, winners)
}

// writeMerged writes the positions of lake rows that go, and the winners that are no
// deletes.
func (s *Service) writeMerged(ctx context.Context, tbl lake.Table, j *job, out *output, positions []lake.Position,
	batches []arrow.RecordBatch, winners []merge.Selection,
) error {
	if len(positions) > 0 {
		d, err := tbl.WriteDeletes(ctx, positions)
		if err != nil {
			return err
		}
		out.deletes, out.deleted, out.bytes = []lake.DeleteFile{*d}, d.Rows, out.bytes+d.Bytes
	}
	return s.writeRows(ctx, tbl, j, out, func(put func(arrow.RecordBatch, []int32) error) error {
		for i, b := range batches {
			if b == nil {
				continue
			}
			if err := put(b, withoutDeletes(b, winners[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// appendSlices writes slices as they are, one in memory at a time.
func (s *Service) appendSlices(ctx context.Context, tbl lake.Table, j *job, out *output) error {
	return s.writeRows(ctx, tbl, j, out, func(put func(arrow.RecordBatch, []int32) error) error {
		for _, sl := range j.applied() {
			b, err := s.read(ctx, j, sl)
			if err != nil {
				return err
			}
			if b == nil {
				continue
			}
			err = put(b, withoutDeletes(b, everyRow(b)))
			b.Release()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeRows gives rows a writer of the lake; each puts the chosen rows of its batches.
func (s *Service) writeRows(
	ctx context.Context, tbl lake.Table, j *job, out *output, each func(put func(arrow.RecordBatch, []int32) error) error,
) error {
	w, err := tbl.NewWriter(j.target())
	if err != nil {
		return err
	}
	err = each(func(b arrow.RecordBatch, rows []int32) error {
		if len(rows) == 0 {
			return nil
		}
		rec, err := lakeRows(ctx, b, rows)
		if err != nil {
			return err
		}
		defer rec.Release()
		out.rows += rec.NumRows()
		return w.Write(ctx, rec)
	})
	if err != nil {
		w.Discard()
		return err
	}
	if out.files, err = w.Close(ctx); err != nil {
		return err
	}
	for _, f := range out.files {
		out.bytes += f.Bytes
	}
	return nil
}

func (s *Service) readAll(ctx context.Context, j *job) ([]arrow.RecordBatch, error) {
	batches := make([]arrow.RecordBatch, len(j.applied()))
	for i, sl := range j.applied() {
		var err error
		if batches[i], err = s.read(ctx, j, sl); err != nil {
			return batches, err
		}
	}
	return batches, nil
}

func release(batches []arrow.RecordBatch) {
	for _, b := range batches {
		if b != nil {
			b.Release()
		}
	}
}

// read reads a slice in the target schema; nil if it has no rows.
func (s *Service) read(ctx context.Context, j *job, sl catalog.Slice) (arrow.RecordBatch, error) {
	if sl.Rows == 0 {
		return nil, nil
	}
	rec, err := s.deps.Reader(sl.Pipeline).ReadSlice(ctx, sl.Slice)
	if err != nil {
		return nil, fmt.Errorf("read slice %s: %w", sl.Ref, err)
	}
	defer rec.Release()
	from := versionOf(j.table, sl.SchemaVersion)
	if from == nil {
		return nil, fmt.Errorf("slice %s: schema version %d is unknown", sl.Ref, sl.SchemaVersion)
	}
	out, err := convert(rec, from, j.target())
	if err != nil {
		return nil, fmt.Errorf("slice %s: %w", sl.Ref, err)
	}
	return out, nil
}

func versionOf(t *catalog.Table, version uint32) *schema.Table {
	for _, v := range t.Versions {
		if v.Version == version {
			return v
		}
	}
	if t.Current.Version == version {
		return t.Current
	}
	return nil
}

func keyColumns(t *schema.Table) ([]int, error) {
	key := make([]int, 0, len(t.Key))
	for _, id := range t.Key {
		i := t.Index(id)
		if i < 0 {
			return nil, fmt.Errorf("key field %d is not a column", id)
		}
		key = append(key, change.SystemColumns+i)
	}
	return key, nil
}

// withoutDeletes are the chosen rows that are no deletes.
func withoutDeletes(b arrow.RecordBatch, chosen []int32) []int32 {
	op := b.Column(opColumn).(*array.Uint8)
	kept := make([]int32, 0, len(chosen))
	for _, r := range chosen {
		if change.Op(op.Value(int(r))) != change.Delete {
			kept = append(kept, r)
		}
	}
	return kept
}

func everyRow(b arrow.RecordBatch) []int32 {
	rows := make([]int32, b.NumRows())
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// lakeRows are the chosen rows, ascending, as the lake wants them: the table's columns,
// then the token.
func lakeRows(ctx context.Context, b arrow.RecordBatch, rows []int32) (arrow.RecordBatch, error) {
	n := int(b.NumCols())
	cols := make([]arrow.Array, 0, n-change.SystemColumns+1)
	fields := make([]arrow.Field, 0, cap(cols))
	for i := change.SystemColumns; i < n; i++ {
		cols, fields = append(cols, b.Column(i)), append(fields, b.Schema().Field(i))
	}
	cols, fields = append(cols, b.Column(tokenColumn)), append(fields, b.Schema().Field(tokenColumn))
	all := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows())
	if int64(len(rows)) == b.NumRows() {
		return all, nil
	}
	defer all.Release()
	taken, err := takeRows(ctx, all, rows)
	if err != nil {
		return nil, fmt.Errorf("take rows: %w", err)
	}
	return taken, nil
}

// takeRows picks rows of a batch. The caller releases the result.
func takeRows(ctx context.Context, b arrow.RecordBatch, rows []int32) (arrow.RecordBatch, error) {
	ib := array.NewInt32Builder(memory.DefaultAllocator)
	defer ib.Release()
	ib.AppendValues(rows, nil)
	idx := ib.NewInt32Array()
	defer idx.Release()
	cols := make([]arrow.Array, 0, b.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i := range int(b.NumCols()) {
		c, err := compute.TakeArrayOpts(ctx, b.Column(i), idx, compute.TakeOptions{BoundsCheck: false})
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", b.ColumnName(i), err)
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(b.Schema(), cols, int64(len(rows))), nil
}

// convert brings a batch of one schema version into another: columns by field id, those
// that are missing with their initial value, widened ones with their new type. The caller
// releases the result.
func convert(rec arrow.RecordBatch, from, to *schema.Table) (arrow.RecordBatch, error) {
	if int(rec.NumCols()) != change.SystemColumns+len(from.Fields) {
		return nil, fmt.Errorf("batch has %d columns, schema version %d wants %d", rec.NumCols(), from.Version,
			change.SystemColumns+len(from.Fields))
	}
	cols := make([]arrow.Array, 0, change.SystemColumns+len(to.Fields))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i := range change.SystemColumns {
		rec.Column(i).Retain()
		cols = append(cols, rec.Column(i))
	}
	own := rec.Columns()[change.SystemColumns:]
	for _, f := range to.Fields {
		c, err := lake.Column(own, int(rec.NumRows()), from, f)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(to.Arrow(), cols, rec.NumRows()), nil
}
