package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/segment"
)

// p1 checks "P1 Live slices first, snapshot second, where both are not read in one catalog
// snapshot": in a pin, no slice is both live and in the lake's snapshot, and none that was
// ever live is in neither.
type p1 struct{ f *facts }

// Label implements Checker.
func (*p1) Label() string { return "P1" }

// Check implements Checker.
func (c *p1) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(PinTaken)
		hf := c.f.hosts[x.Host]
		if !ok || hf == nil || hf.now == nil {
			continue
		}
		if h := v.host(x.Host); h == nil || h.Fenced {
			continue // its lake table may have another life by now
		}
		for i := range x.Pin.Tables {
			if err := c.table(hf, &x.Pin, &x.Pin.Tables[i]); err != nil {
				return fmt.Errorf("query %d, table %d: %w", x.Query, x.Pin.Tables[i].Table.ID, err)
			}
		}
	}
	return nil
}

func (c *p1) table(hf *hostFacts, pin *Pin, p *PinnedTable) error {
	t := &tableFacts{table: p.Table, lake: p.Lake}
	live := make(map[segment.SliceRef]bool, len(p.Live))
	for i := range p.Live {
		ref := p.Live[i].Ref
		live[ref] = true
		if in, _ := c.f.excluded(t, ref); in {
			return fmt.Errorf("slice %s is pinned, and in snapshot %d", ref, p.Lake.Snapshot)
		}
	}
	k := hf.known[p.Table.ID]
	if k == nil || k.generation != p.Table.Generation {
		return nil
	}
	var lost segment.SliceRef
	for ref, since := range k.refs {
		if live[ref] || (place{pin.Seq, pin.End}).less(since) {
			continue // pinned, or not live yet when the pin was taken
		}
		if in, known := c.f.excluded(t, ref); known && !in && (lost == (segment.SliceRef{}) || ref.Less(lost)) {
			lost = ref
		}
	}
	if lost != (segment.SliceRef{}) {
		return fmt.Errorf("slice %s is neither pinned nor in snapshot %d", lost, p.Lake.Snapshot)
	}
	return nil
}
