package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// lostSource is a source whose place in the log is gone until it is made anew.
type lostSource struct {
	altered
	lost error
}

func (s *lostSource) Setup(ctx context.Context, state []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	if len(state) > 0 {
		return ingest.SetupResult{}, s.lost
	}
	return s.altered.Setup(ctx, state, tables)
}

// TestSyncOfLostPlace: SYNC does not wait for what never comes, but for a source that is
// only away; after a RESET it waits again.
func TestSyncOfLostPlace(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	gone := fmt.Errorf("slot is gone: %w", ingest.ErrLost)
	at := &alteredAt{key: true, columns: "id int4 1"}
	w := newWorld(t, func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
		return &lostSource{altered: altered{at: at}, lost: gone}, nil
	})
	w.start()
	w.await("copied", func(s *catalog.Snapshot) bool {
		tb := w.tableIn(s, "t")
		return tb != nil && (tb.State == catalog.TableReady || tb.State == catalog.TableCatchup)
	})
	if err := w.supervisor.Stop(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	_ = w.supervisor.Start(ctx, "shop") // it may say that the place is gone
	_, err := w.supervisor.Sync(ctx, "shop", 0, func(ingest.PipelineStatus) {})
	if !errors.Is(err, ingest.ErrLost) {
		t.Fatalf("SYNC of a pipeline whose place is gone: %v", err)
	}
	if err := w.supervisor.Reset(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.supervisor.Sync(ctx, "shop", 200*time.Millisecond, func(ingest.PipelineStatus) {}); err != nil {
		t.Fatalf("SYNC after the RESET: %v", err)
	}
}
