package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// spoil rewrites a Parquet file: in column v the row at flip gets its successor's value,
// and the row at lost becomes a copy of its successor in all columns.
func spoil(t *testing.T, path string, flip, lost int64) {
	t.Helper()
	in, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := reader.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Release()
	rows := whole.NumRows()
	columns := make([]arrow.Column, whole.NumCols())
	for i := range columns {
		c := whole.Column(i)
		a, err := array.Concatenate(c.Data().Chunks(), memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		at := []int64{lost}
		if c.Name() == "v" {
			at = append(at, flip)
		}
		for _, n := range at {
			a, err = array.Concatenate([]arrow.Array{
				array.NewSlice(a, 0, n), array.NewSlice(a, n+1, n+2), array.NewSlice(a, n+1, rows),
			}, memory.DefaultAllocator)
			if err != nil {
				t.Fatal(err)
			}
		}
		columns[i] = arrow.NewColumnFromArr(c.Field(), a)
	}
	out, err := os.Create(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	spoiled := array.NewTable(whole.Schema(), columns, rows)
	err = pqarrow.WriteTable(spoiled, out, rows, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyLake: a row that was flipped, one that was removed and one that is there twice in
// a file of the lake are named, and no others; RESYNC mends the table.
func TestVerifyLake(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE n (id bigint PRIMARY KEY, v text)", "INSERT INTO n SELECT i, 'v' || i FROM generate_series(1, 20000) i")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE lake FROM POSTGRES "+quoted(source)+" FOR ALL TABLES", "SYNC PIPELINE lake", "ALTER PIPELINE lake COMPACT")
	harness.Exec(t, source, "UPDATE n SET v = v || 'x' WHERE id % 1000 = 0") // some in the log, too
	path, err := harness.Text(s.DSN, "SELECT path FROM skippr.files WHERE kind = 'data' ORDER BY rows DESC LIMIT 1")
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	spoil(t, strings.TrimPrefix(path, "file://"), 4, 76)
	s.Start()
	ours := harness.Connect(t, s.DSN)
	lines := differing(verified(t, ours, "VERIFY PIPELINE lake WITH (ranges = 16)"))
	var keys []string
	for _, l := range lines {
		if f := strings.Fields(l); !slices.Contains(f, "differs") {
			keys = append(keys, strings.Join(f[5:], " "))
		}
	}
	slices.Sort(keys)
	if want := []string{"different 5 v", "extra here 78 -", "missing here 77 -"}; !slices.Equal(keys, want) {
		t.Fatalf("named %q, not %q; all:\n%s", keys, want, strings.Join(lines, "\n"))
	}
	do(t, ours, "ALTER PIPELINE lake RESYNC TABLE public.n; SYNC PIPELINE lake")
	if bad := differing(verified(t, ours, "VERIFY PIPELINE lake")); len(bad) > 0 {
		t.Fatalf("after RESYNC:\n%s", strings.Join(bad, "\n"))
	}
	s.Stop()
}
