package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// NewTemp are the rows of the temporary tables of a session, which outlive its transactions.
// What they take is the budget's.
func NewTemp(b *Budget) *Changes { return &Changes{budget: b} }

// foldMin is how many batches a temporary table may have before they are made one.
const foldMin = 64

// Keep ends a transaction that changed temporary tables: tables are those that there are
// then. Rows of others go, and superseded ones in time. Nothing is rolled back afterwards.
func (c *Changes) Keep(tables map[change.TableID]*Table) {
	batches, rows, largest := map[change.TableID]int{}, map[change.TableID]int64{}, map[change.TableID]int64{}
	kept := c.list[:0]
	for _, e := range c.list {
		if tables[e.Table] == nil {
			c.forget(e.Batch)
			delete(c.own, e.Table)
			continue
		}
		kept = append(kept, e)
		if batches[e.Table]++; e.Record != nil {
			rows[e.Table] += e.Record.NumRows()
			largest[e.Table] = max(largest[e.Table], e.Record.NumRows())
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
	for id, n := range batches {
		// Making them one costs what they have: not before as much has come to them.
		if n >= foldMin && (rows[id] >= 2*largest[id] || n >= 16*foldMin) || c.bytes > TempBytesMax/2 && n > 1 {
			_ = c.fold(tables[id]) // what cannot be made one stays as it is
		}
	}
}

// Clear has a table lose all its rows, without a way back.
func (c *Changes) Clear(id change.TableID) {
	kept := c.list[:0]
	for _, e := range c.list {
		if e.Table == id {
			c.forget(e.Batch)
			continue
		}
		kept = append(kept, e)
	}
	clear(c.list[len(kept):])
	c.list = kept
	delete(c.own, id)
}

// fold makes the batches of a table one, of the rows that it has.
func (c *Changes) fold(t *Table) error {
	o, err := c.of(t)
	if err != nil {
		return err
	}
	var parts []Rows
	if len(o.batches) > 0 {
		winners, err := o.winners()
		if err != nil {
			return err
		}
		if parts, err = o.left(winners); err != nil {
			return err
		}
	}
	if len(parts) == 0 {
		c.Clear(t.ID)
		return nil
	}
	all, err := Concat(parts)
	if err != nil {
		return err
	}
	defer all.Release()
	b := c.batch(t, change.Insert, all.New)
	c.Clear(t.ID) // it has taken more than the batch takes, which so needs no leave
	n := batchBytes(b)
	c.budget.used.Add(n)
	c.list, c.bytes = append(c.list, entry{Batch: b, of: t.Current}), c.bytes+n
	return nil
}

// left are the rows that winners leave in a table that has no others.
func (o *own) left(winners []merge.Selection) ([]Rows, error) {
	var out []Rows
	for i, rec := range o.batches {
		ops := rec.Column(0).(*array.Uint8)
		var which []int32
		for _, row := range winners[i] {
			if change.Op(ops.Value(int(row))) != change.Delete {
				which = append(which, int32(row))
			}
		}
		if len(which) == 0 {
			continue
		}
		columns, err := takeRows(rec.Columns()[change.SystemColumns:], which)
		if err != nil {
			return nil, err
		}
		out = append(out, Rows{New: columns})
	}
	return out, nil
}

// takeRows picks rows, ascending.
func takeRows(from []arrow.Array, which []int32) ([]arrow.Array, error) {
	var out []arrow.Array
	for _, c := range from {
		var pieces []arrow.Array
		for at := 0; at < len(which); {
			to := at + 1
			for to < len(which) && which[to] == which[to-1]+1 {
				to++
			}
			pieces = append(pieces, array.NewSlice(c, int64(which[at]), int64(which[to-1])+1))
			at = to
		}
		joined, err := array.Concatenate(pieces, memory.DefaultAllocator)
		release(pieces)
		if err != nil {
			release(out)
			return nil, err
		}
		out = append(out, joined)
	}
	return out, nil
}
