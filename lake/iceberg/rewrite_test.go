package iceberg_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// rewritten is a table with files of rows, of which some are deleted, before and after
// Maintain.
func commitFiles(t *testing.T, tbl lake.Table, n int, each func(i int) []lake.DataFile) {
	t.Helper()
	for i := range n {
		_, err := tbl.Commit(t.Context(), lake.Commit{
			Base: tbl.Head().ID, CompactionID: fmt.Sprint("c", i), Generation: 3, MaxToken: int64(100 + i), AddFiles: each(i),
			Slices: []segment.SliceRef{{Seq: segment.Seq(i + 1), Start: 64}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func deleteRows(t *testing.T, tbl lake.Table, id string, positions ...lake.Position) {
	t.Helper()
	d, err := tbl.WriteDeletes(t.Context(), positions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tbl.Commit(t.Context(), lake.Commit{
		Base: tbl.Head().ID, CompactionID: id, Generation: 3,
		AddDeletes: []lake.DeleteFile{*d},
	}); err != nil {
		t.Fatal(err)
	}
}

func maintain(t *testing.T, tbl lake.Table) {
	t.Helper()
	if err := tbl.Maintain(t.Context(), lake.Retention{Snapshots: 100, Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

// Small files become one, without the deleted rows, and nothing else changes; a query
// that reads the snapshot before goes on reading it.
func TestRewriteSmallFiles(t *testing.T) {
	clock := env.NewFake(time.Unix(1e9, 0), 1)
	dir, store := t.TempDir(), newStore(t)
	w := openWarehouse(t, store, dir, clock)
	spec := lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7, Schema: laketest.People(t)}
	tbl, err := w.Table(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	commitFiles(t, tbl, 20, func(i int) []lake.DataFile {
		return writePeople(t, tbl, int64(i), fmt.Sprintf("%d|a", 2*i), fmt.Sprintf("%d|b", 2*i+1))
	})
	files := tbl.Head().Files
	deleteRows(t, tbl, "d1", lake.Position{File: files[3].Path, Row: 1}, lake.Position{File: files[7].Path, Row: 0})
	deleteRows(t, tbl, "d2", lake.Position{File: files[7].Path, Row: 1}, lake.Position{File: files[19].Path, Row: 0})
	before := tbl.Head()
	want := scanPeople(t, w, before)
	maintain(t, tbl)
	after := tbl.Head()
	if len(after.Files) != 1 || len(after.PositionDeletes) != 0 || after.ID == before.ID {
		t.Errorf("after the rewrite: %d files, %d delete files", len(after.Files), len(after.PositionDeletes))
	}
	checkSame(t, want, scanPeople(t, w, after))
	checkSame(t, want, scanPeople(t, w, before))
	if after.Rows != before.Rows || after.MaxToken != before.MaxToken || after.Properties[lake.KeyGeneration] != "3" {
		t.Errorf("rows %d, max token %d, generation %q; before %d, %d", after.Rows, after.MaxToken,
			after.Properties[lake.KeyGeneration], before.Rows, before.MaxToken)
	}
	if found, err := tbl.Find(t.Context(), "d2"); err != nil || found == nil || found.ID != before.ID {
		t.Errorf("the last compaction is %+v, %v", found, err)
	}
	cold, err := openWarehouse(t, store, dir, clock).Snapshot(t.Context(), "people", after.Metadata, after.ID)
	if err != nil || len(cold.Files) != 1 || cold.Rows != after.Rows || cold.Files[0].HasDeletes {
		t.Errorf("read from disk: %+v, %v", cold, err)
	}
	maintain(t, tbl)
	if tbl.Head().ID != after.ID {
		t.Error("rewrote again what is in order")
	}
	commitFiles(t, tbl, 1, func(int) []lake.DataFile { return nil }) // "c0" is known: nothing happens
	checkSame(t, want, scanPeople(t, w, tbl.Head()))
}

// Delete files become one, which names only rows of files that stay.
func TestRewriteDeleteFiles(t *testing.T) {
	clock := env.NewFake(time.Unix(1e9, 0), 1)
	store, dir := newStore(t), t.TempDir()
	w := openSmall(t, store, dir, clock)
	s := laketest.People(t)
	tbl, err := w.Table(t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7,
		Schema: s,
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range 60_000 {
		rows = append(rows, fmt.Sprintf("%d|%x", i, uint64(i)*0x9e3779b97f4a7c15))
	}
	commitFiles(t, tbl, 2, func(i int) []lake.DataFile {
		if i == 0 {
			return writePeople(t, tbl, 1, rows...) // a large one
		}
		return writePeople(t, tbl, 2, "70000|x", "70001|y") // a small one, half deleted below
	})
	files := tbl.Head().Files
	for i := range 5 {
		p := []lake.Position{{File: files[0].Path, Row: int64(i * 1000)}}
		if i == 4 {
			p = append(p, lake.Position{File: files[len(files)-1].Path, Row: 1})
		}
		deleteRows(t, tbl, fmt.Sprint("d", i), p...)
	}
	want := scanPeople(t, w, tbl.Head())
	maintain(t, tbl)
	head := tbl.Head()
	if len(head.PositionDeletes) != 1 || head.PositionDeletes[0].Rows != 5 {
		t.Errorf("delete files after the rewrite: %+v", head.PositionDeletes)
	}
	if !head.Files[0].HasDeletes || head.Files[len(head.Files)-1].HasDeletes {
		t.Error("the wrong files have deletes")
	}
	checkSame(t, want, scanPeople(t, w, head))
	deleteRows(t, tbl, "later", lake.Position{File: head.Files[0].Path, Row: 1})
	if got := len(scanPeople(t, w, tbl.Head())); got != len(want)-1 || tbl.Head().Rows != int64(got) {
		t.Errorf("%d rows after a later delete, want %d", got, len(want)-1)
	}
}

// openSmall has thresholds that small tests reach.
func openSmall(t *testing.T, store kv.Store, dir string, clock env.Clock) *iceberg.Warehouse {
	t.Helper()
	_, ids := env.System()
	cfg := iceberg.Config{FileBytes: 1 << 20, RewriteFiles: 4}
	w, err := iceberg.Open(store, dir, cfg, iceberg.Deps{Clock: clock, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Every type survives a rewrite, and files of an older schema take the current one.
func TestRewriteEveryType(t *testing.T) {
	clock := env.NewFake(time.Unix(1e9, 0), 1)
	w := openSmall(t, newStore(t), t.TempDir(), clock)
	s := everyType(t)
	ident := lake.Ident{Namespace: "public", Name: "every"}
	tbl, err := w.Table(t.Context(), lake.Spec{Ident: ident, Table: 1, Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	in := typedRows(t, s, 50)
	defer in.Release()
	commitFiles(t, tbl, 5, func(i int) []lake.DataFile {
		wr, err := tbl.NewWriter(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := wr.Write(t.Context(), in.NewSlice(int64(10*i), int64(10*i+10))); err != nil {
			t.Fatal(err)
		}
		files, err := wr.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return files
	})
	deleteRows(t, tbl, "d", lake.Position{File: tbl.Head().Files[2].Path, Row: 3},
		lake.Position{File: tbl.Head().Files[2].Path, Row: 9})
	want := render(scan(t, w, table.Identifier{"public", "every"}, tbl.Head()))
	maintain(t, tbl)
	if n := len(tbl.Head().Files); n != 1 {
		t.Fatalf("%d files after the rewrite", n)
	}
	checkSame(t, want, render(scan(t, w, table.Identifier{"public", "every"}, tbl.Head())))

	wide := *s // one column wider, one renamed, one new, one gone
	wide.Version++
	wide.Fields = slices.Clone(s.Fields)
	wide.Fields[3].Type = schema.Type{Kind: schema.Int64}
	wide.Fields[5].Name = "renamed"
	wide.Fields = append(slices.Delete(wide.Fields, 7, 8), schema.Field{
		ID: s.LastFieldID + 1, Name: "new",
		Type: schema.Type{Kind: schema.UUID},
	})
	wide.LastFieldID++
	if _, err := tbl.Commit(t.Context(), lake.Commit{
		Base: tbl.Head().ID, CompactionID: "evolve",
		Schema: &wide,
	}); err != nil {
		t.Fatal(err)
	}
	commitFiles(t, tbl, 8, func(i int) []lake.DataFile {
		wr, err := tbl.NewWriter(&wide)
		if err != nil {
			t.Fatal(err)
		}
		rec := typedRows(t, &wide, 3)
		defer rec.Release()
		if err := wr.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		files, err := wr.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return files
	})
	want = render(scan(t, w, table.Identifier{"public", "every"}, tbl.Head()))
	maintain(t, tbl)
	if n := len(tbl.Head().Files); n != 1 {
		t.Fatalf("%d files after the second rewrite", n)
	}
	checkSame(t, want, render(scan(t, w, table.Identifier{"public", "every"}, tbl.Head())))
}

func render(recs []arrow.RecordBatch) []string {
	var out []string
	for _, r := range recs {
		for i := range int(r.NumRows()) {
			var b strings.Builder
			for c := range int(r.NumCols()) {
				b.WriteString(r.Column(c).ValueStr(i) + "|")
			}
			out = append(out, b.String())
		}
	}
	return out
}

func checkSame(t *testing.T, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("rows differ: %d, want %d", len(got), len(want))
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Fatalf("first difference:\n got %s\nwant %s", got[i], want[i])
			}
		}
	}
}
