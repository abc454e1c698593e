package segment

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/change"
)

const groupEndMagic = 'S' | 'K'<<8 | 'G'<<16 | 'E'<<24

// Offsets in the payload of a group end.
const (
	groupEndAtMagic     = 0
	groupEndAtVersion   = 4
	groupEndAtZero      = 5
	groupEndAtRecords   = 8
	groupEndAtCRC       = 12
	groupEndAtStart     = 16
	groupEndAtSynced    = 20
	groupEndAtCommitted = 24
	groupEndAtPosition  = 32
	groupEndAtState     = 36
	groupEndAtReserved  = 40
)

func putGroupEnd(b []byte, g *Group, records, crc uint32) {
	le := binary.LittleEndian
	le.PutUint32(b[groupEndAtMagic:], groupEndMagic)
	b[groupEndAtVersion] = formatVersion
	le.PutUint32(b[groupEndAtRecords:], records)
	le.PutUint32(b[groupEndAtCRC:], crc)
	le.PutUint32(b[groupEndAtStart:], g.Start)
	le.PutUint32(b[groupEndAtSynced:], g.Synced)
	if !g.CommittedAt.IsZero() {
		le.PutUint64(b[groupEndAtCommitted:], uint64(g.CommittedAt.UnixNano()))
	}
	le.PutUint32(b[groupEndAtPosition:], uint32(len(g.Position)))
	le.PutUint32(b[groupEndAtState:], uint32(len(g.State)))
	n := copy(b[groupEndBytes:], g.Position)
	copy(b[groupEndBytes+n:], g.State)
}

// groupEnd is a group end record as read.
type groupEnd struct {
	Group
	records, crc uint32
}

func groupEndOf(r record) (groupEnd, error) {
	b := r.payload
	le := binary.LittleEndian
	if r.kind != recordGroupEnd {
		return groupEnd{}, fmt.Errorf("record type %d: %w", r.kind, ErrKind)
	}
	if len(b) < groupEndBytes || le.Uint32(b[groupEndAtMagic:]) != groupEndMagic {
		return groupEnd{}, fmt.Errorf("group end: %w", ErrMagic)
	}
	if b[groupEndAtVersion] != formatVersion {
		return groupEnd{}, fmt.Errorf("group end: %w", ErrVersion)
	}
	if b[groupEndAtZero] != 0 || le.Uint16(b[groupEndAtZero+1:]) != 0 ||
		le.Uint64(b[groupEndAtReserved:]) != 0 {
		return groupEnd{}, fmt.Errorf("group end: %w", ErrReserved)
	}
	position, state := le.Uint32(b[groupEndAtPosition:]), le.Uint32(b[groupEndAtState:])
	rest := b[groupEndBytes:]
	if position > PositionBytesMax || state > StateBytesMax ||
		uint64(position)+uint64(state) != uint64(len(rest)) {
		return groupEnd{}, fmt.Errorf("group end: %w", ErrLength)
	}
	e := groupEnd{
		Group: Group{
			Start:    le.Uint32(b[groupEndAtStart:]),
			Number:   r.group,
			Synced:   le.Uint32(b[groupEndAtSynced:]),
			Position: change.Position(rest[:position]),
			State:    append([]byte(nil), rest[position:]...),
		},
		records: le.Uint32(b[groupEndAtRecords:]),
		crc:     le.Uint32(b[groupEndAtCRC:]),
	}
	if nanos := int64(le.Uint64(b[groupEndAtCommitted:])); nanos != 0 {
		e.CommittedAt = time.Unix(0, nanos).UTC()
	}
	return e, nil
}
