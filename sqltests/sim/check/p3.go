package check

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/protocol"
)

// p3 checks "P3 A lost slice is an error, never a shorter result": a pin whose slices were
// reclaimed gives all its rows or an error; it says that it lost a slice only if one was
// handed to a reclaim or its pipeline was dropped, and is not tried again then; and no query takes more new pins than
// allowed, or tells its client of a lost slice as such.
type p3 struct {
	f *facts
	// lost are the queries whose latest pin has lost a slice.
	lost map[int]bool
}

func newP3(f *facts) *p3 { return &p3{f, map[int]bool{}} }

// Label implements Checker.
func (*p3) Label() string { return "P3" }

// Check implements Checker.
func (c *p3) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case PinTaken:
			delete(c.lost, x.Query)
		case PinExecuted:
			if c.lost[x.Query] && !x.Again {
				return fmt.Errorf("query %d executes a pin again that has lost a slice", x.Query)
			}
			c.lost[x.Query] = errors.Is(x.Err, duckdb.ErrSliceLost)
			p := c.f.pins[x.Query]
			if p != nil && errors.Is(x.Err, duckdb.ErrSliceLost) && !c.f.lostSlice(p) && !c.f.dropped(x.Host) {
				return fmt.Errorf("query %d lost a slice, and none was reclaimed: %w", x.Query, x.Err)
			}
		case QueryEnded:
			if x.Repeats > protocol.PinRepeats {
				return fmt.Errorf("query %d took %d new pins", x.Query, x.Repeats)
			}
			if errors.Is(x.Err, duckdb.ErrSliceLost) && !planner.TooOld(x.Err) {
				return fmt.Errorf("query %d ended with %w", x.Query, x.Err)
			}
		}
	}
	return c.f.of(c.Label())
}
