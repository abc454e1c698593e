package ingest

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/wal/change"
)

// sinkTable collects the changes of one table for the group being filled. Owned by
// the batcher.
type sinkTable struct {
	id      change.TableID
	after   change.Position // up to which the table has everything at the start
	source  [2]string       // schema and name at the source
	schema  *schema.Table   // of builder
	void    uint32          // the greatest version of a schema that was given up
	builder *change.Builder
	size    sizer
	// cell is about what a value has that the source leaves out, by sizes; the same for all
	// of a group.
	sizes *fill.Sizes
	cell  int64
	// done are batches of the group that a truncate or a schema change closed.
	done    []*change.Batch
	touched bool // has something in the group
	stopped bool
	// txn is the transaction that begin was taken for: what the table had in the
	// group when that transaction began.
	txn   uint64
	begin mark
	// bytes is the table's part of the group's size, doneBytes that of done.
	bytes, doneBytes int64
	// seen is the part as it was when the last change was measured.
	seen int64
}

// mark is how much of the group was there at some moment.
type mark struct {
	rows, batches int
	truncate      bool
	schema        *schema.Table
	source        [2]string
}

func newSinkTable(t StreamTable, sizes *fill.Sizes) *sinkTable {
	st := &sinkTable{id: t.ID, after: t.After, void: t.VoidVersion, source: [2]string{t.Source.Schema, t.Source.Name}}
	st.sizes, st.cell = sizes, sizes.Cell(t.ID)
	st.build(t.Schema)
	return st
}

// enter notes what is there when transaction txn first touches the table.
func (t *sinkTable) enter(txn uint64) {
	if t.txn == txn {
		return
	}
	t.txn, t.seen = txn, t.now()
	t.begin = mark{
		rows: t.builder.Rows(), batches: len(t.done), truncate: t.builder.Truncate, schema: t.schema, source: t.source,
	}
}

// truncate closes the batch being built and begins one that truncates.
func (t *sinkTable) truncate() {
	t.close()
	t.builder.Truncate = true
}

// close closes the batch being built, if there is something in it.
func (t *sinkTable) close() {
	if t.builder.Rows() > 0 || t.builder.Truncate {
		t.doneBytes += t.built()
		t.done = append(t.done, t.builder.Batch())
	}
}

// discard drops what transaction txn has added, schema versions too.
func (t *sinkTable) discard(txn uint64) {
	if t.txn != txn {
		return
	}
	added := t.done[t.begin.batches:]
	t.done = t.done[:t.begin.batches]
	last := t.builder.Batch()
	first := last // the batch that was being built when the transaction began
	if len(added) > 0 {
		first = added[0]
		for _, b := range added[1:] {
			b.Release()
		}
		last.Release()
	}
	if t.begin.rows == 0 && !t.begin.truncate {
		first.Release()
	} else {
		t.done = append(t.done, head(first, t.begin.rows))
	}
	if t.schema != t.begin.schema {
		t.void = max(t.void, t.schema.Version) // a part may have it
		t.builder.Release()
		t.build(t.begin.schema)
	}
	t.source = t.begin.source
	t.doneBytes, t.seen = t.bytes, t.bytes
}

// open is what the group has of transaction txn in bytes, as measured.
func (t *sinkTable) open(txn uint64) int64 {
	if t.txn != txn {
		return 0
	}
	return t.seen - t.bytes
}

// head keeps the first rows of a batch and counts them anew.
func head(b *change.Batch, rows int) *change.Batch {
	whole := b.Record
	b.Record = whole.NewSlice(0, int64(rows))
	b.Unchanged = change.Head(b.Unchanged, rows)
	b.Computes = b.Computes && rows > 0
	whole.Release()
	b.Recount()
	return b
}

// tail is a batch of the rows from a row on. The whole one stays as it is.
func tail(b *change.Batch, from int) *change.Batch {
	t := *b
	t.Truncate, t.Record = false, b.Record.NewSlice(int64(from), b.Record.NumRows())
	t.Unchanged = change.Tail(b.Unchanged, from)
	t.Recount()
	return &t
}

// seal hands over the table's batches of the group.
func (t *sinkTable) seal(dst []*change.Batch) []*change.Batch {
	dst = append(dst, t.done...)
	if t.builder.Rows() > 0 || t.builder.Truncate {
		dst = append(dst, t.builder.Batch())
	}
	t.done, t.touched, t.bytes, t.doneBytes, t.seen = nil, false, 0, 0, 0
	t.begin = mark{schema: t.begin.schema, source: t.begin.source}
	t.cell = t.sizes.Cell(t.id)
	return dst
}

// grown is by how much the table's part of the group has grown since last asked.
func (t *sinkTable) grown() int64 {
	now := t.now()
	delta := now - t.bytes
	t.bytes = now
	return delta
}

// now is the table's part of the group's size.
func (t *sinkTable) now() int64 { return t.doneBytes + t.built() }

// built is the size of the batch being built, with the values that it is to be given.
func (t *sinkTable) built() int64 {
	return t.size.bytes(t.builder.Rows()) + int64(t.builder.LeftOut())*t.cell
}

// release frees everything.
func (t *sinkTable) release() {
	for _, b := range t.done {
		b.Release()
	}
	t.done = nil
	t.builder.Release()
}

// sizer estimates the bytes of a builder without walking its rows.
type sizer struct {
	fixed    int64 // bytes per row of columns of fixed width, system columns included
	variable []interface{ DataLen() int }
	lists    []array.Builder // values of lists, by their number
}

const (
	systemWidth = 1 + 8 + 4
	offsetWidth = 4
)

func (s *sizer) add(b array.Builder) {
	if s.fixed == 0 {
		s.fixed = systemWidth
	}
	switch b := b.(type) {
	case interface{ DataLen() int }: // strings and binaries
		s.variable = append(s.variable, b)
		s.fixed += offsetWidth
	case array.ListLikeBuilder:
		s.fixed += offsetWidth
		values := b.ValueBuilder()
		if v, ok := values.(interface{ DataLen() int }); ok {
			s.variable = append(s.variable, v)
		}
		s.lists = append(s.lists, values)
	default:
		s.fixed += width(b.Type())
	}
}

func width(t arrow.DataType) int64 {
	if f, ok := t.(arrow.FixedWidthDataType); ok {
		return int64(f.BitWidth()+7) / 8
	}
	return 8
}

func (s *sizer) bytes(rows int) int64 {
	n := max(s.fixed, systemWidth) * int64(rows)
	for _, v := range s.variable {
		n += int64(v.DataLen())
	}
	for _, l := range s.lists {
		n += int64(l.Len()) * width(l.Type())
	}
	return n
}

// errTable names the table in an error.
func errTable(err error, id change.TableID) error { return fmt.Errorf("table %d: %w", id, err) }
