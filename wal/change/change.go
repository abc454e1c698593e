// Package change is a row change as it travels from a source to the lake.
//
// A Batch holds changes of one table as an Arrow record: the system columns
// first, then the table's columns in the order of its schema version. A Group is
// the unit of an append: everything in it becomes visible together or not at all. It
// holds whole source transactions (T1), or a part of a large one, whose parts become
// visible with the group that has its commit.
//
// Reading order: Op, Batch, Group. No I/O, no clock, no logging here.
package change

import (
	"slices"
	"sort"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// TableID names a table of our catalog. It is never reused. Zero is invalid.
type TableID uint32

// PipelineID names a pipeline of our catalog. It is never reused. Zero is invalid.
type PipelineID uint32

// Op is what a change does to its row key.
type Op uint8

// The operations. Zero is invalid. The values are durable.
const (
	Insert Op = 1
	Update Op = 2
	Delete Op = 3
)

// The system columns, first in every batch, in this order.
const (
	ColOp      = "_skippr_op"      // uint8, an Op
	ColToken   = "_skippr_token"   // int64, the order token; also a hidden column of every lake row
	ColOrdinal = "_skippr_ordinal" // int32, index of the change inside its source transaction

	// SystemColumns is how many columns precede the table's own.
	SystemColumns = 3
)

// Position is a place in a source to resume from. Only its source can compare
// two positions or read one. Empty means "from the beginning".
type Position string

// Batch is changes of one table at one schema version.
//
// A delete carries its key columns; its other columns are null. An update carries
// the whole new row. An update that changes the key travels as Delete of the old
// key and Insert of the new one, in the same group. In a table whose rows are told
// apart by all their columns a delete carries them all, and every update travels so.
type Batch struct {
	Table         TableID
	SchemaVersion uint32
	// Record holds the system columns, then the table's columns. The batch owns
	// one reference, released by Release.
	Record arrow.RecordBatch
	// Truncate says that every change and lake row of the table that is older
	// than this batch vanishes before the batch applies. A batch with Truncate may
	// have no rows.
	Truncate bool
	// Backfill says that the rows are an initial copy: all Insert, all with the
	// same order token, lower than that of any streamed change of the table.
	Backfill bool
	Counts   Counts
	// Unchanged are cells whose values the source left out, by row, then column. A batch
	// that is appended to a log has none: they were filled in.
	Unchanged []Unchanged
	// Computes says that columns which the source computes and does not send are null yet,
	// in all rows. It is not set in a batch that is appended to a log.
	Computes bool
}

// Unchanged is a cell of an insert or update whose value the source left out because the
// change left it as it was. The cell is null until it is filled in.
type Unchanged struct {
	Row, Column int32 // system columns not counted
	// Moved says that the change gave its row another key: the value is that of the old
	// key, which the row before it deletes.
	Moved bool
}

// Head are the cells of the first rows; Tail those of the others, which begin a batch of
// their own. Neither changes all.
func Head(all []Unchanged, rows int) []Unchanged { return slices.Clip(all[:cellsBefore(all, rows)]) }

// Tail: see Head.
func Tail(all []Unchanged, rows int) []Unchanged {
	rest := slices.Clone(all[cellsBefore(all, rows):])
	for i := range rest {
		rest[i].Row -= int32(rows)
	}
	return rest
}

func cellsBefore(all []Unchanged, rows int) int {
	return sort.Search(len(all), func(i int) bool { return int(all[i].Row) >= rows })
}

// Counts sums up a batch without reading it.
type Counts struct {
	Inserts, Updates, Deletes uint32
	MinToken, MaxToken        int64
}

// Rows is the number of changes in the batch.
func (b *Batch) Rows() int64 {
	if b.Record == nil {
		return 0
	}
	return b.Record.NumRows()
}

// Recount sums the batch up anew, after its record was cut.
func (b *Batch) Recount() {
	b.Counts = Counts{}
	ops := b.Record.Column(0).(*array.Uint8)
	tokens := b.Record.Column(1).(*array.Int64)
	for i := range ops.Len() {
		switch Op(ops.Value(i)) {
		case Insert:
			b.Counts.Inserts++
		case Update:
			b.Counts.Updates++
		case Delete:
			b.Counts.Deletes++
		}
		token := tokens.Value(i)
		if i == 0 {
			b.Counts.MinToken, b.Counts.MaxToken = token, token
		}
		b.Counts.MinToken = min(b.Counts.MinToken, token)
		b.Counts.MaxToken = max(b.Counts.MaxToken, token)
	}
}

// Release drops the batch's reference to its record.
func (b *Batch) Release() {
	if b.Record != nil {
		b.Record.Release()
		b.Record = nil
	}
}

// Group is the unit of an append.
type Group struct {
	// Batches in the order in which they apply. Several batches of one table are
	// allowed (a truncate in the middle of a transaction starts a new one).
	Batches []*Batch
	// Position is where the source resumes once this group is durable; empty
	// leaves the pipeline's position as it is (backfill chunks, parts of a transaction).
	Position Position
	// CommittedAt is the source's commit time of the newest transaction in the
	// group, for lag; zero when unknown.
	CommittedAt time.Time
	// State is the pipeline's own resume state that becomes durable with the rows
	// (a finished backfill chunk, say), opaque to the log. It is handed to the
	// publisher with the group, also when the group is recovered.
	State []byte
}
