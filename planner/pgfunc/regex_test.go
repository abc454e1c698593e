package pgfunc

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/planner/pgfunc/are/aretest"
)

// TestOtherEngine: where Go's expressions are used they find what the other engine does.
func TestOtherEngine(t *testing.T) {
	d := aretest.Draw{Rand: rand.New(rand.NewPCG(5, 6))}
	for n := 0; n < 5000; {
		expr, text, flags := d.Expression(2), d.Text(), d.Flags()
		p, err := compile(expr, flags)
		if err != nil || p.Regexp == nil {
			continue
		}
		n++
		for _, most := range []int{1, 0} {
			for _, groups := range []bool{false, true} {
				got, err := p.search(text, 0, most, groups)
				want, err2 := p.searchOwn(text, 0, most)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				if !groups {
					got, want = wholes(got), wholes(want)
				}
				if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("%q in %q with %q, groups %t: %v, the other %v; %s", expr, text, flags, groups, got, want, p.String())
				}
			}
		}
	}
}

func wholes(all [][]int) [][]int {
	var out [][]int
	for _, m := range all {
		out = append(out, m[:2])
	}
	return out
}
