package write

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// as is a batch with the columns that its table has now. A column that is newer than the batch
// has in it what rows that are older than the column have.
func (e entry) as(now *schema.Table) (arrow.RecordBatch, error) {
	if e.of == now || e.of.Version == now.Version && sameFields(e.of, now) {
		return e.Record, nil
	}
	columns := append([]arrow.Array(nil), e.Record.Columns()[:change.SystemColumns]...)
	var made []arrow.Array
	defer func() { release(made) }()
	for _, f := range now.Fields {
		c, err := e.column(f)
		if err != nil {
			return nil, fmt.Errorf("column %s of rows of table %d: %w", quote.Name(f.Name), e.Table, err)
		}
		made, columns = append(made, c), append(columns, c)
	}
	return array.NewRecordBatch(now.Arrow(), columns, e.Record.NumRows()), nil
}

// column is a field of the table in a batch. The caller releases it.
func (e entry) column(f schema.Field) (arrow.Array, error) {
	for i, old := range e.of.Fields {
		if old.ID == f.ID {
			return lake.Widen(e.Record.Column(change.SystemColumns+i), schema.ArrowType(f.Type))
		}
	}
	return schema.InitialColumn(f, int(e.Record.NumRows()))
}

func sameFields(a, b *schema.Table) bool {
	if len(a.Fields) != len(b.Fields) {
		return false
	}
	for i, f := range a.Fields {
		if f.ID != b.Fields[i].ID || f.Name != b.Fields[i].Name || !arrow.TypeEqual(schema.ArrowType(f.Type), schema.ArrowType(b.Fields[i].Type)) {
			return false
		}
	}
	return true
}

// Settle gives all batches the schemas that their tables have when the transaction ends; those
// of tables that there are not then go. Nothing is rolled back afterwards.
func (c *Changes) Settle(now func(change.TableID) *schema.Table) error {
	if c == nil {
		return nil
	}
	kept := c.list[:0]
	for _, e := range c.list {
		to := now(e.Table)
		if to == nil {
			c.forget(e.Batch)
			delete(c.own, e.Table)
			continue
		}
		if e.Record != nil {
			rec, err := e.as(to)
			if err != nil {
				return err
			}
			if rec != e.Record {
				c.bytes -= batchBytes(e.Batch)
				e.Record.Release()
				e.Record = rec
				c.bytes += batchBytes(e.Batch)
				e.Recount()
			}
		}
		e.SchemaVersion, e.of = to.Version, to
		kept = append(kept, e)
	}
	clear(c.list[len(kept):])
	c.list, c.own = kept, nil
	return nil
}
