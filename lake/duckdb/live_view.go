package duckdb

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// sortedKeysMax is up to how many winners' keys are sorted, so that each file can be
// looked up; beyond it only the least and the greatest key count.
const sortedKeysMax = 200_000

// pinned is the winners of one pin of a table, published to the engine. Immutable;
// counted references, safe for concurrent use.
type pinned struct {
	groups    []pinnedGroup
	rows      int64
	deletes   int64
	truncated bool
	// key is the column of a single integer key, by group.
	key  [][]driver.Part
	keys struct {
		once   sync.Once
		sorted []int64 // nil when there are too many
		ok     bool
		lo, hi int64
		set    *driver.KeySet // nil when there is no memory for it
	}
	keyColumn []int
	refs      atomic.Int64
}

// pinnedGroup is the winners of one record schema.
type pinnedGroup struct {
	source  *driver.Source
	schema  *arrow.Schema
	version uint32
}

// liveView is a pin as one query sees it.
type liveView struct {
	*pinned
	groups []liveGroup
}

// liveGroup has columns[i], the place in the source of the relation's column i, -1
// where the schema version lacks it.
type liveGroup struct {
	source  *driver.Source
	columns []int
}

// view publishes the winners of pin p, which must be exact and effective.
func (l *liveLog) view(r *Relation, p merge.Pin, truncated bool) (*pinned, error) {
	v := &pinned{truncated: truncated}
	v.refs.Store(1)
	var parts []driver.Part
	var last *liveBlock
	flush := func() error {
		if len(parts) == 0 {
			return nil
		}
		err := v.addGroup(r, last, parts)
		parts = nil
		return err
	}
	for i := range l.blocks {
		b := &l.blocks[i]
		won := l.part(b, p)
		if !won.all && len(won.rows) == 0 {
			continue
		}
		if last != nil && (last.version != b.version || !last.Record().Schema().Equal(b.Record().Schema())) {
			if err := flush(); err != nil {
				v.release()
				return nil, err
			}
		}
		last = b
		v.deletes += won.deletes
		parts = append(parts, driver.Part{Block: b.Block, Rows: won.rows, All: won.all})
	}
	if err := flush(); err != nil {
		v.release()
		return nil, err
	}
	return v, nil
}

// part returns the winners of a block in p. Most pins end at the newest slice, and
// most blocks have not changed since the last of them.
func (l *liveLog) part(b *liveBlock, p merge.Pin) blockPart {
	newest := p.Hi == l.index.Held().Hi && p.Lo < p.Hi
	if newest {
		first, _ := l.index.Range(p.Lo + 1)
		newest = first <= b.from && b.from < b.to
	}
	superseded := 0
	if newest {
		superseded = l.index.Superseded(b.from, b.to)
		if b.newest.known && b.superseded == superseded && (b.lo == p.Lo || !l.index.Counted()) {
			return b.newest
		}
	}
	won := blockPart{known: true}
	won.rows, won.all = l.index.Winners(nil, p, b.from, b.to)
	won.deletes = countDeletes(b.Record(), won)
	if newest {
		b.newest, b.superseded, b.lo = won, superseded, p.Lo
	}
	return won
}

func (v *pinned) addGroup(r *Relation, b *liveBlock, parts []driver.Part) error {
	s := b.Record().Schema()
	fields := make([]arrow.Field, s.NumFields())
	for i := range fields {
		fields[i] = arrow.Field{Name: systemColumn(i), Type: s.Field(i).Type, Nullable: true}
	}
	source, err := driver.NewSource(arrow.NewSchema(fields, nil), parts)
	if err != nil {
		return err
	}
	v.groups = append(v.groups, pinnedGroup{source: source, schema: s, version: b.version})
	v.rows += source.Rows()
	if len(r.Key) == 1 {
		columns, err := recordColumns(r, s, b.version)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == r.Key[0] })
		v.key = append(v.key, parts)
		v.keyColumn = append(v.keyColumn, columns[at])
	}
	return nil
}

func (v *pinned) retain() { v.refs.Add(1) }

// release gives a reference back; the queries that name the sources are over by then.
func (v *pinned) release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	for _, g := range v.groups {
		g.source.Close()
	}
	if v.keys.set != nil {
		v.keys.set.Close()
	}
}

// keySet is the set of the winners' keys, nil when they are not single integers.
func (v *pinned) keySet() *driver.KeySet {
	v.keys.once.Do(v.collectKeys)
	return v.keys.set
}

// mayHold reports whether a winner's key may lie in [lo, hi].
func (v *pinned) mayHold(lo, hi int64) bool {
	v.keys.once.Do(v.collectKeys)
	k := &v.keys
	switch {
	case !k.ok:
		return true
	case k.sorted == nil:
		return lo <= k.hi && k.lo <= hi
	}
	at, _ := slices.BinarySearch(k.sorted, lo)
	return at < len(k.sorted) && k.sorted[at] <= hi
}

func (v *pinned) collectKeys() {
	if len(v.key) == 0 || v.rows == 0 {
		return
	}
	all := make([]int64, 0, v.rows)
	for i, parts := range v.key {
		for _, p := range parts {
			column := p.Block.Record().Column(v.keyColumn[i])
			value := integerColumn(column)
			if value == nil || column.NullN() > 0 {
				return
			}
			eachRow(p, func(row int) { all = append(all, value(row)) })
		}
	}
	k := &v.keys
	k.ok, k.lo, k.hi = true, slices.Min(all), slices.Max(all)
	k.set, _ = driver.NewKeySet(all) // without it a join does
	if v.rows <= sortedKeysMax {
		slices.Sort(all)
		k.sorted = all
	}
}

func integerColumn(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Int64:
		return a.Value
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	}
	return nil
}

func countDeletes(rec arrow.RecordBatch, won blockPart) int64 {
	op, ok := rec.Column(0).(*array.Uint8)
	if !ok {
		return 0
	}
	values := op.Uint8Values()
	var n int64
	if won.all {
		for _, v := range values {
			if v == uint8(change.Delete) {
				n++
			}
		}
		return n
	}
	for _, r := range won.rows {
		if values[r] == uint8(change.Delete) {
			n++
		}
	}
	return n
}

func eachRow(p driver.Part, f func(row int)) {
	if !p.All {
		for _, r := range p.Rows {
			f(int(r))
		}
		return
	}
	for i := range int(p.Block.Record().NumRows()) {
		f(i)
	}
}
