//go:build mutants

package sim_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/wal/mutant"
)

// hunt is how a deliberate bug is looked for: by a script that was written for it, or else by
// the schedules of seeds from 0 on.
type hunt struct {
	// script is a file below testdata/scripts, "" for none.
	script string
	// store: hosts over an object store.
	store bool
	// most is how many schedules may be needed: three times the mean, at least huntLeast.
	most uint64
}

const huntLeast = 50

// hunts are those that are not an ordinary search on a disk within huntLeast schedules.
var hunts = map[mutant.Mutant]hunt{
	mutant.AckMaximum:              {script: "offsets/stopped_table.sim"},
	mutant.AckIdle:                 {most: 600},
	mutant.RepinOldSnapshot:        {most: 100},
	mutant.RepinForever:            {script: "pins/lost_again_and_again.sim"},
	mutant.LostSliceIsEmpty:        {most: 75},
	mutant.ReclaimHeld:             {most: 70},
	mutant.MarkerLast:              {store: true},
	mutant.NoEpochCheck:            {store: true},
	mutant.NoTakeoverMarker:        {store: true},
	mutant.NoCheckpointReread:      {store: true},
	mutant.TakeoverMarkerReclaimed: {script: "append/store_zombie_puts_a_marker.sim", store: true},
	mutant.LakeNotFenced:           {store: true},
	mutant.ListBeforeFence:         {store: true},
	mutant.NoDigest:                {script: "recovery/flipped_bit_in_each_read.sim"},
	mutant.ReaderNoChecksum:        {script: "pins/flipped_bits_in_every_read.sim"},
	mutant.IgnoreToken:             {most: 600},
	mutant.SchemaAtOnce:            {script: "alter/within_a_transaction.sim"},
	mutant.RetrySync:               {script: "append/sync_fails_and_pages_are_gone.sim"},
	mutant.StreamBeforeCopy:        {script: "copy/stream_overtakes_the_copy.sim"},
	mutant.TruncateForgotten:       {most: 100},
	mutant.KeepVoidParts:           {script: "payload/parts_are_cut.sim"},
	mutant.CompactionNotFound:      {script: "merge/killed_between_lake_and_mark.sim"},
}

// TestMutants: the simulator finds every deliberate bug, and nothing in the same schedules
// without it.
func TestMutants(t *testing.T) {
	defer mutant.Set(mutant.None)
	named := scripts(t, "testdata/scripts")
	clean := map[bool]uint64{} // schedules that passed without a bug, by store
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	found := 0
	for _, m := range mutant.All() {
		h := hunts[m]
		h.most = max(h.most, huntLeast)
		seen, after, by, err := h.run(t, m, named)
		if err != nil {
			t.Errorf("%s: %v", m, err)
			continue
		}
		found++
		clean[h.store] = max(clean[h.store], seen)
		fmt.Fprintf(w, "%s\t%s\t%s\n", m, by, after)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("mutants %d of %d\n%s", found, len(mutant.All()), table.String())
	for _, store := range []bool{false, true} {
		c := sim.Campaign{Count: clean[store], Store: store, Parallel: runtime.GOMAXPROCS(0)}
		if r := c.Run(t.Context(), nil); r.Err != nil {
			t.Errorf("seed %d (store %v) fails without a mutant: %v", r.Failed, store, r.Err)
		}
	}
}

// run looks for a mutant. seen is how many seeds were run.
func (h hunt) run(t *testing.T, m mutant.Mutant, named map[string]script.Schedule) (seen uint64, after, by string, err error) {
	if h.script != "" {
		s, ok := named["testdata/scripts/"+h.script]
		if !ok {
			return 0, "", "", fmt.Errorf("script %s: %w", h.script, os.ErrNotExist)
		}
		mutant.Set(m)
		r, err := sim.Run(sim.Config{Schedule: s})
		mutant.Set(mutant.None)
		if err != nil {
			return 0, "", "", err
		}
		if r.Violation != nil {
			runScript(t, s) // passes without the bug
			return 0, h.script, r.Violation.Label, nil
		}
	}
	mutant.Set(m)
	defer mutant.Set(mutant.None)
	c := sim.Campaign{Count: h.most, Store: h.store, Parallel: runtime.GOMAXPROCS(0)}
	r := c.Run(t.Context(), nil)
	if r.Err == nil {
		return 0, "", "", fmt.Errorf("not found within %d schedules (store %v)", r.Schedules, h.store)
	}
	by, _, _ = strings.Cut(r.Err.Error(), ":")
	mode := "disk"
	if h.store {
		mode = "store"
	}
	return r.Failed + 1, fmt.Sprintf("%d of %s", r.Failed+1, mode), by, nil
}
