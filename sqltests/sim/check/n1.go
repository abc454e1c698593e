package check

import (
	"fmt"
)

// n1 checks "N1 Identity, not magnitude: whether a slice is compacted is set membership":
// what is live in a catalog is not in E of the snapshot that it shows, and what has left
// the live side is, whatever their order.
type n1 struct{ f *facts }

func newN1(f *facts) *n1 { return &n1{f} }

// Label implements Checker.
func (*n1) Label() string { return "N1" }

// Check implements Checker.
func (c *n1) Check(v *View) error {
	for _, h := range v.Hosts {
		hf := c.f.hosts[h.Name]
		if !hf.looked || h.State == Opening {
			continue
		}
		for _, t := range hf.now.tables {
			var before *tableFacts
			if hf.before != nil {
				before = hf.before.table(t.table.ID)
			}
			version := c.f.lakes[t.table.ID].version()
			if t == before && t.right == version && c.f.thorough == nil {
				continue // nothing has changed since
			}
			if err := c.table(t, before); err != nil {
				return fmt.Errorf("host %s, table %d: %w", h.Name, t.table.ID, err)
			}
			t.right = version
		}
	}
	return nil
}

func (c *n1) table(now, before *tableFacts) error {
	for i := range now.live {
		ref := now.live[i].Ref
		if in, _ := c.f.excluded(now, ref); in {
			return fmt.Errorf("slice %s is live, and in snapshot %d", ref, now.lake.Snapshot)
		}
	}
	if before == nil || before.table.Generation != now.table.Generation {
		return nil
	}
	for i := range before.live {
		ref := before.live[i].Ref
		if now.isLive(ref) {
			continue
		}
		if in, known := c.f.excluded(now, ref); known && !in {
			return fmt.Errorf("slice %s is not live any more, and not in snapshot %d", ref, now.lake.Snapshot)
		}
	}
	return nil
}
