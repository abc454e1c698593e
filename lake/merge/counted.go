package merge

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/wal/change"
)

// NewCounted returns an empty index of a table whose rows are told apart by all their
// columns (schema.Table.WholeRow), to be extended by AppendRows. An insert and a delete
// of equal rows are counterparts: in a pin that has both, both lose; in one that has the
// delete alone, the delete wins, and takes one equal row of the lake away. So of each
// row the lake's copies, and the pin's winning inserts less its winning deletes, add up
// to what the source has, whichever copies were paired.
func NewCounted() *Index { return &Index{base: 1, counted: true} }

// Counted says whether the index is of NewCounted.
func (x *Index) Counted() bool { return x.counted }

// Column is where a record has one of the columns that are compared.
type Column struct {
	// Index in the record; -1 when the record is older than the column.
	Index int
	// Initial is the column's content in such a record, as Content renders it.
	Initial []byte
}

// AppendRows is Append for an index of NewCounted: columns are all columns of the table,
// in the same order each time, under one schema version however old the record is.
func (x *Index) AppendRows(rec arrow.RecordBatch, columns []Column, truncate bool) (Ordinal, error) {
	var b *batch
	if rec != nil && rec.NumRows() > 0 {
		var err error
		if b, err = readRows(rec, columns); err != nil {
			return 0, err
		}
	}
	return x.append(b, truncate)
}

// Cancel is Collapse for tables whose rows are told apart by all their columns, which are
// all columns of the batches: it returns the rows that have no counterpart in them. The
// deletes among them take rows of the lake away.
func Cancel(batches []arrow.RecordBatch) ([]Selection, error) {
	x := NewCounted()
	for i, rec := range batches {
		var columns []Column
		if rec != nil {
			for c := change.SystemColumns; c < int(rec.NumCols()); c++ {
				columns = append(columns, Column{Index: c})
			}
		}
		if _, err := x.AppendRows(rec, columns, false); err != nil {
			return nil, fmt.Errorf("cancel batch %d: %w", i, err)
		}
	}
	return x.winnersOf(len(batches)), nil
}

// readRows finds the operations and the contents of a record.
func readRows(rec arrow.RecordBatch, columns []Column) (*batch, error) {
	b, err := readBatch(rec, nil)
	if err != nil {
		return nil, err
	}
	ops, ok := rec.Column(0).(*array.Uint8)
	if !ok {
		return nil, fmt.Errorf("operations have type %s", rec.Column(0).DataType())
	}
	b.op = ops.Uint8Values()
	if i := slices.IndexFunc(b.op, func(op uint8) bool {
		return change.Op(op) != change.Insert && change.Op(op) != change.Delete
	}); i >= 0 {
		return nil, fmt.Errorf("row %d: %w", i, ErrUpdate)
	}
	parts := make([]func([]byte, int) []byte, len(columns))
	for n, c := range columns {
		if c.Index < 0 {
			initial := c.Initial
			parts[n] = func(dst []byte, _ int) []byte { return append(dst, initial...) }
			continue
		}
		if c.Index >= int(rec.NumCols()) {
			return nil, fmt.Errorf("column %d of %d", c.Index, rec.NumCols())
		}
		if parts[n] = content(rec.Column(c.Index)); parts[n] == nil {
			return nil, fmt.Errorf("column %q of type %s: %w", rec.ColumnName(c.Index), rec.Column(c.Index).DataType(), ErrKeyType)
		}
	}
	b.key = func(dst []byte, i int) []byte {
		for _, part := range parts {
			dst = part(dst, i)
		}
		return dst
	}
	return b, nil
}

// contentMax is up to how many bytes a row's content is kept as it is; of a longer one
// its hash is, which is longer than that, so that neither can be taken for the other.
const contentMax = sha256.Size - 1

// count pairs the rows of slice s, in order, with their counterparts. For each content
// the newest row without one is in newest, the token +1 for an insert and -1 for a
// delete; below leads to the next older one, which is of the same operation.
func (x *Index) count(s Ordinal, b *batch) {
	first := x.Rows()
	x.supersededAt = slices.Grow(x.supersededAt, b.rows)
	x.below = slices.Grow(x.below, b.rows)
	for i := range b.rows {
		x.supersededAt, x.below = append(x.supersededAt, never), append(x.below, 0)
		if x.scratch = b.key(x.scratch[:0], i); len(x.scratch) > contentMax {
			sum := sha256.Sum256(x.scratch)
			x.scratch = append(x.scratch[:0], sum[:]...)
		}
		e := x.newest.ofBytes(x.scratch)
		sign := int64(1)
		if change.Op(b.op[i]) == change.Delete {
			sign = -1
		}
		x.pair(s, first+uint64(i), e, sign)
	}
}

func (x *Index) pair(s Ordinal, row uint64, e *entry, sign int64) {
	if e.row != 0 && e.row-1 < x.baseRow {
		e.row = 0 // evicted, and with it all below
	}
	if e.row == 0 || e.token == sign {
		x.below[row-x.baseRow] = e.row
		*e = entry{token: sign, row: row + 1}
		return
	}
	old := e.row - 1
	x.supersede(old, s)
	x.supersede(row, x.sliceOf(old))
	e.row = x.below[old-x.baseRow]
}
