package duckdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// memorySlices is a log in memory.
type memorySlices struct {
	mu    sync.Mutex
	recs  map[uint64]arrow.RecordBatch
	lost  map[uint64]bool
	reads int
}

func (m *memorySlices) ReadSlice(_ context.Context, s LiveSlice, _ string) (arrow.RecordBatch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	rec, ok := m.recs[s.Seq]
	if !ok || m.lost[s.Seq] {
		return nil, fmt.Errorf("slice %d: %w", s.Seq, ErrSliceLost)
	}
	rec.Retain()
	return rec, nil
}

// row is a change of the test table: keys (id, part), and two more columns.
type row struct {
	op    change.Op
	token int64
	id    int64
	part  string
	name  string
	note  string // from schema version 2 on
}

// The test table at its two versions: column 3 was called title, and grew a sibling;
// id was int before it was bigint.
var liveFields = map[uint32][]int32{1: {1, 2, 3}, 2: {1, 2, 4, 3}}

func liveSchema(version uint32) *arrow.Schema {
	f := []arrow.Field{
		{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
		{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
	}
	if version == 1 {
		f = append(f, arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int32},
			arrow.Field{Name: "part", Type: arrow.BinaryTypes.String},
			arrow.Field{Name: "title", Type: arrow.BinaryTypes.String, Nullable: true})
	} else {
		f = append(f, arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64},
			arrow.Field{Name: "part", Type: arrow.BinaryTypes.String},
			arrow.Field{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true})
	}
	return arrow.NewSchema(f, nil)
}

func liveRecord(version uint32, rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, liveSchema(version))
	defer b.Release()
	text := func(i int, r row, s string) {
		if r.op == change.Delete {
			b.Field(i).AppendNull()
		} else {
			b.Field(i).(*array.StringBuilder).Append(s)
		}
	}
	for i, r := range rows {
		b.Field(0).(*array.Uint8Builder).Append(uint8(r.op))
		b.Field(1).(*array.Int64Builder).Append(r.token)
		b.Field(2).(*array.Int32Builder).Append(int32(i))
		b.Field(4).(*array.StringBuilder).Append(r.part)
		if version == 1 {
			b.Field(3).(*array.Int32Builder).Append(int32(r.id))
			text(5, r, r.name)
			continue
		}
		b.Field(3).(*array.Int64Builder).Append(r.id)
		text(5, r, r.note)
		text(6, r, r.name)
	}
	return b.NewRecordBatch()
}

func withID(f arrow.Field, id int32) arrow.Field {
	f.Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(id)})
	return f
}

func writeParquet(t testing.TB, path string, rec arrow.RecordBatch) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(rec.Schema(), f,
		parquet.NewWriterProperties(parquet.WithStoreDecimalAsInteger(true)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// lakeFile writes rows as a data file under the columns' old names.
func lakeFile(t testing.TB, path string, rows []row) File {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{
		withID(arrow.Field{Name: "filename", Type: arrow.BinaryTypes.String, Nullable: true}, 3),
		withID(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, 1),
		withID(arrow.Field{Name: "part", Type: arrow.BinaryTypes.String}, 2),
		withID(arrow.Field{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true}, 4),
		withID(arrow.Field{Name: tokenName, Type: arrow.PrimitiveTypes.Int64, Nullable: true}, schema.TokenFieldID),
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	f := File{Path: path, Rows: int64(len(rows)), KeyBounds: true, KeyMin: rows[0].id, KeyMax: rows[0].id}
	for _, r := range rows {
		b.Field(0).(*array.StringBuilder).Append(r.name)
		b.Field(1).(*array.Int64Builder).Append(r.id)
		b.Field(2).(*array.StringBuilder).Append(r.part)
		b.Field(3).(*array.StringBuilder).Append(r.note)
		b.Field(4).(*array.Int64Builder).Append(r.token)
		f.KeyMin, f.KeyMax = min(f.KeyMin, r.id), max(f.KeyMax, r.id)
	}
	writeParquet(t, path, b.NewRecordBatch())
	return f
}

func deleteFile(t testing.TB, path string, at []place) {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{
		withID(arrow.Field{Name: "file_path", Type: arrow.BinaryTypes.String}, 2147483546),
		withID(arrow.Field{Name: "pos", Type: arrow.PrimitiveTypes.Int64}, 2147483545),
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for _, p := range at {
		b.Field(0).(*array.StringBuilder).Append(p.file)
		b.Field(1).(*array.Int64Builder).Append(p.pos)
	}
	writeParquet(t, path, b.NewRecordBatch())
}

type place struct {
	file string
	pos  int64
}

// history is a table's changes cut into slices, with the lake as it stands after each
// of them was compacted in turn.
type history struct {
	key    []string
	slices [][]row
	live   []LiveSlice
	lakes  []Relation // after the first i slices
	log    *memorySlices
}

func (h *history) keyOf(r row) string {
	if len(h.key) == 1 {
		return fmt.Sprint(r.id)
	}
	return fmt.Sprint(r.id, "/", r.part)
}

// fold is the oracle: the rows after slices [0, n), as text.
func (h *history) fold(n int) []string {
	type state struct {
		row
		version uint32
	}
	best := map[string]state{}
	for i, s := range h.slices[:n] {
		if h.live[i].Truncate {
			clear(best)
		}
		for _, r := range s {
			if old, ok := best[h.keyOf(r)]; !ok || r.token >= old.token {
				best[h.keyOf(r)] = state{r, h.live[i].SchemaVersion}
			}
		}
	}
	var out []string
	for _, r := range best {
		if r.op == change.Delete {
			continue
		}
		if r.version == 1 {
			r.note = "∅"
		}
		out = append(out, fmt.Sprintf("%d|%s|%s|%s", r.id, r.part, r.name, r.note))
	}
	sort.Strings(out)
	return out
}

// compact builds the lakes, one slice a file, old rows deleted by position.
func (h *history) compact(t testing.TB, dir string) {
	rel := Relation{Name: "T 1", Key: h.key, Columns: []Column{
		{Name: "id", FieldID: 1, EngineType: "BIGINT"}, {Name: "part", FieldID: 2, EngineType: "VARCHAR"}, {Name: "name", FieldID: 3, EngineType: "VARCHAR"}, {Name: "note", FieldID: 4, EngineType: "VARCHAR"},
	}}
	at := map[string]place{}
	newest := map[string]row{}
	h.lakes = []Relation{rel}
	for i, s := range h.slices {
		rel.Files, rel.PositionDeletes = slices.Clone(rel.Files), slices.Clone(rel.PositionDeletes)
		if h.live[i].Truncate {
			rel.Files, rel.PositionDeletes = nil, nil
			clear(at)
			clear(newest)
		}
		touched := map[string]bool{}
		for _, r := range s {
			k := h.keyOf(r)
			if old, ok := newest[k]; !ok || r.token >= old.token {
				newest[k], touched[k] = r, true
			}
		}
		var deleted []place
		var rows []row
		path := filepath.Join(dir, fmt.Sprintf("data-%d.parquet", i))
		keys := make([]string, 0, len(touched))
		for k := range touched {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if p, ok := at[k]; ok {
				deleted = append(deleted, p)
				delete(at, k)
			}
			if r := newest[k]; r.op != change.Delete {
				if h.live[i].SchemaVersion == 1 {
					r.note = "∅"
				}
				at[k] = place{path, int64(len(rows))}
				rows = append(rows, r)
			}
		}
		if len(rows) > 0 {
			rel.Files = append(rel.Files, lakeFile(t, path, rows))
		}
		if len(deleted) > 0 {
			name := filepath.Join(dir, fmt.Sprintf("deletes-%d.parquet", i))
			deleteFile(t, name, deleted)
			rel.PositionDeletes = append(rel.PositionDeletes, name)
			for k := range rel.Files {
				for _, p := range deleted {
					rel.Files[k].HasDeletes = rel.Files[k].HasDeletes || rel.Files[k].Path == p.file
				}
			}
		}
		h.lakes = append(h.lakes, rel)
	}
}

// check compares the pin of lake c and live slices [c, n) with the oracle.
func (h *history) check(t *testing.T, p *Pool, c, n int, compare bool) {
	t.Helper()
	rel := h.lakes[c]
	if n > c {
		rel.Live = &Live{Dir: "log", Table: 1, Slices: h.live[c:n], Fields: liveFields, CompareTokens: compare}
	}
	plan := &Plan{
		SQL:       `SELECT t.id::VARCHAR, t.part, t.name, t.note FROM "T 1" AS t`,
		Relations: []Relation{rel}, Output: rowsOutput(4),
	}
	got := mustRun(t, p, plan)
	sort.Strings(got)
	want := h.fold(n)
	if !slices.Equal(got, want) {
		t.Fatalf("pin (%d..%d] compare %v\n got %d rows %v\nwant %d rows %v", c, n, compare, len(got), got, len(want), want)
	}
	count := &Plan{SQL: `SELECT count(*)::VARCHAR FROM "T 1" t`, Relations: plan.Relations, Output: rowsOutput(1)}
	if got := mustRun(t, p, count); got[0] != fmt.Sprint(len(want)) {
		t.Fatalf("count(*) = %s, want %d", got, len(want))
	}
	id := "5"
	point := &Plan{
		SQL:       `SELECT t.id::VARCHAR, t.part, t.name, t.note FROM "T 1" AS t WHERE t.id = CAST($1 AS BIGINT)`,
		Relations: []Relation{rel}, Output: rowsOutput(4), Params: []*string{&id},
	}
	point.Relations[0].KeyPredicate = `id = 5`
	got = mustRun(t, p, point)
	sort.Strings(got)
	want = slices.DeleteFunc(want, func(s string) bool { return !strings.HasPrefix(s, "5|") })
	if !slices.Equal(got, want) {
		t.Fatalf("point: got %v, want %v", got, want)
	}
}

func randomHistory(r *rand.Rand, key []string, slicesN int, stale, truncate bool) *history {
	h := &history{key: key, log: &memorySlices{recs: map[uint64]arrow.RecordBatch{}}}
	alive := map[string]bool{}
	token := int64(100)
	for i := range slicesN {
		version := uint32(1)
		if i >= slicesN/3 {
			version = 2
		}
		s := LiveSlice{Seq: uint64(i + 1), Start: 64, SchemaVersion: version}
		if truncate && r.IntN(5) == 0 {
			s.Truncate = true
			clear(alive)
		}
		var rows []row
		for range r.IntN(12) {
			token++
			c := row{op: change.Update, token: token, id: int64(r.IntN(20)), part: []string{"a", "a part longer than twelve"}[r.IntN(2)]}
			c.name, c.note = fmt.Sprint("name ", token), fmt.Sprint("a longer note ", token)
			k := h.keyOf(c)
			switch {
			case alive[k] && r.IntN(3) == 0:
				c.op = change.Delete
			case stale && alive[k] && r.IntN(3) == 0:
				c.token = int64(r.IntN(100)) // a late copy of an old row
			}
			if c.token == token {
				alive[k] = c.op != change.Delete
			}
			rows = append(rows, c)
		}
		s.Rows = int64(len(rows))
		if len(rows) > 0 {
			h.log.recs[s.Seq] = liveRecord(version, rows)
		}
		h.live = append(h.live, s)
		h.slices = append(h.slices, rows)
	}
	return h
}

// TestPlansAgreeWithFold compares every pin of random histories with a fold over all
// changes: keys of one and of two columns, growing and stale tokens, truncates, and
// two schema versions. Pins come in random order, so that the cache meets newer and
// older ones.
func TestPlansAgreeWithFold(t *testing.T) {
	for seed := range uint64(2) {
		for name, c := range map[string]struct {
			key             []string
			stale, truncate bool
		}{
			"one column":  {key: []string{"id"}},
			"two columns": {key: []string{"id", "part"}},
			"stale":       {key: []string{"id", "part"}, stale: true},
			"stale one":   {key: []string{"id"}, stale: true},
			"truncates":   {key: []string{"id"}, truncate: true},
		} {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				h := randomHistory(r, c.key, 9, c.stale, c.truncate)
				h.compact(t, t.TempDir())
				p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 2}, h.log)
				type pin struct{ c, n int }
				var pins []pin
				for n := range len(h.slices) + 1 {
					for c := range n + 1 {
						pins = append(pins, pin{c, n})
					}
				}
				r.Shuffle(len(pins), func(i, j int) { pins[i], pins[j] = pins[j], pins[i] })
				for _, pin := range pins {
					h.check(t, p, pin.c, pin.n, c.stale)
					if !c.stale {
						h.check(t, p, pin.c, pin.n, true)
					}
				}
			})
		}
	}
}

// TestAppendOnly: without a key every row of lake and log is there.
func TestAppendOnly(t *testing.T) {
	h := &history{log: &memorySlices{recs: map[uint64]arrow.RecordBatch{}}}
	for i := range 3 {
		rows := []row{{op: change.Insert, token: 1, id: 7, part: "a", name: fmt.Sprint("n", i)}, {op: change.Insert, token: 1, id: 7, part: "a", name: "same"}}
		h.log.recs[uint64(i+1)] = liveRecord(1, rows)
		h.live = append(h.live, LiveSlice{Seq: uint64(i + 1), SchemaVersion: 1, Rows: 2})
	}
	dir := t.TempDir()
	rel := Relation{
		Name: "R", Columns: []Column{{Name: "name", FieldID: 3, EngineType: "VARCHAR"}},
		Files: []File{lakeFile(t, filepath.Join(dir, "it's.parquet"), []row{{id: 7, name: "lake"}, {id: 7, name: "same"}})},
	}
	rel.Live = &Live{Dir: "d", Table: 2, Slices: h.live, Fields: liveFields}
	p := newTestPool(t, PoolConfig{InProcess: true}, h.log)
	plan := &Plan{SQL: `SELECT name FROM "R" r ORDER BY 1`, Relations: []Relation{rel}, Output: rowsOutput(1)}
	if got := strings.Join(mustRun(t, p, plan), " "); got != "lake n0 n1 n2 same same same same" {
		t.Errorf("got %s", got)
	}
}

func TestLostSliceIsAnError(t *testing.T) {
	h := randomHistory(rand.New(rand.NewPCG(1, 1)), []string{"id"}, 5, false, false)
	h.compact(t, t.TempDir())
	p := newTestPool(t, PoolConfig{InProcess: true}, h.log)
	h.log.lost = map[uint64]bool{3: true}
	rel := h.lakes[0]
	rel.Live = &Live{Dir: "log", Table: 1, Slices: h.live, Fields: liveFields}
	plan := &Plan{SQL: `SELECT name FROM "T 1" t`, Relations: []Relation{rel}, Output: rowsOutput(1)}
	if _, err := run(context.Background(), p, plan); !strings.Contains(fmt.Sprint(err), ErrSliceLost.Error()) {
		t.Errorf("err = %v", err)
	}
	h.log.lost = nil
	h.check(t, p, 0, 5, false)
}

func TestWithPosition(t *testing.T) {
	dir := t.TempDir()
	a := lakeFile(t, filepath.Join(dir, "a.parquet"), []row{{id: 1}, {id: 2}, {id: 3}})
	deleteFile(t, filepath.Join(dir, "d.parquet"), []place{{a.Path, 1}})
	a.HasDeletes = true
	rel := Relation{
		Name: "R", Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}}, Files: []File{a}, WithPosition: true,
		PositionDeletes: []string{filepath.Join(dir, "d.parquet")},
	}
	p := newTestPool(t, PoolConfig{InProcess: true}, nil)
	plan := &Plan{SQL: `SELECT id::VARCHAR, _skippr_file, _skippr_pos::VARCHAR FROM "R" r ORDER BY id`, Relations: []Relation{rel}, Output: rowsOutput(3)}
	got := strings.Join(mustRun(t, p, plan), " ")
	if want := "1|" + a.Path + "|0 3|" + a.Path + "|2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAllowedDirs: a worker reads lake files in the directories it may, and no others.
func TestAllowedDirs(t *testing.T) {
	allowed, other := t.TempDir(), t.TempDir()
	p := newTestPool(t, PoolConfig{Worker: WorkerConfig{AllowedDirs: []string{allowed}}}, nil)
	for _, dir := range []string{allowed, other} {
		sub := filepath.Join(dir, "schema", "table")
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		f := lakeFile(t, filepath.Join(sub, "a.parquet"), []row{{id: 1}, {id: 2}})
		deleteFile(t, filepath.Join(sub, "d.parquet"), []place{{f.Path, 0}})
		f.HasDeletes = true
		rel := Relation{
			Name: "R", Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}}, Files: []File{f},
			PositionDeletes: []string{filepath.Join(sub, "d.parquet")},
		}
		got, err := run(context.Background(), p, &Plan{SQL: `SELECT id::VARCHAR FROM "R" r`, Relations: []Relation{rel}, Output: rowsOutput(1)})
		if dir == allowed && (err != nil || !slices.Equal(got, []string{"2"})) {
			t.Errorf("allowed: %v, %v", got, err)
		}
		if dir == other && err == nil {
			t.Errorf("not allowed: %v", got)
		}
	}
}

// TestLakeTypes reads every lake type from a file as the lake writes it.
func TestLakeTypes(t *testing.T) {
	uuid := extensions.NewUUIDType()
	types := []struct {
		typ    arrow.DataType
		engine string
		json   string
		want   string
	}{
		{arrow.FixedWidthTypes.Boolean, "BOOLEAN", "true", "true"},
		{arrow.PrimitiveTypes.Int32, "INTEGER", "-7", "-7"},
		{arrow.PrimitiveTypes.Int32, "BIGINT", "-7", "-7"},
		{arrow.PrimitiveTypes.Int64, "BIGINT", "9007199254740993", "9007199254740993"},
		{arrow.PrimitiveTypes.Float32, "REAL", "1.5", "1.5"},
		{arrow.PrimitiveTypes.Float32, "DOUBLE", "1.5", "1.5"},
		{arrow.PrimitiveTypes.Float64, "DOUBLE", "-0.125", "-0.125"},
		{&arrow.Decimal128Type{Precision: 4, Scale: 2}, "DECIMAL(4,2)", `"-1.50"`, "-1.50"},
		{&arrow.Decimal128Type{Precision: 10, Scale: 2}, "DECIMAL(20,2)", `"-1.50"`, "-1.50"},
		{&arrow.Decimal128Type{Precision: 38, Scale: 5}, "DECIMAL(38,5)", `"123456789012345678901234567890.12345"`, "123456789012345678901234567890.12345"},
		{arrow.FixedWidthTypes.Date32, "DATE", `"2024-02-29"`, "2024-02-29"},
		{arrow.FixedWidthTypes.Time64us, "TIME", `"23:59:59.999999"`, "23:59:59.999999"},
		{&arrow.TimestampType{Unit: arrow.Microsecond}, "TIMESTAMP", `"2024-02-29 12:00:00.5"`, "2024-02-29 12:00:00.5"},
		{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, "TIMESTAMP WITH TIME ZONE", `"2024-02-29T12:00:00Z"`, "2024-02-29 12:00:00+00"},
		{arrow.BinaryTypes.String, "VARCHAR", `"ü and more than twelve bytes"`, "ü and more than twelve bytes"},
		{arrow.BinaryTypes.Binary, "BLOB", `"AAEC"`, `\x00\x01\x02`},
		{uuid, "UUID", `"01234567-89ab-cdef-0123-456789abcdef"`, "01234567-89ab-cdef-0123-456789abcdef"},
		{list(arrow.BinaryTypes.String), "VARCHAR[]", `["a",null]`, "[a, NULL]"},
		{list(arrow.PrimitiveTypes.Int64), "BIGINT[]", `[1,2]`, "[1, 2]"},
		{list(uuid), "UUID[]", `["01234567-89ab-cdef-0123-456789abcdef"]`, "[01234567-89ab-cdef-0123-456789abcdef]"},
		{list(arrow.FixedWidthTypes.Time64us), "TIME[]", `["01:02:03"]`, "['01:02:03']"},
		{list(&arrow.TimestampType{Unit: arrow.Microsecond}), "TIMESTAMP[]", `["2024-02-29 12:00:00"]`, "['2024-02-29 12:00:00']"},
	}
	p := newTestPool(t, PoolConfig{InProcess: true}, nil)
	for i, c := range types {
		t.Run(fmt.Sprint(c.typ, " as ", c.engine), func(t *testing.T) {
			a, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader("["+c.json+",null]"))
			if err != nil {
				t.Fatal(err)
			}
			f := withID(arrow.Field{Name: "v", Type: c.typ, Nullable: true}, 9)
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.parquet", i))
			writeParquet(t, path, array.NewRecordBatch(arrow.NewSchema([]arrow.Field{f}, nil), []arrow.Array{a}, 2))
			rel := Relation{Name: "R", Columns: []Column{{Name: "v", FieldID: 9, EngineType: c.engine}, {Name: "added", FieldID: 10, EngineType: "BIGINT[]"}}, Files: []File{{Path: path, Rows: 2}}}
			plan := &Plan{SQL: `SELECT v::VARCHAR, replace(typeof(v), 'FLOAT', 'REAL'), added::VARCHAR FROM "R" r`, Relations: []Relation{rel}, Output: rowsOutput(3)}
			got := mustRun(t, p, plan)
			if got[0] != c.want+"|"+c.engine+"|∅" || got[1] != "∅|"+c.engine+"|∅" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func list(t arrow.DataType) arrow.DataType {
	return arrow.ListOfField(withID(arrow.Field{Name: "element", Type: t, Nullable: true}, 99))
}
