// Package laketest is the suite every lake must pass.
package laketest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Harness is a lake under test.
type Harness struct {
	Warehouse lake.Warehouse
	// Rows reads the snapshot's rows less the deleted ones, each rendered as
	// "id|name|token", in any order.
	Rows func(t *testing.T, s *lake.Snapshot) []string
	// Read reads the snapshot's rows less the deleted ones as a schema version: columns by
	// field id, widened, those that a file is older than with their initial value. Each
	// row is rendered as its columns and the token, separated by "|", null as "-".
	Read func(t *testing.T, s *lake.Snapshot, as *schema.Table) []string
	// Lose is the same lake after the loss of whatever names its tables.
	Lose func(t *testing.T) Harness
}

// Run runs the suite; each test gets a fresh lake.
func Run(t *testing.T, fresh func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"a new table is empty", empty},
		{"rows and deletes come in one snapshot", rowsAndDeletes},
		{"a replace takes all out at once", replaceAll},
		{"a commit is known by its compaction id", idempotent},
		{"a stale base is a conflict", conflict},
		{"a commit without files still names its slices", noFiles},
		{"aborted files leave nothing", abort},
		{"deletes must be in order", disorder},
		{"null keys are refused", nullKey},
		{"old snapshots stay readable until they expire", retention},
		{"maintenance leaves what another table writes", neighbours},
		{"a dropped name starts anew", dropped},
		{"a renamed table keeps its rows", renamed},
		{"a table whose name is taken keeps its rows and its fence", setAside},
		{"old files are read under a later schema", evolved},
		{"a fence keeps earlier writers out", fenced},
		{"tables are found again without their names", recovered},
		{"what is not there is not recovered", notRecovered},
		{"commits are told with their slices", history},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, fresh(t)) })
	}
}

// People is the suite's table: id (key), name.
func People(t testing.TB) *schema.Table {
	t.Helper()
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, NotNull: true},
		{Name: "name", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var ident = lake.Ident{Namespace: "public", Name: "people"}

func open(t *testing.T, h Harness, id change.TableID) lake.Table {
	t.Helper()
	return openNamed(t, h, ident, uint32(id))
}

func openNamed(t *testing.T, h Harness, name lake.Ident, id uint32) lake.Table {
	t.Helper()
	tbl, err := h.Warehouse.Table(t.Context(), lake.Spec{Ident: name, Table: change.TableID(id), Schema: People(t)})
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

// Batch makes lake rows of People: ids with their names, all with one token.
func Batch(t testing.TB, token int64, rows ...string) arrow.RecordBatch {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "_skippr_token", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, r := range rows {
		var id int64
		var name string
		if _, err := fmt.Sscanf(strings.ReplaceAll(r, "|", " "), "%d %s", &id, &name); err != nil {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.Int64Builder).Append(id)
		}
		b.Field(1).(*array.StringBuilder).Append(name)
		b.Field(2).(*array.Int64Builder).Append(token)
	}
	return b.NewRecordBatch()
}

func write(t *testing.T, tbl lake.Table, token int64, rows ...string) []lake.DataFile {
	t.Helper()
	w, err := tbl.NewWriter(People(t))
	if err != nil {
		t.Fatal(err)
	}
	rec := Batch(t, token, rows...)
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

func commit(t *testing.T, tbl lake.Table, id string, c lake.Commit) *lake.Snapshot {
	t.Helper()
	c.Base, c.CompactionID, c.Pipeline, c.Generation = tbl.Head().ID, id, "p", 1
	if c.Slices == nil {
		c.Slices = []segment.SliceRef{{Seq: 3, Start: 128}, {Seq: 3, Start: 512}, {Seq: 4, Start: 128}}
	}
	s, err := tbl.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantRows(t *testing.T, h Harness, s *lake.Snapshot, want ...string) {
	t.Helper()
	got := h.Rows(t, s)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("rows of snapshot %d:\n got %q\nwant %q", s.ID, got, want)
	}
	if s.Rows != int64(len(want)) {
		t.Errorf("snapshot %d says %d rows, want %d", s.ID, s.Rows, len(want))
	}
}

// pinned reads the snapshot as a query does, by its name.
func pinned(t *testing.T, h Harness, s *lake.Snapshot) *lake.Snapshot {
	t.Helper()
	got, err := h.Warehouse.Snapshot(t.Context(), ident.String(), s.Metadata, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func empty(t *testing.T, h Harness) {
	head := open(t, h, 7).Head()
	if head.ID != 0 || len(head.Files) != 0 || head.Rows != 0 {
		t.Errorf("head of a new table is %+v", head)
	}
	s, err := h.Warehouse.Snapshot(t.Context(), ident.String(), head.Metadata, 0)
	if err != nil || len(s.Files) != 0 {
		t.Errorf("snapshot 0: %+v, %v", s, err)
	}
}

func rowsAndDeletes(t *testing.T, h Harness) {
	ctx, tbl := t.Context(), open(t, h, 7)
	first := commit(t, tbl, "a", lake.Commit{
		AddFiles: write(t, tbl, 10, "1|ana", "2|bo", "5|cy"), MaxToken: 10,
		SourcePosition: "0/10",
	})
	wantRows(t, h, first, "1|ana|10", "2|bo|10", "5|cy|10")
	b, ok := first.Files[0].Bounds[1]
	if !ok || !b.IsInt || b.MinInt != 1 || b.MaxInt != 5 {
		t.Errorf("bounds of the key are %+v", b)
	}
	if first.Files[0].HasDeletes {
		t.Error("a new file has deletes")
	}
	d, err := tbl.WriteDeletes(ctx, []lake.Position{
		{File: first.Files[0].Path, Row: 0},
		{File: first.Files[0].Path, Row: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	second := commit(t, tbl, "b", lake.Commit{
		AddFiles:   write(t, tbl, 20, "1|eve"),
		AddDeletes: []lake.DeleteFile{*d}, MaxToken: 25,
	})
	wantRows(t, h, second, "1|eve|20", "2|bo|10")
	if !second.Files[0].HasDeletes || second.Files[1].HasDeletes {
		t.Errorf("deletes of the files: %v, %v", second.Files[0].HasDeletes, second.Files[1].HasDeletes)
	}
	if second.MaxToken != 25 {
		t.Errorf("max token %d, want 25", second.MaxToken)
	}
	wantRows(t, h, pinned(t, h, first), "1|ana|10", "2|bo|10", "5|cy|10")
	wantRows(t, h, pinned(t, h, second), "1|eve|20", "2|bo|10")
	again := open(t, h, 7).Head()
	if again.ID != second.ID || again.MaxToken != 25 {
		t.Errorf("reopened head is %d, max token %d", again.ID, again.MaxToken)
	}
}

func replaceAll(t *testing.T, h Harness) {
	ctx, tbl := t.Context(), open(t, h, 7)
	one := commit(t, tbl, "a", lake.Commit{AddFiles: write(t, tbl, 10, "1|ana", "2|bo")})
	d, err := tbl.WriteDeletes(ctx, []lake.Position{{File: one.Files[0].Path, Row: 1}})
	if err != nil {
		t.Fatal(err)
	}
	two := commit(t, tbl, "b", lake.Commit{AddDeletes: []lake.DeleteFile{*d}})
	wantRows(t, h, two, "1|ana|10")
	three := commit(t, tbl, "c", lake.Commit{ReplaceAll: true, AddFiles: write(t, tbl, 3, "9|new"), MaxToken: 3})
	wantRows(t, h, three, "9|new|3")
	if len(three.PositionDeletes) != 0 {
		t.Errorf("%d delete files survived the replace", len(three.PositionDeletes))
	}
	if three.MaxToken != 3 {
		t.Errorf("max token after the replace is %d", three.MaxToken)
	}
	four := commit(t, tbl, "d", lake.Commit{ReplaceAll: true})
	wantRows(t, h, four)
	five := commit(t, tbl, "e", lake.Commit{AddFiles: write(t, tbl, 40, "3|x")})
	wantRows(t, h, five, "3|x|40")
	wantRows(t, h, pinned(t, h, two), "1|ana|10")
}

func idempotent(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	c := lake.Commit{AddFiles: write(t, tbl, 10, "1|ana")}
	first := commit(t, tbl, "same", c)
	other := open(t, h, 7)
	found, err := other.Find(t.Context(), "same")
	if err != nil || found == nil || found.ID != first.ID {
		t.Fatalf("find: %+v, %v", found, err)
	}
	if none, err := other.Find(t.Context(), "other"); none != nil || err != nil {
		t.Errorf("find of an unknown compaction: %+v, %v", none, err)
	}
	again, err := other.Commit(t.Context(), lake.Commit{Base: 0, CompactionID: "same"})
	if err != nil || again.ID != first.ID {
		t.Errorf("second commit: %+v, %v", again, err)
	}
	wantRows(t, h, other.Head(), "1|ana|10")
}

func conflict(t *testing.T, h Harness) {
	a, b := open(t, h, 7), open(t, h, 7)
	base := b.Head().ID
	files := write(t, b, 11, "2|bo")
	commit(t, a, "a", lake.Commit{AddFiles: write(t, a, 10, "1|ana")})
	_, err := b.Commit(t.Context(), lake.Commit{Base: base, CompactionID: "b", AddFiles: files})
	if !errors.Is(err, lake.ErrConflict) {
		t.Fatalf("commit on a stale base: %v", err)
	}
	wantRows(t, h, open(t, h, 7).Head(), "1|ana|10")
}

func noFiles(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	refs := []segment.SliceRef{{Seq: 1, Start: 64}, {Seq: 2, Start: 64}}
	s := commit(t, tbl, "nothing", lake.Commit{Slices: refs, MaxToken: 77})
	wantRows(t, h, s)
	got, err := lake.ParseSlices(s.Properties[lake.KeySlices])
	if err != nil || !slices.Equal(got, refs) {
		t.Errorf("slices %v, %v", got, err)
	}
	if found, err := open(t, h, 7).Find(t.Context(), "nothing"); found == nil || err != nil {
		t.Errorf("find: %+v, %v", found, err)
	}
	next := commit(t, tbl, "more", lake.Commit{AddFiles: write(t, tbl, 5, "1|ana")})
	if next.MaxToken != 77 {
		t.Errorf("max token fell to %d", next.MaxToken)
	}
}

func abort(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	files := write(t, tbl, 10, "1|ana")
	tbl.Abort(t.Context(), files, nil)
	if _, err := tbl.Commit(t.Context(), lake.Commit{CompactionID: "x", AddFiles: files}); err == nil {
		t.Error("aborted files were committed")
	}
	w, err := tbl.NewWriter(People(t))
	if err != nil {
		t.Fatal(err)
	}
	rec := Batch(t, 1, "1|ana")
	defer rec.Release()
	if err := w.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	w.Discard()
	wantRows(t, h, open(t, h, 7).Head())
}

func disorder(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	for name, p := range map[string][]lake.Position{
		"twice": {{File: "f", Row: 1}, {File: "f", Row: 1}}, "backwards": {{File: "f", Row: 2}, {File: "f", Row: 1}},
		"files backwards": {{File: "g", Row: 1}, {File: "f", Row: 1}}, "none": {},
	} {
		if _, err := tbl.WriteDeletes(t.Context(), p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func nullKey(t *testing.T, h Harness) {
	w, err := open(t, h, 7).NewWriter(People(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	rec := Batch(t, 1, "null|x")
	defer rec.Release()
	if err := w.Write(t.Context(), rec); err == nil {
		t.Error("a null key was written")
	}
}

func retention(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	var all []*lake.Snapshot
	for i := range 30 {
		all = append(all, commit(t, tbl, fmt.Sprint("c", i), lake.Commit{AddFiles: write(t, tbl, int64(i),
			fmt.Sprintf("%d|n", i))}))
	}
	if err := tbl.Maintain(t.Context(), lake.Retention{Snapshots: 3, Protect: []int64{all[5].ID}}); err != nil {
		t.Fatal(err)
	}
	for i, gone := range map[int]bool{0: true, 5: false, 20: true, 28: false, 29: false} {
		_, err := h.Warehouse.Snapshot(t.Context(), ident.String(), all[i].Metadata, all[i].ID)
		if gone != errors.Is(err, lake.ErrNoSnapshot) {
			t.Errorf("snapshot %d after expiry: %v", i, err)
		}
	}
	if got := len(h.Rows(t, all[5])); got != 6 {
		t.Errorf("protected snapshot has %d rows, want 6", got)
	}
	if got := len(h.Rows(t, all[29])); got != 30 {
		t.Errorf("head has %d rows, want 30", got)
	}
}

// neighbours: compactions of two tables run beside each other.
func neighbours(t *testing.T, h Harness) {
	tbl, other := open(t, h, 7), openNamed(t, h, lake.Ident{Namespace: "public", Name: "others"}, 8)
	commit(t, other, "o", lake.Commit{AddFiles: write(t, other, 1, "1|x")})
	first := commit(t, tbl, "a", lake.Commit{AddFiles: write(t, tbl, 1, "1|ana", "2|bob")})
	files := write(t, tbl, 2, "3|cy")
	d, err := tbl.WriteDeletes(t.Context(), []lake.Position{{File: first.Files[0].Path, Row: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Maintain(t.Context(), lake.Retention{Snapshots: 2}); err != nil {
		t.Fatal(err)
	}
	s := commit(t, tbl, "b", lake.Commit{AddFiles: files, AddDeletes: []lake.DeleteFile{*d}})
	wantRows(t, h, s, "1|ana|1", "3|cy|2")
}

func dropped(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	commit(t, tbl, "a", lake.Commit{AddFiles: write(t, tbl, 10, "1|ana")})
	if err := h.Warehouse.Drop(t.Context(), 99); err != nil {
		t.Errorf("drop of a table without lake side: %v", err)
	}
	if head := open(t, h, 7).Head(); head.ID == 0 {
		t.Error("dropping another table took this one")
	}
	if head := open(t, h, 8).Head(); head.ID != 0 {
		t.Errorf("a new table of the name has snapshot %d", head.ID)
	}
	if err := h.Warehouse.Drop(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	if err := h.Warehouse.Drop(t.Context(), 8); err != nil {
		t.Errorf("second drop: %v", err)
	}
	if head := open(t, h, 8).Head(); head.ID != 0 {
		t.Errorf("a table made after a drop has snapshot %d", head.ID)
	}
}

func renamed(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	first := commit(t, tbl, "a", lake.Commit{AddFiles: write(t, tbl, 10, "1|ana")})
	other := lake.Ident{Namespace: "sales", Name: "persons"}
	moved, err := h.Warehouse.Table(t.Context(), lake.Spec{Ident: other, Table: 7, Schema: People(t)})
	if err != nil {
		t.Fatal(err)
	}
	if moved.Head().ID != first.ID {
		t.Errorf("renamed table has snapshot %d, want %d", moved.Head().ID, first.ID)
	}
	if head := open(t, h, 8).Head(); head.ID != 0 {
		t.Errorf("a new table of the old name has snapshot %d", head.ID)
	}
	back, err := h.Warehouse.Table(t.Context(), lake.Spec{Ident: ident, Table: 7, Schema: People(t)})
	if err != nil {
		t.Fatal(err)
	}
	second := commit(t, back, "b", lake.Commit{AddFiles: write(t, back, 11, "2|bo")})
	wantRows(t, h, second, "1|ana|10", "2|bo|11")
}

// Two hosts may think that a name is of different tables, until one knows that it was taken
// over: neither takes the other's rows, or its fence.
func setAside(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	if err := tbl.Fence(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	first := commit(t, tbl, "a", lake.Commit{Epoch: 3, AddFiles: write(t, tbl, 10, "1|ana")})
	for range 2 {
		if head := open(t, h, 8).Head(); head.ID != 0 {
			t.Errorf("the table that takes the name has snapshot %d", head.ID)
		}
		back := open(t, h, 7)
		if back.Head().ID != first.ID {
			t.Errorf("the table that takes it back has snapshot %d, want %d", back.Head().ID, first.ID)
		}
		if err := back.Fence(t.Context(), 1); !errors.Is(err, lake.ErrFenced) {
			t.Errorf("fence of an earlier writer: %v", err)
		}
	}
}
