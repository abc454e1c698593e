package write

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// Rows are rows of a table that a statement writes, as columns of equal length.
type Rows struct {
	// Old are the columns by which the rows are found, or all, as they are; nil for new rows.
	Old []arrow.Array
	// New are all columns as they are to be; nil for rows that go.
	New []arrow.Array
}

// Len is how many there are.
func (r Rows) Len() int {
	if len(r.New) > 0 {
		return r.New[0].Len()
	}
	if len(r.Old) > 0 {
		return r.Old[0].Len()
	}
	return 0
}

// Release frees them.
func (r Rows) Release() {
	release(r.Old)
	release(r.New)
}

// Read makes rows of what a query gives: columns of old, then, unless there are no more,
// all of the table.
func (t *Table) Read(rec arrow.RecordBatch, old []int) (Rows, error) {
	var r Rows
	columns := rec.Columns()
	all := len(t.Current.Fields)
	if len(columns) != len(old) && len(columns) != len(old)+all {
		return r, fmt.Errorf("%d columns of rows of table %d", len(columns), t.ID)
	}
	var err error
	if r.Old, err = t.Columns(columns[:len(old)], old); err != nil {
		return r, err
	}
	if len(columns) == len(old) {
		return r, nil
	}
	places := make([]int, all)
	for i := range places {
		places[i] = i
	}
	if r.New, err = t.Columns(columns[len(old):], places); err != nil {
		release(r.Old)
	}
	return r, err
}

// gatherMax is how much a statement reads to write it: more than a transaction may change,
// since rows that conflict, or are found twice, change nothing.
const gatherMax = 2 * BytesMax

// Gather collects the rows that a statement writes, as far as there is room for them. The
// zero value has none.
type Gather struct {
	parts []Rows
	bytes int64
}

// Add adds rows, which it takes over, or refuses what is too much.
func (g *Gather) Add(r Rows) error {
	for _, columns := range [][]arrow.Array{r.Old, r.New} {
		for _, c := range columns {
			g.bytes += change.DataBytes(c.Data())
		}
	}
	g.parts = append(g.parts, r)
	if g.bytes > gatherMax {
		return tooMuch()
	}
	return nil
}

// Reset gives all rows up.
func (g *Gather) Reset() {
	for _, p := range g.parts {
		p.Release()
	}
	*g = Gather{}
}

// Rows are all rows, which are the caller's then.
func (g *Gather) Rows() (Rows, error) {
	parts := g.parts
	*g = Gather{}
	if len(parts) == 0 {
		return Rows{}, nil
	}
	return Concat(parts)
}

// Concat puts rows behind each other; it takes them over.
func Concat(parts []Rows) (Rows, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	var out Rows
	join := func(of func(Rows) []arrow.Array) (columns []arrow.Array, err error) {
		if len(parts) == 0 {
			return nil, nil
		}
		for i := range of(parts[0]) {
			var pieces []arrow.Array
			for _, p := range parts {
				pieces = append(pieces, of(p)[i])
			}
			c, err := array.Concatenate(pieces, memory.DefaultAllocator)
			if err != nil {
				return columns, fmt.Errorf("put rows behind each other: %w", err)
			}
			columns = append(columns, c)
		}
		return columns, nil
	}
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	var err error
	if out.Old, err = join(func(r Rows) []arrow.Array { return r.Old }); err == nil {
		out.New, err = join(func(r Rows) []arrow.Array { return r.New })
	}
	return out, err
}

// Take picks rows, in the order given.
func (r Rows) Take(ctx context.Context, which []int32) (Rows, error) {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(which, nil)
	index := b.NewArray()
	defer index.Release()
	var out Rows
	take := func(from []arrow.Array) (columns []arrow.Array, err error) {
		for _, c := range from {
			taken, err := compute.TakeArray(ctx, c, index)
			if err != nil {
				return columns, fmt.Errorf("pick rows: %w", err)
			}
			columns = append(columns, taken)
		}
		return columns, nil
	}
	var err error
	if out.Old, err = take(r.Old); err == nil {
		out.New, err = take(r.New)
	}
	return out, err
}

// Without are the places of n rows that are not among which, which is ascending.
func Without(n int, which []int32) []int32 {
	out := make([]int32, 0, n-len(which))
	for i := range int32(n) {
		if len(which) > 0 && which[0] == i {
			which = which[1:]
			continue
		}
		out = append(out, i)
	}
	return out
}

// Union are the places in either, ascending.
func Union(a, b []int32) []int32 {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// FirstOfEach are the places of the first row of each old key: a row that a join finds
// several times is changed once. All of a table without a key.
func (t *Table) FirstOfEach(r Rows, old []int) ([]int32, error) {
	n := r.Len()
	if !t.Keyed() || n == 0 {
		return Without(n, nil), nil
	}
	keys, err := t.keysOf(t.KeyOf(r.Old, old))
	if err != nil {
		return nil, err
	}
	seen := map[string]struct{}{}
	var out []int32
	var buf []byte
	for i := range n {
		buf = keys.Append(buf[:0], i)
		if _, twice := seen[string(buf)]; !twice {
			seen[string(buf)] = struct{}{}
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// KeyOf are the key's columns among columns of places.
func (t *Table) KeyOf(columns []arrow.Array, places []int) []arrow.Array {
	out := make([]arrow.Array, len(t.key))
	for i, k := range t.key {
		out[i] = columns[slices.Index(places, k)]
	}
	return out
}

// NewKey are the key's columns among all.
func (t *Table) NewKey(columns []arrow.Array) []arrow.Array { return pick(columns, t.key) }

// Moved are the places of rows whose key changes; all of a table without a key.
func (t *Table) Moved(r Rows, old []int) ([]int32, error) {
	if !t.Keyed() {
		return Without(r.Len(), nil), nil
	}
	before, err := t.keysOf(t.KeyOf(r.Old, old))
	if err != nil {
		return nil, err
	}
	after, err := t.keysOf(t.NewKey(r.New))
	if err != nil {
		return nil, err
	}
	var out []int32
	var a, b []byte
	for i := range r.Len() {
		a, b = before.Append(a[:0], i), after.Append(b[:0], i)
		if string(a) != string(b) {
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// Matches are the places in a key's columns whose key is among found's rows, ascending.
func (t *Table) Matches(key []arrow.Array, found []arrow.RecordBatch) ([]int32, error) {
	there := map[string]struct{}{}
	var buf []byte
	for _, rec := range found {
		columns, err := t.Columns(rec.Columns(), t.key)
		if err != nil {
			return nil, err
		}
		keys, err := merge.NewKeys(columns)
		if err != nil {
			release(columns)
			return nil, fmt.Errorf("found keys: %w", err)
		}
		for i := range int(rec.NumRows()) {
			buf = keys.Append(buf[:0], i)
			there[string(buf)] = struct{}{}
		}
		release(columns)
	}
	keys, err := t.keysOf(key)
	if err != nil {
		return nil, err
	}
	var out []int32
	for i := range key[0].Len() {
		buf = keys.Append(buf[:0], i)
		if _, ok := there[string(buf)]; ok {
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// Gathered collects values of columns with the places of the rows that they are of. The zero value has
// none.
type Gathered struct {
	parts  []Rows
	places []int32
}

// Add adds what a query gives: the places, then the columns, whose places in the table are given.
func (g *Gathered) Add(t *Table, rec arrow.RecordBatch, columns []int) error {
	places, ok := rec.Column(0).(*array.Int32)
	if !ok {
		return fmt.Errorf("places of rows of table %d are %s", t.ID, rec.Column(0).DataType())
	}
	values, err := t.Columns(rec.Columns()[1:], columns)
	if err != nil {
		return err
	}
	g.parts, g.places = append(g.parts, Rows{New: values}), append(g.places, places.Int32Values()...)
	return nil
}

// Reset gives all up.
func (g *Gathered) Reset() {
	for _, p := range g.parts {
		p.Release()
	}
	*g = Gathered{}
}

// Into puts the values in the columns of rows: each row must have one.
func (g *Gathered) Into(ctx context.Context, rows Rows, columns []int) error {
	parts, places := g.parts, g.places
	*g = Gathered{}
	all, err := Concat(parts)
	if err != nil {
		return err
	}
	defer all.Release()
	order := make([]int32, rows.Len())
	for i := range order {
		order[i] = -1
	}
	for at, row := range places {
		order[row] = int32(at)
	}
	if len(places) != len(order) || slices.Contains(order, -1) {
		return fmt.Errorf("%d values for %d rows", len(places), len(order))
	}
	sorted, err := all.Take(ctx, order)
	if err != nil {
		sorted.Release()
		return err
	}
	for i, at := range columns {
		rows.New[at].Release()
		rows.New[at] = sorted.New[i]
	}
	return nil
}
