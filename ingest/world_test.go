package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// disk is a log that survives crashes in memory. A kill point fails the append that
// reaches it, and everything after, until the disk is revived.
type disk struct {
	// opaque: positions are not numbers, so their order is not checked.
	opaque bool
	mu     struct {
		sync.Mutex
		groups    []diskGroup
		published int
		position  change.Position // durable
		kill      killPoint
		after     int // appends before the kill
		dead      bool
		onDeath   func()
	}
}

type diskGroup struct {
	committed wal.CommittedGroup
	batches   map[segment.SliceRef]*change.Batch
}

type killPoint int

const (
	never killPoint = iota
	beforeDurable
	beforePublish
	beforeReturn
)

var errKilled = errors.New("killed")

// diskLog is one opening of a disk.
type diskLog struct {
	disk      *disk
	pipeline  change.PipelineID
	publisher wal.Publisher
}

func (d *disk) open(ctx context.Context, p change.PipelineID, pub wal.Publisher) (ingest.Log, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.dead {
		return nil, errKilled
	}
	var rest []wal.CommittedGroup
	for _, g := range d.mu.groups[d.mu.published:] {
		rest = append(rest, g.committed)
	}
	if len(rest) > 0 {
		if err := pub.Publish(ctx, p, rest); err != nil {
			return nil, err
		}
		d.mu.published = len(d.mu.groups)
	}
	return &diskLog{d, p, pub}, nil
}

func (l *diskLog) Close() error { return nil }

func (l *diskLog) Append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error) {
	d := l.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.dead {
		return wal.CommittedGroup{}, errKilled
	}
	kill := never
	if d.mu.kill != never {
		if d.mu.after == 0 {
			kill = d.mu.kill
		}
		d.mu.after--
	}
	if kill == beforeDurable {
		return wal.CommittedGroup{}, d.dieLocked()
	}
	stored := d.storeLocked(g)
	if kill == beforePublish {
		return wal.CommittedGroup{}, d.dieLocked()
	}
	if err := l.publisher.Publish(ctx, l.pipeline, []wal.CommittedGroup{stored}); err != nil {
		return wal.CommittedGroup{}, err
	}
	d.mu.published = len(d.mu.groups)
	if kill == beforeReturn {
		return wal.CommittedGroup{}, d.dieLocked()
	}
	return stored, nil
}

// killAt arms a kill at the n-th append from now; died is closed when it has come.
func (d *disk) killAt(kill killPoint, n int) (died <-chan struct{}) {
	ch := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.kill, d.mu.after, d.mu.onDeath = kill, n, func() { close(ch) }
	return ch
}

// revive ends the kill: what is booted next finds what was durable.
func (d *disk) revive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.dead, d.mu.kill, d.mu.onDeath = false, never, nil
}

// dieOnce runs the pipeline until it is killed at the n-th append, or has reached its end.
func (w *world) dieOnce(kill killPoint, n int) {
	died := w.disk.killAt(kill, n)
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ready)
		_ = w.supervisor.Start(ctx, "shop") // it may be killed first
		w.awaitEnd(ctx)
	}()
	select {
	case <-died:
	case <-ready:
	}
	cancel()
	<-ready
	w.stop()
}

func (d *disk) dieLocked() error {
	d.mu.dead = true
	if d.mu.onDeath != nil {
		d.mu.onDeath()
	}
	return errKilled
}

func (d *disk) storeLocked(g *change.Group) wal.CommittedGroup {
	start := uint32(64 + 1000*len(d.mu.groups))
	out := wal.CommittedGroup{
		Seq: 1, Position: g.Position, CommittedAt: g.CommittedAt,
		State: append([]byte(nil), g.State...),
	}
	batches := map[segment.SliceRef]*change.Batch{}
	for i, b := range g.Batches {
		b.Record.Retain()
		kept := *b
		ref := segment.SliceRef{Seq: 1, Start: start + uint32(i)}
		batches[ref] = &kept
		out.Slices = append(out.Slices, wal.Slice{
			Ref: ref, Length: 1, Table: b.Table, SchemaVersion: b.SchemaVersion,
			Rows: uint32(b.Rows()), Counts: b.Counts, Truncate: b.Truncate, Backfill: b.Backfill,
		})
	}
	out.End = start + 999
	d.mu.groups = append(d.mu.groups, diskGroup{out, batches})
	if g.Position != "" {
		if !d.opaque && number(g.Position) <= number(d.mu.position) {
			panic(fmt.Sprintf("O1: position %s after %s", g.Position, d.mu.position))
		}
		d.mu.position = g.Position
	}
	return out
}

func number(p change.Position) int64 {
	var n int64
	_, _ = fmt.Sscan(string(p), &n) // empty is 0
	return n
}

func (d *disk) read(ref segment.SliceRef) *change.Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.mu.groups {
		if b := g.batches[ref]; b != nil {
			return b
		}
	}
	return nil
}

func (d *disk) durable() change.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.position
}

// world is everything that survives a crash, and the server that runs in it.
type world struct {
	t       testing.TB
	store   kv.Store
	disk    *disk
	factory ingest.SourceFactory
	// openLog replaces the disk, failpoints are none, unless set.
	openLog    func(context.Context, change.PipelineID) (ingest.Log, error)
	failpoints env.Failpoints
	updates    env.Failpoints // of the catalog
	removeLog  func(change.PipelineID) error
	backup     catalog.BackupStore
	interval   time.Duration
	group      int64
	part       int64 // bytes of a transaction that make a part
	noCopy     bool  // tables are ready from the start

	catalog    *catalog.Catalog
	supervisor *ingest.Supervisor
	stop       func()
	lake       *lakeDrops
	stopWait   time.Duration // zero: the default
}

type lakeDrops struct {
	mu   sync.Mutex
	ids  []change.TableID
	fail error
}

func (l *lakeDrops) DropTable(_ context.Context, id change.TableID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.ids = append(l.ids, id)
	return nil
}

func newWorld(t *testing.T, factory ingest.SourceFactory) *world {
	t.Helper()
	return newWorldAs(t, func(w *world) { w.factory = factory })
}

// newWorldAs is newWorld for what must be set before the pipeline runs, which it does before
// newWorldAs returns.
func newWorldAs(t *testing.T, set func(*world)) *world {
	t.Helper()
	w := &world{t: t, store: memkv.New(), disk: &disk{}, lake: &lakeDrops{}, interval: 1, group: 64 << 10}
	set(w)
	w.create()
	return w
}

// create boots a world without facts and gives it its pipeline.
func (w *world) create() {
	w.t.Helper()
	w.boot()
	ctx := context.Background()
	err := w.catalog.Update(ctx, func(txn *catalog.Txn) error {
		if err := txn.CreateConnection(&catalog.Connection{Name: "c", Kind: generate.Kind}); err != nil {
			return err
		}
		return txn.CreatePipeline(&catalog.Pipeline{
			Name: "shop", Connection: "c", TargetSchema: "shop", Enabled: true,
			Selection: catalog.TableSelection{AllTables: true}, Options: map[string]string{"copy_data": strconv.FormatBool(!w.noCopy)},
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.stop() })
}

// aheadFactory makes generators whose later sessions copy the shop as it is some
// transactions after the pipeline's position, as a real source would.
func aheadFactory(cfg generate.Config, watch func(ingest.Source) ingest.Source) ingest.SourceFactory {
	shop := shopFactory(cfg, watch)
	return func(ctx context.Context, c ingest.ResolvedConnection, p *catalog.Pipeline,
		deps ingest.SourceDeps,
	) (ingest.Source, error) {
		if deps.Position != "" {
			ahead := min(number(deps.Position)+300, cfg.Transactions)
			deps.Position = change.Position(strconv.FormatInt(ahead, 10))
		}
		return shop(ctx, c, p, deps)
	}
}

// shopFactory makes generators of one configuration, each watched by watch if given.
func shopFactory(cfg generate.Config, watch func(ingest.Source) ingest.Source) ingest.SourceFactory {
	return func(_ context.Context, _ ingest.ResolvedConnection, _ *catalog.Pipeline,
		deps ingest.SourceDeps,
	) (ingest.Source, error) {
		s, err := generate.NewSource(cfg, deps)
		if err != nil || watch == nil {
			return s, err
		}
		return watch(s), nil
	}
}

// boot starts the server.
func (w *world) boot() {
	w.t.Helper()
	clock, ids := env.System()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("INGEST_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	c, err := catalog.Open(ctx, w.store, catalog.Deps{
		Clock: clock, IDs: ids, Log: log, Key: make([]byte, 32), ApplyState: ingest.ApplyState, Failpoints: w.updates,
		Backup: w.backup,
	})
	if err != nil {
		cancel()
		w.t.Fatal(err)
	}
	w.catalog = c
	w.supervisor = ingest.NewSupervisor(ingest.Config{
		DataDir: w.t.TempDir(), BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond,
		IdleInterval: time.Millisecond, LookInterval: 10 * time.Millisecond, GroupBytes: w.group, GroupInterval: w.interval,
		PartBytes: w.part, StopWait: w.stopWait, CopyAgain: time.Hour,
	}, ingest.Deps{
		Catalog: c, Sources: map[string]ingest.SourceFactory{generate.Kind: w.factory},
		Clock: clock, IDs: ids, Log: log, Lake: w.lake,
		Failpoints: w.failpoints, RemoveLog: w.removeLog,
		OpenLog: func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
			if w.openLog != nil {
				return w.openLog(ctx, p)
			}
			return w.disk.open(ctx, p, c)
		},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.supervisor.Run(ctx) // the cause of its context
	}()
	w.stop = func() {
		cancel()
		<-done
		_ = c.Close() // nothing runs
	}
}

// patience is how long tests wait for what must come: a machine that does much else takes
// its time.
const patience = 3 * time.Minute

// start starts the pipeline.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.supervisor.Start(ctx, "shop"); err != nil {
		w.t.Fatalf("start: %v", err)
	}
}

// startDoomed starts the pipeline on a server that ends before Start need return.
func (w *world) startDoomed() {
	supervisor := w.supervisor // boot makes another
	go func() { _ = supervisor.Start(context.Background(), "shop") }()
}

// await waits until cond holds of the catalog.
func (w *world) await(what string, cond func(*catalog.Snapshot) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		changed := w.catalog.Changed()
		snap := w.catalog.Snapshot()
		ok := cond(snap)
		snap.Close()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.t.Fatalf("waited in vain: %s; %s", what, w.describe())
		}
	}
}

// poll waits until cond holds of what the catalog does not tell of.
func (w *world) poll(what string, cond func() bool) {
	w.t.Helper()
	clock, _ := env.System()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !cond() {
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			st, _ := w.supervisor.Status("shop")
			w.t.Fatalf("polled in vain: %s; %+v", what, st)
		}
	}
}

func (w *world) describe() string {
	snap := w.catalog.Snapshot()
	defer snap.Close()
	var b strings.Builder
	for _, p := range snap.Pipelines() {
		o, _ := snap.Offset(p.ID)
		fmt.Fprintf(&b, "pipeline %s %s at %s;", p.State, p.Reason, o.Position)
		for _, t := range snap.Tables(p.ID) {
			fmt.Fprintf(&b, " %s %s %s stopped at %q horizon %q;", t.Name, t.State, t.Reason, t.StoppedAt, t.Backfill.Horizon)
		}
	}
	return b.String()
}

// awaitReady waits until the pipeline is at a position with all tables ready.
func (w *world) awaitReady(at change.Position) {
	w.t.Helper()
	w.await("ready at "+string(at), func(s *catalog.Snapshot) bool {
		return w.position(s) == at && allIn(s, catalog.TableReady)
	})
}

func (w *world) position(s *catalog.Snapshot) change.Position {
	p, err := s.Pipeline("shop")
	if err != nil {
		return ""
	}
	o, err := s.Offset(p.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return o.Position
}

func allIn(s *catalog.Snapshot, state catalog.TableState) bool {
	for _, t := range s.AllTables() {
		if t.State != state {
			return false
		}
	}
	return len(s.AllTables()) > 0
}

func (w *world) table(name string) *catalog.Table {
	w.t.Helper()
	snap := w.catalog.Snapshot()
	defer snap.Close()
	t, err := snap.TableByName("shop", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// fold is the naive oracle of reading: all changes of a table in the order of token,
// place and ordinal, the last one per key winning.
func (w *world) fold(name string, read func(catalog.Slice) *change.Batch) []string {
	w.t.Helper()
	snap := w.catalog.Snapshot()
	defer snap.Close()
	return w.foldIn(snap, w.tableIn(snap, name), read)
}

func (w *world) foldIn(snap *catalog.Snapshot, t *catalog.Table, read func(catalog.Slice) *change.Batch) []string {
	w.t.Helper()
	slices, err := snap.LiveSlices(t.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	type item struct {
		token   int64
		ordinal int32
		op      change.Op
		key     string
		text    string
	}
	var items []item
	for _, s := range slices {
		b := read(s)
		if s.Truncate {
			items = nil
		}
		ops, tokens := b.Record.Column(0).(*array.Uint8), b.Record.Column(1).(*array.Int64)
		ordinals := b.Record.Column(2).(*array.Int32)
		for i := range int(b.Record.NumRows()) {
			key := ""
			for _, id := range t.Current.Key {
				key += text(b.Record.Column(change.SystemColumns+t.Current.Index(id)), i) + "|"
			}
			items = append(items, item{
				tokens.Value(i), ordinals.Value(i), change.Op(ops.Value(i)), key, rowText(b.Record, i),
			})
		}
	}
	var rows []string
	if !t.Current.HasKey() {
		for _, it := range items {
			rows = append(rows, it.text)
		}
		sort.Strings(rows)
		return rows
	}
	sort.SliceStable(items, func(i, j int) bool {
		if items[i].token != items[j].token {
			return items[i].token < items[j].token
		}
		return !isBackfill(items[i].token) && items[i].ordinal < items[j].ordinal
	})
	last := map[string]item{}
	for _, it := range items {
		last[it.key] = it
	}
	for _, it := range last {
		if it.op != change.Delete {
			rows = append(rows, it.text)
		}
	}
	sort.Strings(rows)
	return rows
}

// isBackfill says that rows of a token come from several reads, whose ordinals do not
// compare.
func isBackfill(token int64) bool { return token == 0 }

func rowText(r arrow.RecordBatch, i int) string {
	words := make([]string, 0, r.NumCols())
	for c := change.SystemColumns; c < int(r.NumCols()); c++ {
		words = append(words, text(r.Column(c), i))
	}
	return strings.Join(words, "|")
}

func text(col arrow.Array, i int) string {
	if col.IsNull(i) {
		return "NULL"
	}
	var v any
	switch col := col.(type) {
	case *array.Boolean:
		v = col.Value(i)
	case *array.Int32:
		v = generate.Int4(col.Value(i))
	case *array.Int64:
		v = col.Value(i)
	case *array.Float64:
		v = col.Value(i)
	case *array.String:
		v = col.Value(i)
	case *array.Decimal128:
		v = generate.Money(int64(col.Value(i).LowBits()))
	case *array.Timestamp:
		v = generate.Instant(col.Value(i))
	case *array.Date32:
		v = generate.Day(col.Value(i))
	case *array.FixedSizeBinary:
		v = generate.UUID(col.Value(i))
	case *array.List:
		from, to := col.ValueOffsets(i)
		switch elems := col.ListValues().(type) {
		case *array.Int32:
			v = append([]int32{}, elems.Int32Values()[from:to]...)
		case *array.String:
			words := []string{}
			for e := from; e < to; e++ {
				words = append(words, elems.Value(int(e)))
			}
			v = words
		}
	}
	s, null := generate.Text(v)
	if null {
		return fmt.Sprintf("unknown array %T", col)
	}
	return s
}

// expect compares all tables with the oracle.
func (w *world) expect(cfg generate.Config, n int64) {
	w.t.Helper()
	w.expectRead(cfg, n, func(s catalog.Slice) *change.Batch { return w.disk.read(s.Ref) })
}

func (w *world) expectRead(cfg generate.Config, n int64, read func(catalog.Slice) *change.Batch) {
	w.t.Helper()
	snap := w.catalog.Snapshot()
	defer snap.Close()
	w.expectIn(snap, cfg, n, read)
}

func (w *world) expectIn(snap *catalog.Snapshot, cfg generate.Config, n int64, read func(catalog.Slice) *change.Batch) {
	w.t.Helper()
	state := generate.StateAt(cfg, n)
	for _, table := range generate.Tables() {
		var want []string
		for _, r := range state.Rows(table) {
			words := make([]string, len(r))
			for i, v := range r {
				var null bool
				if words[i], null = generate.Text(v); null {
					words[i] = "NULL"
				}
			}
			want = append(want, strings.Join(words, "|"))
		}
		sort.Strings(want)
		w.same(table.String(), w.foldIn(snap, w.tableIn(snap, table.String()), read), want)
	}
}

func (w *world) same(table string, got, want []string) {
	w.t.Helper()
	if len(got) != len(want) {
		w.t.Errorf("%s has %d rows, want %d", table, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			w.t.Errorf("%s differs:\n got %s\nwant %s", table, got[i], want[i])
			return
		}
	}
}
