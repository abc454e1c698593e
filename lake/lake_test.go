package lake_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/segment"
)

func TestSlices(t *testing.T) {
	for text, refs := range map[string][]segment.SliceRef{
		"":                     nil,
		"7:0":                  {{Seq: 7}},
		"7:0,128,4096;9:64":    {{Seq: 7}, {Seq: 7, Start: 128}, {Seq: 7, Start: 4096}, {Seq: 9, Start: 64}},
		"1:4294967295;2:0;3:1": {{Seq: 1, Start: 1<<32 - 1}, {Seq: 2}, {Seq: 3, Start: 1}},
	} {
		if got := lake.FormatSlices(refs); got != text {
			t.Errorf("format %v: %q, want %q", refs, got, text)
		}
		got, err := lake.ParseSlices(text)
		if err != nil || !slices.Equal(got, refs) {
			t.Errorf("parse %q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"7", "7:", ":1", "x:1", "1:x", "1:1;", "1:4294967296", "1:1,", "-1:2"} {
		if refs, err := lake.ParseSlices(bad); err == nil {
			t.Errorf("parse %q: %v, want an error", bad, refs)
		}
	}
}

func FuzzParseSlices(f *testing.F) {
	f.Add("7:0,128;9:64")
	f.Fuzz(func(t *testing.T, text string) {
		refs, err := lake.ParseSlices(text)
		if err != nil || !slices.IsSortedFunc(refs, func(a, b segment.SliceRef) int {
			if a.Less(b) {
				return -1
			}
			return 1
		}) {
			return
		}
		again, err := lake.ParseSlices(lake.FormatSlices(refs))
		if err != nil || !slices.Equal(again, refs) {
			t.Errorf("%q: %v became %v, %v", text, refs, again, err)
		}
	})
}

func build[B array.Builder](b B, fill func(B)) arrow.Array {
	defer b.Release()
	fill(b)
	b.AppendNull()
	return b.NewArray()
}

func TestWiden(t *testing.T) {
	mem := memory.DefaultAllocator
	ints := build(array.NewInt32Builder(mem), func(b *array.Int32Builder) { b.AppendValues([]int32{-1, 1 << 30}, nil) })
	floats := build(array.NewFloat32Builder(mem), func(b *array.Float32Builder) { b.Append(0.5) })
	small := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	decimals := build(array.NewDecimal128Builder(mem, small), func(b *array.Decimal128Builder) { b.Append(decimal128.FromI64(-12345)) })
	lists := build(array.NewListBuilder(mem, arrow.PrimitiveTypes.Int32), func(b *array.ListBuilder) {
		b.Append(true)
		b.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{7, 8}, nil)
		b.Append(true)
		b.ValueBuilder().AppendNull()
	})
	for _, c := range []struct {
		from arrow.Array
		to   arrow.DataType
		want string // "" for an error
	}{
		{lists, arrow.ListOf(arrow.PrimitiveTypes.Int64), "[[7 8] [(null)] (null)]"},
		{array.NewSlice(lists, 1, 2), arrow.ListOf(arrow.PrimitiveTypes.Int64), "[[(null)]]"},
		{lists, arrow.ListOf(arrow.FixedWidthTypes.Boolean), ""},
		{ints, arrow.PrimitiveTypes.Int32, "[-1 1073741824 (null)]"},
		{ints, arrow.PrimitiveTypes.Int64, "[-1 1073741824 (null)]"},
		{ints, arrow.BinaryTypes.String, `["-1" "1073741824" (null)]`},
		{array.NewSlice(ints, 1, 3), arrow.PrimitiveTypes.Int64, "[1073741824 (null)]"},
		{floats, arrow.PrimitiveTypes.Float64, "[0.5 (null)]"},
		{decimals, &arrow.Decimal128Type{Precision: 20, Scale: 2}, "[-123.45 (null)]"},
		{decimals, &arrow.Decimal128Type{Precision: 20, Scale: 3}, ""},
		{decimals, &arrow.Decimal128Type{Precision: 4, Scale: 2}, ""},
		{floats, arrow.PrimitiveTypes.Int64, ""},
		{ints, arrow.FixedWidthTypes.Boolean, ""},
	} {
		got, err := lake.Widen(c.from, c.to)
		if c.want == "" {
			if !errors.Is(err, lake.ErrNoWidening) {
				t.Errorf("%s to %s: %v, %v", c.from.DataType(), c.to, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s to %s: %v", c.from.DataType(), c.to, err)
			continue
		}
		if !arrow.TypeEqual(got.DataType(), c.to) || got.String() != c.want {
			t.Errorf("%s to %s: %s %s, want %s", c.from.DataType(), c.to, got.DataType(), got, c.want)
		}
	}
}

func TestColumn(t *testing.T) {
	old, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int32}, AttNum: 1},
		{Name: "gone", Type: schema.Type{Kind: schema.Bool}, AttNum: 2},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	five := "5"
	now, err := schema.Evolve(old, []schema.NewField{
		{Name: "gone", Type: schema.Type{Kind: schema.Int64}, AttNum: 3, Initial: &five}, // another, under the old name
		{Name: "key", Type: schema.Type{Kind: schema.Int64}, AttNum: 1},
		{Name: "none", Type: schema.Type{Kind: schema.String}, AttNum: 4},
	}, []string{"key"})
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.DefaultAllocator
	own := []arrow.Array{
		build(array.NewInt32Builder(mem), func(b *array.Int32Builder) { b.Append(1) }),
		build(array.NewBooleanBuilder(mem), func(b *array.BooleanBuilder) { b.Append(true) }),
	}
	for i, want := range []string{"[5 5]", "[1 (null)]", "[(null) (null)]"} {
		f := now.Fields[i]
		got, err := lake.Column(own, 2, old, f)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want || !arrow.TypeEqual(got.DataType(), schema.ArrowType(f.Type)) {
			t.Errorf("column %s: %s of %s, want %s", f.Name, got, got.DataType(), want)
		}
	}
	if _, err := lake.Column(own[:1], 2, old, old.Fields[1]); err == nil {
		t.Error("rows without a column of their version were read")
	}
}
