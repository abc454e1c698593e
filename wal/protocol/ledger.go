package protocol

import (
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// LiveSegment is a committed segment of a log on an object store.
type LiveSegment struct {
	Seq   segment.Seq
	Epoch segment.Epoch
	// Takeover: it has no body, and its marker is never reclaimed.
	Takeover bool
	// Group and Previous are where the log stood before it; Groups is how many it has.
	Group    uint64
	Previous [32]byte
	Groups   int
}

// StoreTail is where a log on an object store goes on after a takeover.
type StoreTail struct {
	Tail
	Fence        segment.Fence
	FenceVersion Version
	// Checkpoint is the one written by the takeover.
	Checkpoint        segment.Checkpoint
	CheckpointVersion Version
	Live              []LiveSegment
	// Position is that of the last group.
	Position change.Position
}
