package iceberg_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
)

// dyingStore fails every commit after some.
type dyingStore struct {
	kv.Store
	left int
}

func (s *dyingStore) NewBatch() kv.Batch { return &dyingBatch{s.Store.NewBatch(), s} }

type dyingBatch struct {
	kv.Batch
	s *dyingStore
}

func (b *dyingBatch) Commit(sync bool) error {
	if b.s.left == 0 {
		return errDisk
	}
	b.s.left--
	return b.Batch.Commit(sync)
}

// TestKilledWhileRenamed: a new table takes the name of one that was renamed and has
// not said so here yet. Wherever that is cut off, the renamed table has its rows.
func TestKilledWhileRenamed(t *testing.T) {
	for n := 0; ; n++ {
		finished := false
		t.Run(fmt.Sprint("after ", n), func(t *testing.T) {
			clock := env.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1)
			store, dir := newStore(t), t.TempDir()
			people := lake.Spec{Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7, Schema: laketest.People(t)}
			tbl, err := openWarehouse(t, store, dir, clock).Table(t.Context(), people)
			if err != nil {
				t.Fatal(err)
			}
			commitFiles(t, tbl, 1, func(int) []lake.DataFile { return writePeople(t, tbl, 5, "1|ana") })
			head := tbl.Head().ID

			dying := &dyingStore{store, n}
			fresh, renamed := people, people
			fresh.Table, renamed.Ident.Name = 8, "persons"
			w := openWarehouse(t, dying, dir, clock)
			_, err = w.Table(t.Context(), fresh)
			if err == nil {
				_, err = w.Table(t.Context(), renamed)
			}
			if err != nil && !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			finished = err == nil

			w = openWarehouse(t, store, dir, clock)
			tbl, err = w.Table(t.Context(), renamed)
			if err != nil {
				t.Fatal(err)
			}
			if tbl.Head().ID != head {
				t.Errorf("renamed table has snapshot %d, want %d", tbl.Head().ID, head)
			}
			if tbl, err = w.Table(t.Context(), fresh); err != nil || tbl.Head().ID != 0 {
				t.Errorf("new table has rows: %v", err)
			}
		})
		if finished || n > 20 {
			break
		}
	}
}
