package fill

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// errGone says that there is no row with the key.
var errGone = errors.New("there is no row with its key")

// shorten cuts the piece where it would have too many bytes when it is filled in.
func (p *piece) shorten(limit int64) error {
	var bytes int64
	for i := range p.cells {
		c := &p.cells[i]
		a, row := c.table.value(c)
		if bytes += valueBytes(a, row); bytes <= limit {
			continue
		}
		at := cut{c.batch, rowStart(c.Unchanged)}
		if at.rows == 0 && c.batch == 0 || !p.cellsBefore(at) {
			continue // a row may be larger
		}
		return p.cutAt(at)
	}
	return nil
}

func (p *piece) cellsBefore(at cut) bool {
	c := &p.cells[0]
	return c.batch < at.batches || int(c.Row) < at.rows
}

// cutAt leaves off what follows a place.
func (p *piece) cutAt(at cut) error {
	for _, b := range p.batches[min(at.batches+1, len(p.batches)):] {
		b.Release()
	}
	whole := p.batches[at.batches]
	p.batches = p.batches[:at.batches]
	if at.rows > 0 {
		p.batches = append(p.batches, rows(whole, 0, at.rows))
	}
	whole.Release()
	n := 0
	for n < len(p.cells) && (p.cells[n].batch < at.batches || p.cells[n].batch == at.batches && int(p.cells[n].Row) < at.rows) {
		n++
	}
	p.cells, p.end = p.cells[:n], at
	return nil
}

// fillBatch puts the values into a batch.
func (p *piece) fillBatch(ctx context.Context, at int) error {
	b := p.batches[at]
	if len(b.Unchanged) == 0 {
		return nil
	}
	cells := p.cells[p.first[at] : p.first[at]+len(b.Unchanged)]
	byColumn := map[int32][]*cell{}
	for i := range cells {
		byColumn[cells[i].Column] = append(byColumn[cells[i].Column], &cells[i])
	}
	columns := append([]arrow.Array(nil), b.Record.Columns()...)
	var made []arrow.Array
	defer func() {
		for _, c := range made {
			c.Release()
		}
	}()
	for column, cells := range byColumn {
		i := change.SystemColumns + int(column)
		filled, err := fillColumn(ctx, columns[i], cells)
		if err != nil {
			return fmt.Errorf("fill in column %s of table %d: %w", quote.Name(cells[0].field.Name), b.Table, err)
		}
		columns[i], made = filled, append(made, filled)
	}
	filled := array.NewRecordBatch(b.Record.Schema(), columns, b.Record.NumRows())
	b.Record.Release()
	b.Record, b.Unchanged = filled, nil
	return nil
}

// fillColumn is a column with its cells filled in, by row.
func fillColumn(ctx context.Context, column arrow.Array, cells []*cell) (arrow.Array, error) {
	g := newGather(column.DataType())
	next := 0
	for _, c := range cells {
		g.addRange(column, next, int(c.Row))
		next = int(c.Row) + 1
		a, row := c.table.value(c)
		if a != nil {
			g.add(a, row)
			continue
		}
		if err := g.addInitial(c.field); err != nil {
			return nil, err
		}
	}
	g.addRange(column, next, column.Len())
	return g.array(ctx)
}

// gather collects values of one type from several columns.
type gather struct {
	want     arrow.DataType
	columns  []arrow.Array
	starts   map[arrow.Array]int64 // where each begins when they are put together
	initials map[int32]arrow.Array // by field, ours
	length   int64
	rows     []int64
}

func newGather(want arrow.DataType) *gather {
	return &gather{want: want, starts: map[arrow.Array]int64{}, initials: map[int32]arrow.Array{}}
}

func (g *gather) start(a arrow.Array) int64 {
	at, ok := g.starts[a]
	if !ok {
		at = g.length
		g.starts[a], g.columns = at, append(g.columns, a)
		g.length += int64(a.Len())
	}
	return at
}

func (g *gather) add(a arrow.Array, row int) { g.rows = append(g.rows, g.start(a)+int64(row)) }

func (g *gather) addRange(a arrow.Array, from, to int) {
	start := g.start(a)
	for row := from; row < to; row++ {
		g.rows = append(g.rows, start+int64(row))
	}
}

// addInitial adds what rows older than a field have in it.
func (g *gather) addInitial(f schema.Field) error {
	a := g.initials[f.ID]
	if a == nil {
		var err error
		if a, err = schema.InitialColumn(f, 1); err != nil {
			return err
		}
		g.initials[f.ID] = a
	}
	g.add(a, 0)
	return nil
}

// array puts the values together. The caller releases it.
func (g *gather) array(ctx context.Context) (arrow.Array, error) {
	defer func() {
		for _, a := range g.initials {
			a.Release()
		}
	}()
	widened := make([]arrow.Array, 0, len(g.columns))
	defer func() {
		for _, a := range widened {
			a.Release()
		}
	}()
	for _, c := range g.columns {
		w, err := lake.Widen(c, g.want)
		if err != nil {
			return nil, err
		}
		widened = append(widened, w)
	}
	all, err := array.Concatenate(widened, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(g.rows, nil)
	idx := b.NewArray()
	defer idx.Release()
	return compute.TakeArrayOpts(ctx, all, idx, compute.TakeOptions{BoundsCheck: false})
}

// valueBytes is about how many bytes a value takes.
func valueBytes(a arrow.Array, row int) int64 {
	const fixed = 16
	switch a := a.(type) {
	case nil:
		return fixed
	case *array.String:
		return int64(a.ValueLen(row)) + fixed
	case *array.Binary:
		return int64(a.ValueLen(row)) + fixed
	case *array.List:
		from, to := a.ValueOffsets(row)
		elements := a.ListValues()
		n := int64(fixed)
		for i := from; i < to; i++ {
			n += valueBytes(elements, int(i))
		}
		return n
	}
	return fixed
}
