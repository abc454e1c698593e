package sim

import (
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Probe is a world at rest, for a look from outside that leaves no trace in it: nothing of
// it goes on meanwhile.
type Probe struct {
	Record  int // of the schedule; -1 at its end
	Catalog *catalog.Catalog
	Lake    planner.Snapshots
	Disk    wal.FS
	LogDir  func(change.PipelineID) string
	Clock   env.Clock
	// Want are the rows that a readable table must have at a position of its pipeline,
	// rendered and sorted.
	Want func(t *catalog.Table, at change.Position) []string
}

// probe lets the configuration's Probe look at the hosts that are up.
func (w *World) probe(c Config, record int) {
	if c.Probe == nil || w.suite == nil || w.violation != nil {
		return
	}
	if record >= 0 && (c.ProbeEvery <= 0 || (record+1)%c.ProbeEvery != 0) {
		return
	}
	for _, h := range w.hosts {
		if h.proc == nil || len(h.proc.logs) == 0 {
			continue
		}
		err := c.Probe(Probe{
			Record: record, Catalog: h.proc.catalog, Lake: w.lake, Disk: h.disk, LogDir: h.proc.logDir,
			Clock: worldClock{w},
			Want:  func(t *catalog.Table, at change.Position) []string { return w.suite.Want(&w.view, t, at) },
		})
		if err != nil {
			w.fail("Q1", fmt.Sprintf("host %s, record %d: %v", h.name, record, err))
		}
	}
}
