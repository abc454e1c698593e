package loops

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/lake/memlake"
	"github.com/skipprd/skipprd/sqltests/proc"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// world is one bubble: hosts, what they share, and the checkers. Its methods are called by the
// scenario's goroutine.
type world struct {
	t    *testing.T
	gate gate
	rng  *rand.Rand

	lake    *memlake.Warehouse
	objects *objects // nil: logs are on disks
	source  *system
	hosts   []*host
	held    []*trap
	reign   segment.Epoch // of the latest take-over that is complete
	began   time.Time
	queries int
	booted  bool
	dropped bool // the pipeline is

	log     proc.Output
	compact compact.Config
	options options

	events struct {
		sync.Mutex
		list []check.Event
	}
	view      check.View
	suite     *check.Suite
	steps     int
	seen      uint64 // versions of the stores at the last look
	violation *check.Violation
}

// options are what a scenario wants different.
type options struct {
	// store has the log on an object store, and hosts is how many there are (1).
	store bool
	hosts int
	// rows is how many rows each table has before a pipeline reads it.
	rows int
	// quota bounds the log's files on the disk.
	quota int64
	// lazy: nothing is compacted unless the scenario has it.
	lazy bool
	// groupBytes closes groups of the stream (256).
	groupBytes int64
	// only are the tables that are selected; nil: all.
	only []catalog.SelectedTable
}

// host is a machine: what outlives its processes.
type host struct {
	w    *world
	name string
	disk *crashfs.FS
	kv   *memkv.Store
	incs int
	proc *process // nil while down
}

// newWorld makes a world in a bubble. seed orders turns; 0 runs free.
func newWorld(t *testing.T, o options, seed uint64) *world {
	w := &world{
		t: t, began: time.Now(), lake: memlake.New(), rng: rand.New(rand.NewPCG(seed, 1)), suite: check.NewSuite(), options: o,
		compact: compact.Config{
			CommitInterval: 2 * time.Second, WantRows: 12, MostRows: 24, MostSlices: 8, Snapshots: 3, MaintainEvery: 2,
			FileGrace: time.Second, ReclaimDelay: 2 * time.Second,
		},
	}
	if o.lazy {
		w.compact.CommitInterval, w.compact.WantRows = 24*time.Hour, 1<<20
	}
	w.gate.turns, w.gate.arrived = seed != 0, make(chan struct{}, 1)
	w.source = newSystem(w, o.rows)
	w.view.Source = &check.Source{History: &w.source.db.History}
	if o.store {
		w.objects = &objects{Store: memstore.New()}
		w.view.Objects = w.objects
	}
	from := w.template()
	for i := range max(1, o.hosts) {
		h := &host{w: w, name: string(rune('a' + i)), disk: crashfs.New(), kv: from.Crash()}
		w.hosts = append(w.hosts, h)
		w.view.Hosts = append(w.view.Hosts, &check.Host{Name: h.name, LogDir: logDir(pipelineID)})
	}
	return w
}

const (
	pipelineName = "p"
	sourceKind   = "scripted"
)

var catalogKey [32]byte

// template is a catalog with a pipeline that has not run.
func (w *world) template() *memkv.Store {
	clock, _ := env.System()
	store := memkv.New()
	c, err := catalog.Open(w.t.Context(), store, catalog.Deps{Clock: clock, IDs: env.NewFake(time.Now(), 1), Key: catalogKey[:]})
	if err != nil {
		w.t.Fatal(err)
	}
	err = c.Update(w.t.Context(), func(txn *catalog.Txn) error {
		if err := txn.CreateConnection(&catalog.Connection{Name: "c", Kind: sourceKind}); err != nil {
			return err
		}
		return txn.CreatePipeline(&catalog.Pipeline{
			Name: pipelineName, Connection: "c", TargetSchema: "public",
			Selection: catalog.TableSelection{AllTables: len(w.options.only) == 0, Tables: w.options.only},
			Enabled:   true, State: catalog.PipelineStarting,
		})
	})
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return store
}

// choose picks who goes on.
func (w *world) choose(n int) int { return w.rng.IntN(n) }

// logger is what processes log to.
func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// tell prints what happened, for a scenario that failed.
func (w *world) tell() {
	if !w.t.Failed() {
		return
	}
	text := w.log.String()
	if len(text) > 6000 {
		text = "…" + text[len(text)-6000:]
	}
	w.gate.mu.Lock()
	trace := w.gate.trace
	w.gate.mu.Unlock()
	w.t.Logf("log:\n%s\ntrace:\n%s", text, strings.Join(trace[max(0, len(trace)-120):], "\n"))
}

// emit tells the checkers of an event, unless who reports it is dead.
func (p *process) emit(ev check.Event) {
	if p.dead.Load() {
		return
	}
	p.host.w.emit(ev)
}

func (w *world) emit(ev check.Event) {
	w.events.Lock()
	defer w.events.Unlock()
	w.events.list = append(w.events.list, ev)
}

func (p *process) updated() { p.emit(check.Updated{Host: p.host.name}) }

// look has the checkers look. Every goroutine of the bubble waits for something.
func (w *world) look() {
	w.events.Lock()
	w.view.Events = append(w.view.Events[:0], w.events.list...)
	w.events.list = w.events.list[:0]
	w.events.Unlock()
	changed := w.changed()
	if w.violation != nil || len(w.view.Events) == 0 && !changed && !w.view.Drained {
		return
	}
	w.steps++
	w.refresh()
	if v := w.suite.Check(&w.view); v != nil {
		w.violation = v
	}
}

// changed says whether the durable bytes are others than at the last look.
func (w *world) changed() bool {
	var now uint64
	for _, h := range w.hosts {
		now = now*31 + h.disk.Durable().Version()
	}
	if w.objects != nil {
		now = now*31 + w.objects.Version()
	}
	defer func() { w.seen = now }()
	return now != w.seen
}

// refresh brings the view up to date.
func (w *world) refresh() {
	v := &w.view
	v.Step, v.Now = w.steps, time.Now()
	w.source.mu.Lock()
	v.Source.Confirmed, v.Source.Start, v.Source.Slot = w.source.db.Confirmed()
	w.source.mu.Unlock()
	for i, h := range w.hosts {
		c := v.Hosts[i]
		c.Incarnation, c.Disk = h.incs, h.disk.Durable()
		c.Catalog, c.State, c.Epoch, c.Fenced = nil, check.Down, 0, false
		p := h.proc
		if p == nil || p.catalog.Load() == nil {
			continue
		}
		c.Catalog, c.State = p.catalog.Load(), check.Opening
		if p.openLogs() > 0 {
			c.State, c.Epoch = check.Up, p.epoch()
		}
		c.Fenced = c.Epoch != 0 && w.objects != nil && c.Epoch < w.reigns()
	}
}

func (w *world) reigns() segment.Epoch {
	w.events.Lock()
	defer w.events.Unlock()
	return w.reign
}

// objects is the object store that hosts share.
type objects struct {
	*memstore.Store
	version atomic.Uint64
}

var _ check.Bytes = (*objects)(nil)

// Put implements objstore.Store.
func (o *objects) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Version, error) {
	defer o.version.Add(1)
	return o.Store.Put(ctx, key, body, cond)
}

// Delete implements objstore.Store.
func (o *objects) Delete(ctx context.Context, keys []string) error {
	defer o.version.Add(1)
	return o.Store.Delete(ctx, keys)
}

// Version implements check.Bytes.
func (o *objects) Version() uint64 { return o.version.Load() }

// Names implements check.Bytes.
func (o *objects) Names(prefix string) []string {
	var out []string
	for name := range o.All() {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

// Read implements check.Bytes.
func (o *objects) Read(name string) ([]byte, bool) {
	got, err := o.Get(context.Background(), name, objstore.Range{})
	return got.Data, err == nil
}

// host finds a host by its name.
func (w *world) host(name string) *host {
	for _, h := range w.hosts {
		if h.name == name {
			return h
		}
	}
	panic(fmt.Sprintf("no host %s", name))
}
