package compact_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

var errCrash = errors.New("crashed")

// world is a catalog, a lake in a directory and a log in memory, with one table
// people(id key, name).
type world struct {
	t     testing.TB
	clock *env.Fake
	store kv.Store
	dir   string
	// pointers has those of the lake; nil: store does.
	pointers kv.Store
	epoch    segment.Epoch
	// backup outlives the store; nil: there is none.
	backup catalog.BackupStore
	cat    *catalog.Catalog
	wh     *iceberg.Warehouse
	svc    *compact.Service
	pid    change.PipelineID
	table  *catalog.Table

	log       map[segment.SliceRef]arrow.RecordBatch
	groups    []wal.CommittedGroup
	reclaimed []segment.Seq
	heldFrom  segment.Seq // the log goes no further; zero: it does
	seq       segment.Seq
	start     uint32
	token     int64
	pending   int // parts of the transaction under way
	searches  int
	onRead    func() // called by ReadSlice, nil for nothing
	onReclaim func(seqs []segment.Seq)
	searcher  compact.Searcher // nil: the world itself
	crashAt   env.Failpoint
	cfg       compact.Config
	model     map[int64]string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, clock: env.NewFake(time.Unix(1_700_000_000, 0), 7), store: memkv.New(), dir: t.TempDir(),
		log: map[segment.SliceRef]arrow.RecordBatch{}, seq: 1, start: 128, token: 1000, model: map[int64]string{},
	}
	t.Cleanup(func() { _ = w.cat.Close(); _ = w.store.Close() })
	w.open()
	w.update(func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "p", TargetSchema: "public", Enabled: true, State: catalog.PipelineRunning}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		w.pid = p.ID
		tbl := &catalog.Table{
			Pipeline: p.ID, Schema: "public", Name: "people", State: catalog.TableReady,
			Current: people(t), Generation: 1,
		}
		if err := txn.CreateTable(tbl); err != nil {
			return err
		}
		w.table = tbl
		return nil
	})
	return w
}

// open starts a process over what is durable.
func (w *world) open() {
	w.t.Helper()
	var err error
	w.cat, err = catalog.Open(w.t.Context(), w.store, catalog.Deps{
		Clock: w.clock, IDs: w.clock, Key: make([]byte, 32), ApplyState: applyParts, Backup: w.backup,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	pointers := w.pointers
	if pointers == nil {
		pointers = w.store
	}
	w.wh, err = iceberg.Open(pointers, w.dir, iceberg.Config{}, iceberg.Deps{Clock: w.clock, IDs: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	var searcher compact.Searcher = w
	if w.searcher != nil {
		searcher = w.searcher
	}
	w.svc, err = compact.New(w.cfg, compact.Deps{
		Catalog: w.cat, Warehouse: w.wh, Searcher: searcher, Clock: w.clock,
		Epoch:  func(change.PipelineID) segment.Epoch { return w.epoch },
		Reader: func(change.PipelineID) compact.SliceReader { return w },
		Log:    func(change.PipelineID) (compact.Log, bool) { return w, true },
		Failpoints: env.FailpointFunc(func(f env.Failpoint) error {
			if f == w.crashAt {
				return errCrash
			}
			return nil
		}),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// reopen is a crash: everything in memory is lost.
func (w *world) reopen() {
	w.t.Helper()
	w.crashAt = 0
	if err := w.cat.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

func (w *world) update(fn func(*catalog.Txn) error) {
	w.t.Helper()
	if err := w.cat.Update(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

func people(t testing.TB) *schema.Table {
	t.Helper()
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, NotNull: true},
		{Name: "name", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) setTable(change func(*catalog.Table)) {
	w.t.Helper()
	w.update(func(txn *catalog.Txn) error {
		t, err := txn.TableByID(w.table.ID)
		if err != nil {
			return err
		}
		change(t)
		w.table = t
		return txn.PutTable(t)
	})
}

// applyParts reads a state: a part of a transaction, or what completes one of so many,
// whose first is in segment 1.
func applyParts(txn *catalog.Txn, _ change.PipelineID, state []byte) error {
	var parts int
	if _, err := fmt.Sscanf(string(state), "complete %d", &parts); err == nil {
		return txn.Complete("x", parts, 1)
	}
	return txn.PartOf("x")
}

// append publishes one group with one slice. rows are "+1 name" (insert), "~1 name"
// (update) and "-1" (delete; "-1 name" of a whole row); flags may have "truncate" and "backfill", "part" (of a
// transaction) and "complete".
func (w *world) append(flags string, rows ...string) {
	w.t.Helper()
	part, completes := strings.Contains(flags, "part"), strings.Contains(flags, "complete")
	if w.pending == 0 && !strings.Contains(flags, "backfill") {
		w.token++
	}
	token := w.token
	if strings.Contains(flags, "backfill") {
		token = 5
	}
	b := change.NewBuilder(memory.DefaultAllocator, w.table.ID, w.table.Current.Version, w.table.Current.Arrow())
	defer b.Release()
	b.Truncate, b.Backfill = strings.Contains(flags, "truncate"), strings.Contains(flags, "backfill")
	if b.Truncate {
		clear(w.model)
	}
	for i, r := range rows {
		var id int64
		var name string
		_, _ = fmt.Sscanf(r[1:], "%d %s", &id, &name)
		op := map[byte]change.Op{'+': change.Insert, '~': change.Update, '-': change.Delete}[r[0]]
		b.Add(op, token, int32(i))
		for c, f := range w.table.Current.Fields {
			switch {
			case f.Name == "id":
				b.Column(c).(*array.Int64Builder).Append(id)
			case f.Name == "name" && name != "" && (op != change.Delete || w.table.Current.WholeRow):
				b.Column(c).(*array.StringBuilder).Append(name)
			default:
				b.Column(c).AppendNull()
			}
		}
		if op == change.Delete {
			delete(w.model, id)
		} else {
			w.model[id] = name
		}
	}
	batch := b.Batch()
	ref := segment.SliceRef{Seq: w.seq, Start: w.start}
	w.start += 256
	if batch.Rows() > 0 {
		w.log[ref] = batch.Record
	}
	s := wal.Slice{
		Ref: ref, Length: 256, Table: w.table.ID, SchemaVersion: batch.SchemaVersion, Rows: uint32(batch.Rows()),
		Counts: batch.Counts, Truncate: batch.Truncate, Backfill: batch.Backfill,
	}
	g := wal.CommittedGroup{
		Seq: w.seq, End: w.start, Slices: []wal.Slice{s},
		Position: change.Position(fmt.Sprint(w.token)), CommittedAt: w.clock.Now(),
	}
	switch {
	case part:
		w.pending++
		g.Position, g.State = "", []byte("part")
	case completes:
		g.State = fmt.Appendf(nil, "complete %d", w.pending)
		w.pending = 0
	case w.pending > 0:
		g.Position = ""
	}
	w.groups = append(w.groups, g)
	if err := w.cat.Publish(w.t.Context(), w.pid, []wal.CommittedGroup{g}); err != nil {
		w.t.Fatal(err)
	}
}

// roll begins a new segment.
func (w *world) roll() { w.seq, w.start = w.seq+1, 128 }

func (w *world) compact() {
	w.t.Helper()
	if err := w.svc.Compact(w.t.Context(), "p"); err != nil {
		w.t.Fatal(err)
	}
}

// ReadSlice implements compact.SliceReader.
func (w *world) ReadSlice(_ context.Context, s wal.Slice) (arrow.RecordBatch, error) {
	if w.onRead != nil {
		w.onRead()
	}
	if slices.Contains(w.reclaimed, s.Ref.Seq) {
		return nil, errors.New("slice was reclaimed")
	}
	b := w.log[s.Ref]
	if b != nil {
		b.Retain()
	}
	return b, nil
}

// Reclaim implements compact.Log.
func (w *world) Reclaim(_ context.Context, seqs []segment.Seq) error {
	if w.onReclaim != nil {
		w.onReclaim(seqs)
	}
	for _, seq := range seqs {
		if w.heldFrom > 0 && seq >= w.heldFrom {
			return &wal.HeldError{Seq: seq, Low: w.heldFrom}
		}
		w.reclaimed = append(w.reclaimed, seq)
	}
	return nil
}

// Superseded implements compact.Searcher: reads all files of the plan, naively.
func (w *world) Superseded(ctx context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error] {
	w.searches++
	return func(yield func(lake.Position, error) bool) {
		keys := map[int64]bool{}
		r, err := ipc.NewReader(strings.NewReader(string(plan.Relations[1].Inline)))
		if err != nil {
			yield(lake.Position{}, err)
			return
		}
		for r.Next() {
			for _, v := range r.RecordBatch().Column(0).(*array.Int64).Int64Values() {
				keys[v] = true
			}
		}
		gone := map[lake.Position]bool{}
		for _, d := range plan.Relations[0].PositionDeletes {
			for _, rec := range readParquet(ctx, w.t, d) {
				for i := range int(rec.NumRows()) {
					gone[lake.Position{
						File: rec.Column(0).(*array.String).Value(i),
						Row:  rec.Column(1).(*array.Int64).Value(i),
					}] = true
				}
			}
		}
		for _, f := range plan.Relations[0].Files {
			row := int64(0)
			for _, rec := range readParquet(ctx, w.t, f.Path) {
				for _, id := range rec.Column(0).(*array.Int64).Int64Values() {
					p := lake.Position{File: f.Path, Row: row}
					row++
					if keys[id] && !gone[p] && !yield(p, nil) {
						return
					}
				}
			}
		}
	}
}

func readParquet(ctx context.Context, t testing.TB, path string) []arrow.RecordBatch {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pf, err := file.NewParquetReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 1024}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := r.ReadTable(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.RecordBatch
	tr := array.NewTableReader(tbl, 1024)
	for tr.Next() {
		rec := tr.RecordBatch()
		rec.Retain()
		out = append(out, rec)
	}
	return out
}

func (w *world) lakeState() catalog.LakeState {
	snap := w.cat.Snapshot()
	defer snap.Close()
	return snap.LakeState(w.table.ID)
}

func (w *world) live() int {
	w.t.Helper()
	snap := w.cat.Snapshot()
	defer snap.Close()
	live, err := snap.LiveSlices(w.table.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(live)
}

// lakeRows reads what the catalog's lake state names, with iceberg-go's scanner.
func (w *world) lakeRows() []string {
	w.t.Helper()
	st := w.lakeState()
	if st.Snapshot == 0 {
		return nil
	}
	tbl, err := w.wh.Catalog().LoadTable(w.t.Context(), table.Identifier{"public", "people"})
	if err != nil {
		w.t.Fatal(err)
	}
	_, recs, err := tbl.Scan(table.WithSnapshotID(st.Snapshot)).ToArrowRecords(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for r, err := range recs {
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range int(r.NumRows()) {
			row := ""
			for c := range int(r.NumCols()) - 1 {
				row += r.Column(c).ValueStr(i) + " "
			}
			out = append(out, strings.TrimSpace(row))
		}
	}
	slices.Sort(out)
	return out
}

// wantLake compares the lake with the naive fold of everything appended.
func (w *world) wantLake() {
	w.t.Helper()
	if n := w.live(); n > 0 {
		w.t.Errorf("%d slices are still live", n)
	}
	var want []string
	for id, name := range maps.All(w.model) {
		want = append(want, fmt.Sprintf("%d %s", id, name))
	}
	w.wantRows(want...)
}

func (w *world) wantRows(want ...string) {
	w.t.Helper()
	got := w.lakeRows()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("lake has %q, want %q", got, want)
	}
	if st := w.lakeState(); st.Rows != int64(len(want)) {
		w.t.Errorf("lake state says %d rows, want %d", st.Rows, len(want))
	}
}
