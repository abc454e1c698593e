package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestLakeAlone reads the lake's files with iceberg-go's own scanner, without us, after
// updates, deletes, key updates and a truncate, and compares them with the source; also as
// they were before the truncate. SKIPPRD_PYICEBERG names a python that has pyiceberg, which
// must then read the same.
func TestLakeAlone(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source,
		"CREATE TABLE item (id bigint PRIMARY KEY, n int, note text, price numeric(12,2))",
		"CREATE TABLE gone (id int PRIMARY KEY, v text)",
		"INSERT INTO item SELECT i, i % 7, 'note ' || i, i * 1.25 FROM generate_series(1, 5000) i",
		"INSERT INTO gone SELECT i, 'old' FROM generate_series(1, 100) i")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE lake FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	compact := func() {
		drain(t, s.DSN, "lake")
		harness.Exec(t, s.DSN, "ALTER PIPELINE lake COMPACT")
	}
	compact()
	first, before := currentSnapshot(t, s.DSN, "gone"), column(t, source, lakeRows["gone"])
	harness.Exec(t, source,
		"UPDATE item SET n = n + 1, price = price * 2 WHERE id % 3 = 0",
		"DELETE FROM item WHERE id % 11 = 0")
	compact()
	harness.Exec(t, source,
		"UPDATE item SET id = id + 100000 WHERE id % 13 = 0",
		"INSERT INTO item SELECT i, NULL, NULL, 0 FROM generate_series(900000, 900010) i",
		"UPDATE item SET note = 'twice' WHERE id % 3 = 0",
		"BEGIN; TRUNCATE gone; INSERT INTO gone VALUES (7, 'new'); COMMIT")
	compact()
	for name, q := range lakeRows {
		location := lakeLocation(t, s.DSN, name)
		got, want := scanLake(t, location), column(t, source, q)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the lake has %d rows, the source %d; first difference: %s", name, len(got), len(want), firstDifference(got, want))
		} else {
			t.Logf("%s: %d rows equal", name, len(got))
		}
		if python := os.Getenv("SKIPPRD_PYICEBERG"); python != "" {
			if got := pyiceberg(t, python, location); !slices.Equal(got, want) {
				t.Errorf("%s: pyiceberg reads %d rows, the source has %d; first difference: %s", name, len(got), len(want), firstDifference(got, want))
			}
		}
	}
	if got := scanLake(t, lakeLocation(t, s.DSN, "gone"), table.WithSnapshotID(first)); !slices.Equal(got, before) {
		t.Errorf("before the truncate: %d rows, want %d; first difference: %s", len(got), len(before), firstDifference(got, before))
	}
	s.Stop()
}

// lakeRows are TestLakeAlone's tables, and their rows as text.
var lakeRows = map[string]string{
	"item": "SELECT id::text || '|' || coalesce(n::text, '-') || '|' || coalesce(note, '-') || '|' || price::text FROM item",
	"gone": "SELECT id::text || '|' || v FROM gone",
}

// lakeLocation is where a table's metadata is now.
func lakeLocation(t *testing.T, dsn, name string) string {
	t.Helper()
	location, err := harness.Text(dsn, fmt.Sprintf("SELECT metadata_location FROM skippr.tables WHERE table_name = '%s'", name))
	if err != nil {
		t.Fatal(err)
	}
	return location
}

// pyiceberg reads a table by its metadata file with pyiceberg, and renders its rows, sorted.
func pyiceberg(t *testing.T, python, location string) []string {
	t.Helper()
	const read = `import sys
from pyiceberg.table import StaticTable
rows = StaticTable.from_metadata(sys.argv[1]).scan().to_arrow()
names = [n for n in rows.column_names if not n.startswith('_skippr_')]
for r in rows.select(names).to_pylist():
    print('|'.join('-' if r[n] is None else str(r[n]) for n in names))`
	out, err := exec.CommandContext(t.Context(), python, "-c", read, location).CombinedOutput()
	if err != nil {
		t.Fatalf("pyiceberg: %v\n%s", err, out)
	}
	rows := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(rows)
	return rows
}

// openLake opens a table by its metadata file.
func openLake(t *testing.T, location string) *table.Table {
	t.Helper()
	io := func(context.Context) (icebergio.IO, error) { return icebergio.LocalFS{}, nil }
	tbl, err := table.NewFromLocation(t.Context(), table.Identifier{"x"}, location, io, nil)
	if err != nil {
		t.Fatalf("open %s: %v", location, err)
	}
	return tbl
}

// currentSnapshot is the snapshot that a table has now.
func currentSnapshot(t *testing.T, dsn, name string) int64 {
	t.Helper()
	snap := openLake(t, lakeLocation(t, dsn, name)).CurrentSnapshot()
	if snap == nil {
		t.Fatalf("%s has no snapshot", name)
	}
	return snap.SnapshotID
}

// scanLake reads a table by its metadata file and renders its rows, sorted.
func scanLake(t *testing.T, location string, options ...table.ScanOption) []string {
	t.Helper()
	schema, batches, err := openLake(t, location).Scan(options...).ToArrowRecords(t.Context())
	if err != nil {
		t.Fatalf("scan %s: %v", location, err)
	}
	var out []string
	for b, err := range batches {
		if err != nil {
			t.Fatalf("scan %s: %v", location, err)
		}
		out = append(out, rowsOf(schema, b)...)
		b.Release()
	}
	slices.Sort(out)
	return out
}

// rowsOf renders the visible columns of a batch, joined by |.
func rowsOf(schema *arrow.Schema, b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for r := range out {
		var parts []string
		for c, f := range schema.Fields() {
			if strings.HasPrefix(f.Name, "_skippr_") {
				continue
			}
			v := "-"
			if !b.Column(c).IsNull(r) {
				v = b.Column(c).ValueStr(r)
			}
			// Arrow's text of a decimal drops trailing zeros.
			if d, ok := b.Column(c).(*array.Decimal128); ok && !d.IsNull(r) {
				v = d.Value(r).ToString(d.DataType().(*arrow.Decimal128Type).Scale)
			}
			parts = append(parts, v)
		}
		out[r] = strings.Join(parts, "|")
	}
	return out
}

// column returns the single column of a query, sorted by bytes.
func column(t *testing.T, dsn, sql string) []string {
	t.Helper()
	conn := harness.Connect(t, dsn)
	res := conn.PgConn().ExecParams(t.Context(), sql, nil, nil, nil, nil).Read()
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	out := make([]string, len(res.Rows))
	for i, r := range res.Rows {
		out[i] = string(r[0])
	}
	slices.Sort(out)
	return out
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return "missing " + b[i]
		case i >= len(b):
			return "extra " + a[i]
		case a[i] != b[i]:
			return a[i] + " and " + b[i]
		}
	}
	return "none"
}
