package write

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// Unique is a unique constraint: its name, and the places of its fields.
type Unique struct {
	Name   string
	Places []int
}

// DuplicateOf is Duplicate of a unique constraint: columns are all of the table's.
func (t *Table) DuplicateOf(u Unique, columns []arrow.Array, row int, f encode.Format) error {
	return t.duplicate(u, pick(columns, u.Places), row, f)
}

// Asked are the values of a unique constraint in rows that have no null there, and the places
// of these rows: columns are all of the table's. Nil when there are none. The caller releases
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

func (u Unique) null(columns []arrow.Array, row int) bool {
	return slices.ContainsFunc(u.Places, func(p int) bool { return columns[p].IsNull(row) })
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
			release(k.columns)
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

// uniqueKeys are the values of a unique constraint in rows that have no null there.
type uniqueKeys struct {
	columns []arrow.Array
	keys    *merge.Keys
	at      []int32 // of each row its place in columns, -1 for none
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
	if k.keys, err = t.keysOf(k.columns); err != nil {
		picked.Release()
		return nil, err
	}
	return k, nil
}

func (k *uniqueKeys) known(row int32) bool {
	if k.at[row] < 0 {
		return false
	}
	k.buf = k.keys.Append(k.buf[:0], int(k.at[row]))
	_, ok := k.seen[string(k.buf)]
	return ok
}

func (k *uniqueKeys) add(row int32) {
	if k.at[row] >= 0 {
		k.buf = k.keys.Append(k.buf[:0], int(k.at[row]))
		k.seen[string(k.buf)] = struct{}{}
	}
}
