package ingest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// crash fails the n-th hit of a failpoint and everything that reaches one after it,
// so that the disk stays as a process that ended there would leave it.
type crash struct {
	mu sync.Mutex
	at env.Failpoint
	n  int
	// once: the process lives on, and only that one step fails.
	once bool
	dead bool
	died chan struct{}
}

func (c *crash) Hit(f env.Failpoint) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return errKilled
	}
	if f == c.at {
		if c.n--; c.n == 0 {
			c.dead = !c.once
			close(c.died)
			return errKilled
		}
	}
	return nil
}

// TestWAL runs the shop through a real log that is cut off at each of its durable
// steps, and compares what the log's own reader finds with the oracle.
func TestWAL(t *testing.T) {
	for _, at := range []env.Failpoint{
		env.BeforeBody, env.AfterBody, env.AfterMarker, env.AfterPublish, env.BeforeAck,
	} {
		for _, n := range []int{1, 4, 15} {
			for _, once := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%t", at, n, once), func(t *testing.T) {
					testWAL(t, at, n, once, &world{factory: shopFactory(small, nil)})
				})
			}
		}
	}
}

// TestWALInParts is TestWAL with transactions that go into the log in parts.
func TestWALInParts(t *testing.T) {
	factory := shopFactory(small, func(s ingest.Source) ingest.Source { return &bundler{s, 500} })
	for _, at := range []env.Failpoint{env.BeforeBody, env.AfterMarker, env.AfterPublish, env.BeforeAck} {
		for _, n := range []int{12, 25} {
			t.Run(fmt.Sprintf("%s/%d", at, n), func(t *testing.T) {
				testWAL(t, at, n, n == 12, &world{factory: factory, part: 8 << 10})
			})
		}
	}
}

func testWAL(t *testing.T, at env.Failpoint, n int, once bool, w *world) {
	c := &crash{at: at, n: n, once: once, died: make(chan struct{})}
	dir := t.TempDir()
	w.t, w.store, w.lake, w.failpoints, w.interval = t, memkv.New(), &lakeDrops{}, c, 1
	clock, ids := env.System()
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		return wal.Open(ctx, wal.Config{Dir: dir, Pipeline: p, SegmentBytes: 1 << 20}, wal.Deps{
			Publisher: w.catalog, Clock: clock, IDs: ids, Failpoints: w.failpoints,
		})
	}
	w.create()
	ctx, cancel := context.WithCancel(context.Background())
	starting := make(chan error, 1)
	supervisor := w.supervisor // boot makes another
	go func() { starting <- supervisor.Start(ctx, "shop") }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.awaitEnd(ctx)
	}()
	if !once {
		select {
		case <-c.died:
		case <-ended:
		}
		cancel()
		<-ended
		w.stop()
		w.failpoints = env.NoFailpoints
		w.boot()
		w.start()
	}
	w.awaitReady("2500")
	cancel()
	<-ended
	<-starting // its error, if any, is the crash
	reader := wal.OpenReader(dir)
	w.expectRead(small, 2500, func(s catalog.Slice) *change.Batch {
		r, err := reader.ReadSlice(context.Background(), s.Slice)
		if err != nil {
			t.Fatal(err)
		}
		return &change.Batch{Record: r}
	})
}

// TestDropRemovesLog leaves no file of the log, and a new pipeline of the name works.
func TestDropRemovesLog(t *testing.T) {
	w := newWorld(t, shopFactory(small, nil))
	w.stop()
	clock, ids := env.System()
	cfg := ingest.Config{DataDir: t.TempDir()}
	c, err := catalog.Open(context.Background(), w.store, catalog.Deps{
		Clock: clock, IDs: ids, Key: make([]byte, 32), ApplyState: ingest.ApplyState,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := ingest.NewSupervisor(cfg, ingest.Deps{
		Catalog: c, Clock: clock, IDs: ids, Sources: map[string]ingest.SourceFactory{"generator": w.factory},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx) // the cause of its context
	}()
	defer func() { cancel(); <-done }()
	if err := s.Start(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	p, err := snap.Pipeline("shop")
	snap.Close()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := s.Drop(ctx, "shop", false); err != nil || len(left) > 0 {
		t.Fatalf("drop left %v, %v", left, err)
	}
	if files, err := wal.DiskFS().List(cfg.LogDir(p.ID)); err == nil {
		t.Errorf("log still has %v", files)
	}
}
