package encode_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// benchChunk is the chunk that the wire's speed is told by: int8, int4, float8,
// numeric(18,4), timestamptz, date, text, bool, with 2 % NULLs.
func benchChunk(n int) (*vector.Chunk, []encode.Column) {
	rnd := rand.New(rand.NewPCG(5, 6))
	a, b, f := make([]int64, n), make([]int32, n), make([]float64, n)
	d, z, day := make([]int64, n), make([]int64, n), make([]int32, n)
	words, flags := make([]string, n), make([]uint8, n)
	var nulls []int
	for i := range n {
		a[i], b[i], f[i] = rnd.Int64(), int32(rnd.Uint32()), rnd.NormFloat64()*1e6
		d[i], z[i], day[i] = rnd.Int64N(1e14), 1.6e15+rnd.Int64N(1e14), int32(18000+rnd.IntN(2000))
		words[i], flags[i] = fmt.Sprintf("customer %d", rnd.IntN(1e9)), uint8(i&1)
		if rnd.IntN(50) == 0 {
			nulls = append(nulls, i)
		}
	}
	v := []vector.Vector{
		fixed(kind(vector.Int64), a...), fixed(kind(vector.Int32), b...), fixed(kind(vector.Float64), f...),
		fixed(vector.Type{Kind: vector.Decimal, Width: 18, Scale: 4}, d...), fixed(kind(vector.TimestampTZ), z...),
		fixed(kind(vector.Date), day...), texts(vector.String, words...), fixed(kind(vector.Bool), flags...),
	}
	columns := make([]encode.Column, len(v))
	for i, oid := range []uint32{20, 23, 701, 1700, 1184, 1082, 25, 16} {
		columns[i] = encode.Column{Name: "c", TypeOID: oid, TypMod: -1}
		v[i] = withNulls(v[i], n, nulls...)
	}
	return &vector.Chunk{Rows: n, Columns: v}, columns
}

func newEncoder(t testing.TB, spec encode.Spec, c *vector.Chunk) *encode.Encoder {
	t.Helper()
	var types []vector.Type
	for _, v := range c.Columns {
		types = append(types, v.Type)
	}
	e, err := encode.New(spec, types)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func BenchmarkEncode(b *testing.B) {
	chunk, columns := benchChunk(2048)
	for _, bench := range []struct {
		name   string
		kind   encode.Kind
		format int16
		zone   string
	}{
		{"text", encode.Rows, 0, "UTC"},
		{"text-berlin", encode.Rows, 0, "Europe/Berlin"},
		{"binary", encode.Rows, 1, "UTC"},
		{"copy-text", encode.CopyText, 0, "UTC"},
		{"copy-csv", encode.CopyCSV, 0, "UTC"},
		{"copy-binary", encode.CopyBinary, 1, "UTC"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for i := range columns {
				columns[i].Format = bench.format
			}
			f := encode.DefaultFormat()
			f.TimeZone = bench.zone
			e := newEncoder(b, encode.Spec{Kind: bench.kind, Columns: columns, Format: f}, chunk)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = e.Chunk(buf[:0], chunk); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(buf)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunk.Rows), "ns/row")
		})
	}
}
