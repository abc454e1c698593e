package syscat

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/wal/env"
)

// filled is a catalog with one pipeline of two tables, and the session that looks.
func filled(t testing.TB) (*Catalog, *planner.SystemEnv) {
	t.Helper()
	world := env.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1)
	cat, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: world, IDs: world, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	columns := []schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, NotNull: true, AttNum: 1},
		{Name: "Note", Type: schema.Type{Kind: schema.String}, OID: 1043, TypMod: 24, AttNum: 2},
		{Name: "mood", Type: schema.Type{Kind: schema.String}, OID: 16543, TypMod: -1, TypeName: "mood", AttNum: 3},
	}
	err = cat.Update(t.Context(), func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "shop", Connection: "c", TargetSchema: "shop", Enabled: true}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		for name, key := range map[string][]string{"orders": {"id"}, "visits": nil} {
			s, err := schema.New(columns, key)
			if err != nil {
				return err
			}
			tbl := &catalog.Table{
				Pipeline: p.ID, Schema: "shop", Name: name, SourceSchema: "public", SourceName: name, Current: s,
				Versions: []*schema.Table{s}, State: catalog.TableReady,
			}
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := cat.Snapshot()
	t.Cleanup(snap.Close)
	c, err := New(Deps{Status: func(string) (ddl.PipelineStatus, bool) { return ddl.PipelineStatus{State: "running"}, true }})
	if err != nil {
		t.Fatal(err)
	}
	return c, &planner.SystemEnv{
		Snapshot: snap, Rights: snap.Rights(), Role: 10, Now: world.Now(), Started: world.Now(), User: "postgres", Database: "lake", Version: "15.8", PID: 7,
		SearchPath: []string{"pg_catalog", "public"}, Settings: []setting.Shown{{Setting: &setting.Setting{Name: "a"}, Value: "1"}},
		Sessions: func() []planner.SessionInfo { return []planner.SessionInfo{{PID: 7, User: "postgres"}} },
	}
}

// TestEveryRelationEncodes: each relation gives rows of its own shape.
func TestEveryRelationEncodes(t *testing.T) {
	c, e := filled(t)
	counts := map[string]int64{}
	for key, s := range c.shapes {
		b, err := c.Rows(t.Context(), s.SystemRelation, e)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		r, err := ipc.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if r.Schema().NumFields() != len(s.Columns) {
			t.Errorf("%s: %d columns, %d announced", key, r.Schema().NumFields(), len(s.Columns))
		}
		for r.Next() {
			counts[key] += r.RecordBatch().NumRows()
		}
		if r.Err() != nil {
			t.Errorf("%s: %v", key, r.Err())
		}
		r.Release()
	}
	for key, least := range map[string]int64{
		"pg_catalog.pg_type": 190, "pg_catalog.pg_class": 200, "pg_catalog.pg_namespace": 6, "pg_catalog.pg_index": 1,
		"pg_catalog.pg_attribute": 2000, "pg_catalog.pg_operator": 700, "information_schema.columns": 2000,
		"skippr.tables": 2, "skippr.columns": 6, "pg_catalog.pg_stat_pipeline": 1, "pg_catalog.pg_stat_pipeline_table": 2,
	} {
		if counts[key] < least {
			t.Errorf("%s has %d rows, at least %d expected", key, counts[key], least)
		}
	}
}

// TestHidden: the numbers of relations that few may read are those of their names.
func TestHidden(t *testing.T) {
	c, _ := filled(t)
	for _, s := range c.shapes {
		if s.Schema == "pg_catalog" && right.HiddenRelation(s.Name) != right.Hides(s.OID) {
			t.Errorf("%s has the number %d", s.Name, s.OID)
		}
	}
}

// TestColumnsOfTable: what information_schema says of a table is what PostgreSQL would.
func TestColumnsOfTable(t *testing.T) {
	c, e := filled(t)
	rel, ok := c.Lookup("information_schema", "columns")
	if !ok {
		t.Fatal("information_schema.columns is missing")
	}
	rows, err := c.rows(t.Context(), rel, e)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, col := range rel.Columns {
		at[col.Name] = i
	}
	got := map[string][]any{}
	for _, r := range rows {
		if r[at["table_schema"]] == "shop" && r[at["table_name"]] == "orders" {
			got[r[at["column_name"]].(string)] = []any{r[at["data_type"]], r[at["is_nullable"]], r[at["character_maximum_length"]], r[at["udt_name"]]}
		}
	}
	for name, want := range map[string][]any{
		"id":   {"bigint", "NO", nil, "int8"},
		"Note": {"character varying", "YES", int32(20), "varchar"},
		"mood": {"text", "YES", nil, "text"},
	} {
		for i := range want {
			if len(got[name]) != len(want) || got[name][i] != want[i] {
				t.Errorf("%s: got %v, want %v", name, got[name], want)
				break
			}
		}
	}
}

var relationMark = regexp.MustCompile(`\{rel:([a-z_]+)\.([a-z_]+)\}`)

// TestFunctionsNameRelations: a function reads only relations that are there.
func TestFunctionsNameRelations(t *testing.T) {
	c, _ := filled(t)
	for _, f := range c.Functions() {
		for _, m := range relationMark.FindAllStringSubmatch(f.Engine, -1) {
			if _, ok := c.Lookup(m[1], m[2]); !ok {
				t.Errorf("%s reads %s.%s, which does not exist", f.Name, m[1], m[2])
			}
		}
	}
}

// TestProcsAreCallable: pg_proc lists what statements can call and what other rows
// name, not all that PostgreSQL has.
func TestProcsAreCallable(t *testing.T) {
	c, e := filled(t)
	rel, _ := c.Lookup("pg_catalog", "pg_proc")
	rows, err := c.rows(t.Context(), rel, e)
	if err != nil {
		t.Fatal(err)
	}
	at := c.shapes["pg_catalog.pg_proc"].places()
	have := map[string]bool{}
	for _, r := range rows {
		have[r[at["proname"]].(string)] = true
	}
	for name, want := range map[string]bool{
		"lower": true, "count": true, "array_recv": true, "pg_table_is_visible": true, "to_char": true, "get_ddl": true,
		"pg_get_keywords": true, "pg_timezone_names": true, "_pg_truetypid": true, "_pg_char_max_length": true, "_pg_expandarray": true,
		"pg_notify": true, "lo_import": false, "brin_summarize_new_values": false,
	} {
		if have[name] != want {
			t.Errorf("%s: listed is %v, want %v", name, have[name], want)
		}
	}
}

// TestRowsAreTheCallers: what a caller does to its bytes is not seen by the next.
func TestRowsAreTheCallers(t *testing.T) {
	c, e := filled(t)
	for _, name := range []string{"pg_proc", "pg_class"} {
		rel, _ := c.Lookup("pg_catalog", name)
		first, err := c.Rows(t.Context(), rel, e)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(first)
		clear(first)
		second, err := c.Rows(t.Context(), rel, e)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(second, want) {
			t.Errorf("%s: the second answer differs from the first", name)
		}
	}
}

// BenchmarkRows is the cost of one use of a relation.
func BenchmarkRows(b *testing.B) {
	c, e := filled(b)
	for _, name := range []string{"pg_class", "pg_attribute", "pg_type", "pg_proc"} {
		rel, _ := c.Lookup("pg_catalog", name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Rows(b.Context(), rel, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
