package write_test

import (
	"slices"
	"testing"

	"github.com/skipprd/skipprd/planner/write"
)

// Rows that repeat a value of an earlier one are told, unless that one is left out itself;
// nulls repeat nothing, unless they are equal.
func TestRepeated(t *testing.T) {
	tab := table(t, "id")
	text := write.Unique{Name: "u", Places: []int{0}}
	nulls := write.Unique{Name: "u", Places: []int{0}, NullsEqual: true}
	all := columns("1 a", "1 b", "2 a", "3 -", "4 -", "5 b")
	for name, c := range map[string]struct {
		uniques []write.Unique
		key     bool
		out     []int32
		want    []int32
	}{
		"one":      {[]write.Unique{text}, false, nil, []int32{2, 5}},
		"the key":  {nil, true, nil, []int32{1}},
		"both":     {[]write.Unique{text}, true, nil, []int32{1, 2}},
		"left out": {[]write.Unique{text}, false, []int32{0}, []int32{5}},
		"nulls":    {[]write.Unique{nulls}, false, nil, []int32{2, 4, 5}},
		"of two":   {[]write.Unique{{Name: "u", Places: []int{1, 0}, NullsEqual: true}}, false, nil, nil},
		"none":     {nil, false, nil, nil},
	} {
		got, err := tab.Repeated(t.Context(), all, c.uniques, c.key, c.out)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	asked := text.Asked(all)
	if len(asked) != 2 || asked[1].NullN() != 2 || asked[1].Len() != 6 {
		t.Errorf("asked %v", asked)
	}
	if got := text.Asked(columns("1 -")); got != nil {
		t.Errorf("asked %v of nulls", got)
	}
	if got := nulls.Asked(columns("1 -")); len(got) != 2 || got[1].NullN() != 0 {
		t.Errorf("asked %v of nulls that are equal", got)
	}
	same, err := tab.SameKey(all, []int32{0}, []int32{1, 2})
	if err != nil || !slices.Equal(same, []int32{1}) {
		t.Errorf("same key %v, %v", same, err)
	}
}
