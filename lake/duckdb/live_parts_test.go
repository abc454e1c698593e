package duckdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/wal/change"
)

// partsHistory is a log with transactions in parts, and copied rows between the parts.
// visible[i] are the slices that a pin sees after the i-th of them was published.
func partsHistory(r *rand.Rand, key []string, count int) (h *history, visible [][]int) {
	h = &history{key: key, log: &memorySlices{recs: map[uint64]arrow.RecordBatch{}}}
	var seen, pending []int
	token := int64(100)
	for i := range count {
		s := LiveSlice{Seq: uint64(i + 1), Start: 64, SchemaVersion: 2}
		mine := token
		switch kind := r.IntN(4); {
		case kind == 0: // a chunk of the copy
			mine, s.Backfill = 1, true
			seen = append(seen, i)
		case kind < 3 && i+1 < count: // a part
			pending = append(pending, i)
		default: // the commit, of parts or not
			seen = append(append(seen, pending...), i)
			pending = nil
			token++
		}
		var rows []row
		for range r.IntN(9) {
			c := row{op: change.Insert, token: mine, id: int64(r.IntN(12)), part: []string{"a", "b"}[r.IntN(2)]}
			if mine > 1 {
				c.op = []change.Op{change.Insert, change.Update, change.Delete}[r.IntN(3)]
			}
			c.name, c.note = fmt.Sprint("name ", i, len(rows)), fmt.Sprint("note ", i)
			rows = append(rows, c)
		}
		if s.Rows = int64(len(rows)); s.Rows > 0 {
			h.log.recs[s.Seq] = liveRecord(2, rows)
		}
		h.live, h.slices = append(h.live, s), append(h.slices, rows)
		sort.Ints(seen)
		visible = append(visible, slices.Clone(seen))
	}
	return h, visible
}

// subset is the history of some slices.
func (h *history) subset(at []int) *history {
	out := &history{key: h.key, log: h.log}
	for _, i := range at {
		out.live, out.slices = append(out.live, h.live[i]), append(out.slices, h.slices[i])
	}
	return out
}

// TestPartsBecomeVisible: a pin that sees the parts of a transaction agrees with a fold
// over what it sees, though an earlier pin has seen later slices; so does the earlier
// pin, asked again. And what was read once is read again only when slices that lie
// before others became visible.
func TestPartsBecomeVisible(t *testing.T) {
	for seed := range uint64(6) {
		for _, key := range [][]string{{"id"}, {"id", "part"}, nil} {
			t.Run(fmt.Sprint(key, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 3))
				h, visible := partsHistory(r, key, 14)
				p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 2}, h.log)
				for i := range visible {
					h.checkSubset(t, p, visible[i])
					h.checkSubset(t, p, visible[r.IntN(i+1)])
				}
			})
		}
	}
}

func (h *history) checkSubset(t *testing.T, p *Pool, at []int) {
	t.Helper()
	if len(at) == 0 {
		return
	}
	sub := h.subset(at)
	rel := Relation{Name: "T", Key: h.key, Columns: []Column{
		{Name: "id", FieldID: 1, EngineType: "BIGINT"},
		{Name: "part", FieldID: 2, EngineType: "VARCHAR"},
		{Name: "name", FieldID: 3, EngineType: "VARCHAR"},
		{Name: "note", FieldID: 4, EngineType: "VARCHAR"},
	}, Live: &Live{Dir: "log", Table: 1, Slices: sub.live, Fields: liveFields}}
	got := mustRun(t, p, &Plan{
		SQL: `SELECT id::VARCHAR, part, name, note FROM "T"`, Relations: []Relation{rel}, Output: rowsOutput(4),
	})
	sort.Strings(got)
	var want []string
	if len(h.key) == 0 {
		for _, rows := range sub.slices {
			for _, r := range rows {
				if r.op != change.Delete {
					want = append(want, fmt.Sprintf("%d|%s|%s|%s", r.id, r.part, r.name, r.note))
				}
			}
		}
		sort.Strings(want)
	} else {
		want = sub.fold(len(at))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("slices %v\n got %v\nwant %v", at, got, want)
	}
}

// TestPartsReadOnce: after the parts became visible, pins extend what is held again.
func TestPartsReadOnce(t *testing.T) {
	h := &history{key: []string{"id"}, log: &memorySlices{recs: map[uint64]arrow.RecordBatch{}}}
	for i := range 20 {
		rows := []row{{op: change.Insert, token: int64(i), id: int64(i), part: "a"}}
		h.log.recs[uint64(i+1)] = liveRecord(2, rows)
		h.live = append(h.live, LiveSlice{Seq: uint64(i + 1), SchemaVersion: 2, Rows: 1})
		h.slices = append(h.slices, rows)
	}
	p := newTestPool(t, PoolConfig{InProcess: true}, h.log)
	seen := []int{0, 3} // 1 and 2 are parts that 4 completes
	h.checkSubset(t, p, seen)
	for n := 5; n <= 20; n++ {
		seen = seen[:0]
		for i := range n {
			seen = append(seen, i)
		}
		h.checkSubset(t, p, seen)
	}
	if want := 2 + 20; h.log.reads != want {
		t.Errorf("%d slices were read, want %d", h.log.reads, want)
	}
}
