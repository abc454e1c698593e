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

// A dry run says of a table what VALIDATE says of it, in the same words, with its fix where
// a fix belongs; the rows of the copy are not known when those of one table are not.
func TestDryRunFindings(t *testing.T) {
	x, f := newExecutor(t)
	run(t, x, f, "CREATE CONNECTION c TO POSTGRES (HOST 'h')")
	f.found = []Discovered{
		{Schema: "public", Table: "a", Column: "id", SourceType: "integer", LakeType: "INTEGER", Key: true, EstimatedRows: -1, EstimatedBytes: 100, Notes: []string{"a note"}},
		{Schema: "public", Table: "b", Column: "id", SourceType: "integer", LakeType: "INTEGER", EstimatedRows: 40, EstimatedBytes: 8192},
		{Schema: "public", Table: "c", Unsupported: "its filter is not good", Hint: "Or run: ALTER TABLE public.c …;"},
		{Schema: "public", Table: "v", Unsupported: "it is a view"},
	}
	f.findings = []Finding{
		{Check: "wal_level", OK: true},
		{Check: "table public.a", OK: true, Detail: "a note; kept as exact text: n"},
		{Check: "table public.b", OK: true},
		{Check: "table public.c", Detail: "its filter is not good", Fix: "ALTER TABLE public.c …;"},
		{Check: "table public.v", OK: true, Detail: "left out: it is a view. Take in the tables under it."},
	}
	got := run(t, x, f, "CREATE PIPELINE p FROM c FOR ALL TABLES WITH (dry_run, backfill_rows_per_second = 2)")
	want := strings.Join([]string{
		"CREATE PIPELINE 8", "[source wal_level true <nil> <nil> <nil> <nil>]",
		"[table public.c false its filter is not good <nil> <nil> ALTER TABLE public.c …;]",
		"[table public.a true becomes p.a; a note; kept as exact text: n <nil> 100 <nil>]",
		"[column public.a.id true integer becomes INTEGER, key <nil> <nil> <nil>]",
		"[table public.b true becomes p.b 40 8192 <nil>]", "[column public.b.id true integer becomes INTEGER <nil> <nil> <nil>]",
		"[table public.v true left out: it is a view. Take in the tables under it. <nil> <nil> <nil>]",
		"[copy existing rows true at least 20s at 2 rows/s; tables whose rows the source has not counted: 1, of which ANALYZE there " +
			"makes an estimate <nil> 8292 <nil>]", "validate c", "discover c",
	}, " | ")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
