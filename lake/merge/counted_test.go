package merge

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
)

// counted is a change of a table without a key, of one integer column and one text.
type counted struct {
	op   change.Op
	n    int64
	text string // "" is null
}

func (c counted) content() string { return fmt.Sprint(c.n, c.text) }

func countedRecord(t *testing.T, rows []counted) arrow.RecordBatch {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{
		{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i, r := range rows {
		b.Field(0).(*array.Uint8Builder).Append(uint8(r.op))
		b.Field(1).(*array.Int64Builder).Append(1)
		b.Field(2).(*array.Int32Builder).Append(int32(i))
		b.Field(3).(*array.Int64Builder).Append(r.n)
		if r.text == "" {
			b.Field(4).AppendNull()
			continue
		}
		b.Field(4).(*array.StringBuilder).Append(r.text)
	}
	return b.NewRecordBatch()
}

var countedColumns = []Column{{Index: 3}, {Index: 4}}

// countWinners adds up what wins in a pin: inserts less deletes, by content.
func countWinners(x *Index, p Pin, log [][]counted, into, deletes map[string]int) {
	for s := p.Lo + 1; s <= p.Hi; s++ {
		from, to := x.Range(s)
		rows, all := x.Winners(nil, p, from, to)
		if all {
			rows = sequence(int(to - from))
		}
		for _, r := range rows {
			c := log[s-1][r]
			if c.op == change.Delete {
				into[c.content()]--
				deletes[c.content()]++
			} else {
				into[c.content()]++
			}
		}
	}
}

// Whatever went to the lake and whatever a pin sees: the copies in the lake and the
// winners add up to what the source has, and the lake has a copy for each winning delete.
func TestCountedAddsUp(t *testing.T) {
	texts := []string{"", "a", "b", "a text that is too long to be kept as it is, so its hash is"}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		x := NewCounted()
		var log [][]counted
		have := map[string]int{}
		for range 12 {
			rows := make([]counted, rng.IntN(6))
			for i := range rows {
				r := counted{op: change.Insert, n: rng.Int64N(2), text: texts[rng.IntN(len(texts))]}
				if have[r.content()] > 0 && rng.IntN(2) == 0 {
					r.op = change.Delete
					have[r.content()]--
				} else {
					have[r.content()]++
				}
				rows[i] = r
			}
			log = append(log, rows)
			rec := countedRecord(t, rows)
			if _, err := x.AppendRows(rec, countedColumns, SliceKind{}); err != nil {
				t.Fatal(err)
			}
			rec.Release()
			checkSums(t, seed, x, log)
			if rng.IntN(4) == 0 {
				x.Evict(x.Held().Lo + 1 + Ordinal(rng.IntN(3)))
			}
		}
	}
}

func checkSums(t *testing.T, seed uint64, x *Index, log [][]counted) {
	t.Helper()
	for lo := x.Held().Lo; lo <= x.Held().Hi; lo++ {
		for hi := lo; hi <= x.Held().Hi; hi++ {
			if !x.Exact(Pin{lo, hi}) {
				t.Fatalf("seed %d: pin (%d, %d] is not exact", seed, lo, hi)
			}
			want, got := map[string]int{}, map[string]int{}
			for s, rows := range log[:hi] {
				for _, r := range rows {
					n := 1
					if r.op == change.Delete {
						n = -1
					}
					want[r.content()] += n
					if Ordinal(s) < lo {
						got[r.content()] += n
					}
				}
			}
			lake, deletes := maps.Clone(got), map[string]int{}
			countWinners(x, Pin{lo, hi}, log, got, deletes)
			for c := range want {
				if deletes[c] > lake[c] {
					t.Fatalf("seed %d: pin (%d, %d]: %d deletes of %q win, the lake has %d", seed, lo, hi, deletes[c], c, lake[c])
				}
				if want[c] != got[c] {
					t.Fatalf("seed %d: pin (%d, %d]: %d copies of %q, want %d", seed, lo, hi, got[c], c, want[c])
				}
			}
		}
	}
}

func TestCancel(t *testing.T) {
	ins := func(n int64, text string) counted { return counted{change.Insert, n, text} }
	del := func(n int64, text string) counted { return counted{change.Delete, n, text} }
	for _, c := range []struct {
		name string
		log  [][]counted
		want []Selection
	}{
		{"one of two equal", [][]counted{{ins(1, "a"), ins(1, "a"), del(1, "a")}}, []Selection{{0}}},
		{"across slices", [][]counted{{ins(1, "a"), ins(2, "a")}, {del(1, "a")}}, []Selection{{1}, {}}},
		{"of the lake", [][]counted{{del(1, "a"), del(1, "a")}}, []Selection{{0, 1}}},
		{"one of the log, one of the lake", [][]counted{{ins(1, "a")}, {del(1, "a"), del(1, "a")}}, []Selection{{}, {1}}},
		{"of the lake, then one more", [][]counted{{del(1, "a")}, {ins(1, "a")}}, []Selection{{0}, {0}}},
		{"null is like null only", [][]counted{{ins(1, ""), ins(1, "a"), del(1, "")}}, []Selection{{1}}},
		{"again and again", [][]counted{{ins(1, "a"), del(1, "a"), ins(1, "a"), del(1, "a"), ins(1, "a")}}, []Selection{{4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			batches := make([]arrow.RecordBatch, len(c.log))
			for i, rows := range c.log {
				batches[i] = countedRecord(t, rows)
			}
			got, err := Cancel(batches)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A copy's rows may come after the deletes that take them.
func TestCountedCopy(t *testing.T) {
	x := NewCounted()
	for i, rows := range [][]counted{
		{{change.Delete, 1, "a"}, {change.Insert, 2, "b"}},
		{{change.Insert, 1, "a"}, {change.Insert, 1, "a"}, {change.Insert, 2, "b"}},
		{{change.Delete, 2, "b"}, {change.Delete, 2, "b"}},
	} {
		if _, err := x.AppendRows(countedRecord(t, rows), countedColumns, SliceKind{Copied: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for s := Ordinal(1); s <= 3; s++ {
		from, to := x.Range(s)
		rows, all := x.Winners(nil, x.Held(), from, to)
		got = append(got, fmt.Sprint(rows, all))
	}
	if want := "[[] false [1] false [] false]"; fmt.Sprint(got) != want {
		t.Errorf("winners %v, want %s", got, want)
	}
}

// Nothing before a truncate is a counterpart of what comes after.
func TestCountedTruncate(t *testing.T) {
	x := NewCounted()
	for i, rows := range [][]counted{{{change.Insert, 1, "a"}}, {{change.Insert, 1, "a"}, {change.Delete, 1, "a"}}} {
		if _, err := x.AppendRows(countedRecord(t, rows), countedColumns, SliceKind{Truncate: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
	p, truncated := x.Effective(x.Held())
	from, to := x.Range(2)
	rows, all := x.Winners(nil, p, from, to)
	if !truncated || all || len(rows) != 0 {
		t.Errorf("winners %v, all %v, truncated %v", rows, all, truncated)
	}
	from, to = x.Range(1)
	if rows, all := x.Winners(nil, Pin{0, 1}, from, to); !all {
		t.Errorf("before the truncate: %v", rows)
	}
}

// A record that is older than a column has its initial value in it.
func TestCountedInitial(t *testing.T) {
	five := array.NewInt64Builder(memory.DefaultAllocator)
	five.Append(5)
	value := five.NewArray()
	initial, err := Content(nil, value, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := NewCounted()
	old := countedRecord(t, []counted{{change.Insert, 9, "a"}, {change.Insert, 9, "b"}})
	if _, err := x.AppendRows(old, []Column{{Index: -1, Initial: initial}, {Index: 4}}, SliceKind{}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.AppendRows(countedRecord(t, []counted{{change.Delete, 5, "b"}}), countedColumns, SliceKind{}); err != nil {
		t.Fatal(err)
	}
	rows, _ := x.Winners(nil, x.Held(), 0, 2)
	if fmt.Sprint(rows) != "[0]" {
		t.Errorf("winners %v", rows)
	}
}

func TestCountedRefusesUpdates(t *testing.T) {
	rec := countedRecord(t, []counted{{change.Update, 1, "a"}})
	if _, err := NewCounted().AppendRows(rec, countedColumns, SliceKind{}); !errors.Is(err, ErrUpdate) {
		t.Errorf("error %v", err)
	}
}

// Values are compared as they are stored.
func TestContent(t *testing.T) {
	floats := array.NewFloat64Builder(memory.DefaultAllocator)
	floats.AppendValues([]float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xFFF8000000000001), 1.5}, nil)
	floats.AppendNull()
	wide := floats.NewArray()
	halves := array.NewFloat32Builder(memory.DefaultAllocator)
	halves.Append(1.5)
	lists := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	text := lists.ValueBuilder().(*array.StringBuilder)
	for _, l := range [][]string{{"a", "b"}, {"ab"}, {}, {"a", ""}} {
		lists.Append(true)
		text.AppendValues(l, nil)
	}
	lists.AppendNull()
	list := lists.NewArray()
	of := func(a arrow.Array, i int) string {
		c, err := Content(nil, a, i)
		if err != nil {
			t.Fatal(err)
		}
		return string(c)
	}
	if of(wide, 0) == of(wide, 1) {
		t.Error("zeros are alike")
	}
	if of(wide, 2) != of(wide, 3) {
		t.Error("NaNs differ")
	}
	if of(wide, 4) != of(halves.NewArray(), 0) {
		t.Error("a widened float differs")
	}
	if of(wide, 5) == of(wide, 0) {
		t.Error("null is zero")
	}
	seen := map[string]int{}
	for i := range list.Len() {
		if j, ok := seen[of(list, i)]; ok {
			t.Errorf("lists %d and %d are alike", i, j)
		}
		seen[of(list, i)] = i
	}
}
