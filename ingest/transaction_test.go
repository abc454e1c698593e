package ingest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// endless is a source whose stream begins with a transaction that does not end.
type endless struct {
	ingest.Source
	streams, rows *atomic.Int64
}

func (e *endless) Stream(_ context.Context, _ change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	e.streams.Add(1)
	e.rows.Store(0)
	if err := sink.Begin(1, time.Unix(1000, 0)); err != nil {
		return err
	}
	for {
		b, err := sink.Builder(tables[0].ID)
		if err != nil {
			return err
		}
		b.Add(change.Insert, 1, 0) // its columns do not matter: the row never leaves the builder
		e.rows.Add(1)
	}
}

// TestTransactionTooLarge stops the pipeline with a reason, before it has filled the
// memory, and reads the transaction again only when a statement asks for it.
func TestTransactionTooLarge(t *testing.T) {
	var streams, rows atomic.Int64
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source {
		return &endless{s, &streams, &rows}
	}))
	w.stop()
	w.most = 2 << 20
	w.boot()
	for n := int64(1); n <= 3; n++ {
		var large *ingest.TransactionError
		err := w.supervisor.Start(context.Background(), "shop")
		if err != nil && !errors.As(err, &large) { // streaming is told before the transaction comes
			t.Fatalf("start: %v", err)
		}
		w.await("error", func(s *catalog.Snapshot) bool {
			p, err := s.Pipeline("shop")
			return err == nil && p.State == catalog.PipelineError && streams.Load() >= n
		})
		if r := rows.Load(); r > w.most {
			t.Fatalf("%d rows were taken", r)
		}
	}
	snap := w.catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline("shop")
	if err != nil || !strings.Contains(p.Reason, "2 MiB") || !strings.Contains(p.Reason, "RESET") ||
		strings.Contains(p.Reason, "unavailable") {
		t.Errorf("reason %q, %v", p.Reason, err)
	}
	if n := streams.Load(); n > 4 {
		t.Errorf("the transaction was read %d times", n)
	}
}
