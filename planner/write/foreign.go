package write

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/merge"
)

// Present are the values of columns in rows that have no null there, each once; nil when there are
// none. mixed says that a row has some and not all. The caller releases them.
func Present(ctx context.Context, columns []arrow.Array) (out []arrow.Array, mixed bool, err error) {
	var whole []int32
	for row := range columns[0].Len() {
		nulls := 0
		for _, c := range columns {
			if c.IsNull(row) {
				nulls++
			}
		}
		if nulls == 0 {
			whole = append(whole, int32(row))
		}
		mixed = mixed || nulls > 0 && nulls < len(columns)
	}
	if len(whole) == 0 {
		return nil, mixed, nil
	}
	all, err := Rows{New: columns}.Take(ctx, whole)
	defer all.Release()
	if err != nil {
		return nil, mixed, err
	}
	keys, err := merge.NewKeys(all.New)
	if err != nil {
		return nil, mixed, err
	}
	seen := map[string]struct{}{}
	var first []int32
	var buf []byte
	for i := range whole {
		buf = keys.Append(buf[:0], i)
		if _, again := seen[string(buf)]; !again {
			seen[string(buf)] = struct{}{}
			first = append(first, int32(i))
		}
	}
	once, err := all.Take(ctx, first)
	return once.New, mixed, err
}

// Gone are the places of changed or deleted rows that had values, none null, in columns which they do
// not have any more. old are the columns that the rows have as they were.
func (t *Table) Gone(ctx context.Context, r Rows, old, columns []int) ([]int32, error) {
	was := make([]arrow.Array, len(columns))
	for i, c := range columns {
		was[i] = r.Old[slices.Index(old, c)]
	}
	var given []int32
	for row := range r.Len() {
		if !slices.ContainsFunc(was, func(c arrow.Array) bool { return c.IsNull(row) }) {
			given = append(given, int32(row))
		}
	}
	if r.New == nil || len(given) == 0 {
		return given, nil
	}
	both, err := Rows{Old: was, New: pick(r.New, columns)}.Take(ctx, given)
	defer both.Release()
	if err != nil {
		return nil, err
	}
	var out []int32
	for i, row := range given {
		for c := range columns {
			if !array.SliceEqual(both.Old[c], int64(i), int64(i)+1, both.New[c], int64(i), int64(i)+1) {
				out = append(out, row)
				break
			}
		}
	}
	return out, nil
}

// Joined puts columns of several rows behind each other.
func Joined(parts [][]arrow.Array) ([]arrow.Array, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	out := make([]arrow.Array, len(parts[0]))
	for i := range out {
		var pieces []arrow.Array
		for _, p := range parts {
			pieces = append(pieces, p[i])
		}
		var err error
		if out[i], err = array.Concatenate(pieces, memory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	return out, nil
}
