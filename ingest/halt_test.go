package ingest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// streamedTables remembers what the last stream of a source was to deliver.
type streamedTables struct {
	mu    sync.Mutex
	names map[string]bool
}

func (s *streamedTables) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name]
}

type streamWatch struct {
	ingest.Source
	to *streamedTables
}

func (s *streamWatch) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	names := map[string]bool{}
	for _, t := range tables {
		names[t.Source.Name] = true
	}
	s.to.mu.Lock()
	s.to.names = names
	s.to.mu.Unlock()
	return s.Source.Stream(ctx, from, tables, sink)
}

// TestStoppedBesideTheStream: a table that something else than the stream has stopped, as
// a compaction does that finds it to differ from its source, is not streamed any more, for
// nothing of it leaves the log. Who waits to read a position there is told.
func TestStoppedBesideTheStream(t *testing.T) {
	var seen streamedTables
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source { return &streamWatch{s, &seen} }))
	w.start()
	w.awaitReady("2500")
	if !seen.has("payments") || !seen.has("visits") {
		t.Fatal("a table was not streamed")
	}
	id := w.table("payments").ID
	if err := w.catalog.Update(t.Context(), func(txn *catalog.Txn) error {
		tbl, err := txn.TableByID(id)
		if err != nil {
			return err
		}
		tbl.State, tbl.Reason, tbl.StoppedAt = catalog.TableStopped, "it differs", ""
		return txn.PutTable(tbl)
	}); err != nil {
		t.Fatal(err)
	}
	w.poll("a stream without the stopped table", func() bool { return seen.has("visits") && !seen.has("payments") })
	err := w.supervisor.Await(t.Context(), ingest.Target{
		Pipeline: 1, Tables: []change.TableID{id}, At: "2000", Compare: func(a, b change.Position) int { return int(number(a) - number(b)) },
	})
	if !errors.Is(err, ingest.ErrTableStopped) {
		t.Errorf("waiting for a position of it: %v", err)
	}
}
