package sequence_test

import (
	"errors"
	"math"
	"testing"

	"github.com/skipprd/skipprd/catalog/sequence"
)

// Values follow each other, to the limit and around it.
func TestTake(t *testing.T) {
	up := sequence.Sequence{Increment: 1, Min: 1, Max: math.MaxInt64, Last: 1}
	few := sequence.Sequence{Increment: 3, Min: 2, Max: 9, Last: 2}
	around := few
	around.Cycle = true
	down := sequence.Sequence{Increment: -1, Min: math.MinInt64, Max: -1, Last: math.MinInt64 + 1, Called: true}
	wide := sequence.Sequence{Increment: math.MaxInt64, Min: math.MinInt64, Max: math.MaxInt64, Last: math.MinInt64}
	for name, c := range map[string]struct {
		s    sequence.Sequence
		take []int64
		want []int64 // 0, 0 for none
	}{
		"up":     {up, []int64{1, 3, 1}, []int64{1, 1, 2, 4, 5, 5}},
		"limit":  {few, []int64{2, 5, 1}, []int64{2, 5, 8, 8, 0, 0}},
		"cycle":  {around, []int64{9, 9}, []int64{2, 8, 2, 8}},
		"lowest": {down, []int64{2, 1}, []int64{math.MinInt64, math.MinInt64, 0, 0}},
		"wide":   {wide, []int64{9, 1}, []int64{math.MinInt64, math.MaxInt64 - 1, 0, 0}},
	} {
		for i, n := range c.take {
			r, err := c.s.Take(n)
			first, last := c.want[2*i], c.want[2*i+1]
			if first == 0 && last == 0 {
				if !errors.Is(err, sequence.ErrLimit) {
					t.Errorf("%s %d: %v, %v", name, i, r, err)
				}
				continue
			}
			if err != nil || r.First != first || r.Last() != last || c.s.Last != last || !c.s.Called {
				t.Errorf("%s %d: %d to %d, %v, want %d to %d", name, i, r.First, r.Last(), err, first, last)
			}
		}
	}
}
