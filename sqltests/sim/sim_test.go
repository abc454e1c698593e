package sim_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
)

// seeds is how many schedules a test runs.
func seeds(t testing.TB, n int) uint64 {
	if v, err := strconv.Atoi(os.Getenv("SKIPPRD_SIM_SEEDS")); err == nil {
		return uint64(v)
	}
	if testing.Short() {
		n /= 20
	}
	return uint64(n)
}

// TestSeeds runs generated schedules: every invariant holds after every step, and the world
// drains.
func TestSeeds(t *testing.T) {
	for seed := range seeds(t, 10_000) {
		s := script.Generate(seed, 0)
		r, err := sim.Run(sim.Config{Schedule: s})
		if err != nil {
			t.Fatal(err)
		}
		if r.Violation != nil {
			t.Fatalf("seed %d: %v at step %d", seed, r.Violation, r.Violation.Step)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		if _, err := sim.Run(sim.Config{Schedule: script.Generate(seed, 60), Unchecked: true}); err != nil {
			b.Fatal(err)
		}
		seed++
	}
}
