package wal

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Slice is a committed slice as the catalog and readers know it.
type Slice struct {
	Ref    segment.SliceRef
	Length uint32 // of its record in the body, header and padding included
	Table  change.TableID
	// SchemaVersion of the rows.
	SchemaVersion uint32
	Rows          uint32
	Counts        change.Counts
	Truncate      bool
	Backfill      bool
}

// CommittedGroup is a group past its commit point.
type CommittedGroup struct {
	// Seq and End place the group: it ends at byte End of segment Seq's body. (Seq,
	// End) grows strictly along the log.
	Seq    segment.Seq
	End    uint32
	Slices []Slice
	// Position, CommittedAt and State as in change.Group.
	Position    change.Position
	CommittedAt time.Time
	State       []byte
}

// Publisher records committed groups in the catalog. Declared here, joined in cmd.
type Publisher interface {
	// Publish makes groups visible to readers in one atomic transaction, in order.
	// It is idempotent: groups at or below the published watermark are skipped.
	// Called by the log's owning goroutine after the commit point and before Append
	// returns, and by Open for groups the catalog has not seen. It need not be
	// synced on a disk log: Open publishes again what a crash took away.
	Publish(ctx context.Context, pipeline change.PipelineID, groups []CommittedGroup) error
	// Published is the watermark: place of the last published group, zero if none.
	Published(ctx context.Context, pipeline change.PipelineID) (segment.Seq, uint32, error)
}
