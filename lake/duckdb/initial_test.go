package duckdb

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// initials are columns of every kind with values that are hard to write.
func initials() []schema.Field {
	decimal := func(p, s int32) schema.Type { return schema.Type{Kind: schema.Decimal, Precision: p, Scale: s} }
	list := func(t schema.Type) schema.Type { return schema.Type{Kind: schema.List, Elem: &t} }
	kind := func(k schema.Kind) schema.Type { return schema.Type{Kind: k} }
	var out []schema.Field
	add := func(t schema.Type, texts ...string) {
		for _, text := range texts {
			id := int32(len(out) + 2)
			out = append(out, schema.Field{ID: id, Name: fmt.Sprintf("c%d", id), Type: t, Initial: &text})
		}
	}
	add(kind(schema.Bool), "true", "false")
	add(kind(schema.Int32), "-2147483648", "0")
	add(kind(schema.Int64), "9223372036854775807", "-9223372036854775808")
	add(kind(schema.Float32), "0.1", "NaN", "+Inf", "-Inf", "1e-45")
	add(kind(schema.Float64), "0.1", "NaN", "+Inf", "1.7976931348623157e+308", "-0")
	add(decimal(4, 2), "-99.99", "0.05")
	add(decimal(38, 10), "1234567890123456789012345678.0123456789")
	add(kind(schema.Date), "19000", "-719893", "2932896", "-2147483646")
	add(kind(schema.Time), "0", "86399999999", "86400000000")
	add(kind(schema.Timestamp), "-1", "0", "253402300799999999", "-62135596800000001", "9223372036854775806")
	add(kind(schema.TimestampTZ), "-1", "1700000000000001", "253402300800000000")
	add(kind(schema.String), "", "it's", "NULL", " a\tb\n\"quoted\" ", "ünï €")
	add(kind(schema.Binary), "", "00ff275c78")
	add(kind(schema.UUID), "00112233445566778899aabbccddeeff")
	add(list(kind(schema.Int32)), `[]`, `["1",null,"-3"]`)
	add(list(kind(schema.String)), `[]`, `[null]`, `["NULL","null",""," a","b ","c,d","[e","f]","\"g\"","it's","\\","{h}"]`)
	add(list(kind(schema.Timestamp)), `["-1"]`)
	add(list(kind(schema.TimestampTZ)), `["1700000000000001",null]`)
	add(list(decimal(6, 3)), `["1.500"]`)
	add(list(kind(schema.UUID)), `["00112233445566778899aabbccddeeff"]`)
	add(list(kind(schema.Binary)), `["00ff275c2c22"]`)
	add(list(kind(schema.Float64)), `["NaN","0.1"]`)
	add(list(kind(schema.Bool)), `["true"]`)
	return out
}

// withUUIDs makes 16-byte columns the UUIDs they are, as the lake does.
func withUUIDs(t testing.TB, a arrow.Array) arrow.Array {
	t.Helper()
	uuid := extensions.NewUUIDType()
	switch a := a.(type) {
	case *array.FixedSizeBinary:
		return array.NewExtensionArrayWithStorage(uuid, a)
	case *array.List:
		if values, ok := a.ListValues().(*array.FixedSizeBinary); ok {
			elem := array.NewExtensionArrayWithStorage(uuid, values)
			data := array.NewData(arrow.ListOf(uuid), a.Len(), a.Data().Buffers(), []arrow.ArrayData{elem.Data()}, a.NullN(), a.Data().Offset())
			return array.MakeFromData(data)
		}
	}
	return a
}

// A file and a slice that are older than a column read as if they had its initial value
// (D2): the same as a file and a slice that have it.
func TestInitialValues(t *testing.T) {
	fields := initials()
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{}}
	p := newTestPool(t, PoolConfig{InProcess: true}, log)
	dir := t.TempDir()

	id := array.NewInt64Builder(memory.DefaultAllocator)
	id.Append(1)
	token := array.NewInt64Builder(memory.DefaultAllocator)
	token.Append(1)
	lakeFields := []arrow.Field{
		withID(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, 1),
		withID(arrow.Field{Name: tokenName, Type: arrow.PrimitiveTypes.Int64, Nullable: true}, schema.TokenFieldID),
	}
	lakeColumns := []arrow.Array{id.NewArray(), token.NewArray()}
	write := func(name string) File {
		path := filepath.Join(dir, name)
		writeParquet(t, path, array.NewRecordBatch(arrow.NewSchema(lakeFields, nil), lakeColumns, 1))
		return File{Path: path, Rows: 1}
	}
	old := write("old.parquet")
	columns := []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}}
	var names []string
	for _, f := range fields {
		col, err := schema.InitialColumn(f, 1)
		if err != nil {
			t.Fatal(err)
		}
		col = withUUIDs(t, col)
		lakeColumns = append(lakeColumns, col)
		lakeFields = append(lakeFields, withID(arrow.Field{Name: f.Name, Type: col.DataType(), Nullable: true}, f.ID))
		columns = append(columns, Column{
			Name: f.Name, FieldID: f.ID, EngineType: schema.EngineType(f.Type), Initial: schema.EngineInitial(f),
		})
		names = append(names, fmt.Sprintf("replace(t.%s::VARCHAR, chr(10), '⏎')", f.Name))
	}
	explicit := write("new.parquet")

	rec := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	}, nil))
	rec.Field(0).(*array.Uint8Builder).Append(uint8(change.Insert))
	rec.Field(1).(*array.Int64Builder).Append(5)
	rec.Field(2).(*array.Int32Builder).Append(0)
	rec.Field(3).(*array.Int64Builder).Append(1)
	log.recs[1] = rec.NewRecordBatch()
	live := &Live{
		Dir: "log", Table: 1, Slices: []LiveSlice{{Seq: 1, Start: 64, SchemaVersion: 1, Rows: 1}},
		Fields: map[uint32][]int32{1: {1}},
	}

	read := func(zone string, r Relation) []string {
		r.Name, r.Columns, r.Key = "T", columns, []string{"id"}
		plan := &Plan{
			SQL: `SELECT ` + strings.Join(names, ", ") + ` FROM "T" AS t`, Relations: []Relation{r},
			Output: rowsOutput(len(names)), Settings: map[string]string{"TimeZone": zone},
		}
		rows := mustRun(t, p, plan)
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		return strings.Split(rows[0], "|")
	}
	for _, zone := range []string{"UTC", "America/New_York", "Asia/Kathmandu"} {
		want := read(zone, Relation{Files: []File{explicit}, LakeRows: 1})
		for what, r := range map[string]Relation{
			"file":             {Files: []File{old}, LakeRows: 1},
			"slice":            {Live: live},
			"slice over file":  {Files: []File{explicit}, LakeRows: 1, Live: live},
			"compared with it": {Files: []File{old}, LakeRows: 1, Live: func() *Live { l := *live; l.CompareTokens = true; return &l }()},
		} {
			got := read(zone, r)
			for i := range want {
				if got[i] != want[i] {
					f := fields[i]
					t.Errorf("%s, %s, %s %s:\n got %s\nwant %s", zone, what, schema.EngineType(f.Type), *f.Initial, got[i], want[i])
				}
			}
		}
		if slices.ContainsFunc(want, func(s string) bool { return s == "∅" }) {
			t.Errorf("a value is null: %q", want)
		}
	}
}
