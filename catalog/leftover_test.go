package catalog_test

import (
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/change"
)

// TestLeftovers are there until they are forgotten, also for the next process.
func TestLeftovers(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	check := func(c *catalog.Catalog, want catalog.Leftovers) {
		t.Helper()
		snap := c.Snapshot()
		defer snap.Close()
		if got, err := snap.Leftovers(); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
	check(c, catalog.Leftovers{})
	err := c.Update(t.Context(), func(txn *catalog.Txn) error {
		for _, err := range []error{txn.LeaveLake(7), txn.LeaveLake(300), txn.LeaveLog(2), txn.LeaveLog(2)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := catalog.Leftovers{Lakes: []change.TableID{7, 300}, Logs: []change.PipelineID{2}}
	check(c, all)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, store)
	check(c, all)
	gone := catalog.Leftovers{Lakes: []change.TableID{7, 8}, Logs: []change.PipelineID{2}}
	if err := c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.ForgetLeftovers(gone) }); err != nil {
		t.Fatal(err)
	}
	check(c, catalog.Leftovers{Lakes: []change.TableID{300}})
}
