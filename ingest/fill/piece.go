package fill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// errTooLarge means that what was found for a piece is more than a piece may have.
var errTooLarge = errors.New("piece is too large")

// cut is a place in a list of batches: so many whole ones, then rows of the next.
type cut struct{ batches, rows int }

// piece is the first changes of a group, as many as are filled in at once. Its batches
// are its own until they are handed over.
type piece struct {
	batches []*change.Batch
	tables  map[change.TableID]*tableFill
	order   []*tableFill
	cells   []cell
	// first is the first cell of each batch.
	first []int
	// end is where the piece ends in what the filler has left.
	end cut
}

// cell is a cell to fill in.
type cell struct {
	batch int
	change.Unchanged
	table *tableFill
	field schema.Field
	from  origin
	// column is that of the origin's batch that has the value, -1 when its version has no
	// such column.
	column int
}

// origin is where the row was before a change: in a batch of the piece, or, with wanted,
// elsewhere.
type origin struct {
	batch, row int
	wanted     int // -1: in the piece
}

// take makes a piece of the first changes that have so many cells to fill in.
func take(rest []*change.Batch, cells int) *piece {
	p := &piece{tables: map[change.TableID]*tableFill{}, end: cut{batches: len(rest)}}
	for i, b := range rest {
		if len(b.Unchanged) > 0 && p.computes(b) {
			p.end = cut{batches: i}
			break
		}
		if len(b.Unchanged) <= cells {
			cells -= len(b.Unchanged)
			p.batches = append(p.batches, share(b))
			continue
		}
		next := b.Unchanged[cells] // the first that has no room
		at := rowStart(next)
		if i == 0 && at == 0 || len(p.batches) == 0 && !hasCells(b, at) {
			at = int(next.Row) + 1 // one row at least
		}
		p.end = cut{batches: i, rows: at}
		if at == int(b.Rows()) {
			p.end = cut{batches: i + 1}
		}
		if at > 0 {
			p.batches = append(p.batches, rows(b, 0, at))
		}
		break
	}
	return p
}

// computes says that the piece has rows of b's table, at another version, of which columns
// are still to be computed: what b left out may be one of those.
func (p *piece) computes(b *change.Batch) bool {
	return slices.ContainsFunc(p.batches, func(o *change.Batch) bool {
		return o.Computes && o.Table == b.Table && o.SchemaVersion != b.SchemaVersion
	})
}

// rowStart is the first row of the change that a cell is of: its delete, if it moved.
func rowStart(u change.Unchanged) int {
	if u.Moved {
		return int(u.Row) - 1
	}
	return int(u.Row)
}

func hasCells(b *change.Batch, before int) bool {
	return len(change.Head(b.Unchanged, before)) > 0
}

// fill fills the piece in, and says how much of it that is: as much as a piece may have.
func (p *piece) fill(ctx context.Context, f *Filler) (taken cut, err error) {
	if err := p.resolve(f); err != nil {
		return cut{}, err
	}
	limit := f.sizes.limit()
	defer p.forget()
	for _, t := range p.order {
		if err := t.look(ctx, f, p.single()); err != nil {
			return cut{}, err
		}
	}
	if err := p.shorten(limit); err != nil {
		return cut{}, err
	}
	for i := range p.batches {
		if err := p.fillBatch(ctx, i); err != nil {
			return cut{}, err
		}
	}
	f.sizes.learn(p)
	return p.end, nil
}

// single says that the piece cannot be smaller.
func (p *piece) single() bool {
	for i := 1; i < len(p.cells); i++ {
		if p.cells[i].batch != p.cells[0].batch || p.cells[i].Row != p.cells[0].Row {
			return false
		}
	}
	return true
}

// resolve finds out where each cell's value comes from.
func (p *piece) resolve(f *Filler) error {
	for _, b := range p.batches {
		if len(b.Unchanged) == 0 || p.tables[b.Table] != nil {
			continue
		}
		known, err := f.tables(b.Table)
		if err != nil {
			return err
		}
		t := &tableFill{
			id: b.Table, known: known, piece: p, newest: map[string]origin{}, wanted: map[string]int{},
			fields: map[int32]bool{},
		}
		p.tables[b.Table], p.order = t, append(p.order, t)
	}
	for i, b := range p.batches {
		p.first = append(p.first, len(p.cells))
		t := p.tables[b.Table]
		if t == nil {
			continue
		}
		if err := p.resolveBatch(i, t); err != nil {
			return err
		}
	}
	return nil
}

// resolveBatch follows the rows of one batch in order.
func (p *piece) resolveBatch(at int, t *tableFill) error {
	b := p.batches[at]
	s := t.known.Version(b.SchemaVersion)
	if s == nil || int(b.Record.NumCols()) != change.SystemColumns+len(s.Fields) {
		return fmt.Errorf("fill in table %d: its schema version %d is not known", b.Table, b.SchemaVersion)
	}
	t.schemas = append(t.schemas, batchSchema{at, s})
	if b.Truncate {
		clear(t.newest)
		t.truncated = true
	}
	if t.schema == nil || s.Version > t.schema.Version {
		t.schema = s
	}
	keys, err := keysOf(b.Record, s)
	if err != nil {
		return fmt.Errorf("fill in table %d: %w", b.Table, err)
	}
	ops := b.Record.Column(0).(*array.Uint8)
	left := b.Unchanged
	var key []byte
	var moved *origin // of the row that the last delete moves
	for row := range int(b.Rows()) {
		key = keys.Append(key[:0], row)
		if len(left) > 0 && left[0].Moved && int(left[0].Row) == row+1 {
			old, oldRow := key, row
			if mutant.On(mutant.FillByNewKey) {
				old, oldRow = keys.Append(nil, row+1), row+1
			}
			o, err := t.origin(old, at, oldRow)
			if err != nil {
				return t.unknown(s.Fields[left[0].Column].Name, err)
			}
			moved = &o
		}
		for ; len(left) > 0 && int(left[0].Row) == row; left = left[1:] {
			u := left[0]
			from := moved
			if !u.Moved {
				o, err := t.origin(key, at, row)
				if err != nil {
					return t.unknown(s.Fields[u.Column].Name, err)
				}
				from = &o
			}
			if from == nil {
				return fmt.Errorf("fill in table %d: row %d has no delete before it", b.Table, row)
			}
			p.addCell(at, u, t, s.Fields[u.Column], *from)
		}
		t.newest[string(key)] = origin{batch: at, row: row, wanted: -1}
		if change.Op(ops.Value(row)) == change.Delete {
			t.newest[string(key)] = origin{batch: at, row: -1, wanted: -1}
		}
	}
	return nil
}

// addCell notes a cell with the place that its value is at in the end.
func (p *piece) addCell(batch int, u change.Unchanged, t *tableFill, f schema.Field, from origin) {
	c := cell{batch: batch, Unchanged: u, table: t, field: f, from: from, column: -1}
	if from.wanted >= 0 {
		t.fields[f.ID] = true
		p.cells = append(p.cells, c)
		return
	}
	c.column = t.schemaOf(from.batch).Index(f.ID)
	if other := p.find(from.batch, from.row, c.column); other != nil {
		c.from, c.column = other.from, other.column
	}
	p.cells = append(p.cells, c)
}

// find is the cell to fill in at a place, nil when there is a value.
func (p *piece) find(batch, row, column int) *cell {
	end := len(p.cells)
	if batch+1 < len(p.first) {
		end = p.first[batch+1]
	}
	lo, hi := p.first[batch], end
	for lo < hi {
		mid := (lo + hi) / 2
		if c := &p.cells[mid]; int(c.Row) < row || int(c.Row) == row && int(c.Column) < column {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < end && int(p.cells[lo].Row) == row && int(p.cells[lo].Column) == column {
		return &p.cells[lo]
	}
	return nil
}

// release frees the piece's batches.
func (p *piece) release() {
	for _, b := range p.batches {
		b.Release()
	}
	p.batches = nil
}

// forget frees what was found.
func (p *piece) forget() {
	for _, t := range p.order {
		t.release()
	}
}

// keysOf reads the row keys of a record.
func keysOf(rec arrow.RecordBatch, s *schema.Table) (*merge.Keys, error) {
	columns := make([]arrow.Array, len(s.Key))
	for i, id := range s.Key {
		columns[i] = rec.Column(change.SystemColumns + s.Index(id))
	}
	if len(columns) == 0 {
		return nil, errors.New("it has no key")
	}
	return merge.NewKeys(columns)
}

// rows are the rows [from, to) of a batch, with a reference of their own.
func rows(b *change.Batch, from, to int) *change.Batch {
	s := *b
	s.Record = b.Record.NewSlice(int64(from), int64(to))
	s.Unchanged = change.Tail(change.Head(b.Unchanged, to), from)
	s.Truncate = b.Truncate && from == 0
	s.Recount()
	return &s
}
