package iceberg_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
)

var errDisk = errors.New("disk said no")

// faultStore fails commits, before or after they took effect.
type faultStore struct {
	kv.Store
	before, after bool
}

func (s *faultStore) NewBatch() kv.Batch { return &faultBatch{s.Store.NewBatch(), s} }

type faultBatch struct {
	kv.Batch
	s *faultStore
}

func (b *faultBatch) Commit(sync bool) error {
	if b.s.before {
		return errDisk
	}
	if err := b.Batch.Commit(sync); err != nil {
		return err
	}
	if b.s.after {
		return errDisk
	}
	return nil
}

// A commit whose pointer swap failed is looked up: it happened, or it did not, and both
// are told apart. The rows are there once.
func TestCommitOfUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after bool
		happened      bool
	}{
		{"failed before", true, false, false},
		{"failed after", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &faultStore{Store: newStore(t)}
			w := openWarehouse(t, store, t.TempDir(), env.NewFake(time.Unix(1e9, 0), 1))
			tbl, err := w.Table(t.Context(), lake.Spec{
				Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7,
				Schema: laketest.People(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			commit := lake.Commit{CompactionID: "c", AddFiles: writePeople(t, tbl, 1, "1|a")}
			store.before, store.after = c.before, c.after
			snap, err := tbl.Commit(t.Context(), commit)
			store.before, store.after = false, false
			if c.happened != (err == nil) {
				t.Fatalf("commit: %v", err)
			}
			if errors.Is(err, lake.ErrOutcomeUnknown) {
				t.Fatalf("the outcome could be looked up: %v", err)
			}
			if err != nil {
				tbl.Abort(t.Context(), commit.AddFiles, nil)
				commit.AddFiles = writePeople(t, tbl, 1, "1|a")
				if snap, err = tbl.Commit(t.Context(), commit); err != nil {
					t.Fatal(err)
				}
			}
			checkSame(t, []string{"1|a|1"}, scanPeople(t, w, snap))
		})
	}
}

// Every file of a commit, made unwritable in turn, fails the commit and leaves the
// table as it was.
func TestCommitWithoutSpace(t *testing.T) {
	dir := t.TempDir()
	w := openWarehouse(t, newStore(t), dir, env.NewFake(time.Unix(1e9, 0), 1))
	tbl, err := w.Table(t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7,
		Schema: laketest.People(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := tbl.Commit(t.Context(), lake.Commit{CompactionID: "a", AddFiles: writePeople(t, tbl, 1, "1|a")})
	if err != nil {
		t.Fatal(err)
	}
	files := writePeople(t, tbl, 2, "2|b")
	metadata := filepath.Dir(first.Metadata)
	moved := metadata + ".away"
	if err := os.Rename(metadata, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(metadata, nil, 0o600); err != nil { // no directory: nothing can be written into it
		t.Fatal(err)
	}
	if _, err := tbl.Commit(t.Context(), lake.Commit{Base: first.ID, CompactionID: "b", AddFiles: files}); err == nil {
		t.Fatal("committed without a metadata directory")
	}
	if err := errors.Join(os.Remove(metadata), os.Rename(moved, metadata)); err != nil {
		t.Fatal(err)
	}
	checkSame(t, []string{"1|a|1"}, scanPeople(t, w, first))
	second, err := tbl.Commit(t.Context(), lake.Commit{Base: first.ID, CompactionID: "b", AddFiles: files})
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, []string{"1|a|1", "2|b|2"}, scanPeople(t, w, second))
}

// The catalog as iceberg-go's own code uses it: two writers from one base, one wins.
func TestCatalogCompareAndSwap(t *testing.T) {
	w := openWarehouse(t, newStore(t), t.TempDir(), env.NewFake(time.Unix(1e9, 0), 1))
	_, err := w.Table(t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7,
		Schema: laketest.People(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	cat, ident := w.Catalog(), table.Identifier{"public", "people"}
	var txns []*table.Transaction
	for i := range 2 {
		tbl, err := cat.LoadTable(t.Context(), ident)
		if err != nil {
			t.Fatal(err)
		}
		txn := tbl.NewTransaction()
		if err := txn.AssertRefSnapshotID(""); err != nil {
			t.Fatal(err)
		}
		rec := laketest.Batch(t, int64(i), fmt.Sprintf("%d|x", i))
		defer rec.Release()
		if err := txn.AppendTable(t.Context(), array.NewTableFromRecords(rec.Schema(), []arrow.RecordBatch{rec}), 10,
			nil); err != nil {
			t.Fatal(err)
		}
		txns = append(txns, txn)
	}
	if _, err := txns[0].Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := txns[1].Commit(t.Context()); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("second commit: %v", err)
	}
	// What another engine committed is ours to go on from.
	mine, err := w.Table(t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: "public", Name: "people"}, Table: 7,
		Schema: laketest.People(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := mine.Commit(t.Context(), lake.Commit{
		Base: mine.Head().ID, CompactionID: "c",
		AddFiles: writePeople(t, mine, 9, "7|y"),
	})
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, []string{"0|x|0", "7|y|9"}, scanPeople(t, w, snap))
}
