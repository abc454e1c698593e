package iceberg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// everyType is a table with a column of each lake type, and a list of each.
func everyType(t testing.TB) *schema.Table {
	t.Helper()
	scalars := []schema.Type{
		{Kind: schema.Bool},
		{Kind: schema.Int32},
		{Kind: schema.Int64},
		{Kind: schema.Float32},
		{Kind: schema.Float64},
		{Kind: schema.Decimal, Precision: 9, Scale: 2},
		{Kind: schema.Decimal, Precision: 18, Scale: 3},
		{Kind: schema.Decimal, Precision: 38, Scale: 10},
		{Kind: schema.Date},
		{Kind: schema.Time},
		{Kind: schema.Timestamp},
		{Kind: schema.TimestampTZ},
		{Kind: schema.String},
		{Kind: schema.Binary},
		{Kind: schema.UUID},
	}
	cols := []schema.NewField{{Name: "id", Type: schema.Type{Kind: schema.Int64}, NotNull: true}}
	for i, s := range scalars {
		cols = append(cols,
			schema.NewField{Name: fmt.Sprintf("c%d", i), Type: s},
			schema.NewField{Name: fmt.Sprintf("l%d", i), Type: schema.Type{Kind: schema.List, Elem: &s}})
	}
	out, err := schema.New(cols, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// typedRows makes rows of s with the token at the end; every third value is null.
func typedRows(t testing.TB, s *schema.Table, n int) arrow.RecordBatch {
	t.Helper()
	var fields []arrow.Field
	for _, f := range s.Fields {
		fields = append(fields, arrow.Field{Name: f.Name, Type: schema.ArrowType(f.Type), Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "_skippr_token", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for row := range n {
		for c := range fields {
			if c > 0 && c < len(fields)-1 && (row+c)%3 == 0 {
				b.Field(c).AppendNull()
				continue
			}
			appendValue(t, b.Field(c), row)
		}
	}
	return b.NewRecordBatch()
}

func appendValue(t testing.TB, b array.Builder, row int) {
	t.Helper()
	if list, ok := b.(*array.ListBuilder); ok {
		list.Append(true)
		for i := range row % 4 {
			if i == 2 {
				list.ValueBuilder().AppendNull()
				continue
			}
			appendValue(t, list.ValueBuilder(), row+i)
		}
		return
	}
	text := fmt.Sprint(row)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(row%2 == 0)
		return
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(fmt.Sprintf("%016d", row)))
		return
	case *array.BinaryBuilder:
		b.Append([]byte{0, byte(row), 255})
		return
	case *array.StringBuilder:
		b.Append("é" + text)
		return
	case *array.Date32Builder:
		b.Append(arrow.Date32(row))
		return
	case *array.Time64Builder:
		b.Append(arrow.Time64(row))
		return
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(row))
		return
	}
	if err := b.AppendValueFromString(text); err != nil {
		t.Fatal(err)
	}
}

// Every type comes back from iceberg-go's own reader as it went in, with its field id
// in the Parquet file.
func TestEveryType(t *testing.T) {
	w := openWarehouse(t, newStore(t), t.TempDir(), env.NewFake(time.Unix(1e9, 0), 1))
	s := everyType(t)
	tbl, err := w.Table(t.Context(), lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "every"}, Table: 1, Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	in := typedRows(t, s, 100)
	defer in.Release()
	wr, err := tbl.NewWriter(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := wr.Write(t.Context(), in.NewSlice(0, 60)); err != nil {
		t.Fatal(err)
	}
	if err := wr.Write(t.Context(), in.NewSlice(60, 100)); err != nil { // offsets into lists
		t.Fatal(err)
	}
	files, err := wr.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := tbl.Commit(t.Context(), lake.Commit{CompactionID: "x", AddFiles: files, Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, r := range scan(t, w, table.Identifier{"public", "every"}, snap) {
		for i := range int(r.NumRows()) {
			for c := range int(in.NumCols()) {
				got, want := r.Column(c).ValueStr(i), in.Column(c).ValueStr(at)
				if k := schemaKind(s, c); k == schema.UUID || k == schema.List && s.Fields[c].Type.Elem.Kind == schema.UUID {
					if r.Column(c).IsNull(i) != in.Column(c).IsNull(at) {
						t.Errorf("row %d column %d: null differs", at, c)
					}
					continue // rendered differently; TestParquetTypes looks at the type
				}
				if got != want {
					t.Errorf("row %d column %s (%s): got %s, want %s", at, in.ColumnName(c), in.Column(c).DataType(), got, want)
				}
			}
			at++
		}
	}
	if at != 100 {
		t.Errorf("read %d rows, want 100", at)
	}
	checkParquet(t, files[0].Path, s)
}

func schemaKind(s *schema.Table, col int) schema.Kind {
	if col >= len(s.Fields) {
		return schema.Int64
	}
	return s.Fields[col].Type.Kind
}

// checkParquet looks at what other engines go by: ids, logical and physical types.
func checkParquet(t *testing.T, path string, s *schema.Table) {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	root := r.MetaData().Schema.Root()
	for i, f := range s.Fields {
		if id := root.Field(i).FieldID(); id != f.ID {
			t.Errorf("column %s has Parquet field id %d, want %d", f.Name, id, f.ID)
		}
	}
	seen := map[int32]bool{}
	for i := range r.MetaData().Schema.NumColumns() {
		col := r.MetaData().Schema.Column(i)
		id := col.SchemaNode().FieldID()
		if id <= 0 || seen[id] {
			t.Errorf("leaf %s has field id %d", col.Path(), id)
		}
		seen[id] = true
	}
	for name, want := range map[string]string{
		"c5": "INT32", "c6": "INT64", "c7": "FIXED_LEN_BYTE_ARRAY", "c14": "FIXED_LEN_BYTE_ARRAY", "c9": "INT64",
	} {
		col := r.MetaData().Schema.Column(r.MetaData().Schema.ColumnIndexByName(name))
		if got := col.PhysicalType().String(); got != want {
			t.Errorf("column %s is %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"c14": "UUID", "c9": "isAdjustedToUTC=false", "c10": "isAdjustedToUTC=false", "c11": "isAdjustedToUTC=true",
	} {
		col := r.MetaData().Schema.Column(r.MetaData().Schema.ColumnIndexByName(name))
		if got := col.LogicalType().String(); !strings.Contains(got, want) {
			t.Errorf("column %s is %s, want %s in it", name, got, want)
		}
	}
}

// A table that lives long: its metadata must not grow with its history, and its old
// files must go.
func TestManySmallCommits(t *testing.T) {
	commits := 1000
	if testing.Short() {
		commits = 120
	}
	clock := env.NewFake(time.Unix(1e9, 0), 1)
	dir, store := t.TempDir(), newStore(t)
	w := openWarehouse(t, store, dir, clock)
	spec := lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7, Schema: laketest.People(t)}
	tbl, err := w.Table(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	live := 0
	for i := range commits {
		c := lake.Commit{
			Base: tbl.Head().ID, CompactionID: fmt.Sprint("c", i), MaxToken: int64(i),
			Slices: []segment.SliceRef{{Seq: segment.Seq(i + 1), Start: 128}},
		}
		c.AddFiles = writePeople(t, tbl, int64(i), fmt.Sprintf("%d|n", i))
		live++
		if head := tbl.Head(); i%2 == 1 {
			d, err := tbl.WriteDeletes(t.Context(), []lake.Position{{File: head.Files[len(head.Files)-1].Path, Row: 0}})
			if err != nil {
				t.Fatal(err)
			}
			c.AddDeletes = []lake.DeleteFile{*d}
			live--
		}
		if _, err := tbl.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Minute)
		if i%10 == 9 {
			if err := tbl.Maintain(t.Context(), lake.Retention{Snapshots: 10, Grace: 10 * time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
	}
	clock.Advance(time.Hour)
	if err := tbl.Maintain(t.Context(), lake.Retention{Snapshots: 10, Grace: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	head := tbl.Head()
	info, err := os.Stat(head.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 64<<10 {
		t.Errorf("metadata file has %d bytes", info.Size())
	}
	names, _ := filepath.Glob(filepath.Join(filepath.Dir(head.Metadata), "*"))
	if len(names) > 250 {
		t.Errorf("%d metadata files", len(names))
	}
	if got := len(scanPeople(t, w, head)); got != live || head.Rows != int64(live) {
		t.Errorf("scan has %d rows, snapshot says %d, want %d", got, head.Rows, live)
	}
	// Read from disk by a fresh process: the same list.
	cold, err := openWarehouse(t, store, dir, clock).Snapshot(t.Context(), "public.people", head.Metadata, head.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(cold.Files) != len(head.Files) || cold.Rows != head.Rows || cold.Bytes != head.Bytes ||
		cold.MaxToken != head.MaxToken {
		t.Errorf("read from disk: %d files, %d rows, %d bytes, token %d; kept in memory: %d, %d, %d, %d",
			len(cold.Files), cold.Rows,
			cold.Bytes, cold.MaxToken, len(head.Files), head.Rows, head.Bytes, head.MaxToken)
	}
	for i := range cold.Files {
		if cold.Files[i].Path != head.Files[i].Path {
			t.Fatalf("file %d is %s, want %s", i, cold.Files[i].Path, head.Files[i].Path)
		}
		if head.Files[i].HasDeletes && !cold.Files[i].HasDeletes {
			t.Errorf("file %d lost its deletes", i)
		}
	}
}

func writePeople(t testing.TB, tbl lake.Table, token int64, rows ...string) []lake.DataFile {
	t.Helper()
	w, err := tbl.NewWriter(laketest.People(t))
	if err != nil {
		t.Fatal(err)
	}
	rec := laketest.Batch(t, token, rows...)
	defer rec.Release()
	if err := w.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	files, err := w.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func BenchmarkWrite(b *testing.B) {
	w := openWarehouse(b, newStore(b), b.TempDir(), env.NewFake(time.Unix(1e9, 0), 1))
	cols := []schema.NewField{{Name: "id", Type: schema.Type{Kind: schema.Int64}, NotNull: true}}
	for i := range 15 {
		k := []schema.Type{
			{Kind: schema.Int64},
			{Kind: schema.Decimal, Precision: 12, Scale: 2},
			{Kind: schema.Date},
			{Kind: schema.String},
			{Kind: schema.Int32},
		}[i%5]
		cols = append(cols, schema.NewField{Name: fmt.Sprint("c", i), Type: k})
	}
	s, err := schema.New(cols, []string{"id"})
	if err != nil {
		b.Fatal(err)
	}
	tbl, err := w.Table(b.Context(), lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "bench"}, Table: 1, Schema: s})
	if err != nil {
		b.Fatal(err)
	}
	const rows = 200_000
	rec := typedRows(b, s, rows)
	defer rec.Release()
	for b.Loop() {
		wr, err := tbl.NewWriter(s)
		if err != nil {
			b.Fatal(err)
		}
		if err := wr.Write(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
		if _, err := wr.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		wr.Discard()
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkSnapshot(b *testing.B) {
	clock := env.NewFake(time.Unix(1e9, 0), 1)
	dir, store := b.TempDir(), newStore(b)
	w := openWarehouse(b, store, dir, clock)
	s := everyType(b)
	tbl, err := w.Table(b.Context(), lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "every"}, Table: 7, Schema: s})
	if err != nil {
		b.Fatal(err)
	}
	rec := typedRows(b, s, 20)
	defer rec.Release()
	for i := range 300 {
		wr, err := tbl.NewWriter(s)
		if err != nil {
			b.Fatal(err)
		}
		if err := wr.Write(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
		files, err := wr.Close(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tbl.Commit(b.Context(), lake.Commit{
			Base: tbl.Head().ID, CompactionID: fmt.Sprint(i),
			AddFiles: files,
		}); err != nil {
			b.Fatal(err)
		}
	}
	head := tbl.Head()
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			w := openWarehouse(b, store, dir, clock)
			b.StartTimer()
			if _, err := w.Snapshot(b.Context(), "every", head.Metadata, head.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cached", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.Snapshot(b.Context(), "every", head.Metadata, head.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}
