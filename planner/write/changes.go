package write

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/change"
)

// BytesMax is how much a transaction may change before it commits. It is less than the
// longest row that the log takes (ingest.RowBytesMax): for a longer one its table would stop
// for good.
const BytesMax = 384 << 20

// Changes are those of one transaction, in order. The zero value is none. Used by one
// goroutine, but for Each once they are complete.
type Changes struct {
	list  []entry
	bytes int64
	next  int64                   // the token of the next batch
	own   map[change.TableID]*own // nil of a table: to be made from list
	// budget is what the bytes are taken from, of temporary tables; nil for any other.
	budget *Budget
}

// entry is a batch, and the schema that its table had.
type entry struct {
	*change.Batch
	of *schema.Table
	// moves says that the rows which it deletes come back with other keys.
	moves bool
}

// own is what a table's changes come to.
type own struct {
	table     *Table
	truncated bool
	// batches are those since the last truncate, as rows of the table as it is now.
	batches []arrow.RecordBatch
	// there says of the keys among them whether the last change left a row.
	there map[string]bool
	// read is what queries see, if it is not too large to be kept; nil: to be made.
	read *duckdb.Own
}

// Empty says that there are none.
func (c *Changes) Empty() bool { return len(c.list) == 0 }

// Touches says whether there are some of a table.
func (c *Changes) Touches(t change.TableID) bool {
	for _, b := range c.list {
		if b.Table == t {
			return true
		}
	}
	return false
}

// Tables are those that there are some of.
func (c *Changes) Tables() (out []change.TableID) {
	for _, b := range c.list {
		if !slices.Contains(out, b.Table) {
			out = append(out, b.Table)
		}
	}
	return out
}

// Mark is how many there are, to come back to; none of nil.
func (c *Changes) Mark() int {
	if c == nil {
		return 0
	}
	return len(c.list)
}

// Rollback takes back those since a mark.
func (c *Changes) Rollback(mark int) {
	if c == nil {
		return
	}
	for _, b := range c.list[mark:] {
		c.forget(b.Batch)
		delete(c.own, b.Table)
	}
	clear(c.list[mark:])
	c.list = c.list[:mark]
}

// forget frees a batch that is not in the list any more.
func (c *Changes) forget(b *change.Batch) {
	n := batchBytes(b)
	c.bytes -= n
	if c.budget != nil {
		c.budget.give(n)
	}
	b.Release()
}

// Release frees all.
func (c *Changes) Release() { c.Rollback(0) }

// Each implements own.Changes: it hands over the batches in order.
func (c *Changes) Each(f func(*change.Batch) error) error {
	for _, b := range c.list {
		if err := f(b.Batch); err != nil {
			return err
		}
	}
	return nil
}

// Truncate adds that the table loses all its rows.
func (c *Changes) Truncate(t *Table) error {
	return c.add(t, &change.Batch{Table: t.ID, SchemaVersion: t.Current.Version, Truncate: true})
}

// Delete adds that rows go: columns are those of the table's key. It takes no reference.
func (c *Changes) Delete(t *Table, key []arrow.Array) error {
	columns := make([]arrow.Array, len(t.Current.Fields))
	n := key[0].Len()
	for i, p := range t.key {
		key[i].Retain()
		columns[p] = key[i]
	}
	for i, f := range t.Current.Fields {
		if columns[i] == nil {
			columns[i] = array.MakeArrayOfNull(memory.DefaultAllocator, schema.ArrowType(f.Type), n)
		}
	}
	defer release(columns)
	return c.rows(t, change.Delete, columns)
}

// Leave is Delete for rows that come back with other keys.
func (c *Changes) Leave(t *Table, key []arrow.Array) error {
	n := len(c.list)
	if err := c.Delete(t, key); err != nil {
		return err
	}
	for i := range c.list[n:] {
		c.list[n+i].moves = true
	}
	return nil
}

// Fate is what became of a row that there was at a mark.
type Fate uint8

// The fates: a row that is Here has its key still, whatever else has changed.
const (
	Here Fate = iota
	Gone
	Moved
)

// FateOf is what has become of the row with a key, in its columns, since a mark; of one that is
// not there any more, with nil, whether it may have been moved.
func (c *Changes) FateOf(t *Table, mark int, key []arrow.Array) (Fate, error) {
	if c == nil {
		return Here, nil
	}
	var sought, buf []byte
	if key != nil {
		keys, err := t.keysOf(key)
		if err != nil {
			return Here, err
		}
		sought = keys.Append(nil, 0)
	}
	for _, e := range c.list[mark:] {
		switch {
		case e.Table != t.ID:
			continue
		case e.of != t.Current, e.moves && key == nil:
			return Moved, nil
		case e.Truncate:
			return Gone, nil
		case key == nil:
			continue
		}
		keys, err := t.keysOf(pick(e.Record.Columns()[change.SystemColumns:], t.key))
		if err != nil {
			return Here, err
		}
		ops := e.Record.Column(0).(*array.Uint8)
		for i := range ops.Len() {
			if change.Op(ops.Value(i)) != change.Delete {
				continue
			}
			if buf = keys.Append(buf[:0], i); bytes.Equal(buf, sought) {
				return map[bool]Fate{true: Moved, false: Gone}[e.moves], nil
			}
		}
	}
	return Here, nil
}

// Put adds rows: new ones, or such as take the place of the one with their key. columns
// are all of the table's. It takes no reference.
func (c *Changes) Put(t *Table, op change.Op, columns []arrow.Array) error {
	return c.rows(t, op, columns)
}

func (c *Changes) rows(t *Table, op change.Op, columns []arrow.Array) error {
	if columns[0].Len() == 0 {
		return nil
	}
	return c.add(t, c.batch(t, op, columns))
}

// batch makes a batch of changes.
func (c *Changes) batch(t *Table, op change.Op, columns []arrow.Array) *change.Batch {
	n := columns[0].Len()
	b := array.NewRecordBuilder(memory.DefaultAllocator, systemColumns)
	defer b.Release()
	ops, tokens, ordinals := b.Field(0).(*array.Uint8Builder), b.Field(1).(*array.Int64Builder), b.Field(2).(*array.Int32Builder)
	for range n {
		ops.Append(uint8(op))
		tokens.Append(c.next) // grows, as the merge wants it
		ordinals.Append(0)
	}
	c.next++
	system := b.NewRecordBatch()
	defer system.Release()
	all := append(system.Columns(), columns...)
	out := &change.Batch{
		Table: t.ID, SchemaVersion: t.Current.Version,
		Record: array.NewRecordBatch(t.Current.Arrow(), all, int64(n)),
	}
	out.Recount()
	return out
}

var systemColumns = arrow.NewSchema([]arrow.Field{
	{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
	{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
	{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
}, nil)

func batchBytes(b *change.Batch) int64 {
	if b.Record == nil {
		return 0
	}
	return change.RecordBytes(b.Record)
}

func tooMuch() *pgerr.Error {
	return pgerr.New(codes.ProgramLimitExceeded, "transaction changes too much").
		WithDetail("A transaction may change %d MiB of rows.", BytesMax>>20).
		WithHint("Commit more often, or load the rows in several COPY statements.")
}

func (c *Changes) add(t *Table, b *change.Batch) error {
	size := batchBytes(b)
	if err := c.room(size); err != nil {
		b.Release()
		return err
	}
	e := entry{Batch: b, of: t.Current}
	c.list, c.bytes = append(c.list, e), c.bytes+size
	o, known := c.own[t.ID]
	if known && o.table.Current != t.Current {
		delete(c.own, t.ID)
		return nil
	}
	if known {
		return o.add(e) // an error ends the statement, and so takes it back
	}
	return nil
}

// Unchanged are the places of rows whose key, in its columns, no change since a mark has: all of a
// table without a key.
func (c *Changes) Unchanged(t *Table, mark int, key []arrow.Array) ([]int32, error) {
	all := Without(key[0].Len(), nil)
	if c == nil || !t.Keyed() {
		return all, nil
	}
	changed := map[string]bool{}
	var buf []byte
	for _, e := range c.list[mark:] {
		if e.Table != t.ID || e.Record == nil {
			continue
		}
		keys, err := t.keysOf(pick(e.Record.Columns()[change.SystemColumns:], t.key))
		if err != nil {
			return nil, err
		}
		for i := range int(e.Record.NumRows()) {
			buf = keys.Append(buf[:0], i)
			changed[string(buf)] = true
		}
	}
	if len(changed) == 0 {
		return all, nil
	}
	keys, err := t.keysOf(key)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(i int32) bool {
		buf = keys.Append(buf[:0], int(i))
		return changed[string(buf)]
	}), nil
}

// room takes bytes from what there is.
func (c *Changes) room(size int64) error {
	switch {
	case c.budget == nil && c.bytes+size > BytesMax:
		return tooMuch()
	case c.budget == nil:
		return nil
	case c.bytes+size > TempBytesMax:
		return tooMuchTemp()
	}
	return c.budget.take(size)
}

func (o *own) add(e entry) error {
	o.read = nil
	if e.Truncate {
		o.truncated, o.batches, o.there = true, nil, map[string]bool{}
	}
	if e.Record == nil {
		return nil
	}
	b, err := e.as(o.table.Current)
	if err != nil {
		return err
	}
	if o.table.Keyed() {
		keys, err := o.table.keysOf(pick(b.Columns()[change.SystemColumns:], o.table.key))
		if err != nil {
			return err
		}
		ops := b.Column(0).(*array.Uint8)
		var key []byte
		for i := range ops.Len() {
			key = keys.Append(key[:0], i)
			o.there[string(key)] = change.Op(ops.Value(i)) != change.Delete
		}
	}
	o.batches = append(o.batches, b)
	return nil
}

// of is what the changes of a table come to.
func (c *Changes) of(t *Table) (*own, error) {
	if o, ok := c.own[t.ID]; ok && o.table.Current == t.Current {
		return o, nil
	}
	o := &own{table: t, truncated: t.Temp, there: map[string]bool{}} // others have no rows in a temporary table
	for _, b := range c.list {
		if b.Table == t.ID {
			if err := o.add(b); err != nil {
				return nil, err
			}
		}
	}
	if c.own == nil {
		c.own = map[change.TableID]*own{}
	}
	c.own[t.ID] = o
	return o, nil
}

// readMax is how much of its own a query may read.
const readMax = 128 << 20

// Own is what queries of the transaction see of its changes to a table, nil for nothing.
func (c *Changes) Own(t *Table) (*duckdb.Own, error) {
	if !c.Touches(t.ID) {
		return nil, nil
	}
	o, err := c.of(t)
	if err != nil {
		return nil, err
	}
	if o.read != nil {
		return o.read, nil
	}
	out := &duckdb.Own{Truncated: o.truncated, Fields: t.Fields()}
	if len(o.batches) == 0 {
		return out, nil
	}
	if c.bytes > readMax && c.budget == nil {
		return nil, pgerr.New(codes.ProgramLimitExceeded, "transaction has changed too much to read table \"%s\"", t.Schema+"."+t.Name).
			WithDetail("It has changed %d MiB; queries see up to %d MiB of the changes of their own transaction.", c.bytes>>20, readMax>>20).
			WithHint("COMMIT first.")
	}
	winners, err := o.winners()
	if err != nil {
		return nil, err
	}
	if out.Rows, out.Deletes, err = o.encode(winners); err == nil && len(out.Rows) <= keptMax {
		o.read = out
	}
	return out, err
}

// keptMax is how much of what a query read is kept for the next one.
const keptMax = 8 << 20

// winners are the rows that count, in each batch.
func (o *own) winners() ([]merge.Selection, error) {
	if !o.table.Keyed() {
		return merge.Cancel(o.batches)
	}
	key := make([]int, len(o.table.key))
	for i, p := range o.table.key {
		key[i] = change.SystemColumns + p
	}
	return merge.Collapse(key, o.batches)
}

// encode writes the winners as an Arrow stream without token and ordinal.
func (o *own) encode(winners []merge.Selection) (stream []byte, deletes bool, err error) {
	whole := o.table.Current.Arrow().Fields()
	s := arrow.NewSchema(append([]arrow.Field{whole[0]}, whole[change.SystemColumns:]...), nil)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(s))
	for i, rec := range o.batches {
		ops := rec.Column(0).(*array.Uint8)
		for from := 0; from < len(winners[i]); { // runs of rows that follow each other
			to := from + 1
			for to < len(winners[i]) && winners[i][to] == winners[i][to-1]+1 {
				to++
			}
			run := rec.NewSlice(int64(winners[i][from]), int64(winners[i][to-1])+1)
			for _, row := range winners[i][from:to] {
				deletes = deletes || change.Op(ops.Value(int(row))) == change.Delete
			}
			columns := append([]arrow.Array{run.Column(0)}, run.Columns()[change.SystemColumns:]...)
			part := array.NewRecordBatch(s, columns, run.NumRows())
			err = errors.Join(err, w.Write(part))
			part.Release()
			run.Release()
			from = to
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, false, fmt.Errorf("encode own changes of table %d: %w", o.table.ID, err)
	}
	return buf.Bytes(), deletes, nil
}

// KeyKinds are new rows by what is known of their keys.
type KeyKinds struct {
	// Twice are those whose key an earlier one of them has.
	Twice []int32
	// Left are those with whose key the transaction itself has left a row.
	Left []int32
	// Open are those with whose key others may have left a row.
	Open []int32
}

// Keys looks at the keys of new rows: columns are the key's, without nulls.
func (c *Changes) Keys(t *Table, key []arrow.Array) (KeyKinds, error) {
	var out KeyKinds
	o, err := c.of(t)
	if err != nil {
		return out, err
	}
	keys, err := t.keysOf(key)
	if err != nil {
		return out, err
	}
	seen := map[string]struct{}{}
	var buf []byte
	for i := range key[0].Len() {
		buf = keys.Append(buf[:0], i)
		left, known := o.there[string(buf)]
		if _, twice := seen[string(buf)]; twice {
			out.Twice = append(out.Twice, int32(i))
			continue
		}
		seen[string(buf)] = struct{}{}
		switch {
		case left:
			out.Left = append(out.Left, int32(i))
		case !known && !o.truncated:
			out.Open = append(out.Open, int32(i))
		}
	}
	return out, nil
}
