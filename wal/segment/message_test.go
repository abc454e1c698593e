package segment_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// everyType has a nullable column of each type that a table may have, but for lists.
func everyType() *arrow.Schema {
	fields := append([]arrow.Field(nil), schema.Fields()[:3]...)
	for i, t := range []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, &arrow.Decimal128Type{Precision: 18, Scale: 4},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Timestamp_us,
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 16},
	} {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: t, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// randomBatch has columns without nulls, with some, and with nothing else.
func randomBatch(r *rand.Rand, s *arrow.Schema, rows int) *change.Batch {
	b := change.NewBuilder(memory.DefaultAllocator, 1, 1, s)
	defer b.Release()
	for i := range rows {
		b.Add(change.Insert, r.Int64(), int32(i))
	}
	for i := 3; i < s.NumFields(); i++ {
		nulls := r.IntN(3)
		for range rows {
			c := b.Column(i - 3)
			if nulls == 2 || nulls == 1 && r.IntN(3) == 0 {
				c.AppendNull()
				continue
			}
			appendRandom(r, c)
		}
	}
	return b.Batch()
}

func appendRandom(r *rand.Rand, c array.Builder) {
	text := make([]byte, r.IntN(20))
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	switch c := c.(type) {
	case *array.StringBuilder:
		c.Append(string(text))
	case *array.BinaryBuilder:
		c.Append(text)
	case *array.FixedSizeBinaryBuilder:
		c.Append(append(text, make([]byte, 16)...)[:16])
	case *array.BooleanBuilder:
		c.Append(r.IntN(2) == 0)
	case *array.ListBuilder:
		c.Append(true)
		for range r.IntN(3) {
			c.ValueBuilder().(*array.Int32Builder).Append(r.Int32())
		}
	default:
		if err := c.AppendValueFromString(fmt.Sprint(r.IntN(2))); err != nil {
			c.AppendEmptyValue()
		}
	}
}

// bodyOf is the bytes of a batch in a body of its own.
func bodyOf(t *testing.T, e *segment.Encoder, b *change.Batch) []byte {
	t.Helper()
	x, err := e.Encode(&change.Group{Batches: []*change.Batch{b}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release(x)
	body, _ := segment.NewBuilder(header).Append(nil, x, 0)
	return body
}

// An encoder's first batch of a table is rendered by Arrow, later ones by a template:
// the bytes are the same.
func TestTemplateRendersWhatArrowRenders(t *testing.T) {
	list := append(everyType().Fields(), arrow.Field{
		Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true,
	})
	for name, s := range map[string]*arrow.Schema{
		"every type": everyType(), "small": schema, "with a list": arrow.NewSchema(list, nil),
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			learned := segment.NewEncoder()
			for i := range 400 {
				b := randomBatch(r, s, 1+r.IntN(1+5*i))
				if i%3 == 2 { // not all of a batch, with and without an offset
					from := r.Int64N(b.Rows())
					to := from + 1 + r.Int64N(b.Rows()-from)
					b.Record = b.Record.NewSlice(from*int64(r.IntN(2)), to)
				}
				if got, want := bodyOf(t, learned, b), bodyOf(t, segment.NewEncoder(), b); !bytes.Equal(got, want) {
					t.Fatalf("batch %d of %d rows: %d bytes, Arrow has %d", i, b.Rows(), len(got), len(want))
				}
			}
		})
	}
}

// What makes an append cheap: a batch of a known table allocates next to nothing.
func TestEncodeDoesNotAllocate(t *testing.T) {
	e := segment.NewEncoder()
	g := &change.Group{Batches: []*change.Batch{randomBatch(rand.New(rand.NewPCG(1, 2)), everyType(), 50)}}
	encode := func() {
		x, err := e.Encode(g)
		if err != nil {
			t.Fatal(err)
		}
		e.Release(x)
	}
	encode()
	if n := testing.AllocsPerRun(100, encode); n > 10 { // a pool may be emptied meanwhile
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	e := segment.NewEncoder()
	g := &change.Group{Batches: []*change.Batch{randomBatch(rand.New(rand.NewPCG(1, 2)), schema, 50)}}
	b.ReportAllocs()
	for b.Loop() {
		x, err := e.Encode(g)
		if err != nil {
			b.Fatal(err)
		}
		e.Release(x)
	}
}
