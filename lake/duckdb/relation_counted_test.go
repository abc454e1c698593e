package duckdb

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// countedTable is a table without a key that has the columns of initials(), and each row
// is one of two: every column its value, or every column null.
type countedTable struct {
	fields  []schema.Field
	columns []Column
	values  []arrow.Array // two rows: the values, and nulls
}

func newCountedTable(t *testing.T) *countedTable {
	t.Helper()
	c := &countedTable{fields: initials()}
	for _, f := range c.fields {
		one, err := schema.InitialColumn(f, 1)
		if err != nil {
			t.Fatal(err)
		}
		none, err := schema.InitialColumn(schema.Field{Type: f.Type}, 1)
		if err != nil {
			t.Fatal(err)
		}
		both, err := array.Concatenate([]arrow.Array{one, none}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		c.values = append(c.values, both)
		c.columns = append(c.columns, Column{Name: f.Name, FieldID: f.ID, EngineType: schema.EngineType(f.Type)})
	}
	return c
}

// rows picks rows of the two.
func (c *countedTable) rows(t *testing.T, which ...int) []arrow.Array {
	t.Helper()
	out := make([]arrow.Array, len(c.values))
	for i, v := range c.values {
		var parts []arrow.Array
		for _, w := range which {
			parts = append(parts, array.NewSlice(v, int64(w), int64(w+1)))
		}
		var err error
		if out[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (c *countedTable) file(t *testing.T, path string, which ...int) File {
	t.Helper()
	var fields []arrow.Field
	columns := c.rows(t, which...)
	for i, f := range c.fields {
		columns[i] = withUUIDs(t, columns[i])
		fields = append(fields, withID(arrow.Field{Name: f.Name, Type: columns[i].DataType(), Nullable: true}, f.ID))
	}
	writeParquet(t, path, array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(which))))
	return File{Path: path, Rows: int64(len(which))}
}

func (c *countedTable) record(t *testing.T, op change.Op, which ...int) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, systemSchema())
	for i := range which {
		b.Field(0).(*array.Uint8Builder).Append(uint8(op))
		b.Field(1).(*array.Int64Builder).Append(5)
		b.Field(2).(*array.Int32Builder).Append(int32(i))
	}
	system := b.NewRecordBatch()
	columns, fields := slices.Clone(system.Columns()), system.Schema().Fields()
	for i, v := range c.rows(t, which...) {
		columns = append(columns, v)
		fields = append(fields, arrow.Field{Name: c.fields[i].Name, Type: v.DataType(), Nullable: true})
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(which)))
}

func systemSchema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
	}, nil)
}

// Of equal rows, of every type, a delete takes one away: in the log, and in the lake,
// with and without deleted positions; what it does not meet stays.
func TestWholeRows(t *testing.T) {
	c := newCountedTable(t)
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{}}
	p := newTestPool(t, PoolConfig{InProcess: true}, log)
	path := filepath.Join(t.TempDir(), "data.parquet")
	file := c.file(t, path, 0, 0, 1, 0, 1)
	gone := filepath.Join(t.TempDir(), "gone.parquet")
	deleteFile(t, gone, []place{{path, 3}})
	var ids []int32
	for _, f := range c.fields {
		ids = append(ids, f.ID)
	}
	for i, rec := range []arrow.RecordBatch{
		c.record(t, change.Delete, 0), c.record(t, change.Insert, 0, 1), c.record(t, change.Delete, 1, 1, 1), c.record(t, change.Delete, 0, 0),
	} {
		log.recs[uint64(i+1)] = rec
	}
	table := uint32(1)
	read := func(files []File, deletes []string, live ...uint64) string {
		t.Helper()
		if live == nil || live[0] != 4 {
			table++ // nothing known of it
		}
		r := Relation{Name: "T", WholeRow: true, Columns: c.columns, Files: files, PositionDeletes: deletes}
		r.Live = &Live{Dir: "log", Table: table, Fields: map[uint32][]int32{1: ids}}
		for _, seq := range live {
			r.Live.Slices = append(r.Live.Slices, LiveSlice{Seq: seq, Start: 64, SchemaVersion: 1, Rows: log.recs[seq].NumRows()})
		}
		values := mustRun(t, p, &Plan{
			SQL:       `SELECT count(t."c2")::VARCHAR, count(*)::VARCHAR FROM "T" t`,
			Relations: []Relation{r}, Output: rowsOutput(2),
		})
		return values[0]
	}
	deleted := file
	deleted.HasDeletes = true
	for _, want := range []struct {
		what string
		got  string
		want string // rows of values, all rows
	}{
		{"all", read([]File{file}, nil), "3|5"},
		{"one of three", read([]File{file}, nil, 1), "2|4"},
		{"one of two that are left", read([]File{deleted}, []string{gone}, 1), "1|3"},
		{"one of the log, not of the lake", read([]File{file}, nil, 2, 3), "4|4"},
		{"the lake alone", read([]File{file}, nil, 4), "1|3"},
		{"everything", read([]File{file}, nil, 1, 2, 3, 4), "1|1"},
		{"a delete whose insert is in the lake now", read([]File{file}, nil, 4), "1|3"},
	} {
		if want.got != want.want {
			t.Errorf("%s: %s, want %s", want.what, want.got, want.want)
		}
	}
}

// Zeros of both signs are apart, alone and in lists.
func TestWholeRowZeros(t *testing.T) {
	kind := schema.Type{Kind: schema.Float64}
	for _, typ := range []schema.Type{kind, {Kind: schema.List, Elem: &kind}} {
		c := &countedTable{
			fields:  []schema.Field{{ID: 2, Name: "c2", Type: typ}},
			columns: []Column{{Name: "c2", FieldID: 2, EngineType: schema.EngineType(typ)}},
			values:  []arrow.Array{zeros(typ)},
		}
		log := &memorySlices{recs: map[uint64]arrow.RecordBatch{1: c.record(t, change.Delete, 1)}}
		p := newTestPool(t, PoolConfig{InProcess: true}, log)
		r := Relation{
			Name: "T", WholeRow: true, Columns: c.columns,
			Files: []File{c.file(t, filepath.Join(t.TempDir(), "data.parquet"), 0, 1, 0, 1)},
			Live: &Live{
				Dir: "log", Table: 1, Fields: map[uint32][]int32{1: {2}},
				Slices: []LiveSlice{{Seq: 1, Start: 64, SchemaVersion: 1, Rows: 1}},
			},
		}
		got := mustRun(t, p, &Plan{SQL: `SELECT t."c2"::VARCHAR FROM "T" t ORDER BY 1`, Relations: []Relation{r}, Output: rowsOutput(1)})
		want := "[-0.0 0.0 0.0]"
		if typ.Kind == schema.List {
			want = "[[-0.0] [0.0] [0.0]]"
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v: %v, want %s", typ.Kind, got, want)
		}
	}
}

func zeros(typ schema.Type) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, schema.ArrowType(typ))
	for _, f := range []float64{0, math.Copysign(0, -1)} {
		if l, ok := b.(*array.ListBuilder); ok {
			l.Append(true)
			l.ValueBuilder().(*array.Float64Builder).Append(f)
			continue
		}
		b.(*array.Float64Builder).Append(f)
	}
	return b.NewArray()
}

// A slice and a file that are older than a column have its initial value to compare by.
func TestWholeRowInitial(t *testing.T) {
	text := "5"
	added := schema.Field{ID: 3, Name: "c3", Type: schema.Type{Kind: schema.Int64}, Initial: &text}
	c := &countedTable{
		fields:  []schema.Field{{ID: 2, Name: "c2", Type: schema.Type{Kind: schema.Float64}}},
		columns: []Column{{Name: "c2", FieldID: 2, EngineType: "DOUBLE"}},
		values:  []arrow.Array{zeros(schema.Type{Kind: schema.Float64})},
	}
	value, err := schema.InitialColumn(added, 1)
	if err != nil {
		t.Fatal(err)
	}
	content, err := merge.Content(nil, value, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := c.file(t, filepath.Join(t.TempDir(), "data.parquet"), 0)
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{1: c.record(t, change.Insert, 0)}}
	c.fields = append(c.fields, added)
	c.values = append(c.values, value)
	c.columns = append(c.columns, Column{
		Name: "c3", FieldID: 3, EngineType: "BIGINT", Initial: schema.EngineInitial(added), InitialContent: content,
	})
	log.recs[2] = c.record(t, change.Delete, 0)
	p := newTestPool(t, PoolConfig{InProcess: true}, log)
	live := func(seqs ...uint64) *Live {
		l := &Live{Dir: "log", Table: 1, Fields: map[uint32][]int32{1: {2}, 2: {2, 3}}}
		for _, seq := range seqs {
			l.Slices = append(l.Slices, LiveSlice{Seq: seq, Start: 64, SchemaVersion: uint32(seq), Rows: 1})
		}
		return l
	}
	for what, r := range map[string]Relation{
		"slice": {Live: live(1, 2)}, "file": {Files: []File{file}, Live: live(2)},
	} {
		r.Name, r.WholeRow, r.Columns = "T", true, c.columns
		got := mustRun(t, p, &Plan{SQL: `SELECT count(*)::VARCHAR FROM "T" t`, Relations: []Relation{r}, Output: rowsOutput(1)})
		if got[0] != "0" {
			t.Errorf("%s: %s rows", what, got[0])
		}
	}
}
