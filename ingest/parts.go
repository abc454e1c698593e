package ingest

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// voidParts lets go of a transaction in parts that the last session left, so that its
// segments can be reclaimed while none runs. The next session does so too, before it
// streams; this one may fail.
func (h *host) voidParts(ctx context.Context) {
	snap := h.deps.Catalog.Snapshot()
	_, pending := snap.Pending(h.id)
	snap.Close()
	if !pending {
		return
	}
	err := h.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error { return txn.VoidPending(h.id) })
	if err != nil {
		h.out.Warn("parts of a transaction kept for now", env.KeyError, err)
	}
}

// stuck says that nothing but pending slices keeps the log of a pipeline full, and how
// many bytes they are; 0 when something else may still go.
func stuck(c *catalog.Catalog, pipeline change.PipelineID) (bytes int64, err error) {
	snap := c.Snapshot()
	defer snap.Close()
	pending, ok := snap.Pending(pipeline)
	if !ok {
		return 0, nil
	}
	for _, t := range snap.Tables(pipeline) {
		live, err := snap.LiveSlices(t.ID)
		if err != nil || len(live) > 0 {
			return 0, err
		}
	}
	at, err := snap.Offset(pipeline)
	if err != nil {
		return 0, err
	}
	idle, err := snap.ReclaimableSegments(pipeline, at.Seq)
	if err != nil {
		return 0, fmt.Errorf("look for segments to reclaim: %w", err)
	}
	if len(idle) > 0 {
		return 0, nil
	}
	return pending.Bytes, nil
}
