package loops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// system is the scripted source, a monitor: its state belongs to who has mu, and whoever waits
// or calls us gives mu up meanwhile.
type system struct {
	w       *world
	mu      sync.Mutex
	db      *source.DB
	changed chan struct{} // closed when something of the system has changed
	items   *source.Table // key id
	pairs   *source.Table // key of two texts
	notes   *source.Table // no key
	serial  int64
}

func newSystem(w *world, rows int) *system {
	s := &system{w: w, changed: make(chan struct{})}
	s.db = source.NewDB(time.Now)
	int64Type, stringType := schema.Type{Kind: schema.Int64}, schema.Type{Kind: schema.String}
	column := func(name string, t schema.Type, oid uint32) source.Column {
		return source.Column{Name: name, Type: t, OID: oid, TypMod: -1}
	}
	const oidInt8, oidText = 20, 25
	s.items = s.db.CreateTable("s", "items", []source.Column{column("id", int64Type, oidInt8), column("v", stringType, oidText)}, "id")
	s.pairs = s.db.CreateTable("s", "pairs",
		[]source.Column{column("a", stringType, oidText), column("n", int64Type, oidInt8), column("b", stringType, oidText)}, "b", "a")
	s.notes = s.db.CreateTable("s", "notes", []source.Column{column("at", int64Type, oidInt8), column("what", stringType, oidText)})
	for i := range rows {
		s.put(int64(i))
		s.note()
	}
	return s
}

// do has the system change.
func (s *system) do(fn func(*source.DB)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.db)
	s.changedLocked()
}

func (s *system) changedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *system) value() string {
	s.serial++
	return fmt.Sprintf("v%d", s.serial)
}

// itemLocked is the change that gives an item a new value.
func (s *system) itemLocked(id int64) source.Change {
	c := source.Change{Table: s.items, Version: s.items.Current(), Op: change.Insert}
	c.New = make(source.Row, len(c.Version.Columns))
	c.New[0], c.New[1] = id, s.value()
	if old, ok := s.db.Find(s.items, c.New); ok {
		c.Op, c.Old = change.Update, old
	}
	return c
}

func (s *system) noteLocked() source.Change {
	s.serial++
	c := source.Change{Table: s.notes, Version: s.notes.Current(), Op: change.Insert}
	c.New = source.Row{s.serial, s.value()}
	return c
}

func (s *system) pairLocked(n int64) source.Change {
	c := source.Change{Table: s.pairs, Version: s.pairs.Current(), Op: change.Insert}
	s.serial++
	c.New = source.Row{fmt.Sprintf("a%d", n%3), s.serial, fmt.Sprintf("b%d", n)}
	if old, ok := s.db.Find(s.pairs, c.New); ok {
		c.Op, c.Old = change.Update, old
	}
	return c
}

// put gives items new values, in one transaction with a pair for each.
func (s *system) put(ids ...int64) {
	s.do(func(db *source.DB) {
		var changes []source.Change
		for _, id := range ids {
			changes = append(changes, s.itemLocked(id), s.pairLocked(id))
		}
		db.Commit(changes, false)
	})
}

// note adds a row to the table without a key.
func (s *system) note() {
	s.do(func(db *source.DB) { db.Commit([]source.Change{s.noteLocked()}, false) })
}

// remove deletes an item that is there.
func (s *system) remove(id int64) {
	s.do(func(db *source.DB) {
		old, ok := db.Find(s.items, source.Row{id, nil})
		if ok {
			db.Commit([]source.Change{{Table: s.items, Version: s.items.Current(), Op: change.Delete, Old: old}}, false)
		}
	})
}

// truncatePairs empties the pairs.
func (s *system) truncatePairs() {
	s.do(func(db *source.DB) {
		db.Commit([]source.Change{{Table: s.pairs, Version: s.pairs.Current(), Truncate: true}}, false)
	})
}

// huge is a transaction that the source streams before it ends: with abort it gives it up.
func (s *system) huge(from, n int64, abort bool) {
	s.do(func(db *source.DB) {
		var changes []source.Change
		for i := range n {
			changes = append(changes, s.itemLocked(from+i))
		}
		if abort {
			db.Abort(changes)
			return
		}
		db.Commit(changes, true)
	})
}

// load is a few transactions of every kind.
func (s *system) load(n int) {
	for i := range int64(n) {
		s.put(i%7, 10+i%5)
		if i%3 == 0 {
			s.note()
		}
		if i%4 == 3 {
			s.remove(i % 7)
		}
	}
}

// lsn is the newest position.
func (s *system) lsn() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.LSN
}

// connect is the ingest.SourceFactory of the system.
func (p *process) connect(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
	if err := p.at("source connect"); err != nil {
		return nil, err
	}
	s := p.host.w.source
	c := &conn{s: s, p: p}
	c.c = s.db.Connect(source.Hooks{
		Point: func(name string) error {
			s.mu.Unlock()
			defer s.mu.Lock()
			return p.at("source " + name)
		},
		Wait:    c.wait,
		Alive:   func() bool { return !p.dead.Load() },
		Created: func() {},
		Acked: func(at change.Position) {
			p.emit(check.AckSent{Host: p.host.name, Pipeline: pipelineID, Position: at})
		},
	})
	return c, nil
}

// conn is a connection to the system, for goroutines.
type conn struct {
	s *system
	c *source.Conn
	p *process
}

var _ ingest.Source = (*conn)(nil)

// wait is the source's: it has mu.
func (c *conn) wait(ctx context.Context, ready func() bool) error {
	for !ready() {
		changed := c.s.changed
		c.s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
		c.s.mu.Lock()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if c.p.dead.Load() {
			return errDead
		}
	}
	return nil
}

func (c *conn) lock() (unlock func()) {
	c.s.mu.Lock()
	return c.s.mu.Unlock
}

// Discover implements ingest.Source.
func (c *conn) Discover(ctx context.Context, sel catalog.TableSelection) ([]ingest.SourceTable, error) {
	defer c.lock()()
	return c.c.Discover(ctx, sel)
}

// Setup implements ingest.Source.
func (c *conn) Setup(ctx context.Context, state []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	defer c.lock()()
	return c.c.Setup(ctx, state, tables)
}

// Backfill implements ingest.Source.
func (c *conn) Backfill(ctx context.Context) (ingest.Backfill, error) {
	defer c.lock()()
	b, err := c.c.Backfill(ctx)
	if err != nil {
		return nil, err
	}
	return &backfill{b, c}, nil
}

// Stream implements ingest.Source.
func (c *conn) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	defer c.lock()()
	err := c.c.Stream(ctx, from, tables, &yielding{sink, c.s})
	if err == nil {
		err = errors.New("stream ended")
	}
	return err
}

// Ack implements ingest.Source.
func (c *conn) Ack(at change.Position) {
	defer c.lock()()
	c.c.Ack(at)
	c.s.changedLocked()
}

// Compare implements ingest.Source.
func (c *conn) Compare(a, b change.Position) int { return c.c.Compare(a, b) }

// Status implements ingest.Source.
func (c *conn) Status(ctx context.Context) (ingest.SourceStatus, error) {
	defer c.lock()()
	return c.c.Status(ctx)
}

// Teardown implements ingest.Source.
func (c *conn) Teardown(ctx context.Context, state []byte) ([]string, error) {
	defer c.lock()()
	left, err := c.c.Teardown(ctx, state)
	c.s.changedLocked()
	return left, err
}

// Close implements ingest.Source.
func (c *conn) Close() error {
	defer c.lock()()
	return c.c.Close()
}

// backfill gives the system up while its rows are taken.
type backfill struct {
	ingest.Backfill
	c *conn
}

// Describe implements ingest.Backfill.
func (b *backfill) Describe(ctx context.Context, wanted map[uint32]catalog.SelectedTable, outOfRangeText bool) (map[uint32]ingest.SourceTable, error) {
	defer b.c.lock()()
	return b.Backfill.Describe(ctx, wanted, outOfRangeText)
}

// Plan implements ingest.Backfill.
func (b *backfill) Plan(ctx context.Context, t ingest.SourceTable) ([]string, error) {
	defer b.c.lock()()
	return b.Backfill.Plan(ctx, t)
}

// Read implements ingest.Backfill.
func (b *backfill) Read(ctx context.Context, t ingest.SourceTable, s *schema.Table, chunk string, token int64,
	emit func(*change.Batch) error,
) error {
	defer b.c.lock()()
	return b.Backfill.Read(ctx, t, s, chunk, token, func(batch *change.Batch) error {
		b.c.s.mu.Unlock()
		defer b.c.s.mu.Lock()
		return emit(batch)
	})
}

// yielding gives the system up while a sink is called, which may wait.
type yielding struct {
	ingest.Sink
	s *system
}

func (y *yielding) open() (shut func()) {
	y.s.mu.Unlock()
	return y.s.mu.Lock
}

// Begin implements ingest.Sink.
func (y *yielding) Begin(token int64, at time.Time) error {
	defer y.open()()
	return y.Sink.Begin(token, at)
}

// Builder implements ingest.Sink.
func (y *yielding) Builder(t change.TableID) (*change.Builder, error) {
	defer y.open()()
	return y.Sink.Builder(t)
}

// Truncate implements ingest.Sink.
func (y *yielding) Truncate(t change.TableID) error {
	defer y.open()()
	return y.Sink.Truncate(t)
}

// Evolve implements ingest.Sink.
func (y *yielding) Evolve(t change.TableID, c ingest.SchemaChange) (*schema.Table, error) {
	defer y.open()()
	return y.Sink.Evolve(t, c)
}

// Commit implements ingest.Sink.
func (y *yielding) Commit(at change.Position) error {
	defer y.open()()
	return y.Sink.Commit(at)
}

// Abort implements ingest.Sink.
func (y *yielding) Abort() error {
	defer y.open()()
	return y.Sink.Abort()
}

// Idle implements ingest.Sink.
func (y *yielding) Idle(at change.Position) error {
	defer y.open()()
	return y.Sink.Idle(at)
}

// StopTable implements ingest.Sink.
func (y *yielding) StopTable(t change.TableID, why *ingest.TableError) error {
	defer y.open()()
	return y.Sink.StopTable(t, why)
}
