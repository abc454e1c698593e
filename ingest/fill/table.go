package fill

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// tableFill is one table of a piece.
type tableFill struct {
	id    change.TableID
	known *Table
	piece *piece
	// schema is the newest version in the piece, schemas that of each batch.
	schema  *schema.Table
	schemas []batchSchema
	// newest is where each key was seen last, row -1 where it was deleted.
	newest    map[string]origin
	truncated bool

	// wanted numbers the keys of rows that are not in the piece, rows is where each is
	// named, fields what is wanted of them.
	wanted map[string]int
	rows   []rowOf
	fields map[int32]bool
	// records are what was found, places where each wanted row is in them.
	records []arrow.RecordBatch
	places  []place
	bytes   int64
}

type batchSchema struct {
	batch  int
	schema *schema.Table
}

type rowOf struct{ batch, row int }

// place is where a wanted row was found: record -1 for nowhere yet.
type place struct{ record, row int }

// origin is where the row with a key is before the change at (batch, row).
func (t *tableFill) origin(key []byte, batch, row int) (origin, error) {
	if o, ok := t.newest[string(key)]; ok && !mutant.On(mutant.FillPastGroup) {
		if o.row < 0 {
			return o, errGone
		}
		return o, nil
	}
	if t.truncated {
		return origin{}, errGone
	}
	n, ok := t.wanted[string(key)]
	if !ok {
		n = len(t.rows)
		t.wanted[string(key)] = n
		t.rows = append(t.rows, rowOf{batch, row})
	}
	return origin{wanted: n}, nil
}

// unknown is an error of a column whose value is nowhere.
func (t *tableFill) unknown(column string, cause error) error {
	copying := t.known.Copied != nil || !t.known.Exact
	return fmt.Errorf("%w: %w", &UnknownError{Table: t.id, Column: column, Copying: copying}, cause)
}

func (t *tableFill) schemaOf(batch int) *schema.Table {
	i := slices.IndexFunc(t.schemas, func(b batchSchema) bool { return b.batch == batch })
	return t.schemas[i].schema
}

// look looks for the wanted rows, one place after another. single says that less cannot
// be asked for.
func (t *tableFill) look(ctx context.Context, f *Filler, single bool) error {
	t.places = make([]place, len(t.rows))
	for i := range t.places {
		t.places[i] = place{record: -1}
	}
	most := f.sizes.limit() * surprise
	found := func(rec arrow.RecordBatch) error { return t.found(rec, most, single) }
	if f.parted && !mutant.On(mutant.FillPastParts) {
		if err := t.ask(ctx, func(q *Query) error { return f.lookup.Pending(ctx, q, found) }); err != nil {
			return fmt.Errorf("look among the parts of the transaction: %w", err)
		}
	}
	if t.missing() && !t.known.Exact {
		return t.unknown(t.column(), ErrNotExact)
	}
	visible := func(q *Query) error { return f.lookup.Visible(ctx, q, found) }
	if err := t.ask(ctx, visible); err != nil {
		return fmt.Errorf("look in table %d: %w", t.id, err)
	}
	if t.missing() && t.known.Copied != nil {
		all := false
		err := t.ask(ctx, func(q *Query) error {
			ok, err := t.known.Copied(ctx, q, found)
			all = !ok
			return err
		})
		if err == nil && all {
			err = t.ask(ctx, visible)
		}
		if err != nil {
			return fmt.Errorf("look at the source of table %d: %w", t.id, err)
		}
	}
	if t.missing() {
		return t.unknown(t.column(), errGone)
	}
	return nil
}

func (t *tableFill) missing() bool {
	return slices.ContainsFunc(t.places, func(p place) bool { return p.record < 0 })
}

// column is one of those that are looked for.
func (t *tableFill) column() string {
	for i := range t.piece.cells {
		c := &t.piece.cells[i]
		if c.table == t && c.from.wanted >= 0 && t.places[c.from.wanted].record < 0 {
			return c.field.Name
		}
	}
	return ""
}

// ask asks for the rows that were not found yet, if any.
func (t *tableFill) ask(ctx context.Context, f func(*Query) error) error {
	var picks []rowOf
	for i, p := range t.places {
		if p.record < 0 {
			picks = append(picks, t.rows[i])
		}
	}
	if len(picks) == 0 {
		return nil
	}
	keys, err := t.keys(ctx, picks)
	if err != nil {
		return err
	}
	defer keys.Release()
	q := &Query{Table: t.id, Schema: t.schema, Versions: t.known.Versions, Keys: keys}
	for id := range t.fields {
		q.Fields = append(q.Fields, id)
	}
	slices.Sort(q.Fields)
	return f(q)
}

// keys are the keys of rows of the piece.
func (t *tableFill) keys(ctx context.Context, of []rowOf) (arrow.RecordBatch, error) {
	fields := make([]arrow.Field, len(t.schema.Key))
	columns := make([]arrow.Array, 0, len(fields))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, f := range t.schema.KeyFields() {
		fields[i] = arrow.Field{Name: f.Name, Type: schema.ArrowType(f.Type), Nullable: true}
		g := newGather(fields[i].Type)
		for _, r := range of {
			at := t.schemaOf(r.batch).Index(f.ID)
			if at < 0 {
				return nil, fmt.Errorf("key column %s is not in every version", quote.Name(f.Name))
			}
			g.add(t.piece.batches[r.batch].Record.Column(change.SystemColumns+at), r.row)
		}
		c, err := g.array(ctx)
		if err != nil {
			return nil, fmt.Errorf("key column %s: %w", quote.Name(f.Name), err)
		}
		columns = append(columns, c)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(of))), nil
}

// found notes the rows of a record.
func (t *tableFill) found(rec arrow.RecordBatch, most int64, single bool) error {
	for _, c := range rec.Columns() {
		t.bytes += change.DataBytes(c.Data())
	}
	if t.bytes > most && !single {
		return errTooLarge
	}
	key, err := merge.NewKeys(rec.Columns()[:len(t.schema.Key)])
	if err != nil {
		return fmt.Errorf("rows that were found: %w", err)
	}
	rec.Retain()
	t.records = append(t.records, rec)
	var b []byte
	for row := range int(rec.NumRows()) {
		b = key.Append(b[:0], row)
		n, ok := t.wanted[string(b)]
		if !ok {
			return fmt.Errorf("a row was found that was not asked for, of table %d", t.id)
		}
		if t.places[n].record < 0 { // else found again, by a look that was repeated
			t.places[n] = place{len(t.records) - 1, row}
		}
	}
	return nil
}

// value is where the value of a cell is: a nil array for what the row had before it had
// such a column.
func (t *tableFill) value(c *cell) (arrow.Array, int) {
	if c.from.wanted < 0 {
		if c.column < 0 {
			return nil, 0
		}
		return t.piece.batches[c.from.batch].Record.Column(change.SystemColumns + c.column), c.from.row
	}
	at := t.places[c.from.wanted]
	rec := t.records[at.record]
	i := rec.Schema().FieldIndices(FieldName(c.field.ID))
	if len(i) != 1 || rec.Column(i[0]).DataType().ID() == arrow.NULL {
		return nil, 0
	}
	return rec.Column(i[0]), at.row
}

func (t *tableFill) release() {
	for _, r := range t.records {
		r.Release()
	}
	t.records = nil
}
