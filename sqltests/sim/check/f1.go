package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/wal/segment"
)

// f1 checks "F1 A fenced writer cannot commit": neither to the log nor to the lake, once
// the world knows that another has superseded it; and behind a take-over marker no marker
// of an older epoch stands.
type f1 struct{ f *facts }

// Label implements Checker.
func (*f1) Label() string { return "F1" }

// Check implements Checker.
func (c *f1) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case Committed:
			if h := v.host(x.Host); h != nil && h.Fenced {
				return fmt.Errorf("host %s answered the group that ends at %d:%d and is fenced", x.Host, x.Group.Seq, x.Group.End)
			}
		case LakeCommitted:
			if h := v.host(x.Host); h != nil && h.Fenced && x.Head != nil {
				return fmt.Errorf("host %s made snapshot %d of table %d and is fenced", x.Host, x.Head.ID, x.Table)
			}
		}
	}
	if v.Objects == nil {
		return nil
	}
	var reign segment.Epoch
	var since segment.Seq
	for _, seq := range slices.Sorted(maps.Keys(c.f.shared.segs)) {
		s := c.f.shared.segs[seq]
		if s.marker == nil || s.damage != nil {
			continue
		}
		if s.mark.Epoch < reign {
			return fmt.Errorf("marker %d is of epoch %d, epoch %d took over at %d", seq, s.mark.Epoch, reign, since)
		}
		if s.mark.Flags&segment.Takeover != 0 {
			reign, since = s.mark.Epoch, seq
		}
	}
	return nil
}
