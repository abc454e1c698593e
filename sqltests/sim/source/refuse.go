package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
)

// RefusedPrefix begins texts that cannot be taken in, as long as DB.Healed is not set.
// ComputesRefused begins texts from which such a one is computed.
const RefusedPrefix, ComputesRefused = "!", "~"

// Refused says whether a row cannot be taken in. A key never holds such a text.
func Refused(r Row) bool { return refusedColumn(r) >= 0 }

func refusedColumn(r Row) int {
	return slices.IndexFunc(r, func(x any) bool {
		s, ok := x.(string)
		return ok && strings.HasPrefix(s, RefusedPrefix)
	})
}

// refuses says whether a row that the stream has come to cannot be taken in, as far as it is
// known: what is computed is not sent.
func (t *target) refuses(d *DB, v *Version, r Row, token int64, ordinal int32) bool {
	i := refusedColumn(r)
	if d.Healed || i < 0 {
		return false
	}
	_, known := t.uncomputed[compute.RowID{Token: token, Ordinal: ordinal}]
	return known || v.Columns[i].From == 0
}

// refusal is a row as its dead letter has it.
func (d *DB) refusal(v *Version, r Row, op change.Op, token int64, ordinal int32) deadletter.Refused {
	out := deadletter.Refused{
		Op: op, Token: token, Ordinal: ordinal, Key: keyText(v, r), Code: deadletter.CodeMalformed,
		Column: v.Columns[refusedColumn(r)].Name, Reason: "a text begins with " + RefusedPrefix,
	}
	out.Row = rowText(v, r)
	d.Letters++
	return out
}

// rowText is a row as letters have it: without computed columns.
func rowText(v *Version, r Row) string {
	values := make([]deadletter.Value, 0, len(r))
	for i, c := range v.Columns {
		if c.From != 0 {
			continue
		}
		value := deadletter.Value{Name: c.Name}
		switch x := r[i].(type) {
		case nil:
		case string:
			value.Text = &x
		default:
			text := string(AppendValue(nil, x))
			value.Text = &text
		}
		values = append(values, value)
	}
	return deadletter.Row(values)
}

// keyText is a row's key as letters have it.
func keyText(v *Version, r Row) string {
	if len(v.Key) == 0 {
		return ""
	}
	var texts []string
	for _, i := range v.KeyIndexes() {
		texts = append(texts, string(AppendValue(nil, r[i])))
	}
	return deadletter.Text(texts...)
}

// passed tells of a change that was added.
func (t *target) passed(sink ingest.Sink, v *Version, r Row) error {
	if !t.letters.Any() || len(v.Key) == 0 {
		return nil
	}
	return sink.(ingest.Refuser).Passed(t.id, keyText(v, r))
}

// gone deals with the delete of a whole row that was added: of one that was never taken in,
// a letter goes.
func (t *target) gone(d *DB, sink ingest.Sink, v *Version, r Row, lsn int64, ordinal int32) error {
	refuser, ok := sink.(ingest.Refuser)
	switch {
	case !ok || t.letters == nil:
		return nil
	case t.refuses(d, v, r, lsn, ordinal):
		return refuser.Refuse(t.id, d.refusal(v, r, change.Delete, lsn, ordinal))
	case t.letters.Any():
		return refuser.PassedRow(t.id, rowText(v, r))
	}
	return nil
}

var (
	_ ingest.CopyRefuser = (*backfill)(nil)
	_ ingest.Redecoder   = (*Conn)(nil)
)

// OnRefused implements ingest.CopyRefuser.
func (b *backfill) OnRefused(to ingest.CopyRefusals) { b.refusals = to }

// refused sets a copied row aside, then looks whether it still is what was read.
func (b *backfill) refused(t ingest.SourceTable, chunk string, s *schema.Table, r Row, token int64) error {
	d, v := b.conn.db, b.ats[t.OID]
	refusal := d.refusal(v, r, change.Insert, token, 0)
	if err := b.refusals.Refused(t, chunk, s.Version, refusal); err != nil || len(v.Key) == 0 {
		return err
	}
	if err := b.conn.point("look at refused row"); err != nil {
		return err
	}
	i := slices.IndexFunc(d.Tables, func(o *Table) bool { return o.OID == t.OID })
	now := d.Upgrade(d.Tables[i], v, r)
	if found, ok := d.Find(d.Tables[i], now); !ok || !SameRow(found, now) {
		b.refusals.Changed(t, chunk, refusal.Key)
	}
	return nil
}

// Redecode implements ingest.Redecoder.
func (c *Conn) Redecode(s *schema.Table, row map[string]*string, columns []array.Builder) error {
	for i, f := range s.Fields {
		text := row[f.Name]
		if text == nil {
			columns[i].AppendNull()
			continue
		}
		if f.Type.Kind == schema.String && strings.HasPrefix(*text, RefusedPrefix) && !c.db.Healed {
			return &deadletter.RefusedError{Reason: "a text begins with " + RefusedPrefix}
		}
		if err := appendText(columns[i], *text); err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return nil
}

// appendText reads what AppendValue has rendered; a string is as it is.
func appendText(dst array.Builder, text string) error {
	switch b := dst.(type) {
	case *array.StringBuilder:
		b.Append(text)
	case *array.Float64Builder:
		v, err := strconv.ParseFloat(text, 64)
		b.Append(v)
		return err
	case *array.Int32Builder:
		v, err := strconv.ParseInt(text, 10, 32)
		b.Append(int32(v))
		return err
	case *array.Int64Builder:
		v, err := strconv.ParseInt(text, 10, 64)
		b.Append(v)
		return err
	default:
		return fmt.Errorf("no text of %T", dst)
	}
	return nil
}
