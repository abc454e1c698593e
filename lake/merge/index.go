package merge

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/wal/mutant"
)

// Ordinal numbers the slices of one index from 1, in log order.
type Ordinal uint32

// never is the supersededAt of a row without a newer change.
const never = Ordinal(math.MaxUint32)

// Pin selects the slices s with Lo < s ≤ Hi.
type Pin struct{ Lo, Hi Ordinal }

// Index is the collapse of a table's log, extended slice by slice: by key, or counted
// (NewCounted). Rows are numbered from 0 over all slices ever appended. It keeps no
// record. Not safe for concurrent use, but any number of readers may use it while nobody
// appends or evicts.
type Index struct {
	// base is the first slice still held, baseRow its first row.
	base    Ordinal
	baseRow uint64
	slices  []sliceState
	// supersededAt has one entry a row from baseRow on. In a counted index it is the slice
	// of the row's counterpart, before or after its own.
	supersededAt []Ordinal
	// below has one entry a row from baseRow on in a counted index, else none: see counted.go.
	below   []uint64
	counted bool
	newest  newest
	// stale is how many evicted rows newest may still name.
	stale     int
	intKey    bool
	truncates []Ordinal
	scratch   []byte
}

type sliceState struct {
	firstRow uint64
	// olderThan is the lowest slice that holds a newer change than some row of this
	// slice, never if each row was newest when it came.
	olderThan Ordinal
	// superseded counts dead rows of the slice, at any watermark.
	superseded int
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{base: 1} }

// Append adds the next slice of the log. key holds the key's column indexes in rec;
// with an empty key no row is ever superseded.
// A truncate slice hides every slice before it from pins that hold it. rec may be nil
// for a slice without rows. After an error the index is as it was.
func (x *Index) Append(rec arrow.RecordBatch, key []int, truncate bool) (Ordinal, error) {
	var b *batch
	if rec != nil && rec.NumRows() > 0 {
		var err error
		if b, err = readBatch(rec, key); err != nil {
			return 0, err
		}
		if x.newest.count() > 0 && x.intKey != (b.ints != nil) {
			return 0, fmt.Errorf("key of another form: %w", ErrKeyType)
		}
		x.intKey = b.ints != nil
	}
	return x.append(b, truncate)
}

func (x *Index) append(b *batch, truncate bool) (Ordinal, error) {
	s := x.base + Ordinal(len(x.slices))
	if s == never {
		return 0, fmt.Errorf("slice %d: index is full", s)
	}
	if truncate {
		x.newest = newest{}
		x.stale = 0
		x.truncates = append(x.truncates, s)
	}
	x.slices = append(x.slices, sliceState{firstRow: x.Rows(), olderThan: never})
	switch {
	case b == nil:
	case x.counted:
		x.count(s, b)
	default:
		x.apply(s, b)
	}
	return s, nil
}

// Rows is the number of rows ever appended: the row number of the next one.
func (x *Index) Rows() uint64 { return x.baseRow + uint64(len(x.supersededAt)) }

// Range returns the row numbers [from, to) of slice s, which must be held.
func (x *Index) Range(s Ordinal) (from, to uint64) {
	i := int(s - x.base)
	if i+1 < len(x.slices) {
		return x.slices[i].firstRow, x.slices[i+1].firstRow
	}
	return x.slices[i].firstRow, x.Rows()
}

// Held returns the slices held, as a pin.
func (x *Index) Held() Pin { return Pin{Lo: x.base - 1, Hi: x.base + Ordinal(len(x.slices)) - 1} }

// Effective cuts p at the last truncate slice in it; truncated says that there was
// one, so that the lake side of the pin is empty too.
func (x *Index) Effective(p Pin) (cut Pin, truncated bool) {
	for _, t := range slices.Backward(x.truncates) {
		if p.Lo < t && t <= p.Hi {
			return Pin{Lo: t - 1, Hi: p.Hi}, true
		}
	}
	return p, false
}

// Exact reports whether Winners is right for p: its slices are held, and no row of
// it is older than a change in a slice that is no longer in the pin.
func (x *Index) Exact(p Pin) bool {
	held := x.Held()
	if p.Lo < held.Lo || p.Hi > held.Hi || p.Lo > p.Hi {
		return false
	}
	for s := p.Lo + 1; s <= p.Hi; s++ {
		if x.slices[s-x.base].olderThan <= p.Lo {
			return false
		}
	}
	return true
}

// Winners appends to dst those rows of [from, to) that win in p, as offsets from
// from; deletes win too. p must be Exact and Effective. all is true, and dst as it
// was, when every row of the range wins.
func (x *Index) Winners(dst []int32, p Pin, from, to uint64) (winners []int32, all bool) {
	if from >= to || p.Lo == p.Hi {
		return dst, from >= to
	}
	first, _ := x.Range(p.Lo + 1)
	_, end := x.Range(p.Hi)
	lo, hi := max(first, from), min(end, to)
	if lo >= hi {
		return dst, false
	}
	if lo == from && hi == to && !x.anySuperseded(p, from, to) {
		return dst, true
	}
	offset, width := int32(lo-from), p.Hi-p.Lo
	for i, at := range x.supersededAt[lo-x.baseRow : hi-x.baseRow] {
		if at-p.Lo-1 >= width { // not in the pin: at > Hi, or at ≤ Lo
			dst = append(dst, offset+int32(i))
		}
	}
	return dst, false
}

// Superseded counts the rows of the slices that lie in [from, to) and that lose at the
// newest watermark. It only grows, so while it stays the same the winners of a pin
// that ends there do too; in a counted index those of a pin with the same Lo.
func (x *Index) Superseded(from, to uint64) int {
	n := 0
	for s := x.sliceOf(from); s <= x.Held().Hi && x.slices[s-x.base].firstRow < to; s++ {
		n += x.slices[s-x.base].superseded
	}
	return n
}

// Evict forgets all slices below before: no later pin may reach them. The memory of
// keys is given back when half of them are gone.
func (x *Index) Evict(before Ordinal) {
	held := x.Held()
	before = min(before, held.Hi+1)
	if before <= x.base {
		return
	}
	row := x.Rows()
	if before <= held.Hi {
		row, _ = x.Range(before)
	}
	gone := int(row - x.baseRow)
	x.slices = slices.Clone(x.slices[before-x.base:])
	x.supersededAt = slices.Clone(x.supersededAt[gone:])
	if x.counted {
		x.below = slices.Clone(x.below[gone:])
	}
	x.base, x.baseRow = before, row
	x.truncates = slices.DeleteFunc(x.truncates, func(t Ordinal) bool { return t < before })
	x.stale += gone
	if x.stale*2 >= x.newest.count() {
		x.newest.sweep(x.baseRow)
		x.stale = 0
	}
}

// Bytes is the memory held.
func (x *Index) Bytes() int64 {
	return int64(cap(x.slices))*24 + int64(cap(x.supersededAt))*4 + int64(cap(x.below))*8 + x.newest.size()
}

func (x *Index) apply(s Ordinal, b *batch) {
	first := x.Rows()
	x.supersededAt = slices.Grow(x.supersededAt, b.rows)
	for i := range b.rows {
		x.supersededAt = append(x.supersededAt, never)
		var e *entry
		switch {
		case b.ints != nil:
			e = x.newest.ofInt(b.ints(i))
		case b.key == nil:
			continue
		default:
			x.scratch = b.key(x.scratch[:0], i)
			e = x.newest.ofBytes(x.scratch)
		}
		x.place(s, first, e, b, i)
	}
}

// place lets row i of the slice compete with the newest change of its key.
func (x *Index) place(s Ordinal, first uint64, e *entry, b *batch, i int) {
	row := first + uint64(i)
	if e.row == 0 || e.row-1 < x.baseRow {
		*e = entry{token: b.token[i], row: row + 1}
		return
	}
	old := e.row - 1
	same := old >= first
	newer := b.token[i] > e.token || mutant.On(mutant.IgnoreToken)
	if b.token[i] == e.token {
		newer = !same || b.ordinal[i] >= b.ordinal[old-first]
	}
	if newer {
		x.supersede(old, s)
		*e = entry{token: b.token[i], row: row + 1}
		return
	}
	x.supersede(row, s)
	if !same {
		mine := &x.slices[s-x.base]
		mine.olderThan = min(mine.olderThan, x.sliceOf(old))
	}
}

func (x *Index) supersede(row uint64, at Ordinal) {
	x.supersededAt[row-x.baseRow] = at
	x.slices[x.sliceOf(row)-x.base].superseded++
}

// sliceOf finds the slice of a row. The last slices are tried first: hot keys are
// superseded soon.
func (x *Index) sliceOf(row uint64) Ordinal {
	n := len(x.slices)
	if row >= x.slices[n-1].firstRow {
		return x.base + Ordinal(n-1)
	}
	at, found := slices.BinarySearchFunc(x.slices, row, func(s sliceState, row uint64) int {
		switch {
		case s.firstRow < row:
			return -1
		case s.firstRow > row:
			return 1
		}
		return 0
	})
	if !found {
		return x.base + Ordinal(at-1)
	}
	for at+1 < n && x.slices[at+1].firstRow == row { // slices without rows
		at++
	}
	return x.base + Ordinal(at)
}

// anySuperseded reports whether some row of [from, to) may be dead at any watermark.
func (x *Index) anySuperseded(p Pin, from, to uint64) bool {
	for s := max(p.Lo+1, x.sliceOf(from)); s <= p.Hi; s++ {
		if x.slices[s-x.base].firstRow >= to {
			break
		}
		if x.slices[s-x.base].superseded > 0 {
			return true
		}
	}
	return false
}
