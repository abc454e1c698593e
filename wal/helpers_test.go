package wal_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

const pipeline change.PipelineID = 7

var start = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// catalog is a Publisher that keeps what it is given.
type catalog struct {
	mu     sync.Mutex
	seq    segment.Seq
	end    uint32
	groups []wal.CommittedGroup
	fail   error
	calls  int
}

func (c *catalog) Publish(_ context.Context, _ change.PipelineID, groups []wal.CommittedGroup) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.fail != nil {
		return c.fail
	}
	for _, g := range groups {
		if g.Seq < c.seq || g.Seq == c.seq && g.End <= c.end {
			continue
		}
		c.groups = append(c.groups, g)
		c.seq, c.end = g.Seq, g.End
	}
	return nil
}

func (c *catalog) Published(context.Context, change.PipelineID) (segment.Seq, uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq, c.end, nil
}

func (c *catalog) setFail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

func (c *catalog) all() []wal.CommittedGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]wal.CommittedGroup(nil), c.groups...)
}

// clone is what the catalog has after a crash that takes the groups above n away.
func (c *catalog) clone(n int) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &catalog{groups: append([]wal.CommittedGroup(nil), c.groups[:n]...)}
	if n > 0 {
		out.seq, out.end = c.groups[n-1].Seq, c.groups[n-1].End
	}
	return out
}

var tableSchema = arrow.NewSchema([]arrow.Field{
	{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
	{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
	{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// batch has rows with ids from, from+1, … and a note of the given size.
func batch(table change.TableID, from int64, rows, noteBytes int) *change.Batch {
	b := change.NewBuilder(memory.DefaultAllocator, table, 1, tableSchema)
	defer b.Release()
	for i := range rows {
		id := from + int64(i)
		b.Add(change.Insert, id, int32(i))
		b.Column(0).(*array.Int64Builder).Append(id)
		b.Column(1).(*array.StringBuilder).Append(note(id, noteBytes))
	}
	return b.Batch()
}

func note(id int64, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = 'a' + byte((id+int64(i))%26)
	}
	return string(out)
}

func group(position string, batches ...*change.Batch) *change.Group {
	return &change.Group{
		Batches: batches, Position: change.Position(position), CommittedAt: start,
		State: []byte("state of " + position),
	}
}

func deps(fs wal.FS, pub wal.Publisher) wal.Deps {
	clock, _ := env.System()
	return wal.Deps{Publisher: pub, Clock: fastClock{clock}, IDs: env.NewFake(start, 1), FS: fs}
}

// fastClock runs timers a hundred times faster, so that retries do not take long.
type fastClock struct{ env.Clock }

func (c fastClock) Timer(d time.Duration) (<-chan time.Time, func()) { return c.Clock.Timer(d / 100) }

func config(dir string) wal.Config {
	return wal.Config{Dir: dir, Pipeline: pipeline, SegmentBytes: 64 << 10}
}

func mustOpen(t testing.TB, cfg wal.Config, d wal.Deps) *wal.Log {
	t.Helper()
	l, err := wal.Open(t.Context(), cfg, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func mustAppend(t testing.TB, l *wal.Log, g *change.Group) wal.CommittedGroup {
	t.Helper()
	out, err := l.Append(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkRows reads s and compares it with what batch made.
func checkRows(r *wal.Reader, s wal.Slice, from int64, rows, noteBytes int) error {
	rec, err := r.ReadSlice(context.Background(), s)
	if err != nil {
		return err
	}
	defer rec.Release()
	if rec.NumRows() != int64(rows) {
		return fmt.Errorf("slice %v has %d rows, want %d", s.Ref, rec.NumRows(), rows)
	}
	ids := rec.Column(3).(*array.Int64)
	notes := rec.Column(4).(*array.String)
	for i := range rows {
		id := from + int64(i)
		if ids.Value(i) != id || notes.Value(i) != note(id, noteBytes) {
			return fmt.Errorf("slice %v row %d is %d %q", s.Ref, i, ids.Value(i), notes.Value(i))
		}
	}
	return nil
}
