package memlake_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/lake/memlake"
)

func TestConformance(t *testing.T) {
	laketest.Run(t, func(*testing.T) laketest.Harness {
		w := memlake.New()
		h := laketest.Harness{Warehouse: w, Rows: func(t *testing.T, s *lake.Snapshot) []string { return rows(t, w, s) }}
		h.Read = func(t *testing.T, s *lake.Snapshot, as *schema.Table) []string { return readAs(t, w, s, as) }
		h.Lose = func(*testing.T) laketest.Harness { return h }
		return h
	})
}

func rows(t *testing.T, w *memlake.Warehouse, s *lake.Snapshot) []string {
	t.Helper()
	gone := map[lake.Position]bool{}
	for _, d := range s.PositionDeletes {
		ps, err := w.Deletes(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			gone[p] = true
		}
	}
	var out []string
	for _, f := range s.Files {
		recs, err := w.File(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		for _, r := range recs {
			for i := range int(r.NumRows()) {
				if !gone[lake.Position{File: f.Path, Row: at}] {
					out = append(out, fmt.Sprintf("%d|%s|%d", r.Column(0).(*array.Int64).Value(i),
						r.Column(1).(*array.String).Value(i), r.Column(2).(*array.Int64).Value(i)))
				}
				at++
			}
		}
	}
	return out
}

// readAs reads files without deletes as a schema version.
func readAs(t *testing.T, w *memlake.Warehouse, s *lake.Snapshot, as *schema.Table) []string {
	t.Helper()
	var out []string
	for _, f := range s.Files {
		from, err := w.FileSchema(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		recs, err := w.File(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			n := int(r.NumCols()) - 1
			var own []arrow.Array
			for _, f := range as.Fields {
				c, err := lake.Column(r.Columns()[:n], int(r.NumRows()), from, f)
				if err != nil {
					t.Fatal(err)
				}
				own = append(own, c)
			}
			for i := range int(r.NumRows()) {
				out = append(out, laketest.Text(t, as, own, i)+"|"+r.Column(n).ValueStr(i))
			}
		}
	}
	return out
}
