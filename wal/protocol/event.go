package protocol

import (
	"crypto/sha256"

	"github.com/skipprd/skipprd/wal/segment"
)

// Event is what a machine is told. The types below are all there are.
type Event interface{ event() }

type (
	// Start is the first event of any machine.
	Start struct{}
	// Append asks to commit groups. Answered by Done or Failed for each. Nanos is the
	// wall clock, for the headers of an object store's bodies.
	Append struct {
		Items []Item
		Nanos int64
	}
	// SealWanted asks to seal the active segment once what was appended before is
	// durable. Answered by Done or Failed.
	SealWanted struct{ ID uint64 }
	// Opened completes Open. Header is the one that was written.
	Opened struct {
		Header segment.Header
		Err    error
	}
	// Written completes Write.
	Written struct{ Err error }
	// Published completes Publish.
	Published struct{ Err error }
	// Sealed completes Seal.
	Sealed struct {
		Seq segment.Seq
		Err error
	}
	// Inspected completes Inspect. Digest is that of the body up to the asked end.
	Inspected struct {
		Seq    segment.Seq
		Digest [sha256.Size]byte
		Err    error
	}
	// Discarded completes Discard.
	Discarded struct {
		Seq segment.Seq
		Err error
	}
	// Retry says that it is time to repeat what failed.
	Retry struct{}
	// Settle says that the machine may use the time while the disk works.
	Settle struct{}
	// Listed completes List, both in ascending order.
	Listed struct {
		Bodies  []segment.Seq
		Markers []segment.Seq
		Err     error
	}
	// MarkerRead completes ReadMarker.
	MarkerRead struct {
		Seq  segment.Seq
		Data []byte
		Err  error
	}
	// BodyRead completes ReadBody.
	BodyRead struct {
		Seq  segment.Seq
		Data []byte
		Err  error
	}
	// Deleted completes DeleteMarkers and RecycleBodies.
	Deleted struct{ Err error }
)

// Item is a group to append. ID is the runner's name for it.
type Item struct {
	ID    uint64
	Group *segment.Encoded
}

// Effect is what a machine wants done. The types below are all there are.
type Effect interface{ effect() }

type (
	// Open makes a segment: header durable, then visible under its name, the name
	// durable. It replaces a file that an earlier attempt left there. The runner
	// fills in the rest of the header.
	Open struct {
		Seq        segment.Seq
		FirstGroup uint64
		Previous   [sha256.Size]byte
		// Bytes is how long the body may become.
		Bytes int64
	}
	// Write puts Data at byte Start of the body and makes it durable. It is the
	// commit point of the groups in it. One is under way at a time.
	Write struct {
		Seq   segment.Seq
		Start uint32
		Data  []byte
	}
	// Publish hands groups past their commit point to the catalog. One is under way
	// at a time.
	Publish struct{ Groups []Placed }
	// Done answers an Append, or a SealWanted with a zero Placed.
	Done struct {
		ID     uint64
		Placed Placed
	}
	// Failed answers an Append or a SealWanted.
	Failed struct {
		ID  uint64
		Err error
	}
	// Seal writes Footer at byte Start of the body and makes it durable; then the
	// marker, then its name. Without a footer it first cuts the body to the marker's
	// length, durably, so that what the marker does not cover never comes back.
	// Nothing writes to the segment any more. It may be repeated.
	Seal struct {
		Seq    segment.Seq
		Start  uint32
		Footer []byte
		Marker segment.Marker
	}
	// Inspect drops the handle of the segment, reads it anew from the disk and
	// walks its groups up to End, which must be a group end or the header's.
	Inspect struct {
		Seq segment.Seq
		End uint32
	}
	// Discard takes the name of a segment without a committed group away, durably.
	Discard struct{ Seq segment.Seq }
	// List reads the names in the log.
	List struct{}
	// ReadMarker reads a marker.
	ReadMarker struct{ Seq segment.Seq }
	// ReadBody reads the first Bytes of a body, or all of it when Bytes is zero. In the
	// latter case the body is not sealed, and is made durable before it is read, since
	// what is found in it is going to be published.
	ReadBody struct {
		Seq   segment.Seq
		Bytes uint32
	}
	// DeleteMarkers removes markers, durably.
	DeleteMarkers struct{ Seqs []segment.Seq }
	// RecycleBodies takes the names of bodies away, durably.
	RecycleBodies struct{ Seqs []segment.Seq }
	// Recovered ends a recovery: the log goes on at Tail.
	Recovered struct{ Tail Tail }
	// Finished ends a reclaim.
	Finished struct{}
	// Refused ends a recovery or a reclaim that must not go on.
	Refused struct{ Err error }
)

// Placed is a group in its place in the log.
type Placed struct {
	Seq   segment.Seq
	Group segment.Group
}

// Tail is where a log goes on.
type Tail struct {
	Seq      segment.Seq // of the next segment
	Group    uint64      // number of the next group
	Previous [sha256.Size]byte
}

func (Start) event()      {}
func (Append) event()     {}
func (SealWanted) event() {}
func (Opened) event()     {}
func (Written) event()    {}
func (Published) event()  {}
func (Sealed) event()     {}
func (Inspected) event()  {}
func (Discarded) event()  {}
func (Retry) event()      {}
func (Settle) event()     {}
func (Listed) event()     {}
func (MarkerRead) event() {}
func (BodyRead) event()   {}
func (Deleted) event()    {}

func (Open) effect()          {}
func (Write) effect()         {}
func (Publish) effect()       {}
func (Done) effect()          {}
func (Failed) effect()        {}
func (Seal) effect()          {}
func (Inspect) effect()       {}
func (Discard) effect()       {}
func (List) effect()          {}
func (ReadMarker) effect()    {}
func (ReadBody) effect()      {}
func (DeleteMarkers) effect() {}
func (RecycleBodies) effect() {}
func (Recovered) effect()     {}
func (Finished) effect()      {}
func (Refused) effect()       {}
