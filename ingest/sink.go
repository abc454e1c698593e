package ingest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// batcher is the Sink of one stream: it gathers whole transactions into groups, which
// the appender takes as soon as its previous append has returned. So at most one
// group is being appended while one is being filled. A transaction that fills a group
// alone is handed over in parts.
//
// Its Sink methods belong to the streaming goroutine, take and finished to the
// appender's. While a transaction is open the tables belong to the stream; between
// transactions to whoever holds mu.
type batcher struct {
	ctx       context.Context // of the stream: ends waits for room
	clock     env.Clock
	tasks     env.Tasks
	limit     int64
	part      int64 // of one transaction that a group may have before it is one in parts
	rowMax    int64
	freshness time.Duration
	interval  time.Duration // at least between two groups
	// sizes are those of values that the source leaves out.
	sizes     *fill.Sizes
	compare   func(a, b change.Position) int
	session   string // names transactions in parts, with their number
	tables    map[change.TableID]*sinkTable
	txn       uint64 // number of the open or last transaction
	committed time.Time
	// current is the table that the last change of the open transaction is of, until it
	// is measured; openBytes is what the filling has of that transaction.
	current   *sinkTable
	openBytes int64
	// letters are the open dead letters; letterBytes is what the open transaction has of
	// them.
	letters     *deadletter.Open
	onErrorStop bool
	letterBytes int64
	lateLetters []letterRecord // of a deliberate bug
	owing       []owing        // of the open transaction
	// until is where a group must end, "" for nowhere; see batcherConfig.
	until change.Position

	// wake tells the appender that there may be work, room tells the stream that a
	// group was taken.
	wake, room chan struct{}

	mu struct {
		sync.Mutex
		open     bool
		inFlight bool
		filling  filling
		// sealed are groups closed early: one that a long transaction does not keep
		// waiting, and a part of one.
		sealed []*group
		parts  int       // of the open transaction
		closed time.Time // when the last group was
		// last is the position up to which everything has been delivered: of the last
		// commit, or an idle one after it.
		last change.Position
		// idle is the newest position at which nothing was pending, "" when taken.
		idle change.Position
		err  error
	}
}

// filling is the group being filled.
type filling struct {
	touched []*sinkTable // in the order of their first change
	txns    int64
	bytes   int64
	since   time.Time // when its first transaction arrived, on our clock
	oldest  time.Time // commit time of its first transaction, at the source
	newest  time.Time
	stops   []tableStop
	schemas []tableSchema
	letters []letterRecord
	// letterBytes is what committed transactions have of letters.
	letterBytes int64
	// completes is the transaction in parts that it has the commit of, voids that one
	// was aborted.
	completes string
	voids     bool
}

// lettersFull is how many bytes of letters a group may have before it is closed.
const lettersFull = deadletter.GroupBytesMax / 2

// group is a closed group, owned by who takes it.
type group struct {
	batches  []*change.Batch
	position change.Position
	txns     int64
	oldest   time.Time
	newest   time.Time
	stops    []tableStop
	schemas  []tableSchema
	letters  []letterRecord
	// known are schema versions that begin with the transaction of which it is a part.
	known []tableSchema
	// part is the transaction that all of it is a part of, "" for none; for the others
	// see filling.
	part, completes string
	voids           bool
}

// leavesOut says that there are values to fill in, or to compute.
func (g *group) leavesOut() bool {
	return slices.ContainsFunc(g.batches, func(b *change.Batch) bool { return len(b.Unchanged) > 0 || b.Computes })
}

func (g *group) release() {
	for _, b := range g.batches {
		b.Release()
	}
	g.batches = nil
}

var (
	_ Sink   = (*batcher)(nil)
	_ Holder = (*batcher)(nil)
)

type batcherConfig struct {
	clock     env.Clock
	tasks     env.Tasks
	limit     int64
	part      int64  // 0: transactions stay whole
	rowMax    int64  // 0: RowBytesMax
	session   string // unique
	freshness time.Duration
	interval  time.Duration
	compare   func(a, b change.Position) int // of the source
	from      change.Position
	tables    []StreamTable
	letters   *deadletter.Open // nil: none is ever set aside
	// onErrorStop stops a table instead of setting its changes aside.
	onErrorStop bool
	// until is where the first groups end at the latest, "" for nowhere: what comes up to it is
	// known to be computable, and becomes durable whatever comes after it.
	until change.Position
}

func newBatcher(ctx context.Context, cfg batcherConfig) *batcher {
	b := &batcher{
		ctx: ctx, clock: cfg.clock, tasks: cfg.tasks, limit: cfg.limit, part: cfg.part, rowMax: cmp.Or(cfg.rowMax, RowBytesMax), session: cfg.session,
		freshness: cfg.freshness, interval: cfg.interval,
		compare: cfg.compare,
		tables:  make(map[change.TableID]*sinkTable, len(cfg.tables)), sizes: &fill.Sizes{},
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	for _, t := range cfg.tables {
		b.tables[t.ID] = newSinkTable(t, b.sizes)
	}
	b.letters, b.onErrorStop, b.until = cfg.letters, cfg.onErrorStop, cfg.until
	b.mu.last = cfg.from
	return b
}

// Begin implements Sink.
func (b *batcher) Begin(_ int64, committedAt time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err != nil {
		return b.mu.err
	}
	ends := b.until != "" && b.compare(b.mu.last, b.until) >= 0
	if ends {
		b.until, ends = "", b.mu.filling.txns > 0
	}
	if _, due := b.dueLocked(); ends || due && !b.mu.inFlight && len(b.mu.sealed) == 0 {
		b.mu.sealed = append(b.mu.sealed, b.sealLocked())
		signal(b.wake)
	}
	b.mu.open = true
	b.txn++
	b.current, b.openBytes, b.letterBytes, b.owing = nil, 0, 0, nil
	b.committed = committedAt
	return nil
}

// Builder implements Sink.
func (b *batcher) Builder(id change.TableID) (*change.Builder, error) {
	t, err := b.enter(id)
	if err != nil {
		return nil, err
	}
	return t.builder, nil
}

// Truncate implements Sink.
func (b *batcher) Truncate(id change.TableID) error {
	t, err := b.enter(id)
	if err != nil {
		return err
	}
	t.truncate()
	closes, undo := b.letters.Table(id).PassAll()
	b.closeLetters(id, closes, undo)
	b.owing = append(b.owing, owing{table: id, truncated: true})
	return nil
}

func (b *batcher) enter(id change.TableID) (*sinkTable, error) {
	t, ok := b.tables[id]
	if !ok {
		return nil, errTable(ErrUnknownTable, id)
	}
	if t.stopped {
		return nil, errTable(ErrTableStopped, id)
	}
	if err := b.makeRoom(); err != nil {
		return nil, err
	}
	if t.stopped { // by its last row
		return nil, errTable(ErrTableStopped, id)
	}
	b.current = t
	t.enter(b.txn)
	if !t.touched {
		t.touched = true
		b.mu.filling.touched = append(b.mu.filling.touched, t) // open: ours
	}
	return t, nil
}

// Commit implements Sink. It waits while the group is full and the one before it is
// still being appended: that is how a slow log slows the source.
func (b *batcher) Commit(at change.Position) error {
	if err := b.measure(); err != nil {
		return err
	}
	b.pay(at)
	b.mu.Lock()
	f := &b.mu.filling
	if f.txns == 0 {
		f.since, f.oldest = b.clock.Now(), b.committed
	}
	f.txns++
	f.newest = b.committed
	for _, t := range f.touched {
		if t.txn == b.txn {
			f.bytes += t.grown()
		}
	}
	f.bytes += b.letterBytes
	if f.letterBytes += b.letterBytes; f.letterBytes >= lettersFull {
		f.bytes = max(f.bytes, b.limit) // with one more transaction's it must have room in a state
	}
	if b.mu.parts > 0 {
		f.completes, b.mu.parts = b.partID(), 0
	}
	b.mu.last, b.mu.open, b.mu.idle = at, false, ""
	full := f.bytes >= b.limit
	b.mu.Unlock()
	signal(b.wake)
	if !full {
		return nil
	}
	return b.waitRoom()
}

// waitRoom waits until the full group has been taken.
func (b *batcher) waitRoom() error {
	for {
		b.mu.Lock()
		full, err := b.mu.filling.bytes >= b.limit, b.mu.err
		b.mu.Unlock()
		if err != nil || !full {
			return err
		}
		if err := b.tasks.Wait(b.ctx, 0, b.room); err != nil {
			return err
		}
	}
}

// Idle implements Sink.
func (b *batcher) Idle(at change.Position) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err != nil || b.mu.open {
		return b.mu.err
	}
	b.mu.idle, b.mu.last = at, at
	signal(b.wake)
	return nil
}

// StopTable implements Sink.
func (b *batcher) StopTable(id change.TableID, why *TableError) error {
	t, ok := b.tables[id]
	if !ok {
		return errTable(ErrUnknownTable, id)
	}
	if t.stopped {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.open {
		b.openBytes -= t.open(b.txn)
		t.discard(b.txn)
		b.mu.filling.schemas = withoutSchemas(b.mu.filling.schemas, id, b.txn)
		b.takeLettersLocked(id)
		b.owing = slices.DeleteFunc(b.owing, func(o owing) bool { return o.table == id })
	}
	t.stopped = true
	stop := tableStop{Table: id, At: b.mu.last, Reason: why.Reason, Hint: why.Hint, Resync: why.Resync, Voids: b.mu.parts > 0}
	if b.compare != nil && b.compare(t.after, stop.At) > 0 {
		stop.At = t.after // the stream repeats, for others, what this table has
	}
	b.mu.filling.stops = append(b.mu.filling.stops, stop)
	signal(b.wake)
	return nil
}

// take returns the next group to append, nil if there is none; then idle is the
// position that the stream has reached without anything pending, if any, and wait how
// long the group being filled may still wait, 0 if it is empty. It says that the
// group taken before has been dealt with.
func (b *batcher) take() (g *group, idle change.Position, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.inFlight {
		b.mu.inFlight = false
		signal(b.room)
	}
	if len(b.mu.sealed) > 0 {
		g, b.mu.sealed, b.mu.inFlight = b.mu.sealed[0], b.mu.sealed[1:], true
		signal(b.room)
		return g, "", 0
	}
	wait, due := b.dueLocked()
	if due && !b.mu.open {
		b.mu.inFlight = true
		g = b.sealLocked()
		signal(b.room)
		return g, "", 0
	}
	if wait == 0 && !due && !b.mu.open {
		idle, b.mu.idle = b.mu.idle, ""
	}
	return nil, idle, wait
}

// dueLocked says whether the group being filled may be closed, else in how long it
// may be: 0 when it holds nothing.
func (b *batcher) dueLocked() (wait time.Duration, due bool) {
	f := &b.mu.filling
	if len(f.stops) > 0 || f.voids || f.bytes >= b.limit {
		return 0, true
	}
	if f.txns == 0 {
		return 0, false
	}
	wait = max(b.freshness-b.clock.Since(f.since), b.interval-b.clock.Since(b.mu.closed))
	return max(wait, 0), wait <= 0
}

// sealLocked closes the group being filled.
func (b *batcher) sealLocked() *group {
	f := &b.mu.filling
	g := &group{
		position: b.mu.last, txns: f.txns,
		oldest: f.oldest, newest: f.newest, stops: f.stops, schemas: f.schemas, letters: b.sealLetters(f.letters),
		completes: f.completes, voids: f.voids,
	}
	for _, t := range f.touched {
		g.batches = t.seal(g.batches)
	}
	*f = filling{touched: f.touched[:0]}
	b.mu.closed = b.clock.Now()
	return g
}

// fail ends the stream with err at its next call.
func (b *batcher) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.err == nil {
		b.mu.err = err
	}
	signal(b.room)
}

// pendingSince is the source's commit time of the oldest transaction that waits in
// the batcher, zero if none does.
func (b *batcher) pendingSince() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mu.sealed) > 0 {
		return b.mu.sealed[0].oldest
	}
	if b.mu.parts > 0 {
		return b.committed
	}
	if b.mu.filling.txns > 0 {
		return b.mu.filling.oldest
	}
	return time.Time{}
}

// release frees what was not taken. The stream and the appender have ended.
func (b *batcher) release() {
	for _, g := range b.mu.sealed {
		g.release()
	}
	b.mu.sealed = nil
	for _, t := range b.tables {
		t.release()
	}
}

// signal wakes who waits on ch, of size 1, or whoever comes next.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
