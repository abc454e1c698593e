package postgres

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/wal/change"
)

// applyRow applies the parsed row message of a kind.
func (a *applier) applyRow(kind byte, t *streamTable) error {
	switch {
	case kind == pgoutput.KindInsert:
		return a.put(t, change.Insert)
	case len(t.keyed) == 0:
		return a.stop(t, &ingest.TableError{
			Reason: "a row was updated or deleted, and the table has no key to find it by",
			Hint:   "Add a primary key, or a unique index as REPLICA IDENTITY, at the source, then RESYNC the table.",
		})
	case kind == pgoutput.KindDelete:
		return a.remove(t)
	}
	moved, why := t.keyChanged(&a.row)
	if why != nil {
		return a.stop(t, why)
	}
	if !moved {
		return a.put(t, change.Update)
	}
	if err := a.remove(t); err != nil || t.stopped {
		return err
	}
	return a.put(t, change.Insert)
}

// put appends the new tuple.
func (a *applier) put(t *streamTable, op change.Op) error {
	b, err := a.builder(t)
	if b == nil {
		return err
	}
	tuple := &a.row.New
	if len(tuple.Kinds) < t.width {
		return fmt.Errorf("%w: row has %d columns, its table %d", pgoutput.ErrMalformed, len(tuple.Kinds), t.width)
	}
	b.Add(op, int64(a.final), a.next())
	for i := range t.columns {
		c := &t.columns[i]
		kind, src := tuple.Kinds[c.source], tuple.Values[c.source]
		if kind == pgoutput.Unchanged {
			if kind, src = a.row.OldValue(c.source); kind == pgoutput.Unchanged {
				return a.refuse(t, b, unchangedValue(c.name))
			}
		}
		if kind == pgoutput.Null {
			t.fields[i].AppendNull()
			continue
		}
		if err := c.decode(t.fields[i], src); err != nil {
			return a.refuseValue(t, b, c.name, err)
		}
	}
	return nil
}

// remove appends a delete of the old tuple's key.
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
	for i := range t.columns {
		c := &t.columns[i]
		if !c.key {
			t.fields[i].AppendNull()
			continue
		}
		if kind := tuple.Kinds[c.source]; kind != pgoutput.Text {
			return a.refuse(t, b, missingKey(c.name))
		}
		if err := c.decode(t.fields[i], tuple.Values[c.source]); err != nil {
			return a.refuseValue(t, b, c.name, err)
		}
	}
	return nil
}

// refuse evens out a row begun in vain and stops the table, which discards it.
func (a *applier) refuse(t *streamTable, b *change.Builder, why *ingest.TableError) error {
	value.Even(t.fields, b.Rows())
	return a.stop(t, why)
}

func (a *applier) refuseValue(t *streamTable, b *change.Builder, column string, err error) error {
	err = columnError(column, err)
	var why *ingest.TableError
	if !errors.As(err, &why) {
		return err
	}
	return a.refuse(t, b, why)
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
		Reason: fmt.Sprintf("an update did not carry the large value of column %q, which it left unchanged", column),
		Hint:   "ALTER TABLE … REPLICA IDENTITY FULL at the source makes it carry them; then RESYNC the table.",
	}
}

func missingKey(column string) *ingest.TableError {
	return &ingest.TableError{
		Reason: fmt.Sprintf("a change did not carry the old value of key column %q", column),
		Hint:   "Give the table and its partitions the same primary key as replica identity; then RESYNC the table.",
	}
}
