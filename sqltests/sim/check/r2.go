package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// r2 checks "R2 Marker first, then body": when a body is about to vanish, its marker is
// durably gone.
type r2 struct{ f *facts }

// Label implements Checker.
func (*r2) Label() string { return "R2" }

// Check implements Checker.
func (c *r2) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(Removed)
		if !ok {
			continue
		}
		n, ok := parseName(x.Name)
		if !ok || n.marker {
			continue
		}
		s := c.f.logOf(v, x.Host).segs[n.seq]
		if s == nil || s.marker == nil || s.mark.Flags&segment.Takeover != 0 || n.epoch != 0 && s.mark.Epoch != n.epoch {
			continue // no marker of this body
		}
		return fmt.Errorf("%s is removed, its marker is there", x.Name)
	}
	return nil
}
