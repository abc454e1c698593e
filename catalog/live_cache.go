package catalog

import (
	"maps"
	"sort"
	"sync"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// liveCache keeps the live slices of tables decoded. Within an epoch of a table (see
// lakeRow) they only grow at the end, so one list serves all snapshots of an epoch: each
// takes the part below its own watermark. Safe for concurrent
// use.
type liveCache struct {
	mu struct {
		sync.Mutex
		lists map[change.TableID]liveList
	}
}

// liveList has the live slices of an epoch that begin before through. Members never
// change; the array may have more members beyond the slice.
type liveList struct {
	epoch   uint64
	through segment.SliceRef
	slices  []Slice
}

func newLiveCache() *liveCache {
	c := &liveCache{}
	c.mu.lists = map[change.TableID]liveList{}
	return c
}

func (c *liveCache) list(table change.TableID) (liveList, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.mu.lists[table]
	return l, ok
}

// extend adds tail to a list that was old, through a new place, unless another was faster;
// then it puts together a list for the caller alone.
func (c *liveCache) extend(table change.TableID, old liveList, tail []Slice, through segment.SliceRef) []Slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, ok := c.mu.lists[table]
	if ok && now.epoch == old.epoch && now.through == old.through {
		old.slices = append(now.slices, tail...)
		old.through = through
		c.mu.lists[table] = old
		return old.prefix(len(old.slices))
	}
	if ok && now.epoch >= old.epoch {
		return append(old.prefix(len(old.slices)), tail...)
	}
	old.slices, old.through = append(old.prefix(len(old.slices)), tail...), through
	c.mu.lists[table] = old
	return old.prefix(len(old.slices))
}

// prune forgets tables that are gone.
func (c *liveCache) prune(tables map[change.TableID]*Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.mu.lists, func(id change.TableID, _ liveList) bool {
		_, ok := tables[id]
		return !ok
	})
}

// prefix is the first n members, to which a reader's append does not write.
func (l liveList) prefix(n int) []Slice { return l.slices[:n:n] }

// below is the part of the list that begins before a place.
func (l liveList) below(at segment.SliceRef) []Slice {
	return l.prefix(sort.Search(len(l.slices), func(i int) bool { return !l.slices[i].Ref.Less(at) }))
}

// LiveSlices are the slices of a table that are not in the lake, of its current
// generation, in log order. The result is shared and must not be changed in place.
func (s *Snapshot) LiveSlices(table change.TableID) ([]Slice, error) {
	tbl, ok := s.facts.tables[table]
	if !ok {
		return nil, nil
	}
	at, err := s.place(tbl.Pipeline)
	if err != nil {
		return nil, err
	}
	row := s.facts.lakes[table]
	l, ok := s.cache.list(table)
	switch {
	case ok && l.epoch > row.epoch:
		return s.reader.LiveSlices(table)
	case !ok || l.epoch < row.epoch:
		l = liveList{epoch: row.epoch}
	case !l.through.Less(at):
		return l.below(at), nil
	}
	from := l.through
	if from.Less(row.LiveFrom) {
		from = row.LiveFrom
	}
	var tail []Slice
	err = s.eachLiveFrom(table, from, func(s *Slice) error {
		tail = append(tail, *s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.cache.extend(table, l, tail, at), nil
}
