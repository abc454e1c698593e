//go:build mutants

package protocol_test

import (
	"testing"

	"github.com/skipprd/skipprd/wal/mutant"
)

// Each rule of the take-over is needed: without it some schedule loses what was
// acknowledged, or leaves a log that nobody can open.
func TestStoreSchedulesFindMutants(t *testing.T) {
	for _, m := range []mutant.Mutant{
		mutant.NoEpochCheck, mutant.NoTakeoverMarker, mutant.NoCheckpointReread,
		mutant.TakeoverMarkerReclaimed, mutant.LakeNotFenced, mutant.ListBeforeFence,
	} {
		t.Run(m.String(), func(t *testing.T) {
			mutant.Set(m)
			defer mutant.Set(mutant.None)
			const most = 40000
			for seed := range uint64(most) {
				if _, err := runStoreSim(t, seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found in %d schedules", most)
		})
	}
}
