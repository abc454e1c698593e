package query_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/memlake"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// world is a catalog, a lake in memory and a log in memory, with one table.
type world struct {
	t        testing.TB
	cat      *catalog.Catalog
	lake     *memlake.Warehouse
	svc      *compact.Service
	pinner   *planner.Pinner
	executor *query.Executor
	table    *catalog.Table
	log      map[segment.SliceRef]arrow.RecordBatch
	start    uint32
	token    int64
	// rows is the oracle: by key, or all of them under running numbers.
	rows map[string]string
}

func newWorld(t testing.TB, key ...string) *world {
	t.Helper()
	clock := env.NewFake(time.Unix(1_700_000_000, 0), 7)
	w := &world{t: t, log: map[segment.SliceRef]arrow.RecordBatch{}, start: 128, token: 100, rows: map[string]string{}}
	var err error
	w.cat, err = catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: clock, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	w.lake = memlake.New()
	w.executor = &query.Executor{Slices: slicesOf{w}, Files: w.lake}
	w.pinner = &planner.Pinner{Catalog: w.cat, Warehouse: w.lake, LogDir: func(change.PipelineID) string { return "" }}
	w.svc, err = compact.New(compact.Config{}, compact.Deps{
		Catalog: w.cat, Warehouse: w.lake, Searcher: w.executor, Clock: clock,
		Reader: func(change.PipelineID) compact.SliceReader { return w },
		Log:    func(change.PipelineID) (compact.Log, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1, AttNum: 1},
		{Name: "part", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1, AttNum: 2},
		{Name: "note", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1, AttNum: 3},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	w.update(func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "p", TargetSchema: "public", Enabled: true, State: catalog.PipelineRunning}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		w.table = &catalog.Table{
			Pipeline: p.ID, Schema: "public", Name: "t", State: catalog.TableReady, Current: s,
			Versions: []*schema.Table{s}, Generation: 1,
		}
		return txn.CreateTable(w.table)
	})
	return w
}

func (w *world) update(fn func(*catalog.Txn) error) {
	w.t.Helper()
	if err := w.cat.Update(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// slicesOf reads the log as a worker does.
type slicesOf struct{ w *world }

// ReadSlice implements duckdb.SliceReader.
func (s slicesOf) ReadSlice(_ context.Context, l duckdb.LiveSlice, _ string) (arrow.RecordBatch, error) {
	return s.w.read(segment.SliceRef{Seq: segment.Seq(l.Seq), Start: l.Start})
}

// ReadSlice implements compact.SliceReader.
func (w *world) ReadSlice(_ context.Context, s wal.Slice) (arrow.RecordBatch, error) {
	return w.read(s.Ref)
}

func (w *world) read(ref segment.SliceRef) (arrow.RecordBatch, error) {
	b, ok := w.log[ref]
	if !ok {
		return nil, fmt.Errorf("slice %s: %w", ref, duckdb.ErrSliceLost)
	}
	if b != nil {
		b.Retain()
	}
	return b, nil
}

// row is a change: op '+', '-'; token moves the row's token against the slice's.
type row struct {
	op         byte
	id         int64
	part, note string
}

// append publishes one slice and folds it into the oracle.
func (w *world) append(truncate bool, rows ...row) {
	w.t.Helper()
	w.token++
	b := change.NewBuilder(memory.DefaultAllocator, w.table.ID, w.table.Current.Version, w.table.Current.Arrow())
	defer b.Release()
	b.Truncate = truncate
	if truncate {
		clear(w.rows)
	}
	for i, r := range rows {
		op := change.Update
		if r.op == '-' {
			op = change.Delete
		}
		b.Add(op, w.token, int32(i))
		values := []any{r.id, r.part, r.note, nil}
		if op == change.Delete {
			values[2] = nil
		}
		for c, f := range w.table.Current.Fields {
			put(b.Column(c), values[f.AttNum-1])
		}
		key := fmt.Sprint(r.id, r.part)
		switch {
		case len(w.table.Current.Key) == 0:
			w.rows[fmt.Sprint(len(w.rows))] = w.render(r)
		case op == change.Delete:
			delete(w.rows, key)
		default:
			w.rows[key] = w.render(r)
		}
	}
	batch := b.Batch()
	ref := segment.SliceRef{Seq: 1, Start: w.start}
	w.start += 256
	w.log[ref] = batch.Record
	s := wal.Slice{
		Ref: ref, Length: 256, Table: w.table.ID, SchemaVersion: batch.SchemaVersion, Rows: uint32(batch.Rows()),
		Counts: batch.Counts, Truncate: batch.Truncate,
	}
	g := wal.CommittedGroup{Seq: 1, End: w.start, Slices: []wal.Slice{s}, Position: change.Position(fmt.Sprint(w.token))}
	if err := w.cat.Publish(w.t.Context(), w.table.Pipeline, []wal.CommittedGroup{g}); err != nil {
		w.t.Fatal(err)
	}
}

func put(b array.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.AppendNull()
	case int64:
		if b, ok := b.(*array.Int64Builder); ok {
			b.Append(v)
			return
		}
		b.(*array.Int32Builder).Append(int32(v))
	case string:
		b.(*array.StringBuilder).Append(v)
	}
}

// render is a row as a query shows it in every schema version of these tests: columns
// are added at the end.
func (w *world) render(r row) string {
	return string(query.AppendRow(nil, []any{r.id, r.part, r.note}))
}

// widen gives the table another column at the end and a wider key.
func (w *world) widen() {
	w.t.Helper()
	s, err := schema.Evolve(w.table.Current, []schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, AttNum: 1},
		{Name: "part", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1, AttNum: 2},
		{Name: "words", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1, AttNum: 3},
		{Name: "more", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1, AttNum: 4},
	}, keyNames(w.table.Current))
	if err != nil {
		w.t.Fatal(err)
	}
	w.update(func(txn *catalog.Txn) error {
		t, err := txn.TableByID(w.table.ID)
		if err != nil {
			return err
		}
		t.Versions, t.Current = append(t.Versions, s), s
		w.table = t
		return txn.PutTable(t)
	})
}

func keyNames(s *schema.Table) []string {
	var out []string
	for _, f := range s.KeyFields() {
		out = append(out, f.Name)
	}
	return out
}

func (w *world) plan() *planner.TablesPin {
	w.t.Helper()
	snap := w.cat.Snapshot()
	defer snap.Close()
	pin, err := w.pinner.Plan(w.t.Context(), snap, []planner.TableUse{planner.WholeTable(w.table)})
	if err != nil {
		w.t.Fatal(err)
	}
	return pin
}

func (w *world) want() []string {
	out := slices.Collect(maps.Values(w.rows))
	if len(w.table.Current.Fields) == 4 {
		for i := range out {
			out[i] += `|\N`
		}
	}
	slices.Sort(out)
	return out
}

// TestRandomHistories compares queries with the fold, at once and after whatever
// happened since they were planned (P2).
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(60) {
		keys := [][]string{{"id"}, {"id", "part"}, {"part", "id"}, nil}[seed%4]
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, keys...)
		type earlier struct {
			pin  *planner.TablesPin
			want []string
		}
		var pins []earlier
		for step := range 40 {
			switch n := r.IntN(20); {
			case n < 11:
				w.append(r.IntN(12) == 0, randomRows(r, keys)...)
			case n < 12:
				w.append(true)
			case n < 16:
				if _, err := w.svc.StepTable(t.Context(), w.table.ID, true); err != nil {
					t.Fatal(err)
				}
			case n < 17 && len(w.table.Versions) == 1:
				w.widen()
			default:
				pins = append(pins, earlier{w.plan(), w.want()})
			}
			for _, p := range pins {
				got, err := w.executor.Run(t.Context(), &p.pin.Relations[0])
				if err != nil {
					t.Fatal(err)
				}
				if rows := got.Rows(); !slices.Equal(rows, p.want) {
					t.Fatalf("seed %d step %d: got %q, want %q", seed, step, rows, p.want)
				}
				if d := query.NewResult(p.want...).Digest; d != got.Digest {
					t.Fatalf("digest %v of the same rows as %v", got.Digest, d)
				}
			}
		}
	}
}

func randomRows(r *rand.Rand, key []string) []row {
	rows := make([]row, 1+r.IntN(4))
	for i := range rows {
		rows[i] = row{'+', int64(r.IntN(6)), "p", fmt.Sprintf(`n|\%d`, r.IntN(100))}
		if len(key) == 2 {
			rows[i].part = fmt.Sprint("p", r.IntN(2))
		}
		if len(key) > 0 && r.IntN(3) == 0 {
			rows[i].op = '-'
		}
	}
	return rows
}

// TestLostSlice is an error, not a shorter result (P3).
func TestLostSlice(t *testing.T) {
	w := newWorld(t, "id")
	w.append(false, row{'+', 1, "p", "a"})
	w.append(false, row{'+', 2, "p", "b"})
	pin := w.plan()
	clear(w.log)
	if _, err := w.executor.Run(t.Context(), &pin.Relations[0]); !errors.Is(err, duckdb.ErrSliceLost) {
		t.Errorf("Run = %v", err)
	}
}

// TestOlderLiveChange loses against a newer row of the lake (M2): a row of a copy that
// came late.
func TestOlderLiveChange(t *testing.T) {
	w := newWorld(t, "id")
	w.append(false, row{'+', 1, "p", "new"}, row{'+', 2, "p", "kept"})
	if err := w.svc.Compact(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	w.token -= 50
	w.append(false, row{'+', 1, "p", "old"}, row{'-', 2, "p", ""}, row{'+', 3, "p", "own"})
	pin := w.plan()
	if !pin.Relations[0].Live.CompareTokens {
		t.Fatal("tokens are not compared")
	}
	got, err := w.executor.Run(t.Context(), &pin.Relations[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1|p|new", "2|p|kept", "3|p|own"}; !slices.Equal(got.Rows(), want) {
		t.Errorf("rows %q", got.Rows())
	}
}

func BenchmarkRun(b *testing.B) {
	w := newWorld(b, "id")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 12 {
		w.append(false, randomRows(r, []string{"id"})...)
		if i == 6 {
			if err := w.svc.Compact(b.Context(), "p"); err != nil {
				b.Fatal(err)
			}
		}
	}
	pin := w.plan()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.executor.Run(b.Context(), &pin.Relations[0]); err != nil {
			b.Fatal(err)
		}
	}
}
