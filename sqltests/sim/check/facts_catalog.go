package check

import (
	"cmp"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// catalogFacts is a catalog at a moment.
type catalogFacts struct {
	tables    []*tableFacts   // by id
	pipelines []pipelineFacts // by id
}

type pipelineFacts struct {
	id       change.PipelineID
	offset   catalog.Offset
	segments []catalog.Segment // by seq
}

// tableFacts is a table in a catalog. While nothing of it changes, it is the same value from
// look to look.
type tableFacts struct {
	table   *catalog.Table
	lake    catalog.LakeState
	live    []catalog.Slice // in log order
	planned []*catalog.Compaction
	// old is how many of live the look before saw already.
	old int
	// right is the version of the lake under which N1 found the table to be right.
	right int
}

// fresh are the live slices that the look before did not see.
func (t *tableFacts) fresh() []catalog.Slice { return t.live[t.old:] }

// isLive says whether a slice is live.
func (t *tableFacts) isLive(ref segment.SliceRef) bool {
	_, ok := slices.BinarySearchFunc(t.live, ref, func(s catalog.Slice, ref segment.SliceRef) int {
		switch {
		case s.Ref.Less(ref):
			return -1
		case s.Ref == ref:
			return 0
		}
		return 1
	})
	return ok
}

// table finds a table; nil: there is none.
func (c *catalogFacts) table(id change.TableID) *tableFacts {
	for _, t := range c.tables {
		if t.table.ID == id {
			return t
		}
	}
	return nil
}

func (c *catalogFacts) pipeline(id change.PipelineID) *pipelineFacts {
	for i := range c.pipelines {
		if c.pipelines[i].id == id {
			return &c.pipelines[i]
		}
	}
	return nil
}

// offset is a pipeline's; zero if there is none.
func (c *catalogFacts) offset(id change.PipelineID) catalog.Offset {
	if p := c.pipeline(id); p != nil {
		return p.offset
	}
	return catalog.Offset{}
}

// hasSegment says whether the catalog knows a segment.
func (c *catalogFacts) hasSegment(k segmentKey) bool {
	p := c.pipeline(k.pipeline)
	return p != nil && slices.ContainsFunc(p.segments, func(s catalog.Segment) bool { return s.Seq == k.seq })
}

// eachSegment yields what the catalog knows of segments.
func (c *catalogFacts) eachSegment(yield func(segmentKey) bool) {
	for i := range c.pipelines {
		for _, s := range c.pipelines[i].segments {
			if !yield(segmentKey{c.pipelines[i].id, s.Seq}) {
				return
			}
		}
	}
}

// readCatalog reads a catalog. What is as it was before is before's; nil: nothing is known.
func readCatalog(c *catalog.Catalog, before *catalogFacts) (*catalogFacts, error) {
	snap := c.Snapshot()
	defer snap.Close()
	all := snap.EveryTable()
	now := &catalogFacts{tables: make([]*tableFacts, 0, len(all))}
	for _, t := range all {
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return nil, err
		}
		fact := &tableFacts{table: t, lake: snap.LakeState(t.ID), live: live, planned: snap.PlannedCompactions(t.ID)}
		if before != nil {
			fact = fact.since(before.table(t.ID))
		}
		now.tables = append(now.tables, fact)
	}
	slices.SortFunc(now.tables, func(a, b *tableFacts) int { return cmp.Compare(a.table.ID, b.table.ID) })
	for _, p := range snap.Pipelines() {
		at, err := snap.Offset(p.ID)
		if err != nil {
			return nil, err
		}
		segments, err := snap.Segments(p.ID)
		if err != nil {
			return nil, err
		}
		now.pipelines = append(now.pipelines, pipelineFacts{p.ID, at, segments})
	}
	slices.SortFunc(now.pipelines, func(a, b pipelineFacts) int { return cmp.Compare(a.id, b.id) })
	return now, nil
}

// since is t, with what it shares with the look before, or that when nothing has changed.
func (t *tableFacts) since(before *tableFacts) *tableFacts {
	if before == nil || before.table.Generation != t.table.Generation {
		return t
	}
	// The catalog only appends to a list of live slices, or begins another one.
	if n := len(before.live); n > 0 && len(t.live) >= n && &t.live[0] == &before.live[0] {
		t.old = n
	}
	same := t.table == before.table && t.lake == before.lake && t.old == len(before.live) && len(t.live) == len(before.live) &&
		slices.Equal(t.planned, before.planned)
	if !same {
		return t
	}
	before.old = len(before.live)
	return before
}
