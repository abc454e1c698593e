package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/segment"
)

// w2 checks "W2 What lies beyond the commit point does not exist: a body without a marker,
// bytes after the last valid group end": whatever a catalog is given, and whatever a pin
// reads, is a group of the durable bytes, as it stands there.
type w2 struct{ f *facts }

// Label implements Checker.
func (*w2) Label() string { return "W2" }

// Check implements Checker.
func (c *w2) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case Published:
			for i := range x.Groups {
				if err := c.group(v, x, &x.Groups[i]); err != nil {
					return fmt.Errorf("host %s published the group that ends at %d:%d: %w", x.Host, x.Groups[i].Seq, x.Groups[i].End, err)
				}
			}
		case PinTaken:
			if err := c.pin(v, x); err != nil {
				return fmt.Errorf("query %d: %w", x.Query, err)
			}
		}
	}
	return nil
}

func (c *w2) group(v *View, x Published, g *wal.CommittedGroup) error {
	s := c.f.logOf(v, x.Host).segs[g.Seq]
	if s == nil || !s.committed(v.Objects != nil) {
		if h := v.host(x.Host); h != nil && h.Fenced && c.f.asked[segmentKey{x.Pipeline, g.Seq}] {
			return nil // the one that leads has let it go (R1)
		}
		return fmt.Errorf("its segment is not committed")
	}
	have := s.group(g.End)
	if have == nil {
		return fmt.Errorf("it does not exist")
	}
	if len(have.Slices) != len(g.Slices) || have.Position != g.Position {
		return fmt.Errorf("it has %d slices at %q, not %d at %q", len(have.Slices), have.Position, len(g.Slices), g.Position)
	}
	for i := range g.Slices {
		if !sameSlice(&g.Slices[i], &have.Slices[i]) {
			return fmt.Errorf("slice %s is another", g.Slices[i].Ref)
		}
	}
	return nil
}

func sameSlice(a *wal.Slice, b *segment.Slice) bool {
	return a.Ref.Start == b.Start && a.Length == b.Length && a.Table == b.Table && a.SchemaVersion == b.SchemaVersion &&
		a.Rows == b.Rows && a.Counts == b.Counts && a.Truncate == b.Truncate && a.Backfill == b.Backfill
}

func (c *w2) pin(v *View, x PinTaken) error {
	l := c.f.logOf(v, x.Host)
	for _, t := range x.Pin.Tables {
		for i := range t.Live {
			s := l.segs[t.Live[i].Ref.Seq]
			if (s == nil || !s.committed(v.Objects != nil)) && c.f.asked[segmentKey{t.Table.Pipeline, t.Live[i].Ref.Seq}] {
				continue // lost already, which the query will find out (P3)
			}
			have := l.slice(t.Live[i].Ref)
			if have == nil || !s.committed(v.Objects != nil) || !sameSlice(&t.Live[i].Slice, have) {
				return fmt.Errorf("pinned slice %s of table %d is not in the durable log", t.Live[i].Ref, t.Table.ID)
			}
		}
	}
	return nil
}
