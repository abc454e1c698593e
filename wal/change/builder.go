package change

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Builder collects rows of one table into a batch. Not safe for concurrent use.
type Builder struct {
	table   TableID
	version uint32
	rec     *array.RecordBuilder
	op      *array.Uint8Builder
	token   *array.Int64Builder
	ordinal *array.Int32Builder
	counts  Counts
	// unchanged are the cells that the source left out.
	unchanged []Unchanged
	// Truncate marks the batch being built.
	Truncate bool
	// Backfill marks the batch being built.
	Backfill bool
	// Computes marks all batches.
	Computes bool
}

// NewBuilder makes a builder; s is the table's Arrow schema with the system columns
// first (schema.Table.Arrow).
func NewBuilder(mem memory.Allocator, table TableID, version uint32, s *arrow.Schema) *Builder {
	b := &Builder{table: table, version: version, rec: array.NewRecordBuilder(mem, s)}
	b.op = b.rec.Field(0).(*array.Uint8Builder)
	b.token = b.rec.Field(1).(*array.Int64Builder)
	b.ordinal = b.rec.Field(2).(*array.Int32Builder)
	return b
}

// Add begins a row; the caller then appends exactly one value to each Column.
func (b *Builder) Add(op Op, token int64, ordinal int32) {
	b.op.Append(uint8(op))
	b.token.Append(token)
	b.ordinal.Append(ordinal)
	switch op {
	case Insert:
		b.counts.Inserts++
	case Update:
		b.counts.Updates++
	case Delete:
		b.counts.Deletes++
	}
	if b.op.Len() == 1 || token < b.counts.MinToken {
		b.counts.MinToken = token
	}
	if b.op.Len() == 1 || token > b.counts.MaxToken {
		b.counts.MaxToken = token
	}
}

// LeaveOut puts a null into the i-th column of the row begun last, in place of a value
// that did not change and that the source left out. moved says that the change gave the
// row another key: then the row before it in this builder is the Delete of the old one.
func (b *Builder) LeaveOut(i int, moved bool) {
	b.Column(i).AppendNull()
	b.unchanged = append(b.unchanged, Unchanged{Row: int32(b.Rows() - 1), Column: int32(i), Moved: moved})
}

// LeftOut is how many cells of the rows added since the last Batch were left out.
func (b *Builder) LeftOut() int { return len(b.unchanged) }

// Column is the builder of the table's i-th column (system columns not counted).
func (b *Builder) Column(i int) array.Builder { return b.rec.Field(SystemColumns + i) }

// Rows is how many rows were added since the last Batch.
func (b *Builder) Rows() int { return b.op.Len() }

// Batch hands over what was collected and empties the builder.
func (b *Builder) Batch() *Batch {
	out := &Batch{
		Table: b.table, SchemaVersion: b.version, Counts: b.counts,
		Truncate: b.Truncate, Backfill: b.Backfill, Unchanged: b.unchanged,
		Computes: b.Computes && b.op.Len() > 0,
	}
	out.Record = b.rec.NewRecordBatch()
	b.counts, b.Truncate, b.unchanged = Counts{}, false, nil
	return out
}

// Release frees the builder.
func (b *Builder) Release() { b.rec.Release() }
