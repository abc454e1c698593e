package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// f1 checks "F1 A fenced writer cannot commit": behind a take-over marker no marker of an
// older epoch stands, and no lake table has a commit of an older epoch behind one of a newer.
// What a superseded host answers was committed before: its group is under a marker of its
// own epoch.
type f1 struct {
	f *facts
	// lakes has the greatest epoch that committed to a table.
	lakes map[change.TableID]segment.Epoch
	late  lateMarkers
}

func newF1(f *facts) *f1 { return &f1{f, map[change.TableID]segment.Epoch{}, lateMarkers{}} }

// committedBy says whether a group is or was under a marker of its host's epoch.
func (c *f1) committedBy(v *View, h *Host, x Committed) bool {
	epoch, ok := c.f.durable[place{x.Group.Seq, x.Group.End}]
	return v.Objects != nil && ok && (h.Epoch == 0 || epoch == h.Epoch)
}

// Label implements Checker.
func (*f1) Label() string { return "F1" }

// Check implements Checker.
func (c *f1) Check(v *View) error {
	if err := c.late.check(v, c.f); err != nil {
		return err
	}
	for _, e := range v.Events {
		switch x := e.(type) {
		case Committed:
			if h := v.host(x.Host); h != nil && h.Fenced && !c.committedBy(v, h, x) {
				return fmt.Errorf("host %s answered the group that ends at %d:%d and is fenced", x.Host, x.Group.Seq, x.Group.End)
			}
		case LakeDropped:
			// Its next life begins without a fence. What an older writer puts there is of an
			// older generation, and goes with the first commit of this one.
			delete(c.lakes, x.Table)
		case LakeCommitted:
			if x.Head == nil {
				continue
			}
			if last := c.lakes[x.Table]; x.Commit.Epoch < last {
				return fmt.Errorf("host %s made snapshot %d of table %d in epoch %d, epoch %d had made one", x.Host, x.Head.ID,
					x.Table, x.Commit.Epoch, last)
			}
			c.lakes[x.Table] = x.Commit.Epoch
		}
	}
	if v.Objects == nil || !c.f.sharedChanged && c.f.thorough == nil {
		return nil // what follows depends on the bytes alone
	}
	var reign segment.Epoch
	var since segment.Seq
	for _, seq := range c.f.shared.seqs {
		s := c.f.shared.segs[seq]
		if s.marker == nil || s.damage != nil {
			continue
		}
		// A slow host's own take-over marker commits nothing: it reads the fence again.
		if s.mark.Epoch < reign && s.mark.Flags&segment.Takeover == 0 {
			return fmt.Errorf("marker %d is of epoch %d, epoch %d took over at %d", seq, s.mark.Epoch, reign, since)
		}
		if s.mark.Flags&segment.Takeover != 0 && s.mark.Epoch > reign {
			reign, since = s.mark.Epoch, seq
		}
	}
	return nil
}
