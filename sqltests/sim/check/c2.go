package check

import (
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
)

// c2 checks "C2 `acked` is terminal": a compaction that a catalog showed as acked is not
// planned again in it, and makes no second snapshot.
type c2 struct {
	f     *facts
	acked map[string]map[string]bool // by host, by id
}

func newC2(f *facts) *c2 { return &c2{f, map[string]map[string]bool{}} }

// Label implements Checker.
func (*c2) Label() string { return "C2" }

// Check implements Checker.
func (c *c2) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case Crashed:
			delete(c.acked, x.Host) // an ack that was not synced is made again
		case LakeCommitted:
			if x.Head != nil && c.acked[x.Host][x.Commit.CompactionID] && !c.made(x) {
				return fmt.Errorf("compaction %s of table %d was acked, and made snapshot %d", x.Commit.CompactionID, x.Table,
					x.Head.ID)
			}
		}
	}
	for _, h := range v.Hosts {
		hf := c.f.hosts[h.Name]
		if !hf.looked || h.Catalog == nil {
			continue
		}
		if err := c.look(h, hf); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return nil
}

// made says whether the event tells of the snapshot that the compaction made at first.
func (c *c2) made(x LakeCommitted) bool {
	for _, k := range c.f.lakes[x.Table].commits {
		if k.CompactionID == x.Commit.CompactionID {
			return k.head.ID == x.Head.ID
		}
	}
	return false
}

func (c *c2) look(h *Host, hf *hostFacts) error {
	var changed []change.TableID
	for id, t := range hf.now.tables {
		if hf.before == nil || hf.before.tables[id] == nil || hf.before.tables[id].lake.Snapshot != t.lake.Snapshot {
			changed = append(changed, id)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	acked := c.acked[h.Name]
	if acked == nil {
		acked = map[string]bool{}
		c.acked[h.Name] = acked
	}
	snap := h.Catalog.Snapshot()
	defer snap.Close()
	for _, id := range changed {
		all, err := snap.Compactions(id)
		if err != nil {
			return err
		}
		for _, k := range all {
			if k.State != catalog.CompactionAcked && acked[k.ID] {
				return fmt.Errorf("compaction %s of table %d was acked and is %s", k.ID, id, k.State)
			}
			acked[k.ID] = acked[k.ID] || k.State == catalog.CompactionAcked
		}
	}
	return nil
}
