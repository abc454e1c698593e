package check

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
)

// c3 checks "C3 Files and slice refs enter the lake in one commit": the snapshot that has
// a compaction's files names its slices and has nothing else beyond its base, and no slice
// enters twice.
type c3 struct {
	f     *facts
	heads map[change.TableID]*lake.Snapshot
}

func newC3(f *facts) *c3 { return &c3{f, map[change.TableID]*lake.Snapshot{}} }

// Label implements Checker.
func (*c3) Label() string { return "C3" }

// Check implements Checker.
func (c *c3) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(LakeCommitted)
		if !ok || x.Head == nil {
			continue
		}
		if err := c.commit(x); err != nil {
			return fmt.Errorf("snapshot %d of table %d: %w", x.Head.ID, x.Table, err)
		}
		c.heads[x.Table] = x.Head
	}
	return nil
}

func (c *c3) commit(x LakeCommitted) error {
	if names := x.Head.Properties[lake.KeySlices]; names != lake.FormatSlices(x.Commit.Slices) || names == "" {
		return fmt.Errorf("names slices %q, has those of %q", names, lake.FormatSlices(x.Commit.Slices))
	}
	for _, earlier := range c.f.lakes[x.Table].life() {
		if earlier.head.ID == x.Head.ID {
			break
		}
		if earlier.Generation != x.Commit.Generation {
			continue
		}
		for _, ref := range x.Commit.Slices {
			if slices.Contains(earlier.Slices, ref) {
				return fmt.Errorf("slice %s came with snapshot %d already", ref, earlier.head.ID)
			}
		}
	}
	if base := c.heads[x.Table]; x.Commit.Base != 0 && !x.Commit.ReplaceAll && (base == nil || base.ID != x.Commit.Base) {
		return nil // onto what maintenance made
	}
	want := map[string]bool{}
	if base := c.heads[x.Table]; base != nil && base.ID == x.Commit.Base && !x.Commit.ReplaceAll {
		for _, f := range base.Files {
			want[f.Path] = true
		}
	}
	for _, f := range x.Commit.AddFiles {
		want[f.Path] = true
	}
	for _, f := range x.Head.Files {
		if !want[f.Path] {
			return fmt.Errorf("has file %s, which did not come with it", f.Path)
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		return fmt.Errorf("lacks %d files", len(want))
	}
	return nil
}
