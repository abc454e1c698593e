package sim_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
)

// fuzzRecords bounds a fuzzed schedule: the coverage of many short runs says more.
const fuzzRecords = 200

// FuzzSchedule runs the schedule of a seed, or one in its compact form, with a patch over it:
// edits of a schedule that means something find more than bytes that mean nothing. The named
// scripts and the schedules that found bugs are its seeds.
func FuzzSchedule(f *testing.F) {
	for _, dir := range []string{"testdata/scripts", "testdata/found"} {
		for _, s := range scripts(f, dir) {
			f.Add(uint64(0), script.Encode(s), []byte(nil))
		}
	}
	for seed := range uint64(20) {
		f.Add(seed, []byte(nil), binary.LittleEndian.AppendUint64(nil, seed*0x9e3779b97f4a7c15))
	}
	f.Fuzz(func(t *testing.T, seed uint64, compact, patch []byte) {
		s, err := script.Decode(compact)
		if err != nil {
			s = script.Generate(seed, 0)
		}
		s = script.Patch(s, patch)
		if len(s.Records) > fuzzRecords {
			s.Records = s.Records[:fuzzRecords]
		}
		r, err := sim.Run(sim.Config{Schedule: s})
		if err != nil {
			t.Fatal(err)
		}
		if r.Violation != nil {
			small, v, err := sim.Shrink(t.Context(), sim.Config{Schedule: s})
			if errors.Is(err, sim.ErrHolds) {
				t.Fatalf("%v, and not a second time", r.Violation)
			}
			t.Fatalf("%v\n%s", v, sim.FormatSchedule(small))
		}
	})
}
