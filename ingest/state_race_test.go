package ingest

import (
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/wal/env"
)

// TestPausedStaysPaused: a session on its way out does not record that the pipeline
// runs after a statement has paused it.
func TestPausedStaysPaused(t *testing.T) {
	world := env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: world, IDs: world, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	p := &catalog.Pipeline{Name: "p", Connection: "c", TargetSchema: "p", Enabled: true, Paused: true, State: catalog.PipelinePaused}
	state := func(s catalog.PipelineState) catalog.PipelineState {
		t.Helper()
		var now catalog.PipelineState
		err := c.Update(t.Context(), func(txn *catalog.Txn) error {
			if err := putState(txn, p.ID, s, ""); err != nil {
				return err
			}
			row, err := txn.PipelineByID(p.ID)
			now = row.State
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	if err := c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.CreatePipeline(p) }); err != nil {
		t.Fatal(err)
	}
	if got := state(catalog.PipelineRunning); got != catalog.PipelinePaused {
		t.Errorf("a paused pipeline is recorded as %s", got)
	}
	if got := state(catalog.PipelineDisabled); got != catalog.PipelineDisabled {
		t.Errorf("a pipeline at rest is recorded as %s", got)
	}
}
