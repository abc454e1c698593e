package planner_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// heldLake has one snapshot of each table, and knows who holds it.
type heldLake struct {
	held map[int64]int
	// logs are the holds on the log, from the segment that has a live slice.
	logs int
}

func (l *heldLake) HoldLog(p change.PipelineID, from segment.Seq) func() {
	if p == 1 && from == 2 {
		l.logs++
	}
	done := false
	return func() {
		if !done {
			l.logs--
		}
		done = true
	}
}

func (*heldLake) Snapshot(_ context.Context, _, metadata string, id int64) (*lake.Snapshot, error) {
	return &lake.Snapshot{ID: id, Metadata: metadata}, nil
}

func (l *heldLake) Hold(_ string, id int64) func() {
	l.held[id]++
	done := false
	return func() {
		if !done {
			l.held[id]--
		}
		done = true
	}
}

func (l *heldLake) want(t *testing.T, when string, a, b bool) {
	t.Helper()
	if (l.held[1] > 0) != a || (l.held[2] > 0) != b {
		t.Errorf("%s: held %v, want a %v, b %v", when, l.held, a, b)
	}
}

func (l *heldLake) wantLogs(t *testing.T, when string, n int) {
	t.Helper()
	if l.logs != n {
		t.Errorf("%s: %d holds on the log, want %d", when, l.logs, n)
	}
}

// lakeSession opens a session on tables a and b, with snapshots 1 and 2.
func lakeSession(t *testing.T, r planner.Runner) (pgwire.Session, *heldLake) {
	t.Helper()
	clock, ids := env.System()
	cat, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: ids, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := schema.New([]schema.NewField{{Name: "x", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = cat.Update(t.Context(), func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "p", TargetSchema: "public"}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		for i, name := range []string{"a", "b"} {
			tbl := &catalog.Table{
				Pipeline: p.ID, Schema: "public", Name: name, State: catalog.TableReady, Current: text,
				Versions: []*schema.Table{text},
			}
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
			if err := txn.PutLakeState(tbl.ID, catalog.LakeState{Snapshot: int64(i + 1), Metadata: "m"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = cat.Publish(t.Context(), 1, []wal.CommittedGroup{{Seq: 2, End: 500, Slices: []wal.Slice{{
		Ref: segment.SliceRef{Seq: 2, Start: 128}, Length: 64, Table: 1, SchemaVersion: 1, Rows: 1,
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	l := &heldLake{held: map[int64]int{}}
	e := planner.New(planner.Deps{
		Catalog: cat, Warehouse: l, Pins: l, Logs: l, Runner: r, DDL: noDDL{}, System: oneRelation{}, Clock: clock,
		Version: "15.8", Database: "lake", LogDir: func(change.PipelineID) string { return "" },
	})
	s, err := e.Open(t.Context(), pgwire.Startup{User: "postgres", Database: "lake", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, l
}

// execute runs a statement up to a number of rows, as a simple query does.
func execute(t *testing.T, s pgwire.Session, sql string, limit int) pgwire.Portal {
	t.Helper()
	p := bind(t, s, sql)
	if _, _, err := p.Execute(t.Context(), &recorder{}, limit); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return p
}

// TestStatementHolds what it reads until its rows are out, it fails, or it is closed.
func TestStatementHolds(t *testing.T) {
	r := &frames{sizes: []int{2, 2}}
	s, l := lakeSession(t, r)
	execute(t, s, "SELECT x FROM a", 0)
	l.want(t, "after all rows", false, false)
	p := execute(t, s, "SELECT x FROM a", 1)
	l.want(t, "suspended", true, false)
	p.Close()
	l.want(t, "closed", false, false)
	r.fail = fmt.Errorf("test: %w", duckdb.ErrWorkerDied)
	if _, _, err := bind(t, s, "SELECT a.x FROM a, b").Execute(t.Context(), &recorder{}, 0); err == nil {
		t.Fatal("no error")
	}
	l.want(t, "worker died", false, false)
	r.sizes = nil
	if _, _, err := bind(t, s, "SELECT x FROM a").Execute(t.Context(), &recorder{}, 0); err == nil {
		t.Fatal("no error")
	}
	l.want(t, "worker died before the first row", false, false)
}

// TestTransactionHolds what its statements may read, when all read one moment.
func TestTransactionHolds(t *testing.T) {
	s, l := lakeSession(t, &frames{sizes: []int{2}})
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		execute(t, s, "BEGIN ISOLATION LEVEL REPEATABLE READ", 0)
		execute(t, s, "SELECT x FROM a", 0)
		l.want(t, "between statements", true, true)
		l.wantLogs(t, "between statements", 1)
		execute(t, s, end, 0)
		l.want(t, "after "+end, false, false)
		l.wantLogs(t, "after "+end, 0)
	}
	execute(t, s, "BEGIN", 0)
	execute(t, s, "SELECT x FROM a", 0)
	l.want(t, "read committed", false, false)
	execute(t, s, "COMMIT", 0)
	execute(t, s, "BEGIN ISOLATION LEVEL REPEATABLE READ", 0)
	execute(t, s, "SELECT x FROM a", 0)
	s.Close()
	l.want(t, "session gone", false, false)
}

// TestCursorHolds from DECLARE to CLOSE, or the end of what it lives in.
func TestCursorHolds(t *testing.T) {
	s, l := lakeSession(t, &frames{sizes: []int{2, 2}})
	execute(t, s, "BEGIN", 0)
	execute(t, s, "DECLARE c CURSOR FOR SELECT x FROM a", 0)
	execute(t, s, "DECLARE h CURSOR WITH HOLD FOR SELECT x FROM b", 0)
	l.want(t, "declared", true, true)
	l.wantLogs(t, "declared", 2)
	execute(t, s, "FETCH 1 FROM c", 0)
	l.want(t, "fetched", true, true)
	execute(t, s, "COMMIT", 0)
	l.want(t, "after the transaction, whose end has its rows kept", false, false)
	l.wantLogs(t, "after the transaction", 0)
	k := &recorder{}
	if _, _, err := bind(t, s, "FETCH ALL FROM h").Execute(t.Context(), k, 0); err != nil || !slices.Equal(k.got, []string{"1", "2", "3", "4"}) {
		t.Errorf("rows kept: %q, %v", k.got, err)
	}
	execute(t, s, "CLOSE h", 0)
	execute(t, s, "DECLARE h CURSOR WITH HOLD FOR SELECT x FROM b", 0)
	s.Close()
	l.want(t, "session gone", false, false)
}
