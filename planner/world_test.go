package planner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// world is a server in this process: real catalog, log, lake and engine.
type world struct {
	// waitRecovery is asked before the first query of a pipeline's tables; nil: at once.
	waitRecovery func(context.Context) error
	recoveries   atomic.Int64
	t            testing.TB
	cat          *catalog.Catalog
	log          *wal.Log
	table        *catalog.Table
	compact      *compact.Service
	runner       *countingRunner
	addr         string
	token        int64
	dir          string
}

// countingRunner counts queries and loses pins on demand.
type countingRunner struct {
	planner.PoolRunner
	queries, lose int
	// slow runs before a query; a test blocks it.
	slow func(ctx context.Context)
}

func (r *countingRunner) Query(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	r.queries++
	if r.slow != nil {
		r.slow(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if r.lose > 0 {
		r.lose--
		return nil, fmt.Errorf("test: %w", duckdb.ErrSliceLost)
	}
	return r.PoolRunner.Query(ctx, p)
}

func encoders(o duckdb.Output, types []vector.Type) (duckdb.RowEncoder, error) {
	spec := encode.Spec{Kind: encode.Kind(o.Kind), Copy: encode.CopyOptions(o.Copy), Format: encode.Format(o.Format)}
	for _, c := range o.Columns {
		spec.Columns = append(spec.Columns, encode.Column(c))
	}
	return encode.New(spec, types)
}

// oneRelation is a system with pg_catalog.pg_namespace only.
type oneRelation struct{}

func (oneRelation) Index(string, string) (uint32, bool) { return 0, false }

func (oneRelation) Lookup(s, n string) (planner.SystemRelation, bool) {
	if s != "pg_catalog" || n != "pg_namespace" {
		return planner.SystemRelation{}, false
	}
	return planner.SystemRelation{Schema: s, Name: n, OID: 2615, Columns: []planner.SystemColumn{
		{Name: "oid", TypeOID: 26, TypMod: -1, EngineType: "BIGINT"}, {
			Name: "nspname", TypeOID: 19, TypMod: -1,
			EngineType: "VARCHAR",
		},
	}}, true
}

func (oneRelation) Rows(_ context.Context, _ planner.SystemRelation, e *planner.SystemEnv) ([]byte, error) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "oid", Type: arrow.PrimitiveTypes.Int64},
		{Name: "nspname", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, x := range e.Snapshot.Schemas() {
		b.Field(0).(*array.Int64Builder).Append(int64(x.OID))
		b.Field(1).(*array.StringBuilder).Append(x.Name)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(s))
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func (oneRelation) Prelude() []string { return nil }

// IndexColumns implements planner.SystemRelations.
func (oneRelation) IndexColumns(*planner.SystemEnv, *catalog.Table, catalog.Index) []string {
	return nil
}

func (oneRelation) Functions() []planner.SystemFunction {
	return []planner.SystemFunction{{
		Schema: "pg_catalog", Name: "test_schema_name", Args: []uint32{26}, Result: 19,
		Engine: "(SELECT x.nspname FROM {rel:pg_catalog.pg_namespace} x WHERE x.oid = $1)",
	}}
}

type noDDL struct{}

func (noDDL) Execute(_ context.Context, s ddl.Statement, session ddl.Session) (*ddl.Result, error) {
	return &ddl.Result{Tag: s.Tag()}, nil
}

func newWorld(t testing.TB) *world { return newWorldWith(t, oneRelation{}) }

func newWorldWith(t testing.TB, system planner.SystemRelations) *world {
	t.Helper()
	clock, ids := env.System()
	store := memkv.New()
	w := &world{t: t, dir: t.TempDir(), token: 100}
	var err error
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.cat, err = catalog.Open(t.Context(), store, catalog.Deps{Clock: clock, IDs: ids, Key: make([]byte, 32)})
	must(err)
	w.makeTable()
	logDir := func(p change.PipelineID) string { return filepath.Join(w.dir, fmt.Sprintf("%08x", uint32(p))) }
	w.log, err = wal.Open(t.Context(), wal.Config{
		Dir: logDir(w.table.Pipeline), Pipeline: w.table.Pipeline,
		SegmentBytes: 64 << 10,
	},
		wal.Deps{Publisher: w.cat, Clock: clock, IDs: ids, Log: slog.New(slog.DiscardHandler)})
	must(err)
	pool, err := duckdb.NewPool(duckdb.PoolConfig{
		InProcess: true, Worker: duckdb.WorkerConfig{Threads: 1, MemoryLimit: 512 << 20, Prelude: planner.Prelude(system), Functions: pgfunc.Functions()},
	}, duckdb.Deps{Clock: clock, Log: slog.New(slog.DiscardHandler), Encoder: encoders, Slices: duckdb.NewLogReader()})
	must(err)
	wh, err := iceberg.Open(store, filepath.Join(w.dir, "lake"), iceberg.Config{}, iceberg.Deps{Clock: clock, IDs: ids})
	must(err)
	w.compact, err = compact.New(compact.Config{}, compact.Deps{
		Catalog: w.cat, Warehouse: wh, Searcher: compact.EngineSearcher{Pool: pool}, Clock: clock,
		Reader: func(p change.PipelineID) compact.SliceReader { return wal.OpenReader(logDir(p)) },
		Log:    func(change.PipelineID) (compact.Log, bool) { return w.log, true },
	})
	must(err)
	w.runner = &countingRunner{PoolRunner: planner.PoolRunner{Pool: pool}}
	engine := planner.New(planner.Deps{
		Catalog: w.cat, Warehouse: wh, Runner: w.runner, DDL: noDDL{}, System: system, Clock: clock,
		LogDir: logDir, Version: "15.8", Database: "lake",
		Recovered: func(ctx context.Context, p change.PipelineID) error { return w.recovered(ctx, p) },
	})
	server, err := pgwire.New(pgwire.Config{}, pgwire.Deps{
		Engine: engine, Clock: clock, IDs: ids,
		Log: slog.New(slog.DiscardHandler),
	})
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	w.addr = l.Addr().String()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		<-done
		pool.Close()
		_ = w.log.Close()
		_ = w.cat.Close()
		_ = store.Close()
	})
	return w
}

func (w *world) makeTable() {
	w.t.Helper()
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, NotNull: true},
		{Name: "name", Type: schema.Type{Kind: schema.String}, OID: 1043, TypMod: 24},
		{Name: "Total", Type: schema.Type{Kind: schema.Decimal, Precision: 10, Scale: 2}, OID: 1700, TypMod: 10<<16 + 2 +
			4},
	}, []string{"id"})
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.cat.Update(w.t.Context(), func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "shop", TargetSchema: "shop", Enabled: true, State: catalog.PipelineRunning}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		w.table = &catalog.Table{
			Pipeline: p.ID, Schema: "shop", Name: "orders", State: catalog.TableReady, Current: s,
			Versions: []*schema.Table{s}, Generation: 1,
		}
		if err := txn.CreateTable(w.table); err != nil {
			return err
		}
		pending := &catalog.Table{
			Pipeline: p.ID, Schema: "shop", Name: "pending", State: catalog.TableBackfill, Current: s,
			Versions: []*schema.Table{s}, Generation: 1, Backfill: catalog.BackfillProgress{RowsDone: 5, RowsEstimate: 20},
		}
		return txn.CreateTable(pending)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// put appends one transaction of upserts: "id name total"; "-id" deletes.
func (w *world) put(rows ...string) {
	w.t.Helper()
	w.token++
	b := change.NewBuilder(memory.DefaultAllocator, w.table.ID, w.table.Current.Version, w.table.Current.Arrow())
	defer b.Release()
	for i, r := range rows {
		f := strings.Fields(r)
		op := change.Insert
		if f[0][0] == '-' {
			op, f = change.Delete, []string{f[0][1:]}
		}
		b.Add(op, w.token, int32(i))
		for c := range w.table.Current.Fields {
			if c >= len(f) || f[c] == "null" {
				b.Column(c).AppendNull()
			} else if err := b.Column(c).AppendValueFromString(f[c]); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	batch := b.Batch()
	defer batch.Release()
	_, err := w.log.Append(w.t.Context(), &change.Group{
		Batches: []*change.Batch{batch}, Position: change.Position(fmt.Sprintf("0/%X", w.token)), CommittedAt: time.Now(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// evolve gives the table its next schema version.
func (w *world) evolve(key string, cols ...schema.NewField) {
	w.t.Helper()
	next, err := schema.Evolve(w.table.Current, cols, []string{key})
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.cat.Update(w.t.Context(), func(txn *catalog.Txn) error {
		t, err := txn.TableByID(w.table.ID)
		if err != nil {
			return err
		}
		t.Current = next
		w.table = t
		return txn.PutTable(t)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) compactNow() {
	w.t.Helper()
	if err := w.compact.Compact(w.t.Context(), "shop"); err != nil {
		w.t.Fatal(err)
	}
}

// connect opens a client connection.
func (w *world) connect() *pgx.Conn {
	w.t.Helper()
	c, err := pgx.Connect(w.t.Context(), "postgres://postgres@"+w.addr+"/lake?sslmode=disable")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// simple runs a string by the simple protocol and renders everything that comes
// back: rows as a|b, then the tag of each statement, or the error.
func simple(t testing.TB, c *pgx.Conn, sql string) string {
	t.Helper()
	mr := c.PgConn().Exec(context.Background(), sql)
	var out []string
	for mr.NextResult() {
		rr := mr.ResultReader()
		for rr.NextRow() {
			var vals []string
			for _, v := range rr.Values() {
				if v == nil {
					vals = append(vals, "∅")
					continue
				}
				vals = append(vals, string(v))
			}
			out = append(out, strings.Join(vals, "|"))
		}
		tag, err := rr.Close()
		if err != nil {
			break
		}
		out = append(out, tag.String())
	}
	if err := mr.Close(); err != nil {
		out = append(out, errText(err))
	}
	return strings.Join(out, "; ")
}

func errText(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return "ERROR " + err.Error()
	}
	s := fmt.Sprintf("%s %s %s", e.Severity, e.Code, e.Message)
	if e.Position > 0 {
		s += fmt.Sprintf(" @%d", e.Position)
	}
	return s
}

func (w *world) recovered(ctx context.Context, _ change.PipelineID) error {
	w.recoveries.Add(1)
	if w.waitRecovery == nil {
		return nil
	}
	return w.waitRecovery(ctx)
}

// TestQueriesAwaitRecovery: the first query of a pipeline's tables waits until its log is
// recovered, and the next do not ask again; a log that cannot be opened is waited for once.
func TestQueriesAwaitRecovery(t *testing.T) {
	for name, result := range map[string]error{"recovered": nil, "not opened": errors.New("no disk")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asked, recovered := make(chan struct{}), make(chan struct{})
			w.waitRecovery = func(context.Context) error {
				close(asked)
				<-recovered
				return result
			}
			c := w.connect()
			simple(t, c, "SELECT 1")
			done := make(chan error, 1)
			go func() {
				_, err := c.PgConn().Exec(context.Background(), "SELECT count(*) FROM shop.orders").ReadAll()
				done <- err
			}()
			<-asked
			select {
			case err := <-done:
				t.Errorf("it did not wait: %v", err)
			default:
			}
			close(recovered)
			if err := <-done; err != nil {
				t.Error(err)
			}
			simple(t, c, "SELECT count(*) FROM shop.orders")
			if n := w.recoveries.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}
