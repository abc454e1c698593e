package merge

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
)

// ch is one change of a test log.
type ch struct {
	key     int64
	token   int64
	ordinal int32
	op      change.Op
}

func schemaOf(keyType arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
		{Name: "id", Type: keyType},
	}, nil)
}

func record(keyType arrow.DataType, changes []ch) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(keyType))
	defer b.Release()
	for _, c := range changes {
		b.Field(0).(*array.Uint8Builder).Append(uint8(c.op))
		b.Field(1).(*array.Int64Builder).Append(c.token)
		b.Field(2).(*array.Int32Builder).Append(c.ordinal)
		switch f := b.Field(3).(type) {
		case *array.Int64Builder:
			f.Append(c.key)
		case *array.Int32Builder:
			f.Append(int32(c.key))
		case *array.StringBuilder:
			f.Append(fmt.Sprint("key ", c.key))
		}
	}
	return b.NewRecordBatch()
}

// place names a change: slice (from 1) and row.
type place struct{ slice, row int }

// fold is the oracle: it looks at every change of the pin, one after the other.
func fold(log [][]ch, lo, hi int) map[place]bool {
	best := map[int64]place{}
	for s := lo + 1; s <= hi; s++ {
		for r, c := range log[s-1] {
			old, ok := best[c.key]
			if ok {
				o := log[old.slice-1][old.row]
				if o.token > c.token ||
					o.token == c.token && old.slice == s && o.ordinal > c.ordinal {
					continue
				}
			}
			best[c.key] = place{s, r}
		}
	}
	out := map[place]bool{}
	for _, p := range best {
		out[p] = true
	}
	return out
}

func winners(x *Index, p Pin) map[place]bool {
	out := map[place]bool{}
	for s := p.Lo + 1; s <= p.Hi; s++ {
		from, to := x.Range(s)
		rows, all := x.Winners(nil, p, from, to)
		if all {
			rows = sequence(int(to - from))
		}
		for _, r := range rows {
			out[place{int(s), int(r)}] = true
		}
	}
	return out
}

// checkPins compares every pin of the log with the oracle, evicting on the way.
func checkPins(t *testing.T, log [][]ch, keyType arrow.DataType) (inexact int) {
	t.Helper()
	x := NewIndex()
	recs := make([]arrow.RecordBatch, len(log))
	for i, slice := range log {
		recs[i] = record(keyType, slice)
		if _, err := x.Append(recs[i], []int{3}, false); err != nil {
			t.Fatal(err)
		}
	}
	for lo := range len(log) + 1 {
		x.Evict(Ordinal(lo))
		for hi := lo; hi <= len(log); hi++ {
			want, p := fold(log, lo, hi), Pin{Ordinal(lo), Ordinal(hi)}
			if !x.Exact(p) {
				inexact++
				got := collapsed(t, recs[lo:hi], lo)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("Collapse(%v) of %v = %v, want %v", p, log, got, want)
				}
				continue
			}
			if got := winners(x, p); !reflect.DeepEqual(got, want) {
				t.Fatalf("Winners(%v) of %v = %v, want %v", p, log, got, want)
			}
		}
	}
	return inexact
}

func collapsed(t *testing.T, recs []arrow.RecordBatch, lo int) map[place]bool {
	t.Helper()
	sel, err := Collapse([]int{3}, recs)
	if err != nil {
		t.Fatal(err)
	}
	out := map[place]bool{}
	for i, rows := range sel {
		for _, r := range rows {
			out[place{lo + i + 1, int(r)}] = true
		}
	}
	return out
}

// TestEveryOrder goes through all orders of up to five changes on two keys with
// distinct tokens, all ways to cut them into slices, and all pins of those.
func TestEveryOrder(t *testing.T) {
	inexact, pins := 0, 0
	for n := 1; n <= 5; n++ {
		permutations(n, func(tokens []int) {
			for keys := range 1 << (n - 1) { // the first change is on key 0
				for cuts := range 1 << (n - 1) {
					log := cut(n, cuts, func(i int) ch {
						return ch{key: int64(keys >> i & 1), token: int64(tokens[i]), op: change.Update}
					})
					inexact += checkPins(t, log, arrow.PrimitiveTypes.Int64)
					pins += (len(log) + 1) * (len(log) + 2) / 2
				}
			}
		})
	}
	if inexact == 0 || inexact*2 > pins {
		t.Errorf("%d of %d pins were inexact", inexact, pins)
	}
}

// TestEqualTokens does the same with few tokens, so that slice order, ordinal and
// row decide, and with string keys.
func TestEqualTokens(t *testing.T) {
	const n = 4
	for tokens := range 16 {
		for ordinals := range 16 {
			for cuts := range 8 {
				log := cut(n, cuts, func(i int) ch {
					return ch{key: 7, token: int64(tokens >> i & 1), ordinal: int32(ordinals >> i & 1)}
				})
				checkPins(t, log, arrow.BinaryTypes.String)
			}
		}
	}
}

// TestInOrderIsExact: with growing tokens, as a stream gives them, no pin needs a
// full collapse.
func TestInOrderIsExact(t *testing.T) {
	log := cut(5, 0b1111, func(i int) ch { return ch{key: int64(i % 2), token: int64(i / 2)} })
	if n := checkPins(t, log, arrow.PrimitiveTypes.Int32); n != 0 {
		t.Errorf("%d pins were inexact", n)
	}
}

func TestTruncateCutsPins(t *testing.T) {
	x := NewIndex()
	for i := range 4 {
		rec := record(arrow.PrimitiveTypes.Int64, []ch{{key: 1, token: int64(i)}, {key: int64(i + 2), token: int64(i)}})
		if i == 2 {
			rec = nil
		}
		if _, err := x.Append(rec, []int{3}, i == 2); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		pin, cut  Pin
		truncated bool
	}{
		{Pin{0, 2}, Pin{0, 2}, false},
		{Pin{0, 3}, Pin{2, 3}, true},
		{Pin{1, 4}, Pin{2, 4}, true},
		{Pin{3, 4}, Pin{3, 4}, false},
	} {
		cut, truncated := x.Effective(c.pin)
		if cut != c.cut || truncated != c.truncated {
			t.Errorf("Effective(%v) = %v, %v", c.pin, cut, truncated)
		}
		if !x.Exact(cut) {
			t.Errorf("Exact(%v) = false", cut)
		}
	}
	if got := winners(x, Pin{0, 2}); len(got) != 3 {
		t.Errorf("before the truncate: %v", got)
	}
	if got := winners(x, Pin{2, 4}); len(got) != 2 {
		t.Errorf("after the truncate: %v", got)
	}
}

func TestEvictGivesMemoryBack(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String} {
		x := NewIndex()
		var top int64
		for i := range 50 {
			var slice []ch
			for j := range 1000 {
				slice = append(slice, ch{key: int64(i*1000 + j), token: int64(i)})
			}
			s, err := x.Append(record(typ, slice), []int{3}, false)
			if err != nil {
				t.Fatal(err)
			}
			if i == 9 {
				top = x.Bytes()
			}
			if s > 5 {
				x.Evict(s - 4)
			}
		}
		if x.Bytes() > top {
			t.Errorf("%s: %d bytes after 50 slices with eviction, %d after 10", typ, x.Bytes(), top)
		}
	}
}

func TestNullKeyIsRefused(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(arrow.PrimitiveTypes.Int64))
	b.Field(0).(*array.Uint8Builder).Append(1)
	b.Field(1).(*array.Int64Builder).Append(1)
	b.Field(2).(*array.Int32Builder).Append(1)
	b.Field(3).AppendNull()
	if _, err := NewIndex().Append(b.NewRecordBatch(), []int{3}, false); !errors.Is(err, ErrNullKey) {
		t.Errorf("Append = %v, want ErrNullKey", err)
	}
}

func cut(n, cuts int, at func(int) ch) [][]ch {
	log := [][]ch{nil}
	for i := range n {
		log[len(log)-1] = append(log[len(log)-1], at(i))
		if i < n-1 && cuts>>i&1 != 0 {
			log = append(log, nil)
		}
	}
	return log
}

func permutations(n int, f func([]int)) {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	var rec func(int)
	rec = func(k int) {
		if k == n {
			f(p)
			return
		}
		for i := k; i < n; i++ {
			p[k], p[i] = p[i], p[k]
			rec(k + 1)
			p[k], p[i] = p[i], p[k]
		}
	}
	rec(0)
}

func BenchmarkCollapse(b *testing.B) {
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String} {
		b.Run(typ.String(), func(b *testing.B) {
			const total, per = 1_000_000, 10_000
			var recs []arrow.RecordBatch
			for i := 0; i < total; i += per {
				var slice []ch
				for j := range per {
					slice = append(slice, ch{key: int64((i + j) * 7919 % 700_001), token: int64(i)})
				}
				recs = append(recs, record(typ, slice))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Collapse([]int{3}, recs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWithoutKeyEveryRowWins(t *testing.T) {
	x := NewIndex()
	for range 3 {
		rec := record(arrow.PrimitiveTypes.Int64, []ch{{key: 1}, {key: 1}})
		if _, err := x.Append(rec, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := winners(x, Pin{1, 3}); len(got) != 4 {
		t.Errorf("winners %v", got)
	}
}
