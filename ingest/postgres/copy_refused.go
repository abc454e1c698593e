package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/cut"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/ingest/postgres/visible"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

var _ ingest.CopyRefuser = (*backfill)(nil)

// OnRefused implements ingest.CopyRefuser.
func (b *backfill) OnRefused(to ingest.CopyRefusals) { b.refusals = to }

// refusedChunk is a chunk of which the binary form left rows out.
type refusedChunk struct {
	chunk
	table  ingest.SourceTable
	schema *schema.Table
	text   string
	leaf   string
}

// readRefused reads a chunk again, at the same snapshot, as text: the rows that the
// first reading skipped become what the option out_of_range makes of them, or dead
// letters with the text that the server writes. The others are passed over. places are those
// of the letters.
func (b *backfill) readRefused(ctx context.Context, conn *pgconn.PgConn, c refusedChunk, first *rowWriter) (places []place, err error) {
	w, err := newRefusedWriter(b, c, first)
	if err != nil {
		return nil, err
	}
	defer w.release()
	if err := w.largeWithoutKey(); err != nil {
		return nil, err
	}
	columns := textList(c.schema) + ", ctid::text, xmin::text"
	if w.first.large != nil && len(w.keyed) > 0 {
		columns += ", " + selectList(&schema.Table{Fields: c.schema.KeyFields()})
		w.width += len(w.keyed)
	}
	sql := fmt.Sprintf("COPY (SELECT %s FROM ONLY %s%s) TO STDOUT (FORMAT binary)", columns, c.leaf, c.where())
	if err := b.copyTo(ctx, conn, w.rowWriter, sql); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	if w.found != first.skipped {
		return nil, fmt.Errorf("%d rows are refused as text, %d in binary form", w.found, first.skipped)
	}
	return w.places, nil
}

// textList asks for each column as its output function writes it.
func textList(s *schema.Table) string {
	columns := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		columns[i] = asText(f)
		if f.OID == schema.OIDBytea { // of more the server could not make text; the row is too long
			name := quoteIdent(f.Name)
			columns[i] = fmt.Sprintf("CASE WHEN pg_catalog.octet_length(%s) <= %d THEN %s END", name, ingest.RowBytesMax, columns[i])
		}
	}
	return strings.Join(columns, ", ")
}

// place is where a dead letter's row was in its table.
type place struct {
	visible.Row
	key string
}

// refusedWriter is a rowWriter that looks only for rows that cannot be taken in.
type refusedWriter struct {
	*rowWriter
	first     *rowWriter // which skipped them
	backfill  *backfill
	chunk     refusedChunk
	ruled     []value.Decoder // of the text form, with the rule; decode is without
	keyed     []int           // places of the key's columns, in key order
	found     int             // rows that were refused
	converted []byte          // texts of the row that were not UTF-8
	short     bool            // the row lacks values that were too large
	places    []place         // of dead letters, of tables with a key
}

func newRefusedWriter(b *backfill, c refusedChunk, first *rowWriter) (*refusedWriter, error) {
	plain, err := newRowWriter(c.schema, nil, first.token, first.emit)
	if err != nil {
		return nil, err
	}
	w := &refusedWriter{rowWriter: plain, first: first, backfill: b, chunk: c}
	plain.limit, plain.width, plain.take = first.limit, len(plain.columns)+2, w.look
	for i, f := range c.schema.Fields {
		d, err := value.TextDecoder(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		plain.decode[i] = d
		if !slices.Contains(c.schema.Key, f.ID) {
			d = outofrange.Decoder(d, f, b.source.cfg.rule)
		}
		w.ruled = append(w.ruled, d)
	}
	for _, k := range c.schema.KeyFields() {
		w.keyed = append(w.keyed, slices.IndexFunc(c.schema.Fields, func(f schema.Field) bool { return f.ID == k.ID }))
	}
	return w, nil
}

// look is what is done with a row, whose lengths were checked.
func (w *refusedWriter) look(b []byte) error {
	fields, err := split(b, w.width)
	if err != nil && !errors.Is(err, errRowTooLarge) {
		return err
	}
	w.short = err != nil
	w.converted = w.first.texts.Convert(fields[:len(w.table.Fields)], len(b), charset.Scratch(w.converted))
	if n := len(w.table.Fields) + 2; w.width > n && w.first.large[bytesOf(fields[n:])] {
		w.found++
		return w.setAside(fields, "", errRowTooLarge)
	}
	column, err := w.add(fields, w.decode)
	if err == nil {
		return w.drop() // the first reading had it, or it is too long
	}
	var refused *value.Error
	if !errors.As(err, &refused) {
		return columnError(column, err)
	}
	w.found++
	if err := w.drop(); err != nil {
		return err
	}
	if w.short {
		return w.setAside(fields, column, err)
	}
	if column, err = w.add(fields, w.ruled); err == nil {
		return w.full()
	}
	if err := w.drop(); err != nil {
		return err
	}
	return w.setAside(fields, column, err)
}

// add decodes a row; column is the one that is refused.
func (w *refusedWriter) add(fields [][]byte, decode []value.Decoder) (column string, err error) {
	w.builder.Add(change.Insert, w.token, 0)
	for i, d := range decode {
		if fields[i] == nil {
			w.columns[i].AppendNull()
			continue
		}
		w.bytes += len(fields[i])
		if err := d(w.columns[i], fields[i]); err != nil {
			return w.table.Fields[i].Name, w.first.texts.Explained(fields[i], err)
		}
	}
	return "", nil
}

func (w *refusedWriter) setAside(fields [][]byte, column string, err error) error {
	var why *ingest.TableError
	if err := columnError(column, err); !errors.As(err, &why) {
		return err
	}
	r := deadletter.Refused{
		Op: change.Insert, Token: w.token, Column: column, Reason: why.Reason, Hint: why.Hint,
		Code: refusedCode(w.table, column, err),
	}
	values := make([]deadletter.Value, 0, len(w.table.Fields))
	for i, f := range w.table.Fields {
		if f.Unsent() {
			continue // the stream's letters are without, too
		}
		v := deadletter.Value{Name: f.Name}
		if fields[i] != nil {
			text, code := w.first.texts.Letter(fields[i])
			v.Text, r.Code = &text, cmp.Or(code, r.Code)
		}
		values = append(values, v)
	}
	if !w.short && !errors.Is(err, errRowTooLarge) {
		r.Row = deadletter.Row(values)
	}
	if len(w.keyed) > 0 {
		texts := make([]string, len(w.keyed))
		for i, k := range w.keyed {
			texts[i], _ = w.first.texts.Letter(fields[k])
		}
		r.Key = deadletter.Text(texts...)
		n := len(w.table.Fields)
		w.places = append(w.places, place{visible.Row{CTID: string(fields[n]), Xmin: string(fields[n+1])}, r.Key})
	}
	return w.backfill.refusals.Refused(w.chunk.table, w.chunk.text, w.table.Version, r)
}

// largeWithoutKey sets aside the rows that were too long for the first reading, of a table
// without a key: nothing tells them apart.
func (w *refusedWriter) largeWithoutKey() error {
	if len(w.keyed) > 0 {
		return nil
	}
	w.found += w.first.largeCount
	for range w.first.largeCount {
		why := columnError("", errRowTooLarge)
		var table *ingest.TableError
		_ = errors.As(why, &table)
		r := deadletter.Refused{
			Op: change.Insert, Token: w.token, Reason: table.Reason, Hint: table.Hint, Code: deadletter.CodeRowTooLarge,
		}
		if err := w.backfill.refusals.Refused(w.chunk.table, w.chunk.text, w.table.Version, r); err != nil {
			return err
		}
	}
	return nil
}

// split finds the fields of a row, whose lengths were checked; errRowTooLarge comes with
// them, when one was left out.
func split(b []byte, width int) (fields [][]byte, err error) {
	fields = make([][]byte, width)
	for i := range fields {
		n := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n == cut.Omitted {
			err = errRowTooLarge
		}
		if n >= 0 {
			fields[i] = b[:n:n]
			b = b[n:]
		}
	}
	return fields, err
}

// keyBytes is the key of a row as it was sent.
func keyBytes(s *schema.Table, fields [][]byte) string {
	var key [][]byte
	for _, k := range s.KeyFields() {
		key = append(key, fields[slices.IndexFunc(s.Fields, func(f schema.Field) bool { return f.ID == k.ID })])
	}
	return bytesOf(key)
}

// bytesOf is fields with their lengths.
func bytesOf(fields [][]byte) string {
	var b []byte
	for _, f := range fields {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return string(b)
}

// checkUnchanged finds dead letters whose rows have changed since the session's moment:
// the stream may have delivered the change before the letter was known, and so it did not
// supersede it. The session has no lock of the table by now.
func (b *backfill) checkUnchanged(ctx context.Context, c refusedChunk, places []place) error {
	if len(places) == 0 {
		return nil
	}
	rows := make([]visible.Row, len(places))
	for i, p := range places {
		rows[i] = p.Row
	}
	leaf := visible.Table{OID: c.chunk.leaf, File: c.file, Name: c.leaf}
	changed, doubt, err := b.rows.Changed(ctx, leaf, rows)
	switch {
	case errors.Is(err, visible.ErrRewritten):
		return rewritten()
	case err != nil:
		return err
	}
	for _, i := range changed {
		b.refusals.Changed(c.table, c.text, places[i].key)
	}
	for _, i := range doubt {
		b.refusals.Doubtful(c.table, c.text, places[i].key)
	}
	return nil
}

// skip takes the row that was begun last out of the batch being built.
func (w *rowWriter) skip() {
	value.Even(w.columns, w.builder.Rows())
	w.dropped = append(w.dropped, w.builder.Rows()-1)
}

// drop is skip for a writer that keeps few rows.
func (w *rowWriter) drop() error {
	w.skip()
	return w.full()
}

// batch is what was collected without the rows that were taken out, nil for nothing.
func (w *rowWriter) batch() *change.Batch {
	b := w.builder.Batch()
	dropped := w.dropped
	w.dropped = w.dropped[:0]
	if len(dropped) == 0 {
		return b
	}
	kept := without(b.Record, dropped)
	b.Release()
	if kept == nil {
		return nil
	}
	b.Record = kept
	b.Counts.Inserts = uint32(kept.NumRows())
	return b
}

// without is a record without some of its rows, by their places in order; nil when none
// is left.
func without(rec arrow.RecordBatch, dropped []int) arrow.RecordBatch {
	rows := int(rec.NumRows())
	if len(dropped) >= rows {
		return nil
	}
	columns := make([]arrow.Array, rec.NumCols())
	for i := range columns {
		var pieces []arrow.Array
		from := 0
		for _, at := range append(dropped, rows) {
			if at > from {
				pieces = append(pieces, array.NewSlice(rec.Column(i), int64(from), int64(at)))
			}
			from = at + 1
		}
		joined, err := array.Concatenate(pieces, memory.DefaultAllocator)
		if err != nil {
			panic(fmt.Sprintf("copy: columns of one type do not join: %v", err)) // a broken invariant
		}
		for _, p := range pieces {
			p.Release()
		}
		columns[i] = joined
	}
	out := array.NewRecordBatch(rec.Schema(), columns, int64(rows-len(dropped)))
	for _, c := range columns {
		c.Release()
	}
	return out
}
