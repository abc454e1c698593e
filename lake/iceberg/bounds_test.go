package iceberg_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/wal/env"
)

// words is a batch of texts, something beside them that does not compress, and the token.
func words(beside int, values ...string) arrow.RecordBatch {
	text, pad := array.NewStringBuilder(memory.DefaultAllocator), array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	token := array.NewInt64Builder(memory.DefaultAllocator)
	r := rand.NewChaCha8([32]byte{})
	for _, v := range values {
		text.Append(v)
		b := make([]byte, beside)
		_, _ = r.Read(b) // never fails
		pad.Append(b)
		token.Append(1)
	}
	k := text.NewArray()
	if b := k.Data().Buffers(); b[2] == nil || b[2].Len() == 0 { // as it comes from the log
		k = array.NewStringData(array.NewData(arrow.BinaryTypes.String, k.Len(), []*memory.Buffer{b[0], b[1], memory.NewBufferBytes(nil)}, nil, 0, 0))
	}
	fields := []arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String}, {Name: "pad", Type: arrow.BinaryTypes.Binary}, {Name: "_skippr_token", Type: arrow.PrimitiveTypes.Int64}}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), []arrow.Array{k, pad.NewArray(), token.NewArray()}, int64(len(values)))
}

// The bounds of a file exclude no row of it, not even one of the empty text: whoever looks
// for a key goes by them. A batch of empty texts alone has no bytes of values at all.
func TestBoundsHoldEmptyTexts(t *testing.T) {
	s, err := schema.New([]schema.NewField{
		{Name: "k", Type: schema.Type{Kind: schema.String}, NotNull: true}, {Name: "pad", Type: schema.Type{Kind: schema.Binary}},
	}, []string{"k"})
	if err != nil {
		t.Fatal(err)
	}
	for name, beside := range map[string]int{"one row group": 0, "a row group each": 2 << 20} {
		for _, batches := range [][][]string{{{""}, {"Top"}}, {{"Top"}, {""}}, {{"", "Top"}}, {{""}, {""}}, {{"b"}, {""}, {"a"}}} {
			_, ids := env.System()
			w, err := iceberg.Open(newStore(t), t.TempDir(), iceberg.Config{RowGroupBytes: 1 << 20}, iceberg.Deps{Clock: env.NewFake(time.Unix(1e9, 0), 1), IDs: ids})
			if err != nil {
				t.Fatal(err)
			}
			tbl, err := w.Table(t.Context(), lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "t"}, Table: 1, Schema: s})
			if err != nil {
				t.Fatal(err)
			}
			wr, err := tbl.NewWriter(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range batches {
				if err := wr.Write(t.Context(), words(beside, b...)); err != nil {
					t.Fatal(err)
				}
			}
			files, err := wr.Close(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tbl.Commit(t.Context(), lake.Commit{CompactionID: "x", AddFiles: files, Schema: s}); err != nil {
				t.Fatal(err)
			}
			for _, f := range append(files, tbl.Head().Files...) { // as written, and as read back
				b, ok := f.Bounds[1]
				for _, batch := range batches {
					for _, v := range batch {
						if ok && (bytes.Compare(b.MinBytes, []byte(v)) > 0 || bytes.Compare(b.MaxBytes, []byte(v)) < 0) {
							t.Errorf("%s, %q: bounds %q to %q exclude %q", name, batches, b.MinBytes, b.MaxBytes, v)
						}
					}
				}
			}
		}
	}
}
