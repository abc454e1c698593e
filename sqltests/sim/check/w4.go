package check

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// w4 checks "W4 Marker digest = body digest": a durable marker has a durable body of its
// length and digest.
type w4 struct{ f *facts }

// Label implements Checker.
func (*w4) Label() string { return "W4" }

// Check implements Checker.
func (c *w4) Check(v *View) error {
	for _, h := range v.Hosts {
		if !c.f.logChanged(v, h) {
			continue
		}
		l := c.f.logOf(v, h.Name)
		for _, seq := range l.changed {
			err := marked(l.segs[seq])
			if errors.Is(err, errNoBody) && v.Objects != nil && seq < checkpointOf(v.Objects).Low {
				continue // a copy of its put came when all was reclaimed: the log begins behind it
			}
			if err != nil {
				return fmt.Errorf("segment %d of host %s: %w", seq, h.Name, err)
			}
		}
	}
	return nil
}

var errNoBody = errors.New("marker without a body")

func marked(s *segmentBytes) error {
	switch {
	case s == nil, s.marker == nil:
		return nil
	case s.damage != nil:
		return fmt.Errorf("marked, and damaged: %w", s.damage)
	case s.mark.Flags&segment.Takeover != 0:
		return nil
	case !s.body:
		return errNoBody
	case !s.digest:
		return errors.New("the body does not have the marker's digest")
	}
	return nil
}
