package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// r2 checks "R2 Marker first, then body": when a body is about to vanish, its marker is
// durably gone; the marker of a take-over stays. Nobody opens the log of a pipeline that is dropped, whatever a crash leaves of it.
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
		if !ok || c.f.dropped(x.Host) {
			continue
		}
		s := c.f.logOf(v, x.Host).segs[n.seq]
		if n.marker {
			if s != nil && s.marker != nil && s.mark.Flags&segment.Takeover != 0 {
				return fmt.Errorf("%s is removed, and marks a take-over", x.Name)
			}
			continue
		}
		if s == nil || s.marker == nil || s.mark.Flags&segment.Takeover != 0 || n.epoch != 0 && s.mark.Epoch != n.epoch {
			continue // no marker of this body
		}
		return fmt.Errorf("%s is removed, its marker is there", x.Name)
	}
	return nil
}

// dropped says whether a host's catalog has no pipeline any more.
func (f *facts) dropped(host string) bool {
	h := f.hosts[host]
	return h != nil && h.now != nil && len(h.now.pipelines) == 0
}
