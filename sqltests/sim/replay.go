package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/script"
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
