package laketest

import (
	"slices"
	"testing"

	"github.com/skipprd/skipprd/lake"
)

// A warehouse whose names are lost finds its tables by what is in them: the table of each
// id and generation with all its commits, under the name it is to have. What belongs to
// no table is kept.
func recovered(t *testing.T, h Harness) {
	ctx, tbl := t.Context(), open(t, h, 7)
	commit(t, tbl, "a", lake.Commit{AddFiles: write(t, tbl, 10, "1|ana")})
	last := commit(t, tbl, "b", lake.Commit{AddFiles: write(t, tbl, 11, "2|bo")})
	for id, name := range map[uint32]string{8: "empty", 9: "kept"} {
		other := openNamed(t, h, lake.Ident{Namespace: "public", Name: name}, id)
		if id == 9 {
			commit(t, other, "c", lake.Commit{AddFiles: write(t, other, 12, "3|cy")})
		}
	}
	h = h.Lose(t)
	now := lake.Ident{Namespace: "sales", Name: "persons"}
	lost := []lake.Lost{
		{Ident: now, Table: 7, Generation: 1, Metadata: last.Metadata, Snapshot: last.ID},
		{Ident: lake.Ident{Namespace: "public", Name: "empty"}, Table: 8, Generation: 1},
	}
	for range 2 { // it can be repeated
		got, err := h.Warehouse.Recover(ctx, lost)
		if err != nil {
			t.Fatal(err)
		}
		people, none := got.Tables[0], got.Tables[1]
		if people.Problem != "" || people.Head == nil || people.Head.ID != last.ID || len(people.Commits) != 2 {
			t.Fatalf("recovered: %+v", people)
		}
		if people.Commits[0].CompactionID != "a" || people.Commits[1].CompactionID != "b" {
			t.Errorf("commits: %+v", people.Commits)
		}
		if none.Head != nil || none.Problem != "" {
			t.Errorf("a table without commits: %+v", none)
		}
	}
	back := openNamed(t, h, now, 7)
	if back.Head().ID != last.ID {
		t.Fatalf("head is %d, want %d", back.Head().ID, last.ID)
	}
	next := commit(t, back, "d", lake.Commit{AddFiles: write(t, back, 13, "4|di")})
	if next.Rows != 3 {
		t.Errorf("after another commit the table has %d rows", next.Rows)
	}
}

// A table that was begun anew, or is not there, is not taken for what it was; what is
// known to have been there and is gone is a problem. Both are said, and nothing is lost.
func notRecovered(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	last := commit(t, tbl, "a", lake.Commit{AddFiles: write(t, tbl, 10, "1|ana")})
	h = h.Lose(t)
	got, err := h.Warehouse.Recover(t.Context(), []lake.Lost{
		{Ident: ident, Table: 7, Generation: 2},
		{Ident: lake.Ident{Namespace: "public", Name: "gone"}, Table: 8, Generation: 1, Metadata: "/gone/metadata/1", Snapshot: 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	if begun := got.Tables[0]; begun.Head != nil || begun.Problem != "" {
		t.Errorf("a table begun anew: %+v", begun)
	}
	if gone := got.Tables[1]; gone.Head != nil || gone.Problem == "" {
		t.Errorf("a table that is gone: %+v", gone)
	}
	got, err = h.Lose(t).Warehouse.Recover(t.Context(), []lake.Lost{{Table: 7, Dropped: true}})
	if err != nil || len(got.Kept) != 0 {
		t.Errorf("kept of a dropped table: %+v, %v", got, err)
	}
	got, err = h.Lose(t).Warehouse.Recover(t.Context(), nil)
	if err != nil || len(got.Kept) != 1 {
		t.Errorf("kept: %+v, %v", got, err)
	}
	if slices.Contains(got.Kept, "") || last.ID == 0 {
		t.Errorf("kept without name: %q", got.Kept)
	}
}
