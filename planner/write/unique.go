package write

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// Unique is a unique constraint: its name, and the places of its fields. NullsEqual says that nulls
// are equal to each other there.
type Unique struct {
	Name       string
	Places     []int
	NullsEqual bool
	// Where are what the rows meet that it is of.
	Where []Condition
	// Uses are the places of fields that its expressions and its predicate name.
	Uses []int
	// Shown are what it is of, as errors name them, nil for its columns' names.
	Shown []string
}

// Condition is what rows meet in the field of a place.
type Condition struct {
	Place int
	Test  schema.RowTest
}

// holds says whether a row meets it.
func (c Condition) holds(columns []arrow.Array, row int) bool {
	null := columns[c.Place].IsNull(row)
	switch c.Test.Plain() {
	case schema.RowIsNull:
		return null
	case schema.RowIsNotNull:
		return !null
	}
	b, ok := columns[c.Place].(*array.Boolean)
	return ok && !null && b.Value(row) == (c.Test.Plain() == schema.RowIs)
}

// Touched says whether a change of the fields of some places can make rows equal by it.
func (u Unique) Touched(places []int) bool {
	return slices.ContainsFunc(places, func(p int) bool {
		return slices.Contains(u.Places, p) || slices.Contains(u.Uses, p) || slices.ContainsFunc(u.Where, func(c Condition) bool { return c.Place == p })
	})
}

// DuplicateOf is Duplicate of a unique constraint: columns are all of the table's, with what is computed.
func (t *Table) DuplicateOf(u Unique, columns []arrow.Array, row int, f encode.Format) error {
	return t.duplicate(u, pick(columns, u.Places), row, f)
}

// DuplicateKey is Duplicate of a unique constraint of columns: key are its own.
func (t *Table) DuplicateKey(u Unique, key []arrow.Array, row int, f encode.Format) error {
	return t.duplicate(u, key, row, f)
}

// Values are those of a unique constraint in rows that others can be equal to, nil for none: columns are
// all of the table's, with what is computed. The caller releases them.
func (u Unique) Values(ctx context.Context, columns []arrow.Array) ([]arrow.Array, error) {
	var rows []int32
	for row := range columns[0].Len() {
		if !u.null(columns, row) {
			rows = append(rows, int32(row))
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	taken, err := Rows{New: pick(columns, u.Places)}.Take(ctx, rows)
	return taken.New, err
}

// Asked are the values of a unique constraint in rows that others can be equal to, and the places
// of these rows: columns are all of the table's, with what is computed. Nil when there are none. The caller releases
// the last column.
func (u Unique) Asked(columns []arrow.Array) []arrow.Array {
	out := pick(columns, u.Places)
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	any := false
	for row := range columns[0].Len() {
		if u.null(columns, row) {
			b.AppendNull()
			continue
		}
		b.Append(int32(row))
		any = true
	}
	if !any {
		return nil
	}
	return append(out, b.NewArray())
}

// null says that no row is equal to one, for its nulls, or since it is not of such rows.
func (u Unique) null(columns []arrow.Array, row int) bool {
	if slices.ContainsFunc(u.Where, func(c Condition) bool { return !c.holds(columns, row) }) {
		return true
	}
	return !u.NullsEqual && slices.ContainsFunc(u.Places, func(p int) bool { return columns[p].IsNull(row) })
}

// SameKey are those of some rows whose key is that of one of others: columns are all of the
// table's.
func (t *Table) SameKey(columns []arrow.Array, others, some []int32) ([]int32, error) {
	if len(some) == 0 {
		return nil, nil
	}
	keys, err := t.keysOf(t.NewKey(columns))
	if err != nil {
		return nil, err
	}
	there := map[string]struct{}{}
	var buf []byte
	for _, row := range others {
		there[string(keys.Append(buf[:0], int(row)))] = struct{}{}
	}
	var out []int32
	for _, row := range some {
		if _, ok := there[string(keys.Append(buf[:0], int(row)))]; ok {
			out = append(out, row)
		}
	}
	return out, nil
}

// Index adds what unique indexes are of besides columns to those of rows, as a query gives it, after the
// places of the rows.
func (t *Table) Index(ctx context.Context, columns []arrow.Array, records []arrow.RecordBatch) ([]arrow.Array, error) {
	computed := &Table{ID: t.ID, Current: &schema.Table{Fields: t.Computed}}
	which := make([]int, len(t.Computed))
	rows := Rows{New: make([]arrow.Array, len(t.Computed))}
	for i, f := range t.Computed {
		which[i], rows.New[i] = i, array.MakeArrayOfNull(memory.DefaultAllocator, schema.ArrowType(f.Type), columns[0].Len())
	}
	var g Gathered
	for _, rec := range records {
		if err := g.Add(computed, rec, which); err != nil {
			g.Reset()
			return nil, err
		}
	}
	if err := g.Into(ctx, rows, which); err != nil {
		return nil, err
	}
	return append(slices.Clone(columns), rows.New...), nil
}

// Repeated are the places of rows that repeat the values of an earlier one in some of the
// constraints, the key among them if withKey: an earlier one that is not left out itself.
// Left out are those of out, which is ascending.
func (t *Table) Repeated(ctx context.Context, columns []arrow.Array, uniques []Unique, withKey bool, out []int32) ([]int32, error) {
	if withKey {
		uniques = append(slices.Clone(uniques), Unique{Places: t.key})
	}
	var keys []*uniqueKeys
	defer func() {
		for _, k := range keys {
			k.release()
		}
	}()
	for _, u := range uniques {
		k, err := t.keysWithoutNull(ctx, columns, u)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	var repeated []int32
	for row := range int32(columns[0].Len()) {
		if len(out) > 0 && out[0] == row {
			out = out[1:]
			continue
		}
		if slices.ContainsFunc(keys, func(k *uniqueKeys) bool { return k.known(row) }) {
			repeated = append(repeated, row)
			continue
		}
		for _, k := range keys {
			k.add(row)
		}
	}
	return repeated, nil
}

// uniqueKeys are the values of a unique constraint in rows that others can be equal to.
type uniqueKeys struct {
	columns []arrow.Array
	values  []arrow.Array // the same without nulls
	keys    []*merge.Keys // of each of them
	at      []int32       // of each row its place in columns, -1 for none
	seen    map[string]struct{}
	buf     []byte
}

func (t *Table) keysWithoutNull(ctx context.Context, columns []arrow.Array, u Unique) (*uniqueKeys, error) {
	k := &uniqueKeys{at: make([]int32, columns[0].Len()), seen: map[string]struct{}{}}
	var rows []int32
	for row := range k.at {
		k.at[row] = -1
		if !u.null(columns, row) {
			k.at[row] = int32(len(rows))
			rows = append(rows, int32(row))
		}
	}
	picked, err := Rows{New: pick(columns, u.Places)}.Take(ctx, rows)
	if err != nil {
		picked.Release()
		return nil, err
	}
	k.columns = picked.New
	for _, c := range k.columns {
		values := withoutNulls(c)
		k.values = append(k.values, values)
		keys, err := t.keysOf([]arrow.Array{values})
		if err != nil {
			k.release()
			return nil, err
		}
		k.keys = append(k.keys, keys)
	}
	return k, nil
}

func (k *uniqueKeys) release() {
	release(k.columns)
	release(k.values)
}

// withoutNulls is a column with values of no meaning in place of nulls.
func withoutNulls(c arrow.Array) arrow.Array {
	if c.NullN() == 0 {
		c.Retain()
		return c
	}
	d := c.Data()
	buffers := slices.Clone(d.Buffers())
	buffers[0] = nil
	bare := array.NewData(d.DataType(), d.Len(), buffers, d.Children(), 0, d.Offset())
	defer bare.Release()
	return array.MakeFromData(bare)
}

// key is that of a row, which has a place in the columns.
func (k *uniqueKeys) key(row int32) string {
	k.buf = k.buf[:0]
	at := int(k.at[row])
	for i, c := range k.columns {
		if c.IsNull(at) {
			k.buf = append(k.buf, 0)
			continue
		}
		k.buf = k.keys[i].Append(append(k.buf, 1), at)
	}
	return string(k.buf)
}

func (k *uniqueKeys) known(row int32) bool {
	if k.at[row] < 0 {
		return false
	}
	_, ok := k.seen[k.key(row)]
	return ok
}

func (k *uniqueKeys) add(row int32) {
	if k.at[row] >= 0 {
		k.seen[k.key(row)] = struct{}{}
	}
}
