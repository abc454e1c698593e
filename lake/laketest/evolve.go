package laketest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
)

// column is a column of the suite's evolving table.
func column(name string, number int16, kind schema.Kind, initial string) schema.NewField {
	c := schema.NewField{Name: name, AttNum: number, Type: schema.Type{Kind: kind}, TypMod: -1}
	switch kind {
	case schema.Decimal:
		c.Type.Precision, c.Type.Scale = 10+int32(number%2)*10, 2
	case schema.List:
		c.Type.Elem = &schema.Type{Kind: schema.UUID}
	}
	if initial != "" {
		c.Initial = &initial
	}
	return c
}

// version is one schema version with the rows that are written in it.
type version struct {
	columns []schema.NewField
	rows    []string // as Read renders them, without tokens
	// want are all rows under this version.
	want []string
}

const (
	id1  = "00112233445566778899aabbccddeeff"
	list = `["` + id1 + `",null]`
)

// versions are the lives of the suite's evolving table: each widens, renames, adds and
// drops.
var versions = []version{
	{
		[]schema.NewField{
			column("id", 1, schema.Int32, ""), column("a", 2, schema.Float32, ""), column("b", 3, schema.String, ""),
		},
		[]string{"1|0.5|x", "2|-|-"},
		[]string{"1|0.5|x", "2|-|-"},
	},
	{
		[]schema.NewField{
			column("id", 1, schema.Int32, ""), column("b", 2, schema.Float64, ""), column("a", 3, schema.String, ""),
			column("n", 4, schema.Int32, "7"), column("u", 5, schema.UUID, id1),
		},
		[]string{"3|1.5|y|-|-"},
		[]string{"1|0.5|x|7|" + id1, "2|-|-|7|" + id1, "3|1.5|y|-|-"},
	},
	{
		[]schema.NewField{
			column("key", 1, schema.Int64, ""), column("n", 4, schema.Int64, ""), column("b", 6, schema.String, ""),
			column("l", 7, schema.List, list), column("t", 8, schema.Date, "19000"),
		},
		[]string{"4|8000000000|z|-|-"},
		[]string{"1|7|-|" + list + "|19000", "2|7|-|" + list + "|19000", "3|-|-|" + list + "|19000", "4|8000000000|z|-|-"},
	},
}

// record parses rows of a version into a batch for its writer.
func record(t *testing.T, s *schema.Table, token int64, rows []string) arrow.RecordBatch {
	t.Helper()
	cols := make([]arrow.Array, len(s.Fields)+1)
	fields := make([]arrow.Field, len(cols))
	for i, f := range s.Fields {
		var parts []arrow.Array
		for _, r := range rows {
			text := strings.Split(r, "|")[i]
			f.Initial = &text
			if text == "-" {
				f.Initial = nil
			}
			one, err := schema.InitialColumn(f, 1)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, one)
		}
		all, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		cols[i], fields[i] = all, arrow.Field{Name: f.Name, Type: all.DataType(), Nullable: true}
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for range rows {
		b.Append(token)
	}
	cols[len(s.Fields)] = b.NewArray()
	fields[len(s.Fields)] = arrow.Field{Name: "_skippr_token", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(len(rows)))
}

// Text renders row i of a version's columns as Read does; own are its columns.
func Text(t *testing.T, s *schema.Table, own []arrow.Array, i int) string {
	t.Helper()
	words := make([]string, len(s.Fields))
	for c, f := range s.Fields {
		text, err := schema.FormatInitial(f.Type, own[c], i)
		if err != nil {
			t.Fatal(err)
		}
		words[c] = "-"
		if text != nil {
			words[c] = *text
		}
	}
	return strings.Join(words, "|")
}

// Files of several versions are read under each later one, before and after Maintain has
// put them together, and a snapshot stays readable under the version it was made in.
func evolved(t *testing.T, h Harness) {
	var current *schema.Table
	var tbl lake.Table
	made := map[int]*lake.Snapshot{}
	all := map[int]*schema.Table{}
	for v, life := range versions {
		key := []string{life.columns[0].Name}
		var err error
		if current == nil {
			current, err = schema.New(life.columns, key)
		} else {
			current, err = schema.Evolve(current, life.columns, key)
		}
		if err != nil {
			t.Fatal(err)
		}
		tbl, err = h.Warehouse.Table(t.Context(), lake.Spec{Ident: ident, Table: 7, Schema: current})
		if err != nil {
			t.Fatal(err)
		}
		made[v], all[v] = commitVersion(t, tbl, current, v), current
		readAs(t, h, made[v], current, v)
	}
	for range 2 {
		if err := tbl.Maintain(t.Context(), lake.Retention{Snapshots: 100}); err != nil {
			t.Fatal(err)
		}
		last := len(versions) - 1
		readAs(t, h, tbl.Head(), all[last], last)
		for v := range versions {
			readAs(t, h, pinned(t, h, made[v]), all[v], v)
		}
	}
}

func commitVersion(t *testing.T, tbl lake.Table, s *schema.Table, v int) *lake.Snapshot {
	t.Helper()
	w, err := tbl.NewWriter(s)
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, s, int64(v), versions[v].rows)
	defer rec.Release()
	if err := w.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	files, err := w.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return commit(t, tbl, fmt.Sprint("v", v), lake.Commit{AddFiles: files, Schema: s, MaxToken: int64(v)})
}

func readAs(t *testing.T, h Harness, s *lake.Snapshot, as *schema.Table, v int) {
	t.Helper()
	var want []string
	for _, r := range versions[v].want {
		id, _, _ := strings.Cut(r, "|")
		want = append(want, r+"|"+writtenIn(id))
	}
	got := h.Read(t, s, as)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("snapshot %d as version %d:\n got %q\nwant %q", s.ID, as.Version, got, want)
	}
}

// writtenIn is the token of the row with an id: the version that it was written in.
func writtenIn(id string) string {
	for v, life := range versions {
		for _, r := range life.rows {
			if strings.HasPrefix(r, id+"|") {
				return fmt.Sprint(v)
			}
		}
	}
	return "?"
}
