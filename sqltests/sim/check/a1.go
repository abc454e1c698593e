package check

import "fmt"

// a1 checks "A1 Acknowledged only after the commit point, epoch re-check and synced
// catalog batch": when an append is answered, its host's catalog has the group, and the
// host is not known to be superseded. (A disk's catalog batch need not be synced: Open
// publishes again what a crash took away, which O1 looks at.)
type a1 struct{ f *facts }

// Label implements Checker.
func (*a1) Label() string { return "A1" }

// Check implements Checker.
func (c *a1) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(Committed)
		if !ok {
			continue
		}
		h := v.host(x.Host)
		if h == nil || h.Catalog == nil || h.State == Down {
			continue // it died in the same step; what it said is checked all the same
		}
		snap := h.Catalog.Snapshot()
		at, err := snap.Offset(x.Pipeline)
		_, gone := snap.PipelineByID(x.Pipeline)
		snap.Close()
		if err != nil {
			return err
		}
		have, want := place{at.Seq, at.End}, place{x.Group.Seq, x.Group.End}
		if gone == nil && have.less(want) {
			return fmt.Errorf("host %s answered the group that ends at %d:%d, its catalog ends at %d:%d", x.Host, want.seq,
				want.end, have.seq, have.end)
		}
	}
	return nil
}
