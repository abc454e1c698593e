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
		for i := range x.Pin.Tables {
			if err := c.table(hf, &x.Pin.Tables[i]); err != nil {
				return fmt.Errorf("query %d, table %d: %w", x.Query, x.Pin.Tables[i].Table.ID, err)
			}
		}
	}
	return nil
}

func (c *p1) table(hf *hostFacts, p *PinnedTable) error {
	t := &tableFacts{table: p.Table, lake: p.Lake}
	live := make(map[segment.SliceRef]bool, len(p.Live))
	last := segment.SliceRef{}
	for i := range p.Live {
		ref := p.Live[i].Ref
		live[ref], last = true, ref
		if in, _ := c.f.excluded(t, ref); in {
			return fmt.Errorf("slice %s is pinned, and in snapshot %d", ref, p.Lake.Snapshot)
		}
	}
	k := hf.known[p.Table.ID]
	if k == nil || k.generation != p.Table.Generation {
		return nil
	}
	var lost segment.SliceRef
	for ref := range k.refs {
		if live[ref] || last != (segment.SliceRef{}) && last.Less(ref) {
			continue // pinned, or newer than the pin
		}
		if in, known := c.f.excluded(t, ref); known && !in && (lost == (segment.SliceRef{}) || ref.Less(lost)) {
			if now := hf.now.tables[p.Table.ID]; now != nil && stillLive(now, ref) && len(p.Live) == 0 {
				continue // it came after a pin without live slices
			}
			lost = ref
		}
	}
	if lost != (segment.SliceRef{}) {
		return fmt.Errorf("slice %s is neither pinned nor in snapshot %d", lost, p.Lake.Snapshot)
	}
	return nil
}

func stillLive(t *tableFacts, ref segment.SliceRef) bool {
	for i := range t.live {
		if t.live[i].Ref == ref {
			return true
		}
	}
	return false
}
