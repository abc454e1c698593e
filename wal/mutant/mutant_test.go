package mutant_test

import (
	"testing"

	"github.com/skipprd/skipprd/wal/mutant"
)

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutant.All() {
		if m.String() == "" || seen[m.String()] {
			t.Errorf("mutant %d: name %q", m, m.String())
		}
		seen[m.String()] = true
	}
}

// A build without the tag has no mutants.
func TestOff(t *testing.T) {
	for _, m := range mutant.All() {
		mutant.Set(m)
		if mutant.On(m) != mutant.Enabled {
			t.Errorf("%s is on: %v", m, mutant.On(m))
		}
	}
	mutant.Set(mutant.None)
}
