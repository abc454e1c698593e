package duckdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/skipprd/skipprd/lake/merge"
)

// Bounds of what is kept per table: views of the pins seen last, and slices as long
// as one of the recent pins reached back to them.
const (
	viewsMax    = 4
	recentPins  = 32
	oneShotsMax = 2
)

// liveCache has the live slices of tables, read and collapsed once. Safe for
// concurrent use.
type liveCache struct {
	reader   SliceReader
	bytesMax int64
	mu       struct {
		sync.Mutex
		tables map[string]*liveTable
		clock  uint64
	}
}

// liveTable is one table in the cache. Everything but used and bytes belongs to the
// holder of turn, a channel of one token instead of a mutex because slices are read
// while it is held.
type liveTable struct {
	turn  chan struct{}
	log   *liveLog
	views []cachedView
	// oneShots are pins that the log cannot express.
	oneShots []cachedView
	// recent are the lowest slices of the last pins.
	recent []merge.Ordinal
	gone   bool

	used  uint64 // under liveCache.mu
	bytes int64  // under liveCache.mu
}

type cachedView struct {
	pin    merge.Pin
	digest [sha256.Size]byte
	view   *pinned
}

func newLiveCache(reader SliceReader, bytesMax int64) *liveCache {
	c := &liveCache{reader: reader, bytesMax: bytesMax}
	c.mu.tables = make(map[string]*liveTable)
	return c
}

// view returns the winners of the relation's live slices; the caller releases it when
// its stream is closed.
func (c *liveCache) view(ctx context.Context, r *Relation) (*liveView, error) {
	for i := 1; i < len(r.Live.Slices); i++ {
		if compareSlices(r.Live.Slices[i-1], r.Live.Slices[i]) >= 0 {
			return nil, fmt.Errorf("live slices of %q out of order: %w", r.Name, ErrPlan)
		}
	}
	name, err := tableName(r)
	if err != nil {
		return nil, err
	}
	for {
		t := c.table(name, r.WholeRow)
		select {
		case t.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if t.gone { // dropped while we waited
			<-t.turn
			continue
		}
		v, err := t.pin(ctx, c.reader, r)
		bytes := t.log.bytes()
		<-t.turn
		c.account(name, t, bytes)
		if err != nil {
			return nil, err
		}
		return liveViewOf(r, v)
	}
}

func liveViewOf(r *Relation, v *pinned) (*liveView, error) {
	out := &liveView{pinned: v}
	for _, g := range v.groups {
		columns, err := recordColumns(r, g.schema, g.version)
		if err != nil {
			v.release()
			return nil, err
		}
		out.groups = append(out.groups, liveGroup{source: g.source, columns: columns})
	}
	return out, nil
}

// tableName names a table and what it is collapsed by.
func tableName(r *Relation) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%d\x00%d", r.Live.Dir, r.Live.Pipeline, r.Live.Table)
	for _, c := range r.Columns {
		if r.WholeRow {
			fmt.Fprintf(&b, "\x00%d %q %x", c.FieldID, c.EngineType, c.InitialContent)
		}
	}
	for _, k := range r.Key {
		found := false
		for _, c := range r.Columns {
			if c.Name == k {
				found = true
				fmt.Fprintf(&b, "\x00%d %s", c.FieldID, k)
			}
		}
		if !found {
			return "", fmt.Errorf("relation %q: key column %q is not among its columns: %w", r.Name, k, ErrPlan)
		}
	}
	return b.String(), nil
}

func (c *liveCache) table(name string, counted bool) *liveTable {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.mu.tables[name]
	if t == nil {
		t = &liveTable{turn: make(chan struct{}, 1), log: newLiveLog(counted)}
		c.mu.tables[name] = t
	}
	c.mu.clock++
	t.used = c.mu.clock
	return t
}

// account notes a table's size and drops tables that were not used for the longest
// time while the cache is too large. Tables in use are passed over.
func (c *liveCache) account(name string, t *liveTable, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.tables[name] == t {
		t.bytes = bytes
	}
	var total int64
	for _, other := range c.mu.tables {
		total += other.bytes
	}
	byAge := slices.SortedFunc(maps.Keys(c.mu.tables), func(a, b string) int {
		return cmp.Compare(c.mu.tables[a].used, c.mu.tables[b].used)
	})
	for _, n := range byAge {
		if total <= c.bytesMax {
			return
		}
		victim := c.mu.tables[n]
		if victim == t {
			continue
		}
		select {
		case victim.turn <- struct{}{}:
			victim.drop()
			delete(c.mu.tables, n)
			total -= victim.bytes
			<-victim.turn
		default:
		}
	}
}

// close drops everything; views in use stay valid until released.
func (c *liveCache) close() {
	c.mu.Lock()
	tables := c.mu.tables
	c.mu.tables = make(map[string]*liveTable)
	c.mu.Unlock()
	for _, t := range tables {
		t.turn <- struct{}{}
		t.drop()
		<-t.turn
	}
}

func (t *liveTable) drop() {
	t.gone = true
	t.reset()
}

// reset forgets everything.
func (t *liveTable) reset() {
	for _, v := range append(t.views, t.oneShots...) {
		v.view.release()
	}
	t.views, t.oneShots, t.recent = nil, nil, nil
	t.log.close()
	t.log = newLiveLog(t.log.index.Counted())
}

// pin returns a retained view of the relation's slices.
func (t *liveTable) pin(ctx context.Context, reader SliceReader, r *Relation) (*pinned, error) {
	want := r.Live.Slices
	if slices.ContainsFunc(want, func(s LiveSlice) bool { return s.Before != 0 }) {
		return t.oneShot(ctx, reader, r) // the log holds whole slices
	}
	lo, known, ok := t.log.match(want)
	if !ok && t.log.outgrown(want) {
		t.reset()
		lo, known, ok = t.log.match(want)
	}
	if !ok {
		return t.oneShot(ctx, reader, r)
	}
	if known < len(want) {
		if err := t.log.extend(ctx, reader, r, want[known:]); err != nil {
			if t.log.broken {
				t.reset()
			}
			return nil, err
		}
	}
	p, truncated := t.log.index.Effective(merge.Pin{Lo: lo, Hi: lo + merge.Ordinal(len(want))})
	if !t.log.index.Exact(p) {
		return t.oneShot(ctx, reader, r)
	}
	for _, v := range t.views {
		if v.pin == p && v.view.truncated == truncated {
			v.view.retain()
			return v.view, nil
		}
	}
	v, err := t.log.view(r, p, truncated)
	if err != nil {
		return nil, err
	}
	t.views = remember(t.views, cachedView{pin: p, view: v}, viewsMax)
	t.forgetOld(lo + 1)
	return v, nil
}

// oneShot collapses the pin's slices on their own: for a pin that no longer has a
// slice whose change another of its changes is older than, and for a pin older than
// the log.
func (t *liveTable) oneShot(ctx context.Context, reader SliceReader, r *Relation) (*pinned, error) {
	digest := digestOf(r.Live.Slices)
	for _, v := range t.oneShots {
		if v.digest == digest {
			v.view.retain()
			return v.view, nil
		}
	}
	want := r.Live.Slices
	truncated := false
	for i := range r.Live.Slices {
		if r.Live.Slices[i].Truncate {
			want, truncated = r.Live.Slices[i:], true
		}
	}
	log := newLiveLog(r.WholeRow)
	defer log.close()
	if err := log.extend(ctx, reader, r, want); err != nil {
		return nil, err
	}
	v, err := log.view(r, log.index.Held(), truncated)
	if err != nil {
		return nil, err
	}
	t.oneShots = remember(t.oneShots, cachedView{digest: digest, view: v}, oneShotsMax)
	return v, nil
}

// remember puts a view in front, with a reference for the caller besides the
// cache's own, and drops the last beyond limit.
func remember(views []cachedView, v cachedView, limit int) []cachedView {
	v.view.retain()
	views = append([]cachedView{v}, views...)
	for len(views) > limit {
		views[len(views)-1].view.release()
		views = views[:len(views)-1]
	}
	return views
}

// forgetOld evicts what none of the recent pins reached back to.
func (t *liveTable) forgetOld(lowest merge.Ordinal) {
	t.recent = append(t.recent, lowest)
	if len(t.recent) <= recentPins {
		return
	}
	t.recent = t.recent[1:]
	keep := lowest
	for _, o := range t.recent {
		keep = min(keep, o)
	}
	t.log.evict(keep)
}

func digestOf(want []LiveSlice) [sha256.Size]byte {
	buf := make([]byte, 0, 20*len(want))
	for _, s := range want {
		buf = binary.LittleEndian.AppendUint64(buf, s.Seq)
		buf = binary.LittleEndian.AppendUint32(buf, s.Start)
		buf = binary.LittleEndian.AppendUint64(buf, uint64(s.Before))
	}
	return sha256.Sum256(buf)
}
