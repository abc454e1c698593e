package ingest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// crash fails the n-th hit of a failpoint and everything that reaches one after it,
// so that the disk stays as a process that ended there would leave it.
type crash struct {
	mu   sync.Mutex
	at   env.Failpoint
	n    int
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
			c.dead = true
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
			t.Run(fmt.Sprintf("%s/%d", at, n), func(t *testing.T) { testWAL(t, at, n) })
		}
	}
}

func testWAL(t *testing.T, at env.Failpoint, n int) {
	c := &crash{at: at, n: n, died: make(chan struct{})}
	dir := t.TempDir()
	w := newWorld(t, shopFactory(small, nil))
	clock, ids := env.System()
	w.stop()
	w.failpoints = c
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		return wal.Open(ctx, wal.Config{Dir: dir, Pipeline: p, SegmentBytes: 1 << 20}, wal.Deps{
			Publisher: w.catalog, Clock: clock, IDs: ids, Failpoints: w.failpoints,
		})
	}
	w.boot()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.awaitEnd(ctx)
	}()
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
	w.awaitReady("2500")
	reader := wal.OpenReader(dir)
	w.expectRead(small, 2500, func(s catalog.Slice) *change.Batch {
		r, err := reader.ReadSlice(context.Background(), s.Slice)
		if err != nil {
			t.Fatal(err)
		}
		return &change.Batch{Record: r}
	})
}
