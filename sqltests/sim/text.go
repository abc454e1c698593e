package sim

import (
	"io"

	"github.com/skipprd/skipprd/sqltests/sim/script"
)

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
