package ddl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/env"
)

// fakeController records what it is asked to do and fails as told.
type fakeController struct {
	catalog *catalog.Catalog
	calls   []string
	found   []Discovered
	// findings are those of Validate; nil: one, of wal_level.
	findings []Finding
	fail     map[string]error // by call
	stopped  func()           // called by Stop, if any
	// discovered and started are called by Discover and Start, if any.
	discovered, started func()
}

func (f *fakeController) call(format string, args ...any) error {
	c := fmt.Sprintf(format, args...)
	f.calls = append(f.calls, c)
	return f.fail[strings.Fields(c)[0]]
}

func (f *fakeController) Discover(_ context.Context, c *catalog.Connection, _ catalog.TableSelection) ([]Discovered, error) {
	if f.discovered != nil {
		f.discovered()
	}
	return f.found, f.call("discover %s", c.Name)
}

func (f *fakeController) Validate(_ context.Context, c *catalog.Connection, _ *catalog.Pipeline) ([]Finding, error) {
	findings := f.findings
	if findings == nil {
		findings = []Finding{{Check: "wal_level", Detail: "is replica", Fix: "ALTER SYSTEM SET wal_level = logical;"}}
	}
	return findings, f.call("validate %s", c.Name)
}

func (f *fakeController) Start(_ context.Context, p string) error {
	if f.started != nil {
		f.started()
	}
	return f.call("start %s", p)
}

func (f *fakeController) Stop(_ context.Context, p string) error {
	if f.stopped != nil {
		f.stopped()
	}
	return f.call("stop %s", p)
}
func (f *fakeController) Reset(_ context.Context, p string) error { return f.call("reset %s", p) }

func (f *fakeController) Drop(ctx context.Context, p string, keep bool) ([]string, error) {
	err := f.catalog.Update(ctx, func(t *catalog.Txn) error {
		row, err := t.Pipeline(p)
		if err != nil {
			return err
		}
		return t.DeletePipeline(row.ID)
	})
	return []string{"slot \"s\" is left"}, errors.Join(err, f.call("drop %s %v", p, keep))
}

func (f *fakeController) AddTables(_ context.Context, p string, ts []catalog.SelectedTable) ([]string, error) {
	return nil, f.call("add %s %s", p, names(ts...))
}

// names are tables as "schema.name", separated by commas.
func names(tables ...catalog.SelectedTable) string {
	var out []string
	for _, t := range tables {
		out = append(out, t.Schema+"."+t.Name)
	}
	return strings.Join(out, ",")
}

func (f *fakeController) DropTable(_ context.Context, p string, t catalog.SelectedTable) error {
	return f.call("droptable %s %s", p, names(t))
}

func (f *fakeController) ResumeTable(_ context.Context, p string, t catalog.SelectedTable) error {
	return f.call("resumetable %s %s", p, names(t))
}

func (f *fakeController) ResyncTable(_ context.Context, p string, t catalog.SelectedTable) error {
	return f.call("resynctable %s %s", p, names(t))
}

func (f *fakeController) Compact(_ context.Context, p string) error { return f.call("compact %s", p) }

func (f *fakeController) Sync(_ context.Context, p string, d time.Duration, progress func(string)) ([]Synced, error) {
	progress("half way")
	return []Synced{{Table: "a.b", State: "ready", Rows: 7}}, f.call("sync %s %s", p, d)
}

func (f *fakeController) Status(string) (PipelineStatus, bool) {
	return PipelineStatus{State: "running", SlotState: "reserved", RetainedBytes: 5 << 20}, true
}

type fakeSession struct{ notices []string }

func (s *fakeSession) Notice(e *pgerr.Error) error {
	text := e.Severity + " " + e.Message
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	s.notices = append(s.notices, text)
	return nil
}
func (*fakeSession) User() string { return "postgres" }

func (*fakeSession) Role() uint32 { return 10 }

func newExecutor(t *testing.T) (*Executor, *fakeController) {
	t.Helper()
	world := env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: world, IDs: world, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeController{catalog: c, fail: map[string]error{}, found: []Discovered{{Schema: "public", Table: "t", EstimatedRows: -1}}}
	return &Executor{Catalog: c, Controller: f, Clock: world}, f
}

// run executes sql and renders what came of it in one line.
func run(t *testing.T, x *Executor, f *fakeController, sql string) string {
	t.Helper()
	s, err := Parse(sql)
	if err != nil {
		return err.Error()
	}
	f.calls = nil
	session := &fakeSession{}
	r, err := x.Execute(t.Context(), s, session)
	var parts []string
	parts = append(parts, session.notices...)
	if err != nil {
		e, ok := pgerr.As(err)
		if !ok {
			t.Fatalf("%s: %v is not an error for the client", sql, err)
		}
		parts = append(parts, fmt.Sprintf("ERROR %s %s", e.Code, e.Message))
	} else {
		parts = append(parts, r.Tag)
		for _, row := range r.Rows {
			parts = append(parts, fmt.Sprint(row))
		}
		if n := len(Describe(s)); n != len(r.Columns) {
			t.Errorf("%s: described %d columns, returned %d", sql, n, len(r.Columns))
		}
	}
	return strings.Join(append(parts, f.calls...), " | ")
}

// TestExecute is one migration script after the other, applied twice where it can be.
func TestExecute(t *testing.T) {
	x, f := newExecutor(t)
	for _, c := range []struct{ sql, want string }{
		{"CREATE SECRET pw AS 'hunter2'", "CREATE SECRET"},
		{"CREATE SECRET pw AS 'x'", `ERROR 42710 secret "pw" already exists`},
		{"CREATE SECRET IF NOT EXISTS pw AS 'x'", `NOTICE secret "pw" already exists, skipping | CREATE SECRET`},
		{"ALTER SECRET nope AS 'x'", `ERROR 42704 secret "nope" does not exist`},
		{"SHOW SECRETS", "SHOW | [pw literal 2026-01-01 00:00:00 +0000 UTC]"},
		{"CREATE CONNECTION c TO POSTGRES 'postgres://u:geheim@h/d'", "CREATE CONNECTION"},
		{"CREATE CONNECTION d TO POSTGRES (HOST 'h', PASSWORD SECRET pw)", "CREATE CONNECTION"},
		{"CREATE CONNECTION e TO POSTGRES (PASSWORD SECRET nope)", `ERROR 42704 secret "nope" does not exist`},
		{"CREATE CONNECTION e TO POSTGRES (HOTS 'h')", `ERROR 22023 unrecognized connection option "HOTS"`},
		{"CREATE CONNECTION e TO MYSQL (HOST 'h')", "ERROR 0A000 connections of kind MYSQL are not supported by this version"},
		{"CREATE CONNECTION e TO POSTGES (HOST 'h')", `ERROR 22023 unrecognized connection kind "POSTGES"`},
		{"SHOW CONNECTIONS", "SHOW | [c postgres DATABASE 'd', HOST 'h', PASSWORD '********', USER 'u' 2026-01-01 00:00:00 +0000 UTC]" +
			" | [d postgres HOST 'h', PASSWORD SECRET pw 2026-01-01 00:00:00 +0000 UTC]"},
		{"VALIDATE CONNECTION c", "VALIDATE CONNECTION 1 | [wal_level false is replica ALTER SYSTEM SET wal_level = logical;] | validate c"},
		{"DROP SECRET pw", "ERROR 2BP01 cannot drop secret pw because other objects depend on it"},
		{"CREATE PIPELINE p FROM nope FOR ALL TABLES", `ERROR 42704 connection "nope" does not exist`},
		{"CREATE PIPELINE p FROM c FOR ALL TABLES WITH (copydata = true)", `ERROR 22023 unrecognized pipeline option "copydata"`},
		{"CREATE PIPELINE p FROM c SCHEMA pg_catalog FOR ALL TABLES", `ERROR 42939 unacceptable schema name "pg_catalog"`},
		{"CREATE PIPELINE p FROM c FOR ALL TABLES", "CREATE PIPELINE | discover c | start p"},
		{"CREATE PIPELINE p FROM c FOR ALL TABLES", `ERROR 42710 pipeline "p" already exists`},
		{"CREATE PIPELINE IF NOT EXISTS p FROM c FOR ALL TABLES", `NOTICE pipeline "p" already exists, skipping | CREATE PIPELINE`},
		{"CREATE OR REPLACE PIPELINE p FROM c FOR ALL TABLES WITH (start = false)", `WARNING slot "s" is left | CREATE PIPELINE | discover c | drop p false`},
		{"PAUSE PIPELINE p", `ERROR 55000 pipeline "p" is disabled`},
		{"ENABLE PIPELINE p", "ENABLE PIPELINE | start p"},
		{"ALTER PIPELINE p PAUSE", `NOTICE the source keeps its log for pipeline "p" until it goes on; 5 MB are kept now | ALTER PIPELINE | stop p`},
		{"ALTER PIPELINE p RESUME", "ALTER PIPELINE | start p"},
		{"ALTER PIPELINE p SET (slot_name = x)", `ERROR 55000 option "slot_name" cannot be changed after CREATE PIPELINE`},
		{"ALTER PIPELINE p SET (freshness = '5s')", "ALTER PIPELINE | stop p | start p"},
		{"ALTER PIPELINE p SET (backfill_rows_per_second = 5, commit_interval = '5s')", "ALTER PIPELINE"},
		{"ALTER PIPELINE p DROP TABLE a, b", "ALTER PIPELINE | droptable p .a | droptable p .b"},
		{"ALTER PIPELINE p ADD TABLE z", `NOTICE pipeline "p" has all these tables already | ALTER PIPELINE | add p public.z`},
		{"ALTER PIPELINE p RENAME TO q", "ALTER PIPELINE | stop p | start q"},
		{"ALTER PIPELINE p RESET", `ERROR 42704 pipeline "p" does not exist`},
		{"RESET PIPELINE q", "RESET PIPELINE | reset q"},
		{"ALTER PIPELINE q COMPACT", "ALTER PIPELINE | compact q"},
		{"SYNC PIPELINE q", "NOTICE half way | SYNC 1 | [a.b ready 7 0 0] | sync q 0s"},
		{"SHOW PIPELINE q", "SHOW"},
		{"DISCOVER PIPELINE q", "DISCOVER 1 | [public.t <nil> <nil> <nil> true false <nil> <nil> <nil> <nil> <nil>] | discover c"},
		{"DROP CONNECTION c", "ERROR 2BP01 cannot drop connection c because other objects depend on it"},
		{"DROP PIPELINE q KEEP DATA", `WARNING slot "s" is left | DROP PIPELINE | drop q true`},
		{"DROP PIPELINE q", `ERROR 42704 pipeline "q" does not exist`},
		{"DROP PIPELINE IF EXISTS q", `NOTICE pipeline "q" does not exist, skipping | DROP PIPELINE`},
		{"DROP CONNECTION c", "DROP CONNECTION"},
	} {
		if got := run(t, x, f, c.sql); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
}

// TestCreateFailsWhole: a pipeline whose source refuses it leaves nothing behind.
func TestCreateFailsWhole(t *testing.T) {
	for _, at := range []string{"discover", "start"} {
		x, f := newExecutor(t)
		f.fail[at] = &Problem{Kind: Unreachable, Message: "could not connect to the source", Hint: "Look at HOST."}
		got := run(t, x, f, "CREATE PIPELINE p FROM POSTGRES 'postgres://h/d' FOR ALL TABLES")
		if !strings.Contains(got, "ERROR 08001 could not connect to the source") {
			t.Errorf("%s: got %s", at, got)
		}
		snap := x.Catalog.Snapshot()
		if n, m := len(snap.Pipelines()), len(snap.Connections()); n != 0 || at == "discover" && m != 0 {
			t.Errorf("%s: %d pipelines and %d connections are left", at, n, m)
		}
		snap.Close()
	}
}

// TestGetDDL: what is dumped makes the same object again.
func TestGetDDL(t *testing.T) {
	x, f := newExecutor(t)
	for _, sql := range []string{
		"CREATE CONNECTION c TO POSTGRES (HOST 'h', PORT 1)",
		`CREATE PIPELINE "P 1" FROM c SCHEMA 's_%s' FOR TABLE a (x, "Y"), b.c WITH (start = false, freshness = '5s')`,
		"CREATE PIPELINE g FROM GENERATOR (SEED 3) WITH (start = false)",
	} {
		if got := run(t, x, f, sql); strings.Contains(got, "ERROR") {
			t.Fatal(got)
		}
	}
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	for _, p := range snap.Pipelines() {
		text, err := GetDDL(snap, "pipeline", p.Name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again := s.(*CreatePipeline)
		if again.Name != p.Name || fmt.Sprint(again.Selection) != fmt.Sprint(p.Selection) {
			t.Errorf("%s: got %+v, want %+v", text, again, p)
		}
	}
}
