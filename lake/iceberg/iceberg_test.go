package iceberg_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
)

func openWarehouse(t testing.TB, store kv.Store, dir string, clock env.Clock) *iceberg.Warehouse {
	t.Helper()
	_, ids := env.System()
	w, err := iceberg.Open(store, dir, iceberg.Config{}, iceberg.Deps{Clock: clock, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newStore(t testing.TB) kv.Store {
	t.Helper()
	store := memkv.New()
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestConformance(t *testing.T) {
	laketest.Run(t, func(t *testing.T) laketest.Harness {
		return harness(t, t.TempDir())
	})
}

// harness is a lake in a directory whose pointers are new.
func harness(t *testing.T, dir string) laketest.Harness {
	clock := env.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1)
	w := openWarehouse(t, newStore(t), dir, clock)
	return laketest.Harness{
		Warehouse: w,
		Rows:      func(t *testing.T, s *lake.Snapshot) []string { return scanPeople(t, w, s) },
		Read:      readAs,
		Lose:      func(t *testing.T) laketest.Harness { return harness(t, dir) },
	}
}

// scanPeople reads with iceberg-go's own scanner, as another engine would.
func scanPeople(t *testing.T, w *iceberg.Warehouse, s *lake.Snapshot) []string {
	t.Helper()
	var out []string
	for _, r := range scan(t, w, table.Identifier{"public", "people"}, s) {
		for i := range int(r.NumRows()) {
			out = append(out, fmt.Sprintf("%d|%s|%d", r.Column(0).(*array.Int64).Value(i),
				r.Column(1).(*array.String).Value(i), r.Column(2).(*array.Int64).Value(i)))
		}
	}
	return out
}

func scan(t *testing.T, w *iceberg.Warehouse, ident table.Identifier, s *lake.Snapshot) []arrow.RecordBatch {
	t.Helper()
	if s.ID == 0 {
		return nil
	}
	tbl, err := w.Catalog().LoadTable(t.Context(), ident)
	if err != nil {
		t.Fatal(err)
	}
	_, recs, err := tbl.Scan(table.WithSnapshotID(s.ID)).ToArrowRecords(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.RecordBatch
	for r, err := range recs {
		if err != nil {
			t.Fatal(err)
		}
		r.Retain()
		out = append(out, r)
	}
	return out
}
