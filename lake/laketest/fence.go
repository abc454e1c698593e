package laketest

import (
	"errors"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/segment"
)

// A writer that was taken over finds the door closed, whatever it had open: its commit,
// its maintenance and its own fence. What it committed before stays known to it.
func fenced(t *testing.T, h Harness) {
	ctx := t.Context()
	zombie := open(t, h, 7)
	first := commit(t, zombie, "a", lake.Commit{Epoch: 3, AddFiles: write(t, zombie, 10, "1|ana")})
	late := write(t, zombie, 11, "2|bo")

	next := open(t, h, 7)
	if err := next.Fence(ctx, 4); err != nil {
		t.Fatal(err)
	}
	if err := next.Fence(ctx, 4); err != nil {
		t.Errorf("the same fence again: %v", err)
	}
	_, err := zombie.Commit(ctx, lake.Commit{Base: first.ID, Epoch: 3, CompactionID: "b", AddFiles: late})
	if !errors.Is(err, lake.ErrFenced) {
		t.Errorf("commit of the earlier writer: %v", err)
	}
	if _, err := zombie.Commit(ctx, lake.Commit{Base: first.ID, CompactionID: "c", AddFiles: late}); !errors.Is(err, lake.ErrFenced) {
		t.Errorf("commit without epoch: %v", err)
	}
	if err := zombie.Maintain(ctx, lake.Retention{Snapshots: 2, Epoch: 3}); !errors.Is(err, lake.ErrFenced) {
		t.Errorf("maintenance by the earlier writer: %v", err)
	}
	if err := zombie.Fence(ctx, 3); !errors.Is(err, lake.ErrFenced) {
		t.Errorf("fence of the earlier writer: %v", err)
	}
	if done, err := zombie.Commit(ctx, lake.Commit{Epoch: 3, CompactionID: "a"}); err != nil || done.ID != first.ID {
		t.Errorf("what it committed before: %+v, %v", done, err)
	}
	if head := open(t, h, 7).Head(); head.ID != first.ID {
		t.Errorf("head is %d, want %d", head.ID, first.ID)
	}
	second := commit(t, next, "d", lake.Commit{Epoch: 4, AddFiles: write(t, next, 12, "3|cy")})
	wantRows(t, h, second, "1|ana|10", "3|cy|12")
	commit(t, next, "e", lake.Commit{Epoch: 5})
	if _, err := open(t, h, 7).Commit(ctx, lake.Commit{Base: next.Head().ID, Epoch: 4, CompactionID: "f"}); !errors.Is(err, lake.ErrFenced) {
		t.Errorf("commit below one of a later epoch: %v", err)
	}
	if err := next.Maintain(ctx, lake.Retention{Snapshots: 2, Epoch: 5}); err != nil {
		t.Errorf("maintenance by the writer: %v", err)
	}
}

// Whoever comes to a table whose commits it did not make learns from them which slices
// are in.
func history(t *testing.T, h Harness) {
	tbl := open(t, h, 7)
	if all, err := tbl.Commits(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("commits of a new table: %v, %v", all, err)
	}
	refs := []segment.SliceRef{{Seq: 1, Start: 128}, {Seq: 1, Start: 256}}
	a := commit(t, tbl, "a", lake.Commit{Slices: refs, AddFiles: write(t, tbl, 10, "1|ana")})
	b := commit(t, tbl, "b", lake.Commit{Slices: []segment.SliceRef{{Seq: 9, Start: 64}}})
	all, err := open(t, h, 7).Commits(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("commits: %v, %v", all, err)
	}
	if all[0].CompactionID != "a" || all[0].Snapshot != a.ID || all[0].Generation != 1 || !slices.Equal(all[0].Slices, refs) {
		t.Errorf("first commit: %+v", all[0])
	}
	if all[1].CompactionID != "b" || all[1].Snapshot != b.ID || len(all[1].Slices) != 1 {
		t.Errorf("second commit: %+v", all[1])
	}
}
