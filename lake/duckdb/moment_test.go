package duckdb

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestUntil: of a slice that a moment lies in the rows before it are read, all of them,
// in whatever order they come.
func TestUntil(t *testing.T) {
	for _, c := range []struct {
		tokens       []int64
		before       int64
		want         []int64
		whole, empty bool
	}{
		{[]int64{1, 2, 3}, 0, []int64{1, 2, 3}, true, false},
		{[]int64{1, 2, 3}, 4, []int64{1, 2, 3}, true, false},
		{[]int64{1, 2, 2, 3}, 3, []int64{1, 2, 2}, false, false},
		{[]int64{1, 2, 3}, 2, []int64{1}, false, false},
		{[]int64{5, 6}, 5, nil, false, true},
		{[]int64{1, 9, 2, 9, 9, 3}, 5, []int64{1, 2, 3}, false, false},
		{[]int64{9, 1, 2}, 5, []int64{1, 2}, false, false},
		{nil, 5, nil, false, true},
	} {
		ops, tokens := array.NewUint8Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
		for range c.tokens {
			ops.Append(1)
		}
		tokens.AppendValues(c.tokens, nil)
		schema := arrow.NewSchema([]arrow.Field{{Name: "op", Type: arrow.PrimitiveTypes.Uint8}, {Name: "token", Type: arrow.PrimitiveTypes.Int64}}, nil)
		rec := array.NewRecordBatch(schema, []arrow.Array{ops.NewArray(), tokens.NewArray()}, int64(len(c.tokens)))
		got, err := until(rec, c.before)
		if err != nil || (got == nil) != c.empty || (got == rec) != c.whole {
			t.Errorf("%v before %d: %v, %v", c.tokens, c.before, got, err)
			continue
		}
		if got == nil {
			continue
		}
		if values := got.Column(1).(*array.Int64).Int64Values(); !slices.Equal(values, c.want) || got.NumRows() != int64(len(c.want)) {
			t.Errorf("%v before %d: %v, not %v", c.tokens, c.before, values, c.want)
		}
		got.Release()
	}
}

// TestDigestHasTheMoment: a pin at a moment is not taken for the pin of whole slices.
func TestDigestHasTheMoment(t *testing.T) {
	if digestOf([]LiveSlice{{Seq: 1, Before: 5}}) == digestOf([]LiveSlice{{Seq: 1}}) {
		t.Error("the digests are equal")
	}
}
