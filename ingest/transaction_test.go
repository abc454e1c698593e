package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// bundler is a source that makes one transaction of many, and begins some that it
// aborts.
type bundler struct {
	ingest.Source
	of int64
}

func (b *bundler) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	return b.Source.Stream(ctx, from, tables, &bundle{Sink: sink, of: b.of})
}

// bundle ends a transaction at each multiple of of, and aborts what it has of every
// third one before it sends that again.
type bundle struct {
	ingest.Sink
	of    int64
	open  bool
	count int
}

func (b *bundle) Begin(token int64, committedAt time.Time) error {
	if b.open {
		return nil
	}
	b.open = true
	if b.count++; b.count%3 == 0 {
		if err := b.aborted(token, committedAt); err != nil {
			return err
		}
	}
	return b.Sink.Begin(token, committedAt)
}

// aborted sends rows that must not count, in several parts.
func (b *bundle) aborted(token int64, committedAt time.Time) error {
	if err := b.Sink.Begin(token, committedAt); err != nil {
		return err
	}
	for i := range int32(2000) {
		builder, err := b.Builder(1)
		if err != nil {
			return err
		}
		builder.Add(change.Delete, 1<<40, i)
		for c := 0; c < columnsOf(builder); c++ {
			builder.Column(c).AppendEmptyValue()
		}
	}
	return b.Abort()
}

func columnsOf(b *change.Builder) (n int) {
	defer func() { _ = recover() }() // a builder does not tell
	for {
		b.Column(n)
		n++
	}
}

func (b *bundle) Commit(at change.Position) error {
	if number(at)%b.of != 0 {
		return nil
	}
	b.open = false
	return b.Sink.Commit(at)
}

func (b *bundle) Idle(at change.Position) error {
	if b.open {
		return nil
	}
	return b.Sink.Idle(at)
}

func partsWorld(t *testing.T) *world {
	w := newWorld(t, aheadFactory(small, func(s ingest.Source) ingest.Source { return &bundler{s, 250} }))
	w.stop()
	w.part = 4 << 10
	w.boot()
	return w
}

// checkAtomic compares each table with the oracle at the position of one snapshot (T1),
// once they are ready.
func (w *world) checkAtomic(s *catalog.Snapshot) {
	w.t.Helper()
	if at := w.position(s); at != "" && allIn(s, catalog.TableReady) {
		w.expectIn(s, small, number(at), func(x catalog.Slice) *change.Batch { return w.disk.read(x.Ref) })
	}
}

// parts counts the groups of the log that are parts.
func (d *disk) parts() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.mu.groups {
		if strings.Contains(string(g.committed.State), `"part"`) {
			n++
		}
	}
	return n
}

// TestTransactionInParts streams transactions that are larger than a part, some of them
// aborted: whenever one looks, each is there in all tables or in none.
func TestTransactionInParts(t *testing.T) {
	w := partsWorld(t)
	w.start()
	last := change.Position("")
	w.await("the end", func(s *catalog.Snapshot) bool {
		if at := w.position(s); at != last {
			last = at
			w.checkAtomic(s)
		}
		return last == "2500" && allIn(s, catalog.TableReady)
	})
	w.expect(small, 2500)
	if n := w.disk.parts(); n < 30 {
		t.Errorf("%d parts", n)
	}
	snap := w.catalog.Snapshot()
	defer snap.Close()
	if p, ok := snap.Pending(1); ok {
		t.Errorf("pending at the end: %+v", p)
	}
}

// TestKillInParts ends the server between the parts of transactions, at each kind of
// instant: the source sends the whole transaction again, and the parts of before are
// void.
func TestKillInParts(t *testing.T) {
	for _, kill := range []killPoint{beforeDurable, beforePublish, beforeReturn} {
		for _, after := range []int{9, 14, 23, 31} {
			t.Run(fmt.Sprintf("%d/%d", kill, after), func(t *testing.T) {
				t.Parallel()
				testKillInParts(t, kill, after)
			})
		}
	}
}

func testKillInParts(t *testing.T, kill killPoint, after int) {
	w := partsWorld(t)
	pending := 0
	for round := range 5 {
		w.dieOnce(kill, after+round)
		snap := w.catalog.Snapshot()
		if _, ok := snap.Pending(1); ok {
			pending++
		}
		w.checkAtomic(snap)
		snap.Close()
		w.disk.revive()
		w.boot()
	}
	w.start()
	w.awaitReady("2500")
	w.expect(small, 2500)
	snap := w.catalog.Snapshot()
	defer snap.Close()
	if _, ok := snap.Pending(1); ok {
		t.Error("pending at the end")
	}
	live, all := 0, 0
	for _, tb := range snap.AllTables() {
		slices, err := snap.LiveSlices(tb.ID)
		if err != nil {
			t.Fatal(err)
		}
		live += len(slices)
	}
	segments, err := snap.Segments(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		all += s.Live
	}
	if live != all {
		t.Errorf("segments count %d live slices, tables have %d", all, live)
	}
	t.Logf("killed %d times in a transaction", pending)
}

// endless is a source whose stream begins with a transaction that does not end.
type endless struct {
	ingest.Source
	streams *atomic.Int64
	ended   *atomic.Bool // nil: nobody asks
}

func (e *endless) Stream(_ context.Context, _ change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	e.streams.Add(1)
	if e.ended != nil {
		defer e.ended.Store(true)
	}
	if err := sink.Begin(1, time.Unix(1000, 0)); err != nil {
		return err
	}
	for {
		b, err := sink.Builder(tables[0].ID)
		if err != nil {
			return err
		}
		b.Add(change.Delete, 1, 0)
		for c := range tables[0].Schema.Fields {
			b.Column(c).AppendEmptyValue()
		}
	}
}

// smallLog is full after some groups.
type smallLog struct {
	ingest.Log
	room *atomic.Int64
	full func() // nil: nothing is told
}

func (l *smallLog) Append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error) {
	if l.room.Add(-1) < 0 {
		if l.full != nil {
			l.full()
		}
		return wal.CommittedGroup{}, wal.ErrQuota
	}
	return l.Log.Append(ctx, g)
}

// refusal refuses updates of the catalog while left is positive, and then calls end. It
// counts those that come when the first stream has ended: others may come before.
type refusal struct {
	on, counts *atomic.Bool
	left       atomic.Int64
	end        func()
}

func (r *refusal) Hit(p env.Failpoint) error {
	if p != env.BeforeUpdate || !r.on.Load() {
		return nil
	}
	if r.counts.Load() && r.left.Add(-1) == 0 {
		r.on.Store(false)
		r.end()
	}
	return errors.New("no space")
}

// TestTransactionLargerThanLogUntold goes on by itself while it cannot record why it
// stands still.
func TestTransactionLargerThanLogUntold(t *testing.T) {
	var streams, room atomic.Int64
	var refuse, ended atomic.Bool
	refused := &refusal{on: &refuse, counts: &ended, end: func() { room.Store(20) }}
	refused.left.Store(4)
	w := &world{
		t: t, store: memkv.New(), disk: &disk{}, lake: &lakeDrops{}, interval: 1, part: 4 << 10, noCopy: true,
		factory: shopFactory(small, func(s ingest.Source) ingest.Source { return &endless{s, &streams, &ended} }), updates: refused,
	}
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		log, err := w.disk.open(ctx, p, w.catalog)
		return &smallLog{log, &room, func() { refuse.Store(refused.left.Load() > 0) }}, err
	}
	room.Store(40)
	w.create()
	_ = w.supervisor.Start(t.Context(), "shop") // which may tell of streaming, or of its end
	w.await("error", func(s *catalog.Snapshot) bool {
		p, err := s.Pipeline("shop")
		return err == nil && p.State == catalog.PipelineError
	})
	if n := streams.Load(); n < 2 {
		t.Errorf("the transaction was read %d times", n)
	}
}

// TestTransactionLargerThanLog stops the pipeline with a reason when a transaction fills
// the log alone, lets go of its parts, and reads it again only when a statement asks.
func TestTransactionLargerThanLog(t *testing.T) {
	var streams, room atomic.Int64
	w := &world{
		t: t, store: memkv.New(), disk: &disk{}, lake: &lakeDrops{}, interval: 1, part: 4 << 10, noCopy: true,
		factory: shopFactory(small, func(s ingest.Source) ingest.Source { return &endless{s, &streams, nil} }),
	}
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		log, err := w.disk.open(ctx, p, w.catalog)
		return &smallLog{log, &room, nil}, err
	}
	room.Store(40)
	w.create()
	for n := int64(1); n <= 3; n++ { // what ended the session before may still be what the catalog says
		var large *ingest.TransactionError
		err := w.supervisor.Start(context.Background(), "shop")
		if err != nil && !errors.As(err, &large) { // streaming is told before the transaction comes
			t.Fatalf("start: %v", err)
		}
		w.await("error", func(s *catalog.Snapshot) bool {
			p, err := s.Pipeline("shop")
			_, pending := s.Pending(p.ID)
			return err == nil && p.State == catalog.PipelineError && room.Load() <= -2 && !pending
		})
		if got := streams.Load(); got != n {
			t.Fatalf("after start %d the transaction was read %d times", n, got)
		}
		room.Store(20)
	}
	snap := w.catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline("shop")
	if err != nil || !strings.Contains(p.Reason, "log is full") || !strings.Contains(p.Reason, "RESET") ||
		strings.Contains(p.Reason, "unavailable") {
		t.Errorf("reason %q, %v", p.Reason, err)
	}
}
