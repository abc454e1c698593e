package check

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/segment"
)

// c4 checks "C4 A tombstone is not dropped while an older change of its key can still be
// read": when a slice with deletes goes into the lake, no older slice of the table stays
// live, and no row of its copy is still to come. A key that was deleted and is seen all the
// same is reported here, too.
type c4 struct{ f *facts }

// Label implements Checker.
func (*c4) Label() string { return "C4" }

// Check implements Checker.
func (c *c4) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(LakeCommitted)
		hf := c.f.hosts[x.Host]
		if !ok || x.Head == nil || hf == nil || hf.now == nil {
			continue
		}
		if t := hf.now.table(x.Table); t != nil && t.table.Generation == x.Commit.Generation {
			if err := c.commit(x, t); err != nil {
				return fmt.Errorf("snapshot %d of table %d: %w", x.Head.ID, x.Table, err)
			}
		}
	}
	return c.f.of(c.Label())
}

func (c *c4) commit(x LakeCommitted, t *tableFacts) error {
	in := func(ref segment.SliceRef) bool { return slices.Contains(x.Commit.Slices, ref) }
	at := slices.IndexFunc(t.live, func(s catalog.Slice) bool { return s.Counts.Deletes > 0 && in(s.Ref) })
	if at < 0 {
		return nil
	}
	// The last slice with deletes bounds what must not stay behind.
	for i := len(t.live) - 1; i > at; i-- {
		if t.live[i].Counts.Deletes > 0 && in(t.live[i].Ref) {
			at = i
			break
		}
	}
	for i := range t.live {
		s := &t.live[i]
		if in(s.Ref) || s.Rows == 0 {
			continue
		}
		if s.Ref.Less(t.live[at].Ref) || s.Backfill {
			return fmt.Errorf("slice %s with deletes is in, the older changes of slice %s are live", t.live[at].Ref, s.Ref)
		}
	}
	if t.table.State == catalog.TableBackfill || t.table.State == catalog.TablePending {
		return fmt.Errorf("slice %s with deletes is in while the table is being copied", t.live[at].Ref)
	}
	return nil
}
