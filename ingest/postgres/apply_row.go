package postgres

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// applyRow applies the parsed row message of a kind.
func (a *applier) applyRow(kind byte, t *streamTable) error {
	a.prior, a.gone = prior{}, false
	switch {
	case kind == pgoutput.KindInsert:
		return a.put(t, change.Insert, false)
	case t.Schema.WholeRow:
		return a.applyWhole(kind, t)
	case len(t.keyed) == 0:
		return a.keyless(t)
	case kind == pgoutput.KindDelete:
		return a.remove(t)
	}
	if err := a.findPrior(t); err != nil {
		return err
	}
	moved, why := t.keyChanged(&a.row)
	if why != nil {
		return a.stop(t, why)
	}
	if !moved {
		return a.put(t, change.Update, false)
	}
	if err := a.remove(t); err != nil || t.stopped {
		return err
	}
	return a.put(t, change.Insert, true)
}

// keyless stops a table that was taken in without a key, as a row of it was changed. A new copy
// helps only if the source has one by now: a publication of somebody else's may send such changes.
func (a *applier) keyless(t *streamTable) error {
	one := selectedTable(a.source.cfg.selection, t.Source.Schema, t.Source.Name)
	one.Schema, one.Name = t.Source.Schema, t.Source.Name
	var found []ingest.SourceTable
	err := a.source.withControlUnlocked(a.ctx, func(conn *pgx.Conn) (err error) {
		found, err = discover(a.ctx, conn, catalog.TableSelection{Tables: []catalog.SelectedTable{one}}, &a.source.cfg)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for a key of %s.%s: %w", one.Schema, one.Name, err)
	}
	return a.stop(t, &ingest.TableError{
		Reason: "a row was updated or deleted, and the table was taken in without a key to find it by",
		Hint:   "With a primary key, or REPLICA IDENTITY FULL, at the source, " + resync,
		Resync: slices.ContainsFunc(found, func(f ingest.SourceTable) bool {
			return f.OID == t.Source.OID && f.Unsupported == "" && (len(f.Key) > 0 || f.WholeRow)
		}),
	})
}

// put appends the new tuple. moved says that the row before it in the builder is the
// delete of its old key: the two must not be parted.
func (a *applier) put(t *streamTable, op change.Op, moved bool) error {
	var err error
	b := t.builder
	if !moved {
		if b, err = a.builder(t); b == nil {
			return err
		}
	}
	tuple := &a.row.New
	if len(tuple.Kinds) < t.width {
		return fmt.Errorf("%w: row has %d columns, its table %d", pgoutput.ErrMalformed, len(tuple.Kinds), t.width)
	}
	b.Add(op, int64(a.final), a.next())
	if t.blanks != nil {
		if aside, err := a.blank(t, b, op, tuple); aside || err != nil {
			return err
		}
	}
	if tuple.Cut || a.rowBytes > ingest.RowBytesMax {
		return a.tooLarge(t, b, op)
	}
	for i := range t.columns {
		c := &t.columns[i]
		kind, src := tuple.Kinds[c.source], tuple.Values[c.source]
		if kind == pgoutput.Unchanged {
			if kind, src, err = a.oldValue(c); err != nil {
				return a.setAside(t, b, refusal{op: op, tuple: tuple, column: c.name, err: err})
			}
			if kind == pgoutput.Unchanged && a.gone {
				return a.setAside(t, b, refusal{op: op, tuple: tuple, column: c.name, err: errPriorUnknown})
			}
			if kind == pgoutput.Unchanged {
				if c.key || len(t.keyed) == 0 {
					return a.refuse(t, b, unchangedValue(c.name))
				}
				b.LeaveOut(c.place, moved)
				continue
			}
			if kind == pgoutput.Omitted {
				return a.tooLarge(t, b, op)
			}
		}
		if kind == pgoutput.Null {
			t.fields[i].AppendNull()
			continue
		}
		if err := c.decode(t.fields[i], src); err != nil {
			return a.setAside(t, b, refusal{op: op, tuple: tuple, column: c.name, err: a.texts.Explained(src, err)})
		}
	}
	return a.passed(t, tuple)
}

// applyWhole applies an update or a delete of a table whose rows are told apart by all
// their columns: what the row was goes, and what it is now comes.
func (a *applier) applyWhole(kind byte, t *streamTable) error {
	if a.row.OldForm != pgoutput.OldFull {
		return a.stop(t, lacksOldRow())
	}
	if err := a.remove(t); err != nil || t.stopped || kind == pgoutput.KindDelete {
		return err
	}
	return a.put(t, change.Insert, true)
}

// remove appends a delete of the old tuple: of its key, or whole.
func (a *applier) remove(t *streamTable) error {
	b, err := a.builder(t)
	if b == nil {
		return err
	}
	tuple := &a.row.Old
	if a.row.OldForm == pgoutput.OldNone || len(tuple.Kinds) < t.width {
		return fmt.Errorf("%w: delete without its old row", pgoutput.ErrMalformed)
	}
	b.Add(change.Delete, int64(a.final), a.next())
	if t.blanks != nil {
		if aside, err := a.blank(t, b, change.Delete, tuple); aside || err != nil {
			return err
		}
	}
	if tuple.Cut && t.Schema.WholeRow {
		return a.setAside(t, b, refusal{op: change.Delete, tuple: tuple, err: errRowTooLarge})
	}
	for i := range t.columns {
		c := &t.columns[i]
		if !c.key && (!t.Schema.WholeRow || tuple.Kinds[c.source] == pgoutput.Null) {
			t.fields[i].AppendNull()
			continue
		}
		if kind := tuple.Kinds[c.source]; kind != pgoutput.Text {
			return a.refuse(t, b, missingKey(c.name))
		}
		src := tuple.Values[c.source]
		if err := c.decode(t.fields[i], src); err != nil {
			return a.setAside(t, b, refusal{op: change.Delete, tuple: tuple, column: c.name, err: a.texts.Explained(src, err)})
		}
	}
	if t.Schema.WholeRow && t.letters.Any() { // its values may have been taken for others then
		values, _, _ := t.letterValues(a, &refusal{op: change.Delete, tuple: tuple})
		return a.refuser.PassedRow(t.ID, deadletter.Row(values))
	}
	return a.passed(t, tuple)
}

// refuse evens out a row begun in vain and stops the table, which discards it.
func (a *applier) refuse(t *streamTable, b *change.Builder, why *ingest.TableError) error {
	value.Even(t.fields, b.Rows())
	return a.stop(t, why)
}

// keyChanged says whether an update moves its row to another key.
func (t *streamTable) keyChanged(row *pgoutput.Row) (bool, *ingest.TableError) {
	if row.OldForm == pgoutput.OldNone {
		return false, nil
	}
	if len(row.Old.Kinds) < t.width || len(row.New.Kinds) < t.width {
		return false, nil // put refuses it
	}
	moved := false
	for _, i := range t.keyed {
		at, name := t.columns[i].source, t.columns[i].name
		if row.Old.Kinds[at] != pgoutput.Text {
			return false, missingKey(name)
		}
		if row.New.Kinds[at] != pgoutput.Unchanged && !bytes.Equal(row.Old.Values[at], row.New.Values[at]) {
			moved = true
		}
	}
	return moved, nil
}

func unchangedValue(column string) *ingest.TableError {
	return &ingest.TableError{
		Reason: fmt.Sprintf("an update did not carry the large value of column %s, which it left unchanged", quote.Name(column)),
		Hint:   "ALTER TABLE … REPLICA IDENTITY FULL at the source makes it carry them; then ALTER PIPELINE … RESYNC TABLE …;",
	}
}

func lacksOldRow() *ingest.TableError {
	return &ingest.TableError{
		Reason: "a change did not carry the whole row that it was of, and the table has no key to find it by",
		Hint: "ALTER TABLE … REPLICA IDENTITY FULL at the source, for its partitions too, or give it a primary key. " +
			resync,
	}
}

func missingKey(column string) *ingest.TableError {
	return &ingest.TableError{
		Reason: fmt.Sprintf("a change did not carry the old value of key column %s", quote.Name(column)),
		Hint:   "Give the table and its partitions the same primary key as replica identity; then ALTER PIPELINE … RESYNC TABLE …;",
	}
}
