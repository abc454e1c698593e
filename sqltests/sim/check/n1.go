package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
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
		for _, id := range hf.now.sortedTables() {
			var before *tableFacts
			if hf.before != nil {
				before = hf.before.tables[id]
			}
			if err := c.table(hf.now.tables[id], before); err != nil {
				return fmt.Errorf("host %s, table %d: %w", h.Name, id, err)
			}
		}
	}
	return nil
}

func (c *n1) table(now, before *tableFacts) error {
	live := make(map[segment.SliceRef]bool, len(now.live))
	for i := range now.live {
		ref := now.live[i].Ref
		live[ref] = true
		if in, _ := c.f.excluded(now, ref); in {
			return fmt.Errorf("slice %s is live, and in snapshot %d", ref, now.lake.Snapshot)
		}
	}
	if before == nil || before.table.Generation != now.table.Generation {
		return nil
	}
	for i := range before.live {
		ref := before.live[i].Ref
		if live[ref] {
			continue
		}
		if in, known := c.f.excluded(now, ref); known && !in {
			return fmt.Errorf("slice %s is not live any more, and not in snapshot %d", ref, now.lake.Snapshot)
		}
	}
	return nil
}
