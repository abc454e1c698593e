package check

import (
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// holdMost is how long a hold keeps the log without being moved.
const holdMost = 10 * time.Minute

// h1 checks "H1 Everything between a hold's cursor and the log's end is still in the log;
// delivery to its owner is gap-free": no segment of which a hold keeps something is gone
// that was not on its way out when the hold came.
type h1 struct{ f *facts }

// Label implements Checker.
func (*h1) Label() string { return "H1" }

// Check implements Checker.
func (c *h1) Check(v *View) error {
	for k, h := range c.f.holds {
		host := v.host(k.host)
		if host == nil || host.State == Down || v.Now.Sub(h.since) > holdMost || !c.f.logChanged(v, host) {
			continue
		}
		l := c.f.logOf(v, k.host)
		for seq := h.at.Seq; seq <= l.last.seq; seq++ {
			if l.segs[seq] == nil && !c.f.asked[segmentKey{h.pipeline, seq}] && c.f.existed(h.pipeline, seq) {
				return fmt.Errorf("hold %s keeps the log from %s on, segment %d is gone", k.name, h.at, seq)
			}
		}
	}
	return nil
}

// existed says whether an answered append is in a segment.
func (f *facts) existed(pipeline change.PipelineID, seq segment.Seq) bool {
	for k := range f.owed {
		if k.pipeline == pipeline && k.ref.Seq == seq {
			return true
		}
	}
	return false
}

// heldBy is the hold that keeps a segment, "" for none.
func (f *facts) heldBy(v *View, host string, k segmentKey) string {
	for hk, h := range f.holds {
		if hk.host == host && h.pipeline == k.pipeline && k.seq >= h.at.Seq && v.Now.Sub(h.since) <= holdMost {
			return hk.name
		}
	}
	return ""
}
