package ingest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// TestPauseEndsStart: a start that waits for a slow source is over when the pipeline is
// paused.
func TestPauseEndsStart(t *testing.T) {
	connecting := make(chan struct{}, 1)
	w := newWorld(t, func(ctx context.Context, _ ingest.ResolvedConnection, _ *catalog.Pipeline, _ ingest.SourceDeps) (ingest.Source, error) {
		select {
		case connecting <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.supervisor.Stop(ctx, "shop"); err != nil { // so that Start begins the session
		t.Fatal(err)
	}
	select {
	case <-connecting:
	default:
	}
	started := make(chan error, 1)
	go func() { started <- w.supervisor.Start(ctx, "shop") }()
	<-connecting
	err := w.catalog.Update(ctx, func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("shop")
		if err != nil {
			return err
		}
		p.Paused = true
		return txn.PutPipeline(p)
	})
	if err == nil {
		err = w.supervisor.Stop(ctx, "shop")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := <-started; !errors.Is(err, ingest.ErrNotRunning) {
		t.Errorf("start: %v", err)
	}
}
