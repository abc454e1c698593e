package postgres

import (
	"cmp"
	"errors"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/wal/change"
)

// refusal is a change that was begun in a builder and cannot be taken in.
type refusal struct {
	op     change.Op
	tuple  *pgoutput.Tuple
	column string // that is the trouble, "" for the whole row
	err    error
	// why is what is known of it besides; nil: nothing.
	why *compute.Refusal
}

// setAside evens out the row begun last and makes it a dead letter; with a sink that has
// none, the table stops.
func (a *applier) setAside(t *streamTable, b *change.Builder, r refusal) error {
	var why *ingest.TableError
	if err := columnError(r.column, r.err); !errors.As(err, &why) {
		return err
	}
	value.Even(t.fields, b.Rows())
	if a.refuser == nil {
		return a.stop(t, why)
	}
	out := deadletter.Refused{
		Op: r.op, Token: int64(a.final), Ordinal: a.ordinal - 1,
		Column: r.column, Reason: why.Reason, Hint: why.Hint, Code: refusedCode(t.Schema, r.column, r.err),
	}
	if r.why != nil {
		out.Hint, out.Code = r.why.Hint, r.why.Code
	}
	out.Key, _ = a.keyText(t, r.tuple)
	if r.op != change.Delete || t.Schema.WholeRow {
		values, code, known := t.letterValues(a, &r)
		if known { // else later changes would take the rest from an older row
			out.Row = deadletter.Row(values)
		}
		out.Code = cmp.Or(code, out.Code) // what is kept is not what was sent
	}
	a.gone = r.op == change.Delete
	if err := a.refuser.Refuse(t.ID, out); err != nil && !t.stoppedBy(err) {
		return err
	}
	return nil
}

// blank leaves the columns empty of the row begun last that the source computes and does
// not send. aside says that the row was set aside, since they are known to be refused.
func (a *applier) blank(t *streamTable, b *change.Builder, op change.Op, tuple *pgoutput.Tuple) (aside bool, err error) {
	for _, c := range t.blanks {
		c.AppendNull()
	}
	why, known := t.Uncomputed[compute.RowID{Token: int64(a.final), Ordinal: a.ordinal - 1}]
	if !known {
		return false, nil
	}
	return true, a.setAside(t, b, refusal{op: op, tuple: tuple, column: why.Column, err: &value.Error{Class: why.Reason}, why: &why})
}

// tooLarge refuses a row that cannot be made durable at once.
func (a *applier) tooLarge(t *streamTable, b *change.Builder, op change.Op) error {
	return a.setAside(t, b, refusal{op: op, tuple: &a.row.New, err: errRowTooLarge})
}

// passed tells of a change that was added, if the table has letters that it may supersede.
func (a *applier) passed(t *streamTable, tuple *pgoutput.Tuple) error {
	if !t.letters.Any() {
		return nil
	}
	key, ok := a.keyText(t, tuple)
	if !ok {
		return nil
	}
	if err := a.refuser.Passed(t.ID, key); err != nil && !t.stoppedBy(err) {
		return err
	}
	return nil
}

// keyText is the key of a tuple of the row as letters have it; ok is false when it has none.
func (a *applier) keyText(t *streamTable, tuple *pgoutput.Tuple) (key string, ok bool) {
	row := &a.row
	if len(t.keyed) == 0 {
		return "", false
	}
	texts := make([]string, len(t.keyed))
	for i, k := range t.keyed {
		at := t.columns[k].source
		from := tuple
		if at >= len(from.Kinds) {
			return "", false
		}
		if from.Kinds[at] == pgoutput.Unchanged && row.OldForm != pgoutput.OldNone && at < len(row.Old.Kinds) {
			from = &row.Old
		}
		if from.Kinds[at] != pgoutput.Text {
			return "", false
		}
		texts[i], _ = a.texts.Letter(from.Values[at])
	}
	return deadletter.Text(texts...), true
}

// letterValues are a row's values. One that was not sent is that of the letter before it, or
// is left out: the table has it, under the same key. known is false when neither is so. code
// is that of a value which is not what was sent, "" for none.
func (t *streamTable) letterValues(a *applier, r *refusal) (out []deadletter.Value, code string, known bool) {
	known = true
	if errors.Is(r.err, errRowTooLarge) {
		return nil, "", false // not all of it is here, and it is not kept
	}
	for _, c := range t.columns {
		kind, src := r.tuple.Kinds[c.source], r.tuple.Values[c.source]
		if kind == pgoutput.Unchanged {
			var err error
			kind, src, err = a.oldValue(&c)
			known = known && err == nil && (kind != pgoutput.Unchanged || r.op == change.Update)
		}
		v := deadletter.Value{Name: c.name}
		switch kind {
		case pgoutput.Omitted:
			known = false
		case pgoutput.Unchanged:
			continue
		case pgoutput.Text:
			text, bad := a.texts.Letter(src)
			v.Text, code = &text, cmp.Or(code, bad)
		}
		out = append(out, v)
	}
	return out, code, known
}

// prior is the open letter of the key that the row had before.
type prior struct {
	open bool
	row  map[int32]*string // by field; nil: it was not kept
}

// findPrior looks for the letter that an update makes obsolete: what the update did not
// send is what that one had, not what the table has. A copied letter may be of a later
// moment than the update, and then of another row.
func (a *applier) findPrior(t *streamTable) error {
	if !t.letters.Any() {
		return nil
	}
	tuple := &a.row.New
	if a.row.OldForm != pgoutput.OldNone {
		tuple = &a.row.Old
	}
	key, ok := a.keyText(t, tuple)
	if !ok {
		return nil
	}
	letter, open := t.letters.Prior(key)
	if !open || letter.Pending || letter.Copied && a.final < t.copied {
		return nil
	}
	a.prior.open = true
	then := t.version(letter.SchemaVersion)
	if letter.Row == "" || then == nil {
		return nil
	}
	row, err := deadletter.ParseRow(letter.Row)
	if err != nil {
		return err
	}
	a.prior.row = make(map[int32]*string, len(row))
	for _, f := range then.Fields {
		if text, sent := row[f.Name]; sent {
			a.prior.row[f.ID] = text
		}
	}
	return nil
}

// oldValue is what a column had before, where the change left it out; Unchanged when only
// the table knows. It fails when nobody does.
func (a *applier) oldValue(c *streamColumn) (kind byte, src []byte, err error) {
	if kind, src = a.row.OldValue(c.source); kind != pgoutput.Unchanged || !a.prior.open {
		return kind, src, nil
	}
	if a.prior.row == nil {
		return pgoutput.Unchanged, nil, errPriorUnknown
	}
	switch text, sent := a.prior.row[c.field]; {
	case !sent:
		return pgoutput.Unchanged, nil, nil
	case text == nil:
		return pgoutput.Null, nil, nil
	default:
		return pgoutput.Text, []byte(*text), nil
	}
}

// Refusals of whole rows.
var (
	errRowTooLarge  = &value.Error{Class: "has more bytes than can be made durable at once"}
	errPriorUnknown = &value.Error{Class: "was not sent, since it did not change, and the row before is a dead letter that was not kept"}
)

// refusedCode is the SQLSTATE of a refusal.
func refusedCode(s *schema.Table, column string, err error) string {
	var refused *value.Error
	switch {
	case errors.As(err, &refused) && refused.Code != "":
		return refused.Code
	case errors.Is(err, errRowTooLarge), errors.Is(err, errPriorUnknown):
		return deadletter.CodeRowTooLarge
	case errors.Is(err, value.ErrEncoding):
		return deadletter.CodeEncoding
	case errors.Is(err, value.ErrDimensions), errors.Is(err, value.ErrLowerBound):
		return deadletter.CodeArray
	case errors.Is(err, value.ErrMalformed):
		return deadletter.CodeMalformed
	}
	for _, f := range s.Fields {
		if f.Name != column {
			continue
		}
		t := f.Type
		if t.Kind == schema.List && t.Elem != nil {
			t = *t.Elem
		}
		switch t.Kind {
		case schema.Date, schema.Time, schema.Timestamp, schema.TimestampTZ:
			return deadletter.CodeDateTime
		}
	}
	return deadletter.CodeOutOfRange
}
