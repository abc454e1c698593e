package check

import (
	"fmt"
	"slices"
)

// a2 checks "A2 Every acknowledged change is in the lake or in a verified segment, read
// from the store's bytes": of every append that was answered, each slice is in the log's
// durable bytes or named by a commit of the lake, unless its table is gone or was begun
// anew.
type a2 struct{ f *facts }

// Label implements Checker.
func (*a2) Label() string { return "A2" }

// Check implements Checker.
func (c *a2) Check(v *View) error {
	var first owedKey
	var found error
	for _, h := range v.Hosts {
		if !c.f.logChanged(v, h) {
			continue
		}
		changed := c.f.logOf(v, h.Name).changed
		for k, s := range c.f.owed {
			if s.host != h.Name || s.seen && !slices.Contains(changed, k.ref.Seq) {
				continue
			}
			if _, lived := c.f.lived[k]; !lived {
				continue // a part of a transaction that has not ended may be given up
			}
			if err := c.missing(v, k, s); err != nil && (found == nil || k.less(first)) {
				first, found = k, err
			}
			s.seen = true
		}
	}
	return found
}

func (c *a2) missing(v *View, k owedKey, s *owedSlice) error {
	seg := c.f.logOf(v, s.host).segs[k.ref.Seq]
	switch {
	case seg == nil:
		return fmt.Errorf("slice %s of table %d: its segment is gone, and the lake does not have it", k.ref, s.table)
	case !seg.committed(v.Objects != nil) || !seg.digest:
		return fmt.Errorf("slice %s of table %d: its segment does not verify: %v", k.ref, s.table, seg.damage)
	case seg.slices[k.ref.Start] == nil:
		return fmt.Errorf("slice %s of table %d is not in its segment", k.ref, s.table)
	}
	return nil
}

func (k owedKey) less(o owedKey) bool {
	return k.pipeline < o.pipeline || k.pipeline == o.pipeline && k.ref.Less(o.ref)
}
