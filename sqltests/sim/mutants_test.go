//go:build mutants

package sim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/wal/mutant"
)

// TestMutants: the simulator finds every deliberate bug, and nothing in the same schedules
// without it.
func TestMutants(t *testing.T) {
	clean := map[bool]uint64{} // seeds that found bugs, by store
	played := map[string]bool{}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	found := 0
	for _, m := range mutant.All() {
		by, err := sim.Hunt(t.Context(), m, "testdata/scripts")
		if err != nil {
			t.Error(err)
			continue
		}
		found++
		if by.Script != "" {
			played["testdata/scripts/"+by.Script] = true
		}
		clean[by.Store] = max(clean[by.Store], by.Schedules)
		fmt.Fprintf(w, "%s\t%s\t%s\n", m, by.Label, by)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("mutants %d of %d\n%s", found, len(mutant.All()), table.String())
	for path, s := range scripts(t, "testdata/scripts") {
		if played[path] {
			runScript(t, s)
		}
	}
	for _, store := range []bool{false, true} {
		c := sim.Campaign{Count: clean[store], Store: store, Parallel: runtime.GOMAXPROCS(0)}
		if r := c.Run(t.Context(), nil); r.Err != nil {
			t.Errorf("seed %d (store %v) fails without a mutant: %v", r.Failed, store, r.Err)
		}
	}
}
