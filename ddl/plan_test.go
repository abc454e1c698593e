package ddl

import (
	"strings"
	"testing"
)

// A dry run tells everything that CREATE PIPELINE would do, and what is in its way, and
// does nothing.
func TestDryRun(t *testing.T) {
	x, f := newExecutor(t)
	run(t, x, f, "CREATE CONNECTION c TO POSTGRES (HOST 'h')")
	f.found = []Discovered{
		{Schema: "public", Table: "a", Column: "id", SourceType: "integer", LakeType: "INTEGER", NotNull: true, Key: true, EstimatedRows: 10, EstimatedBytes: 8192},
		{Schema: "public", Table: "a", Column: "n", SourceType: "numeric", LakeType: "VARCHAR", Policy: "exact text", EstimatedRows: 10, EstimatedBytes: 8192},
		{Schema: "public", Table: "f", Unsupported: "it is a foreign table"},
	}
	got := run(t, x, f, "CREATE PIPELINE p FROM c FOR ALL TABLES WITH (dry_run, backfill_rows_per_second = 2)")
	want := strings.Join([]string{
		"CREATE PIPELINE 6", "[source wal_level false is replica <nil> <nil> ALTER SYSTEM SET wal_level = logical;]",
		"[table public.a true becomes p.a 10 8192 <nil>]", "[column public.a.id true integer becomes INTEGER, key, not null <nil> <nil> <nil>]",
		"[column public.a.n true numeric becomes VARCHAR, exact text <nil> <nil> <nil>]",
		"[table public.f true left out: it is a foreign table. <nil> <nil> <nil>]",
		"[copy existing rows true about 5s at 2 rows/s 10 8192 <nil>]", "validate c", "discover c",
	}, " | ")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	if len(snap.Pipelines()) != 0 {
		t.Error("a dry run made a pipeline")
	}
}
