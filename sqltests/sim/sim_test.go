package sim_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
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

// TestSeeds runs generated schedules, with the log on a disk and on an object store: every
// invariant holds after every step, the world drains, and every hundredth seed gives the same
// trace twice.
func TestSeeds(t *testing.T) {
	for _, c := range []struct {
		name  string
		store bool
		seeds int
	}{{"disk", false, 10_000}, {"store", true, 10_000}} {
		t.Run(c.name, func(t *testing.T) {
			n := seeds(t, c.seeds)
			r := sim.Campaign{
				Count: n, Store: c.store, Parallel: runtime.GOMAXPROCS(0), RepeatEvery: 100,
			}.Run(t.Context(), nil)
			if r.Err != nil {
				t.Fatalf("seed %d: %v", r.Failed, r.Err)
			}
			t.Logf("%d schedules, per cpu-second %.0f", r.Schedules, r.PerSecond())
			if zero := r.Zero(c.store); len(zero) > 0 && n >= uint64(c.seeds) {
				t.Errorf("marks at zero: %s", strings.Join(zero, ", "))
			}
		})
	}
}

// One seed, one trace: in any order of runs, whatever the garbage collector does.
func TestDeterminism(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	n := max(3, seeds(t, 100))
	hashes := map[uint64]uint64{}
	for _, again := range []bool{false, true} {
		for i := range n {
			seed := i
			if again {
				seed = n - 1 - i
			}
			cfg := sim.Config{Schedule: script.Generate(seed, 0)}
			if seed%2 == 1 {
				cfg = sim.Config{Schedule: script.GenerateStore(seed, 0), Store: true}
			}
			r, err := sim.Run(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if again && hashes[seed] != r.TraceHash {
				t.Errorf("seed %d: two traces", seed)
			}
			hashes[seed] = r.TraceHash
		}
	}
}

// What checkers keep from step to step is what they would read anew.
func TestThorough(t *testing.T) {
	for seed := range seeds(t, 150) {
		for _, cfg := range []sim.Config{
			{Schedule: script.Generate(seed, 0), Thorough: true},
			{Schedule: script.GenerateStore(seed, 0), Thorough: true, Store: true},
		} {
			r, err := sim.Run(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.Violation != nil {
				t.Fatalf("seed %d, store %v: %v", seed, cfg.Store, r.Violation)
			}
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
