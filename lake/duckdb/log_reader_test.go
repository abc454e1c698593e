package duckdb

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// publisher keeps the live slices of what is published.
type publisher struct {
	mu     sync.Mutex
	slices []LiveSlice
	seq    segment.Seq
	end    uint32
}

func (p *publisher) Publish(_ context.Context, _ change.PipelineID, groups []wal.CommittedGroup) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range groups {
		p.seq, p.end = g.Seq, g.End
		for _, s := range g.Slices {
			p.slices = append(p.slices, LiveSlice{
				Seq: uint64(s.Ref.Seq), Start: s.Ref.Start, Length: s.Length, SchemaVersion: s.SchemaVersion,
				Truncate: s.Truncate, Backfill: s.Backfill, Rows: int64(s.Rows),
			})
		}
	}
	return nil
}

func (p *publisher) Published(context.Context, change.PipelineID) (segment.Seq, uint32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq, p.end, nil
}

// TestLogOnDisk reads a real log in a worker process while it is open, and loses it.
func TestLogOnDisk(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "00000001")
	clock, ids := env.System()
	pub := &publisher{}
	log, err := wal.Open(ctx, wal.Config{Dir: dir, Pipeline: 1, SegmentBytes: 64 << 10},
		wal.Deps{Publisher: pub, Clock: clock, IDs: ids, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	h := &history{key: []string{"id"}}
	for i, rows := range [][]row{
		{{op: change.Insert, token: 1, id: 1, part: "a", name: "copied"}, {op: change.Insert, token: 1, id: 2, part: "a", name: "copied"}},
		{{op: change.Update, token: 5, id: 1, part: "a", name: "changed and longer than twelve"}},
		{},
		{{op: change.Insert, token: 7, id: 3, part: "b", name: "after"}, {op: change.Delete, token: 8, id: 3, part: "b"}, {op: change.Insert, token: 9, id: 4, name: "last"}},
	} {
		b := &change.Batch{Table: 9, SchemaVersion: 1, Record: liveRecord(1, rows), Backfill: i == 0, Truncate: i == 2}
		for _, r := range rows {
			switch r.op {
			case change.Insert:
				b.Counts.Inserts++
			case change.Update:
				b.Counts.Updates++
			case change.Delete:
				b.Counts.Deletes++
			}
			b.Counts.MaxToken = r.token
		}
		if len(rows) > 0 {
			b.Counts.MinToken = rows[0].token
		}
		if _, err := log.Append(ctx, &change.Group{Batches: []*change.Batch{b}, Position: "p"}); err != nil {
			t.Fatal(err)
		}
		h.slices = append(h.slices, rows)
	}
	h.live = pub.slices
	h.live[1].Backfill = true // does not matter
	p := newTestPool(t, PoolConfig{}, nil)
	for n := 1; n <= len(h.live); n++ {
		rel := Relation{Name: "R", Key: h.key, Columns: []Column{
			{Name: "id", FieldID: 1, EngineType: "BIGINT"}, {Name: "part", FieldID: 2, EngineType: "VARCHAR"}, {Name: "name", FieldID: 3, EngineType: "VARCHAR"}, {Name: "note", FieldID: 4, EngineType: "VARCHAR"},
		}}
		rel.Live = &Live{Dir: dir, Pipeline: 1, Table: 9, Slices: h.live[:n], Fields: liveFields}
		plan := &Plan{SQL: `SELECT t.id::VARCHAR, t.part, t.name, t.note FROM "R" t`, Relations: []Relation{rel}, Output: rowsOutput(4)}
		got := mustRun(t, p, plan)
		sort.Strings(got)
		if want := h.fold(n); !slices.Equal(got, want) {
			t.Errorf("%d slices: got %v, want %v", n, got, want)
		}
	}
	gone := h.live[0]
	gone.Seq = 77
	rel := Relation{
		Name: "R", Key: h.key, Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}},
		Live: &Live{Dir: dir, Table: 9, Slices: []LiveSlice{gone}, Fields: liveFields},
	}
	_, err = run(ctx, p, &Plan{SQL: `SELECT id::VARCHAR FROM "R" t`, Relations: []Relation{rel}, Output: rowsOutput(1)})
	if !errors.Is(err, ErrSliceLost) {
		t.Errorf("a slice that is not there: %v", err)
	}
}

// TestSpill: a sort larger than the memory limit goes to the temporary directory, also
// when the engine may read only elsewhere.
func TestSpill(t *testing.T) {
	p := newTestPool(t, PoolConfig{Worker: WorkerConfig{
		MemoryLimit: 100 << 20, TempDir: filepath.Join(t.TempDir(), "spill"), AllowedDirs: []string{t.TempDir()},
	}}, nil)
	got := mustRun(t, p, one(`SELECT max(s)::VARCHAR FROM (SELECT md5(i::VARCHAR) || repeat('x', 100) AS s, row_number() OVER (ORDER BY md5(i::VARCHAR) || repeat('x', 100)) n
		FROM range(1000000) t(i)) WHERE n = 1000000`))
	if !strings.HasPrefix(got[0], "ffff") {
		t.Errorf("got %q", got)
	}
}
