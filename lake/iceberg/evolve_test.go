package iceberg_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
)

// readAs reads files without deletes as a schema version, as this project's own readers
// do: by field id, with initial values.
func readAs(t *testing.T, s *lake.Snapshot, as *schema.Table) []string {
	t.Helper()
	var out []string
	for _, f := range s.Files {
		rec := readParquet(t, f.Path)
		own := make([]arrow.Array, len(as.Fields))
		for i, field := range as.Fields {
			own[i] = columnOf(t, rec, field)
		}
		token, _ := columnOf(t, rec, schema.Field{ID: schema.TokenFieldID, Type: schema.Type{Kind: schema.Int64}}).(*array.Int64)
		for i := range int(rec.NumRows()) {
			out = append(out, laketest.Text(t, as, own, i)+"|"+strconv.FormatInt(token.Value(i), 10))
		}
	}
	return out
}

func readParquet(t *testing.T, path string) arrow.RecordBatch {
	t.Helper()
	pf, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pf.Close() }()
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	tr := array.NewTableReader(tbl, tbl.NumRows())
	if !tr.Next() {
		t.Fatalf("%s has no rows", path)
	}
	rec := tr.RecordBatch()
	rec.Retain()
	return rec
}

// columnOf is a field's column of a file.
func columnOf(t *testing.T, rec arrow.RecordBatch, f schema.Field) arrow.Array {
	t.Helper()
	for i, have := range rec.Schema().Fields() {
		if id, _ := have.Metadata.GetValue("PARQUET:field_id"); id != strconv.Itoa(int(f.ID)) {
			continue
		}
		c, err := lake.Widen(plain(rec.Column(i)), schema.ArrowType(f.Type))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, err := schema.InitialColumn(f, int(rec.NumRows()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// plain unwraps UUIDs, in lists too.
func plain(a arrow.Array) arrow.Array {
	switch a := a.(type) {
	case array.ExtensionArray:
		return a.Storage()
	case *array.List:
		values := plain(a.ListValues())
		data := array.NewData(arrow.ListOf(values.DataType()), a.Len(), a.Data().Buffers(), []arrow.ArrayData{values.Data()},
			a.NullN(), a.Data().Offset())
		return array.MakeFromData(data)
	}
	return a
}

// Maintain writes initial values into files that are older than their columns, once: then
// other engines read them too. Until then the table's properties tell of them.
func TestInitialValuesAreWritten(t *testing.T) {
	clock := env.NewFake(time.Unix(1e9, 0), 1)
	w := openWarehouse(t, newStore(t), t.TempDir(), clock)
	int8col := schema.NewField{Name: "id", AttNum: 1, Type: schema.Type{Kind: schema.Int64}}
	s, err := schema.New([]schema.NewField{int8col}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	ident := lake.Ident{Namespace: "public", Name: "people"}
	tbl, err := w.Table(t.Context(), lake.Spec{Ident: ident, Table: 7, Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	commitIDs(t, tbl, s, "a", 1, 2)
	text := "it's"
	s, err = schema.Evolve(s, []schema.NewField{
		int8col, {Name: "v", AttNum: 2, Type: schema.Type{Kind: schema.String}, Initial: &text},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	commitIDs(t, tbl, s, "b", 3)
	id := table.Identifier{"public", "people"}
	loaded, err := w.Catalog().LoadTable(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	const property = `[{"id":2,"name":"v","type":{"kind":11},"initial":"it's","since":2}]`
	if got := loaded.Properties()["skippr.initial-values"]; got != property {
		t.Errorf("property %s", got)
	}
	maintain(t, tbl)
	got := map[string]int{}
	for _, r := range scan(t, w, id, tbl.Head()) {
		for i := range int(r.NumRows()) {
			got[r.Column(0).ValueStr(i)+"|"+r.Column(1).ValueStr(i)]++
		}
	}
	if len(got) != 3 || got["1|it's"] != 1 || got["2|it's"] != 1 || got["3|(null)"] != 1 {
		t.Errorf("rows as another engine reads them: %v", got)
	}
	after := tbl.Head().ID
	commitIDs(t, tbl, s, "c", 4)
	last := tbl.Head().ID
	maintain(t, tbl)
	if tbl.Head().ID != last || after == last {
		t.Error("rewrote again what has its values")
	}
}

// commitIDs commits a file of rows that have only their id.
func commitIDs(t *testing.T, tbl lake.Table, s *schema.Table, id string, ids ...int64) {
	t.Helper()
	w, err := tbl.NewWriter(s)
	if err != nil {
		t.Fatal(err)
	}
	fields := []arrow.Field{}
	for _, f := range s.Fields {
		fields = append(fields, arrow.Field{Name: f.Name, Type: schema.ArrowType(f.Type), Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "_skippr_token", Type: arrow.PrimitiveTypes.Int64})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		for i := 1; i < len(s.Fields); i++ {
			b.Field(i).AppendNull()
		}
		b.Field(len(s.Fields)).(*array.Int64Builder).Append(1)
	}
	if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	files, err := w.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tbl.Commit(t.Context(), lake.Commit{
		Base: tbl.Head().ID, CompactionID: id, Generation: 1, AddFiles: files, Schema: s, MaxToken: 1,
	}); err != nil {
		t.Fatal(err)
	}
}
