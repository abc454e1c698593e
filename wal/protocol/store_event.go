package protocol

import "github.com/skipprd/skipprd/wal/segment"

// PutOutcome is what is known of a conditional write to an object store.
type PutOutcome uint8

const (
	// PutDone: the object is stored.
	PutDone PutOutcome = 1 + iota
	// PutRefused: the condition did not hold. An earlier attempt may be why.
	PutRefused
	// PutNot: nothing happened; the same write may succeed later.
	PutNot
	// PutUnknown: it may have happened, or may happen later.
	PutUnknown
)

// Version names a state of an object; empty: there is none.
type Version string

// BodyKey names a body on an object store.
type BodyKey struct {
	Seq   segment.Seq
	Epoch segment.Epoch
}

// The events of the machines on an object store.
type (
	// BodyPut completes PutBody.
	BodyPut struct {
		Seq     segment.Seq
		Outcome PutOutcome
		Err     error
	}
	// BodyCompared completes CompareBody. Missing: there is none.
	BodyCompared struct {
		Seq           segment.Seq
		Same, Missing bool
		Err           error
	}
	// MarkerPut completes PutMarker. Slow says that the writer may have been taken over
	// meanwhile.
	MarkerPut struct {
		Seq     segment.Seq
		Outcome PutOutcome
		Slow    bool
		Err     error
	}
	// FenceRead completes ReadFence. Data is nil when there is no fence.
	FenceRead struct {
		Data    []byte
		Version Version
		Err     error
	}
	// FenceWritten completes WriteFence.
	FenceWritten struct {
		Version Version
		Outcome PutOutcome
		Err     error
	}
	// CheckpointRead completes ReadCheckpoint. Data is nil when there is none.
	CheckpointRead struct {
		Data    []byte
		Version Version
		Err     error
	}
	// CheckpointWritten completes WriteCheckpoint.
	CheckpointWritten struct {
		Version Version
		Outcome PutOutcome
		Err     error
	}
	// LakeFenced completes FenceLake.
	LakeFenced struct{ Err error }
	// PageListed completes ListPage. Bodies and markers are in order of seq, across the
	// pages too. Next is the token of the next page, empty when this is the last.
	PageListed struct {
		Bodies  []BodyKey
		Markers []segment.Seq
		Next    string
		Err     error
	}
	// BodyFetched completes FetchBody. Data is nil when there is no body.
	BodyFetched struct {
		Seq  segment.Seq
		Data []byte
		Err  error
	}
	// Superseded says that another writer has taken the log over.
	Superseded struct{ Err error }
)

// The effects of the machines on an object store.
type (
	// PutBody stores a body under its seq and the writer's epoch, if it is absent.
	// Several may be under way.
	PutBody struct {
		Seq  segment.Seq
		Data []byte
		// Marker will commit it.
		Marker segment.Marker
	}
	// CompareBody reads the writer's body back and compares it.
	CompareBody struct {
		Seq  segment.Seq
		Data []byte
	}
	// PutMarker stores a marker under its seq, if it is absent. It is the commit point
	// of the body's groups. One is under way at a time.
	PutMarker struct{ Marker segment.Marker }
	// ReadFence reads the fence.
	ReadFence struct{}
	// WriteFence stores the fence, if its state is still Version, or if there is none
	// when that is empty.
	WriteFence struct {
		Fence   segment.Fence
		Version Version
	}
	// ReadCheckpoint reads the checkpoint.
	ReadCheckpoint struct{}
	// WriteCheckpoint stores the checkpoint, like WriteFence.
	WriteCheckpoint struct {
		Checkpoint segment.Checkpoint
		Version    Version
	}
	// FenceLake makes the lake refuse the compactions of older epochs.
	FenceLake struct{ Epoch segment.Epoch }
	// ListPage lists bodies and markers from a page's token; empty begins.
	ListPage struct{ Token string }
	// FetchBody reads the body that a marker commits.
	FetchBody struct{ Marker segment.Marker }
	// Wait asks for a pause, longer with each attempt, and is completed by Retry.
	Wait struct{ Attempt int }
	// DeleteBodies deletes bodies, wherever they are.
	DeleteBodies struct{ Bodies []BodyKey }
	// Fenced says that another writer has the log.
	Fenced struct{ Err error }
)

func (BodyPut) event()           {}
func (BodyCompared) event()      {}
func (MarkerPut) event()         {}
func (FenceRead) event()         {}
func (FenceWritten) event()      {}
func (CheckpointRead) event()    {}
func (CheckpointWritten) event() {}
func (LakeFenced) event()        {}
func (PageListed) event()        {}
func (BodyFetched) event()       {}
func (Superseded) event()        {}

func (PutBody) effect()         {}
func (CompareBody) effect()     {}
func (PutMarker) effect()       {}
func (ReadFence) effect()       {}
func (WriteFence) effect()      {}
func (ReadCheckpoint) effect()  {}
func (WriteCheckpoint) effect() {}
func (FenceLake) effect()       {}
func (ListPage) effect()        {}
func (FetchBody) effect()       {}
func (Wait) effect()            {}
func (DeleteBodies) effect()    {}
func (Fenced) effect()          {}
