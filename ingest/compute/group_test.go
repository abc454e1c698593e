package compute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// fake computes "g" as the text of "a", so many times; odd values of refuse are refused.
type fake struct {
	times  int
	refuse map[int64]bool
	asked  []int
	err    error
}

func (f *fake) Compute(_ context.Context, _ change.TableID, _ *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.asked = append(f.asked, int(rec.NumRows()))
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	refused := &RefusedError{Rows: map[int]Refusal{}}
	a := rec.Column(change.SystemColumns).(*array.Int64)
	for i := range a.Len() {
		if f.refuse[a.Value(i)] {
			refused.Rows[i] = Refusal{Column: "g", Reason: "is refused"}
		}
		b.Append(strings.Repeat(fmt.Sprintf("<%d>", a.Value(i)), max(f.times, 1)))
	}
	if len(refused.Rows) > 0 {
		return nil, refused
	}
	return []arrow.Array{b.NewArray()}, nil
}

func computedTable(t *testing.T) *schema.Table {
	t.Helper()
	s, err := schema.New([]schema.NewField{
		{Name: "a", Type: schema.Type{Kind: schema.Int64}, OID: 20, AttNum: 1},
		{Name: "g", Type: schema.Type{Kind: schema.String}, OID: 25, AttNum: 2, Computed: &schema.Computed{Expr: "a", Form: "1"}},
	}, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rowsOf is a batch of table 7 with rows [from, to).
func rowsOf(s *schema.Table, from, to int64) *change.Batch {
	b := change.NewBuilder(memory.DefaultAllocator, 7, 1, s.Arrow())
	defer b.Release()
	b.Computes = s.Computes()
	for i := from; i < to; i++ {
		b.Add(change.Insert, i, int32(i))
		b.Column(0).(*array.Int64Builder).Append(i)
		b.Column(1).AppendNull()
	}
	return b.Batch()
}

func TestGroup(t *testing.T) {
	s := computedTable(t)
	version := func(*change.Batch) (*schema.Table, error) { return s, nil }
	for _, c := range []struct {
		name   string
		times  int
		ranges [][2]int64
		pieces int
	}{
		{"one batch", 1, [][2]int64{{0, 10}}, 1},
		{"no row", 1, [][2]int64{{0, 0}}, 1},
		{"asked for in parts", 1, [][2]int64{{0, 4500}, {4500, 4501}}, 1},
		{"larger than a piece", 2000, [][2]int64{{0, 3000}, {3000, 6000}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{times: c.times}
			var batches []*change.Batch
			for i, r := range c.ranges {
				b := rowsOf(s, r[0], r[1])
				b.Truncate = i == 0
				batches = append(batches, b)
			}
			pieces, err := Group(t.Context(), f, version, batches)
			if err != nil {
				t.Fatal(err)
			}
			if len(pieces) != c.pieces {
				t.Errorf("%d pieces, want %d", len(pieces), c.pieces)
			}
			next, truncates := int64(0), 0
			for _, p := range pieces {
				for _, b := range p {
					if b.Truncate {
						truncates++
					}
					for i := range int(b.Rows()) {
						a, g := b.Record.Column(change.SystemColumns).(*array.Int64), b.Record.Column(change.SystemColumns+1).(*array.String)
						if want := strings.Repeat(fmt.Sprintf("<%d>", next), c.times); a.Value(i) != next || g.Value(i) != want {
							t.Fatalf("row %d is %d, %.40s", next, a.Value(i), g.Value(i))
						}
						next++
					}
					if b.Computes || b.Rows() != int64(b.Counts.Inserts) {
						t.Errorf("computes %v, %d rows, %d counted", b.Computes, b.Rows(), b.Counts.Inserts)
					}
					b.Release()
				}
			}
			if want := c.ranges[len(c.ranges)-1][1]; next != want || want > 0 && truncates != 1 {
				t.Errorf("%d rows of %d, %d truncates", next, want, truncates)
			}
			for _, n := range f.asked {
				if n > rowsMax {
					t.Errorf("%d rows were asked for at once", n)
				}
			}
		})
	}
}

// What is left of a TRUNCATE when the rows after it were taken back goes on.
func TestGroupTruncateAlone(t *testing.T) {
	s := computedTable(t)
	b := rowsOf(s, 0, 0)
	b.Truncate, b.Computes = true, true
	pieces, err := Group(t.Context(), &fake{}, func(*change.Batch) (*schema.Table, error) { return s, nil }, []*change.Batch{b})
	if err != nil || len(pieces) != 1 || len(pieces[0]) != 1 {
		t.Fatalf("%v, %v", pieces, err)
	}
	defer pieces[0][0].Release()
	if got := pieces[0][0]; !got.Truncate || got.Computes {
		t.Errorf("truncates %v, computes %v", got.Truncate, got.Computes)
	}
}

// All rows of a group that are refused are named at once; nothing of the group goes on.
func TestGroupRefused(t *testing.T) {
	s := computedTable(t)
	version := func(*change.Batch) (*schema.Table, error) { return s, nil }
	pieces, err := Group(t.Context(), &fake{refuse: map[int64]bool{3: true, 4000: true, 5000: true}}, version,
		[]*change.Batch{rowsOf(s, 0, 4500), rowsOf(s, 4500, 5001)})
	var refused *GroupError
	if !errors.As(err, &refused) || pieces != nil || len(refused.Refused[7]) != 3 {
		t.Fatalf("%v, %v", pieces, err)
	}
	var k Known
	k.Add(refused)
	before := k.Of(7)
	k.Add(&GroupError{Refused: map[change.TableID]map[RowID]Refusal{7: {{9, 9}: {}}, 8: {{1, 1}: {}}}})
	if _, ok := before[RowID{4000, 4000}]; !ok || len(before) != 3 || len(k.Of(7)) != 4 || len(k.Of(8)) != 1 || k.Of(9) != nil {
		t.Errorf("remembered %v, %v", before, k.Of(7))
	}
	if _, err := Group(t.Context(), &fake{err: context.Canceled}, version, []*change.Batch{rowsOf(s, 0, 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// One leaves a batch as it was when rows of it are refused.
func TestOne(t *testing.T) {
	s := computedTable(t)
	b := rowsOf(s, 0, 2)
	defer b.Release()
	var refused *RefusedError
	if err := One(t.Context(), &fake{refuse: map[int64]bool{1: true}}, s, b); !errors.As(err, &refused) || !b.Computes {
		t.Errorf("error %v, computes %v", err, b.Computes)
	}
	if err := One(t.Context(), &fake{}, s, b); err != nil || b.Computes || b.Record.Column(change.SystemColumns+1).ValueStr(1) != "<1>" {
		t.Errorf("error %v, %v", err, b.Record)
	}
}
