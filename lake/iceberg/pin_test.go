package iceberg_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
)

// heldTable is a table with a snapshot that was held long ago.
type heldTable struct {
	w       *iceberg.Warehouse
	clock   *env.Fake
	tbl     lake.Table
	held    *lake.Snapshot
	release func()
}

const retained = time.Minute

func newHeldTable(t *testing.T) *heldTable {
	t.Helper()
	h := &heldTable{clock: env.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1)}
	h.w = openWarehouse(t, newStore(t), t.TempDir(), h.clock)
	var err error
	h.tbl, err = h.w.Table(t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7, Schema: laketest.People(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.replace(t, 0)
	h.held = h.tbl.Head()
	h.release = h.w.Hold(h.held.Metadata, h.held.ID)
	return h
}

// replace commits other rows in the place of all.
func (h *heldTable) replace(t *testing.T, n int) {
	t.Helper()
	_, err := h.tbl.Commit(t.Context(), lake.Commit{
		Base: h.tbl.Head().ID, CompactionID: fmt.Sprint("c", n), Generation: 1, MaxToken: int64(n + 1),
		AddFiles: writePeople(t, h.tbl, int64(n+1), fmt.Sprintf("%d|ana", n)), ReplaceAll: true,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// outlive maintains the table until what nothing holds must have gone.
func (h *heldTable) outlive(t *testing.T) {
	t.Helper()
	for range 3 {
		if err := h.tbl.Maintain(t.Context(), lake.Retention{Snapshots: 2, Grace: retained}); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(2 * retained)
	}
}

func (h *heldTable) sweep(t *testing.T) {
	t.Helper()
	for range 3 {
		if err := h.w.Sweep(t.Context(), retained); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(2 * retained)
	}
}

// there says whether the file of the held snapshot is.
func (h *heldTable) there(t *testing.T) bool {
	t.Helper()
	_, err := os.Stat(h.held.Files[0].Path)
	return err == nil
}

// TestHeldSnapshotStays: what a query reads is neither expired nor removed, however many
// commits come and however long it takes, and goes when the last holder is done.
func TestHeldSnapshotStays(t *testing.T) {
	h := newHeldTable(t)
	second := h.w.Hold(h.held.Metadata, h.held.ID)
	for i := range 40 {
		h.replace(t, i+1)
	}
	h.outlive(t)
	h.release()
	h.release() // counts once
	h.outlive(t)
	s, err := h.w.Snapshot(t.Context(), "people", h.held.Metadata, h.held.ID)
	if err != nil || len(s.Files) != 1 || !h.there(t) {
		t.Fatalf("held snapshot has gone: %v", err)
	}
	second()
	for i := range 12 {
		h.replace(t, i+100)
	}
	h.outlive(t)
	if h.there(t) {
		t.Error("a snapshot that nobody holds stays")
	}
}

// TestHeldSnapshotOfDroppedTable stays, with the table's directory.
func TestHeldSnapshotOfDroppedTable(t *testing.T) {
	h := newHeldTable(t)
	if err := h.w.Drop(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	h.sweep(t)
	if !h.there(t) {
		t.Fatal("a held file was removed")
	}
	h.release()
	h.sweep(t)
	if h.there(t) {
		t.Error("a dropped table stays")
	}
}
