package merge

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Selection holds row indexes of one batch, ascending.
type Selection []int32

// Collapse returns the winners of each batch: of all changes of one key the greatest
// in (token, batch, row's ordinal, row) (M1). Deletes win like any change. key holds
// the key's column indexes in the records; with an empty key every row wins. batches
// are in log order, cut at the last truncate by the caller; a nil batch has no rows.
func Collapse(key []int, batches []arrow.RecordBatch) ([]Selection, error) {
	if len(key) == 0 {
		return everyRow(batches), nil
	}
	x := NewIndex()
	for i, rec := range batches {
		if _, err := x.Append(rec, key, false); err != nil {
			return nil, fmt.Errorf("collapse batch %d: %w", i, err)
		}
	}
	return x.winnersOf(len(batches)), nil
}

// winnersOf returns the winners of each of the first slices, when all count.
func (x *Index) winnersOf(slices int) []Selection {
	out := make([]Selection, slices)
	for i := range out {
		from, to := x.Range(Ordinal(i + 1))
		rows, all := x.Winners(nil, x.Held(), from, to)
		if all {
			rows = sequence(int(to - from))
		}
		out[i] = rows
	}
	return out
}

func everyRow(batches []arrow.RecordBatch) []Selection {
	out := make([]Selection, len(batches))
	for i, rec := range batches {
		if rec != nil {
			out[i] = sequence(int(rec.NumRows()))
		}
	}
	return out
}

func sequence(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
