package sim_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
)

// An injected violation that needs a few operations among a hundred shrinks to them.
func TestShrink(t *testing.T) {
	s := script.Generate(7, 100)
	if len(s.Records) != 100 {
		t.Fatalf("%d records", len(s.Records))
	}
	for i, line := range []string{"change insert ints 1-3", "commit", "wait 8", "do cut_power", "wait 8"} {
		rec, err := sim.ReadSchedule(strings.NewReader("sim 1\n" + line))
		if err != nil {
			t.Fatal(err)
		}
		s.Records = slices.Insert(s.Records, 20*i+3, rec.Records[0])
	}
	c := sim.Config{Schedule: s, Probe: lakeHasRows, ProbeEvery: 1}
	small, v, err := sim.Shrink(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, then %d:\n%s", len(s.Records), len(small.Records), sim.FormatSchedule(small))
	if len(small.Records) > 6 {
		t.Errorf("%d records are left", len(small.Records))
	}
	c.Schedule = small
	if r, err := sim.Run(c); err != nil || r.Violation == nil || r.Violation.Label != v.Label {
		t.Errorf("the shrunk schedule gives %v, %v", r.Violation, err)
	}
	back, err := sim.ReadSchedule(strings.NewReader(sim.FormatSchedule(small)))
	if err != nil || sim.FoundName(v, back) != sim.FoundName(v, small) {
		t.Errorf("its text is another schedule: %v", err)
	}
}

// lakeHasRows is an invariant that a schedule breaks when it lets rows reach the lake.
func lakeHasRows(p sim.Probe) error {
	snap := p.Catalog.Snapshot()
	defer snap.Close()
	for _, t := range snap.AllTables() {
		if t.State == catalog.TableReady && snap.LakeState(t.ID).Rows >= 3 {
			return errors.New("three rows in the lake")
		}
	}
	return nil
}

func TestShrinkNeedsAViolation(t *testing.T) {
	_, _, err := sim.Shrink(t.Context(), sim.Config{Schedule: script.Schedule{}})
	if !errors.Is(err, sim.ErrHolds) {
		t.Errorf("error %v", err)
	}
}
