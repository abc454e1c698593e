package check

import (
	"fmt"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/protocol"
)

// c1 checks "C1 A compaction id is a function of its slice set".
type c1 struct {
	sets map[string]compactionSet // by id
	ids  map[compactionSet]string
}

// compactionSet is what an id is a function of.
type compactionSet struct {
	table      change.TableID
	generation uint32
	slices     string
}

func newC1() *c1 { return &c1{sets: map[string]compactionSet{}, ids: map[compactionSet]string{}} }

// Label implements Checker.
func (*c1) Label() string { return "C1" }

// Check implements Checker.
func (c *c1) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(LakeCommitted)
		if !ok {
			continue
		}
		id := x.Commit.CompactionID
		set := compactionSet{x.Table, x.Commit.Generation, lake.FormatSlices(x.Commit.Slices)}
		if other, ok := c.sets[id]; ok && other != set {
			return fmt.Errorf("compaction %s is of slices %s of table %d, and was of %s of table %d", id, set.slices, set.table,
				other.slices, other.table)
		}
		if other, ok := c.ids[set]; ok && other != id {
			return fmt.Errorf("slices %s of table %d are compaction %s, and were %s", set.slices, set.table, id, other)
		}
		if want := protocol.CompactionID(x.Table, x.Commit.Generation, x.Commit.Slices); id != want {
			return fmt.Errorf("slices %s of table %d are compaction %s, which should be %s", set.slices, set.table, id, want)
		}
		c.sets[id], c.ids[set] = set, id
	}
	return nil
}
