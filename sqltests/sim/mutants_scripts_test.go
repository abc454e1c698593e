//go:build mutants

package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/wal/mutant"
)

// TestScriptsFindMutants says which deliberate bugs the named scripts find. Campaigns find the
// others.
func TestScriptsFindMutants(t *testing.T) {
	defer mutant.Set(mutant.None)
	all := scripts(t, "testdata/scripts")
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	found := 0
	for _, m := range mutant.All() {
		mutant.Set(m)
		killers := 0
		first := ""
		for _, name := range names {
			r, err := sim.Run(sim.Config{Schedule: all[name]})
			if err != nil {
				t.Fatal(err)
			}
			if r.Violation != nil {
				if killers++; killers == 1 {
					first = name + ": " + r.Violation.Label
				}
			}
		}
		if killers > 0 {
			found++
		}
		t.Logf("%v: %d scripts, %s", m, killers, first)
	}
	if found < len(mutant.All())/2 {
		t.Errorf("the scripts find %d of %d mutants", found, len(mutant.All()))
	}
}

// TestShrinkMutant: a schedule of a hundred records that finds a deliberate bug becomes a few
// lines, which still find it and are clean without it.
func TestShrinkMutant(t *testing.T) {
	defer mutant.Set(mutant.None)
	mutant.Set(mutant.AckBeforeCommit)
	for seed := uint64(1); seed < 200; seed++ {
		s := script.Generate(seed, 100)
		r, err := sim.Run(sim.Config{Schedule: s})
		if err != nil {
			t.Fatal(err)
		}
		if r.Violation == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		small, v, err := sim.Shrink(ctx, sim.Config{Schedule: s})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d, %v: %d records became\n%s", seed, v, len(s.Records), sim.FormatSchedule(small))
		if len(small.Records) > 10 {
			t.Errorf("%d records are left", len(small.Records))
		}
		mutant.Set(mutant.None)
		if r, err := sim.Run(sim.Config{Schedule: small}); err != nil || r.Violation != nil {
			t.Errorf("without the bug: %v, %v", r.Violation, err)
		}
		return
	}
	t.Fatal("no schedule finds the mutant")
}
