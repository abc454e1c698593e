package merge

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// NewCounted returns an empty index of a table whose rows are told apart by all their
// columns (schema.Table.WholeRow), to be extended by AppendRows. A delete has as its
// counterpart the newest insert of an equal row before it that has none yet: in a pin that
// has both, both lose; in one that has the delete alone, the delete wins, and takes one
// equal row of the lake away. So of each row the lake's copies, and the pin's winning
// inserts less its winning deletes, add up to what the source has. And since every insert
// of the pin that was there for a delete to take has been taken first, the lake has a copy
// for each delete that wins.
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
// in the same order each time, under one schema version however old the record is. Rows
// of a copy are older than any streamed change, wherever they stand, so deletes before
// them may be theirs.
func (x *Index) AppendRows(rec arrow.RecordBatch, columns []Column, of SliceKind) (Ordinal, error) {
	var b *batch
	if rec != nil && rec.NumRows() > 0 {
		var err error
		if b, err = readRows(rec, columns); err != nil {
			return 0, err
		}
		b.copied = of.Copied
	}
	return x.append(b, of.Truncate)
}

// SliceKind says what a slice is, besides its rows.
type SliceKind struct {
	Truncate bool // it hides every slice before it
	Copied   bool // its rows are an initial copy
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
		if _, err := x.AppendRows(rec, columns, SliceKind{}); err != nil {
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

// contentMax is up to how many bytes a row's content, with its tag, is kept as it is; of a
// longer one its hash is, which with the tag is longer than that, so that neither can be
// taken for the other.
const contentMax = sha256.Size

// The tags that precede a content: of inserts, and of deletes, without a counterpart.
const (
	tagInserts = 'i'
	tagDeletes = 'd'
)

// count pairs the rows of slice s, in order, with their counterparts. The newest row of
// each content and operation that has none is in newest; below leads to the next older.
func (x *Index) count(s Ordinal, b *batch) {
	first := x.Rows()
	x.supersededAt = slices.Grow(x.supersededAt, b.rows)
	x.below = slices.Grow(x.below, b.rows)
	for i := range b.rows {
		x.supersededAt, x.below = append(x.supersededAt, never), append(x.below, 0)
		x.scratch = b.key(append(x.scratch[:0], tagInserts), i)
		if len(x.scratch) > contentMax {
			sum := sha256.Sum256(x.scratch)
			x.scratch = append(append(x.scratch[:0], tagInserts), sum[:]...)
		}
		row, deletes := first+uint64(i), change.Op(b.op[i]) == change.Delete
		copied := b.copied && !mutant.On(mutant.CopyAfterDelete)
		if (deletes || copied) && x.pair(s, row, !deletes) {
			continue
		}
		e := x.unpaired(deletes)
		x.below[row-x.baseRow] = e.row
		e.row = row + 1
	}
}

// unpaired are the inserts, or the deletes, of the content in scratch that have no
// counterpart.
func (x *Index) unpaired(deletes bool) *entry {
	x.scratch[0] = tagInserts
	if deletes {
		x.scratch[0] = tagDeletes
	}
	e := x.newest.ofBytes(x.scratch)
	if e.row != 0 && e.row-1 < x.baseRow {
		e.row = 0 // evicted, and with it all below
	}
	return e
}

// pair makes row of slice s the counterpart of the newest unpaired delete, or insert, of
// its content, if there is one.
func (x *Index) pair(s Ordinal, row uint64, withDelete bool) bool {
	e := x.unpaired(withDelete)
	if e.row == 0 {
		return false
	}
	old := e.row - 1
	x.supersede(old, s)
	x.supersede(row, x.sliceOf(old))
	e.row = x.below[old-x.baseRow]
	for mutant.On(mutant.DeleteAllEqual) && !withDelete && e.row != 0 && e.row > x.baseRow {
		x.supersede(e.row-1, s)
		e.row = x.below[e.row-1-x.baseRow]
	}
	return true
}
