package ingest_test

import (
	"context"
	"testing"
	"time"

	"github.com/skipprd/skipprd/ingest"
)

// silent never answers a question, as a server behind a link that is half open. Whoever
// asks must have set a limit, which passes at once here.
type silent struct{ ingest.Source }

func (s *silent) Status(ctx context.Context) (ingest.SourceStatus, error) {
	if _, limited := ctx.Deadline(); limited {
		return ingest.SourceStatus{}, context.DeadlineExceeded
	}
	<-ctx.Done()
	return ingest.SourceStatus{}, context.Cause(ctx)
}

// TestSyncWithSilentSource: a question that is never answered does not hold up Sync
// beyond its own limit.
func TestSyncWithSilentSource(t *testing.T) {
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source { return &silent{s} }))
	w.start()
	w.awaitReady("2500")
	ctx, cancel := context.WithCancel(context.Background()) // without a limit of its own
	defer cancel()
	defer time.AfterFunc(5*time.Second, cancel).Stop()
	if _, err := w.supervisor.Sync(ctx, "shop", time.Millisecond, func(ingest.PipelineStatus) {}); err != nil {
		t.Fatalf("sync: %v", err)
	}
	if ctx.Err() != nil {
		t.Fatal("sync waited until its caller gave up")
	}
}
