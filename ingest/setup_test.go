package ingest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// takenOver is the backup of a catalog that another host may have taken over.
type takenOver struct {
	yes, refused atomic.Bool
}

func (*takenOver) Read() ([]byte, error) { return nil, nil }

func (b *takenOver) Write([]byte) error {
	if b.yes.Load() {
		b.refused.Store(true)
		return errors.New("another host keeps this backup")
	}
	return nil
}

// TestSetupOfSuperseded: who was taken over before its first set-up leaves the source
// alone. The slot there is the new leader's by now, and would go.
func TestSetupOfSuperseded(t *testing.T) {
	at := &alteredAt{columns: "id int4 1, v text 2", key: true}
	backup := &takenOver{}
	var booted atomic.Bool
	w := newWorld(t, func(context.Context, ingest.ResolvedConnection, *catalog.Pipeline, ingest.SourceDeps) (ingest.Source, error) {
		if !booted.Load() {
			return nil, ingest.ErrSourceUnavailable
		}
		backup.yes.Store(true) // while it connects
		return &altered{at: at}, nil
	})
	w.stop()
	booted.Store(true)
	w.backup = backup
	w.boot()
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	go func() {
		defer close(started)
		_ = w.supervisor.Start(ctx, "shop") // until the test ends
	}()
	w.poll("the backup refuses", backup.refused.Load)
	cancel()
	<-started
	w.stop()
	at.Lock()
	defer at.Unlock()
	if at.slot != 0 {
		t.Fatalf("%d slots were made", at.slot)
	}
}
