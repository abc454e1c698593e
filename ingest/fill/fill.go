package fill

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// ErrNotExact means that a table has rows which may be newer than the change that is to
// be filled in: its copy was read later. Nothing that is found by key can be trusted then.
var ErrNotExact = errors.New("rows may be newer than the change")

// UnknownError means that the value that a row had before a change is nowhere.
type UnknownError struct {
	Table  change.TableID
	Column string
	// Copying says that the table's initial copy was not complete and consistent then: a
	// new one makes the value needless.
	Copying bool
}

// Error names the column.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("table %d: the value that column %s had before an update is not known", e.Table, quote.Name(e.Column))
}

// Query asks for rows by key.
type Query struct {
	Table change.TableID
	// Schema is the newest version among the changes to fill in; Versions are all that
	// began in the open transaction, which the catalog may not have.
	Schema   *schema.Table
	Versions []*schema.Table
	// Keys has the key's columns, in key order; each key once.
	Keys arrow.RecordBatch
	// Fields are the ids of the wanted columns.
	Fields []int32
}

// Found takes a record with rows that were asked for: the key's columns in key order,
// then those of the wanted fields that the table has, in any order, named by FieldName.
// Their types may be those of an older version, or the null type for rows that are older
// than the column. The record is the caller's and lives during the call.
type Found func(rec arrow.RecordBatch) error

// Lookup finds rows by key. A row that there is none of is no error. Calls do not overlap.
type Lookup interface {
	// Pending looks among the parts, durable and not visible yet, of the transaction that
	// is open in the table's pipeline.
	Pending(ctx context.Context, q *Query, found Found) error
	// Visible looks at what a reader would see now.
	Visible(ctx context.Context, q *Query, found Found) error
}

// Copied finds rows of a table whose initial copy is not complete, as they were at the
// moment that the copy reads. ok is false when nothing is being copied any more: then
// Lookup.Visible has all.
type Copied func(ctx context.Context, q *Query, found Found) (ok bool, err error)

// Table is what is known of a table with changes to fill in, when its group is appended.
type Table struct {
	// Version gives the schema of a version, nil if there is none.
	Version func(uint32) *schema.Table
	// Versions as in Query.
	Versions []*schema.Table
	// Exact says that the changes are newer than every row of the table.
	Exact bool
	// Copied is set while the table's initial copy is not complete.
	Copied Copied
}

// FieldName is the name of a field's column in what a Lookup finds.
func FieldName(id int32) string { return fmt.Sprintf("f%d", id) }

// Filler fills one group, piece by piece. Not safe for concurrent use.
type Filler struct {
	lookup Lookup
	tables func(change.TableID) (*Table, error)
	sizes  *Sizes
	// rest is what is not filled in yet; the caller's, whose references it shares.
	rest []*change.Batch
	// parted says that pieces of the group, or parts of its transaction, precede it.
	parted bool
}

// New begins to fill a group's batches, which stay the caller's. parts says that parts
// of the transaction that the group is of, and of no other, are durable.
func New(l Lookup, tables func(change.TableID) (*Table, error), sizes *Sizes, batches []*change.Batch, parts bool) *Filler {
	f := &Filler{lookup: l, tables: tables, sizes: sizes, parted: parts}
	for _, b := range batches {
		f.rest = append(f.rest, share(b))
	}
	return f
}

// Next fills the next piece. more says that another follows: then the piece is durable,
// as a part of the group's transaction, before Next is called again. The batches are the
// caller's, also those of a piece that is not filled because of an error.
func (f *Filler) Next(ctx context.Context) (batches []*change.Batch, more bool, err error) {
	for cells := f.sizes.cells(f.rest); ; cells /= 4 {
		p := take(f.rest, max(cells, 1))
		taken, err := p.fill(ctx, f)
		if errors.Is(err, errTooLarge) && cells > 1 {
			p.release()
			continue
		}
		if err != nil {
			p.release()
			return nil, false, err
		}
		f.drop(taken)
		f.parted = f.parted || len(f.rest) > 0
		return p.batches, len(f.rest) > 0, nil
	}
}

// Close frees what was not filled.
func (f *Filler) Close() {
	for _, b := range f.rest {
		b.Release()
	}
	f.rest = nil
}

// drop forgets the first rows of what is not filled in.
func (f *Filler) drop(done cut) {
	for _, b := range f.rest[:done.batches] {
		b.Release()
	}
	f.rest = f.rest[done.batches:]
	if done.rows > 0 {
		whole := f.rest[0]
		f.rest[0] = rows(whole, done.rows, int(whole.Rows()))
		f.rest[0].Truncate = false
		whole.Release()
	}
}

// share is a batch with a reference of its own.
func share(b *change.Batch) *change.Batch {
	s := *b
	if s.Record != nil {
		s.Record.Retain()
	}
	return &s
}
