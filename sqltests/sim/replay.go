package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// shrinkRuns bounds a search for a smaller schedule.
const shrinkRuns = 3000

// ErrHolds is Shrink's answer to a schedule that breaks nothing.
var ErrHolds = errors.New("the schedule breaks no invariant")

// Shrink makes c's schedule as small as it can while the same invariant breaks. It returns
// what it has when ctx ends. The violation is that of the schedule that it returns.
func Shrink(ctx context.Context, c Config) (script.Schedule, *check.Violation, error) {
	c.Trace = nil
	r, err := Run(c)
	if err != nil {
		return c.Schedule, nil, err
	}
	if r.Violation == nil {
		return c.Schedule, nil, ErrHolds
	}
	last := r.Violation
	best := script.Shrink(ctx, c.Schedule, shrinkRuns, func(s script.Schedule) bool {
		c.Schedule = s
		r, err := Run(c)
		if err != nil || r.Violation == nil || r.Violation.Label != last.Label {
			return false
		}
		last = r.Violation
		return true
	})
	best.About = []string{fmt.Sprintf("%s: %.300s", last.Label, oneLine(last.Detail))}
	best.Want = nil
	return best, last, nil
}

// FoundName names the file of a schedule that broke an invariant: the invariant, and what tells
// the schedule from others.
func FoundName(v *check.Violation, s script.Schedule) string {
	h := fnv.New32a()
	_, _ = h.Write(script.Encode(s)) // never fails
	return fmt.Sprintf("%s-%08x.sim", v.Label, h.Sum32())
}

// oneLine leaves out what comes after the first line.
func oneLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}

// FaultByName is the fault that scripts call so.
func FaultByName(name string) (Fault, bool) {
	for f, n := range faultNames {
		if n == name {
			return Fault(f), true
		}
	}
	return NoFault, false
}

// ReadSchedule reads the text of a schedule.
func ReadSchedule(r io.Reader) (script.Schedule, error) {
	return script.Parse(r, func(name string) (uint8, bool) {
		f, ok := FaultByName(name)
		return uint8(f), ok
	})
}

// FormatSchedule renders a schedule as ReadSchedule reads it.
func FormatSchedule(s script.Schedule) string {
	return script.Format(s, func(f uint8) string { return Fault(f).String() })
}

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
