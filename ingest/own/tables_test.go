package own_test

import (
	"context"
	"errors"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/wal/env"
)

// littered is a pipeline that stands still, whose lake cannot be cleaned afterwards.
type littered struct{ err error }

func (p littered) Still(_ context.Context, _ string, fn func(*catalog.Pipeline) error) error {
	if err := fn(nil); err != nil {
		return err
	}
	return p.err
}

// TestDefineIsCommitted: a definition that the catalog has took place, whatever becomes of
// the files of tables that it dropped: an error would have the client do it again.
func TestDefineIsCommitted(t *testing.T) {
	clock, ids := env.System()
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: ids, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	tables := own.Tables{Catalog: c, Pipelines: littered{errors.New("lake is full")}}
	err = tables.Define(t.Context(), true, func(txn *catalog.Txn) error { return txn.CreateSchema(&catalog.Schema{Name: "made"}) })
	if err != nil {
		t.Errorf("committed, and told: %v", err)
	}
	snap := c.Snapshot()
	defer snap.Close()
	if _, err := snap.Schema("made"); err != nil {
		t.Error(err)
	}
	failed := errors.New("no")
	if err := tables.Define(t.Context(), true, func(*catalog.Txn) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("not committed, and told: %v", err)
	}
}
