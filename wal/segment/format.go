package segment

import "hash/crc32"

// The sizes of the format, see FORMAT.md.
const (
	// HeaderBytes is the length of a body's header.
	HeaderBytes = 128
	// MarkerBytes is the length of a marker.
	MarkerBytes = 60

	// RecordHeaderBytes is the length of the frame before a record's payload.
	RecordHeaderBytes = 32

	recordHeaderBytes = RecordHeaderBytes
	sliceHeaderBytes  = 48
	groupEndBytes     = 48
	footerFixedBytes  = 64
	footerEntryBytes  = 40
	footerTrailBytes  = 16
	recordAlign       = 8

	// BodyBytesMax bounds a body, so that its coordinates fit 32 bits with room.
	BodyBytesMax = 1 << 30
	// GroupsMax is how many groups a segment can hold: the marker counts in 16 bits.
	GroupsMax = 1<<16 - 1
	// PositionBytesMax bounds a group's position.
	PositionBytesMax = 64 << 10
	// StateBytesMax bounds a group's state.
	StateBytesMax = 16 << 20

	formatVersion = 1
)

// The record types. Durable.
const (
	recordSlice    = 1
	recordSchema   = 2
	recordGroupEnd = 4
	recordFooter   = 127
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func padded(n int) int { return (n + recordAlign - 1) &^ (recordAlign - 1) }
