package check

import "fmt"

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
		if !hf.looked {
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
	acked := c.acked[h.Name]
	if acked == nil {
		acked = map[string]bool{}
		c.acked[h.Name] = acked
	}
	for _, t := range hf.now.tables {
		for _, k := range t.planned {
			if acked[k.ID] {
				return fmt.Errorf("compaction %s of table %d was acked and is %s", k.ID, t.table.ID, k.State)
			}
		}
		if hf.before != nil {
			if b := hf.before.table(t.table.ID); b != nil && b.lake.Snapshot == t.lake.Snapshot {
				continue
			}
		}
		for _, k := range c.shown(t) {
			acked[k.CompactionID] = true
		}
	}
	return nil
}

// shown are the commits up to the snapshot that a catalog shows: those are acked.
func (c *c2) shown(t *tableFacts) []lakeCommit {
	l := c.f.lakes[t.table.ID]
	if l == nil || t.lake.Snapshot == 0 {
		return nil
	}
	at, ok := l.at[t.lake.Snapshot]
	if !ok || at < l.now().begin {
		return nil
	}
	return l.commits[l.now().begin : at+1]
}
