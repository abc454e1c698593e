package check

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/memlake"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// fixture is a host of the shipped parts that makes histories without a fault. Tests break
// what the suite is then shown of them.
type fixture struct {
	t        *testing.T
	suite    *Suite
	view     View
	host     *Host
	disk     *overlay
	fs       *crashfs.FS
	cat      *catalog.Catalog
	log      *wal.Log
	lake     *memlake.Warehouse
	svc      *compact.Service
	pinner   *planner.Pinner
	executor *query.Executor
	db       *source.DB
	tables   map[uint32]*catalog.Table
	queries  int
	// events are those of the step under way, before they are shown.
	events []Event
}

const testHost = "a"

// overlay shows a store otherwise than it is.
type overlay struct {
	Bytes
	version uint64
	instead map[string][]byte // nil: not there
}

func (o *overlay) Version() uint64 { return o.Bytes.Version() + o.version }

func (o *overlay) Names(prefix string) []string {
	var out []string
	for _, n := range o.Bytes.Names(prefix) {
		if b, ok := o.instead[n]; !ok || b != nil {
			out = append(out, n)
		}
	}
	for n, b := range o.instead {
		if b != nil && strings.HasPrefix(n, prefix) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (o *overlay) Read(name string) ([]byte, bool) {
	if b, ok := o.instead[name]; ok {
		return b, b != nil
	}
	return o.Bytes.Read(name)
}

func (o *overlay) put(name string, b []byte) {
	o.version += 1 << 40
	o.instead[name] = b
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	clock := env.NewFake(time.Unix(1_700_000_000, 0), 7)
	x := &fixture{
		t: t, suite: NewSuite(), fs: crashfs.New(), lake: memlake.New(), tables: map[uint32]*catalog.Table{},
		db: source.NewDB(clock.Now),
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kv := memkv.New()
	var err error
	x.cat, err = catalog.Open(t.Context(), kv, catalog.Deps{Clock: clock, IDs: clock, Key: make([]byte, 32)})
	must(err)
	must(x.cat.Update(t.Context(), func(txn *catalog.Txn) error {
		return txn.CreatePipeline(&catalog.Pipeline{Name: "p", TargetSchema: "public", Enabled: true, State: catalog.PipelineRunning})
	}))
	x.addTable("a", "id")
	x.addTable("b", "id")
	dir := wal.PipelineDir("/data", 1)
	x.log, err = wal.Open(t.Context(), wal.Config{Dir: dir, Pipeline: 1, SegmentBytes: 64 << 10},
		wal.Deps{Publisher: x.cat, Clock: clock, IDs: clock, FS: x.fs, Log: slog.New(slog.DiscardHandler)})
	must(err)
	t.Cleanup(func() { _ = x.log.Close() })
	x.executor = &query.Executor{Slices: duckdb.NewLogReaderFS(x.fs), Files: x.lake}
	x.pinner = &planner.Pinner{Catalog: x.cat, Warehouse: x.lake, LogDir: func(change.PipelineID) string { return dir }}
	reader := wal.OpenReaderFS(x.fs, dir)
	x.svc, err = compact.New(compact.Config{ReclaimDelay: 1}, compact.Deps{
		Catalog: x.cat, Warehouse: x.lake, Searcher: x.executor, Clock: clock,
		Reader: func(change.PipelineID) compact.SliceReader { return reader },
		Log:    func(change.PipelineID) (compact.Log, bool) { return x.log, true },
	})
	must(err)
	x.disk = &overlay{Bytes: x.fs.Durable(), instead: map[string][]byte{}}
	x.host = &Host{
		Name: testHost, Incarnation: 1, State: Up, Disk: x.disk, LogDir: dir, Catalog: x.cat, Epoch: 1,
	}
	x.view = View{Hosts: []*Host{x.host}, Source: &Source{History: &x.db.History, Slot: 1}}
	x.step(Updated{testHost})
	return x
}

// addTable makes a table at the source and its twin here.
func (x *fixture) addTable(name string, key ...string) {
	x.t.Helper()
	at := x.db.CreateTable("public", name, []source.Column{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20}, {Name: "note", Type: schema.Type{Kind: schema.String}, OID: 25},
	}, key...)
	var cols []schema.NewField
	for _, c := range at.Current().Columns {
		cols = append(cols, schema.NewField{Name: c.Name, Type: c.Type, OID: c.OID, TypMod: -1, AttNum: c.AttNum})
	}
	s, err := schema.New(cols, key)
	if err != nil {
		x.t.Fatal(err)
	}
	err = x.cat.Update(x.t.Context(), func(txn *catalog.Txn) error {
		t := &catalog.Table{
			Pipeline: 1, Schema: "public", Name: name, State: catalog.TableReady, Current: s, Versions: []*schema.Table{s},
			Generation: 1, SourceOID: at.OID,
		}
		x.tables[at.OID] = t
		return txn.CreateTable(t)
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

// at is the i-th table of the source.
func (x *fixture) at(i int) *source.Table { return x.db.Tables[i] }

// upsert is a change of a row, over the old one if there is one.
func (x *fixture) upsert(t *source.Table, id int64, note string) source.Change {
	c := source.Change{Table: t, Version: t.Current(), Op: change.Insert, New: source.Row{id, note}}
	if old, ok := x.db.Find(t, c.New); ok {
		c.Op, c.Old = change.Update, old
	}
	return c
}

func (x *fixture) remove(t *source.Table, id int64) source.Change {
	old, ok := x.db.Find(t, source.Row{id, nil})
	if !ok {
		x.t.Fatalf("no row %d", id)
	}
	return source.Change{Table: t, Version: t.Current(), Op: change.Delete, Old: old}
}

// write commits a transaction at the source and appends it.
func (x *fixture) write(changes ...source.Change) Committed {
	x.t.Helper()
	txn := x.db.Commit(changes, false)
	builders := map[uint32]*change.Builder{}
	g := &change.Group{Position: source.Position(txn.LSN), CommittedAt: txn.CommittedAt}
	for i := range changes {
		c := &changes[i]
		b := builders[c.Table.OID]
		t := x.tables[c.Table.OID]
		if b == nil {
			b = change.NewBuilder(memory.DefaultAllocator, t.ID, t.Current.Version, t.Current.Arrow())
			defer b.Release()
			builders[c.Table.OID] = b
		}
		row := c.New
		if c.Op == change.Delete {
			row = source.Row{c.Old[0], nil}
		}
		b.Add(c.Op, txn.LSN, int32(i))
		b.Column(0).(*array.Int64Builder).Append(row[0].(int64))
		if row[1] == nil {
			b.Column(1).AppendNull()
		} else {
			b.Column(1).(*array.StringBuilder).Append(row[1].(string))
		}
	}
	for _, oid := range slices.Sorted(maps.Keys(builders)) {
		batch := builders[oid].Batch()
		defer batch.Release()
		g.Batches = append(g.Batches, batch)
	}
	done, err := x.log.Append(x.t.Context(), g)
	if err != nil {
		x.t.Fatal(err)
	}
	x.events = append(x.events, Published{testHost, 1, []wal.CommittedGroup{done}})
	return Committed{testHost, 1, done}
}

// commit is a transaction without a fault.
func (x *fixture) commit(changes ...source.Change) Committed {
	x.t.Helper()
	done := x.write(changes...)
	x.step(done)
	return done
}

// compactNow moves what is live into the lake, and tells of it.
func (x *fixture) compactNow() {
	x.t.Helper()
	for _, oid := range slices.Sorted(maps.Keys(x.tables)) {
		t := x.tables[oid]
		before := x.head(t)
		if _, err := x.svc.StepTable(x.t.Context(), t.ID, true); err != nil {
			x.t.Fatal(err)
		}
		if head := x.head(t); head.ID != before.ID {
			x.events = append(x.events, x.lakeEvent(t, before, head), Updated{testHost})
		}
	}
	x.step()
}

func (x *fixture) head(t *catalog.Table) *lake.Snapshot {
	x.t.Helper()
	tbl, err := x.lake.Table(x.t.Context(), lake.Spec{
		Ident: lake.Ident{Namespace: t.Schema, Name: t.Name}, Table: t.ID, Schema: t.Current,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return tbl.Head()
}

func (x *fixture) lakeEvent(t *catalog.Table, before, head *lake.Snapshot) LakeCommitted {
	x.t.Helper()
	done, _, err := lake.CommittedOf(head.ID, head.Properties)
	if err != nil {
		x.t.Fatal(err)
	}
	c := lake.Commit{
		Base: before.ID, CompactionID: done.CompactionID, Generation: 1, Slices: done.Slices,
		AddFiles: head.Files[len(before.Files):],
	}
	return LakeCommitted{testHost, t.ID, c, head}
}

// seal ends the active segment, and reclaim takes away what is idle.
func (x *fixture) seal() {
	x.t.Helper()
	if err := x.log.SealActive(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	x.step()
}

// pin takes a pin of all tables.
func (x *fixture) pin() (PinTaken, *planner.TablesPin) {
	x.t.Helper()
	snap := x.cat.Snapshot()
	defer snap.Close()
	x.queries++
	e := PinTaken{Query: x.queries, Host: testHost}
	var uses []planner.TableUse
	for _, t := range snap.AllTables() {
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			x.t.Fatal(err)
		}
		e.Pin.Tables = append(e.Pin.Tables, PinnedTable{Table: t, Lake: snap.LakeState(t.ID), Live: live})
		uses = append(uses, planner.WholeTable(t))
	}
	at, err := snap.Offset(1)
	if err != nil {
		x.t.Fatal(err)
	}
	e.Pin.Position, e.Pin.Seq, e.Pin.End = at.Position, at.Seq, at.End
	p, err := x.pinner.Plan(x.t.Context(), snap, uses)
	if err != nil {
		x.t.Fatal(err)
	}
	return e, p
}

func (x *fixture) execute(e PinTaken, p *planner.TablesPin) PinExecuted {
	x.t.Helper()
	out := PinExecuted{Query: e.Query, Host: e.Host, Pin: e.Pin}
	for i := range p.Relations {
		r, err := x.executor.Run(x.t.Context(), &p.Relations[i])
		if err != nil {
			out.Err = err
			return out
		}
		out.Results = append(out.Results, r)
	}
	return out
}

// show lets the suite look at a step, and returns all that it finds, by label.
func (x *fixture) show(events ...Event) map[string]string {
	x.t.Helper()
	x.view.Step++
	x.view.Now = x.view.Now.Add(time.Second)
	x.view.Events = append(x.events, events...)
	x.events = nil
	if err := x.suite.facts.update(&x.view); err != nil {
		x.t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range x.suite.checkers {
		if err := c.Check(&x.view); err != nil {
			found[c.Label()] = err.Error()
		}
	}
	return found
}

// step is a step in which nothing is wrong.
func (x *fixture) step(events ...Event) {
	x.t.Helper()
	if found := x.show(events...); len(found) > 0 {
		x.t.Fatalf("step %d: %v", x.view.Step, found)
	}
}

// body is the name of a segment's body, marker that of its marker.
func (x *fixture) body(seq segment.Seq) string   { return x.host.LogDir + "/" + seq.ID() + ".seg" }
func (x *fixture) marker(seq segment.Seq) string { return x.body(seq) + ".commit" }
