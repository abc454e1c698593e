package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/skipprd/skipprd/wal/change"
)

var checkpointMagic = [4]byte{'S', 'K', 'C', 'P'}

// The limits of a checkpoint.
const (
	// FactsBytesMax bounds a checkpoint's facts.
	FactsBytesMax = 64 << 20
	// GoneMax bounds how many segments above the low seq may be gone.
	GoneMax = 1 << 20
)

// Checkpoint says where a log begins, and what must be known of what lay before. It
// is replaced as a whole: a larger serial supersedes.
type Checkpoint struct {
	Epoch    Epoch
	Pipeline change.PipelineID
	// Serial counts the checkpoints of a log, from 1, without regard to epochs.
	Serial uint64
	// Low is the first seq of the log. All below is reclaimed, or about to be, but for
	// takeover markers.
	Low Seq
	// Group and Previous go on at Low: the number of the first group at or above it
	// and the digest of the body before.
	Group    uint64
	Previous [32]byte
	// Gone are the segments above Low that are reclaimed, ascending.
	Gone []Seq
	// Position is that of the last group committed when this was written: the
	// groups from Low on, if any, lead to it or beyond.
	Position change.Position
	// Facts are the opener's, as of when this was written.
	Facts []byte
}

// Offsets in a checkpoint.
const (
	checkpointAtVersion  = 4
	checkpointAtZero     = 5
	checkpointAtEpoch    = 8
	checkpointAtPipeline = 12
	checkpointAtSerial   = 16
	checkpointAtLow      = 24
	checkpointAtGroup    = 32
	checkpointAtPrevious = 40
	checkpointAtGone     = 72
	checkpointAtPosition = 76
	checkpointAtFacts    = 80
	checkpointAtZero2    = 84
	checkpointFixedBytes = 88
	checkpointGoneBytes  = 8
	checkpointCRCBytes   = 4

	checkpointBytesMax = checkpointFixedBytes + GoneMax*checkpointGoneBytes +
		PositionBytesMax + FactsBytesMax + checkpointCRCBytes
)

// CheckpointBytesMax bounds an encoded checkpoint.
const CheckpointBytesMax = checkpointBytesMax

// Encode renders the checkpoint. ErrTooLarge: position, facts or what is gone exceed
// the format.
func (c Checkpoint) Encode() ([]byte, error) {
	if len(c.Position) > PositionBytesMax || len(c.Facts) > FactsBytesMax || len(c.Gone) > GoneMax {
		return nil, fmt.Errorf("checkpoint with %d bytes of position, %d of facts, %d segments gone: %w",
			len(c.Position), len(c.Facts), len(c.Gone), ErrTooLarge)
	}
	n := checkpointFixedBytes + checkpointGoneBytes*len(c.Gone) + len(c.Position) + len(c.Facts)
	b := make([]byte, n, n+checkpointCRCBytes)
	le := binary.LittleEndian
	copy(b, checkpointMagic[:])
	b[checkpointAtVersion] = formatVersion
	le.PutUint32(b[checkpointAtEpoch:], uint32(c.Epoch))
	le.PutUint32(b[checkpointAtPipeline:], uint32(c.Pipeline))
	le.PutUint64(b[checkpointAtSerial:], c.Serial)
	le.PutUint64(b[checkpointAtLow:], uint64(c.Low))
	le.PutUint64(b[checkpointAtGroup:], c.Group)
	copy(b[checkpointAtPrevious:], c.Previous[:])
	le.PutUint32(b[checkpointAtGone:], uint32(len(c.Gone)))
	le.PutUint32(b[checkpointAtPosition:], uint32(len(c.Position)))
	le.PutUint32(b[checkpointAtFacts:], uint32(len(c.Facts)))
	at := checkpointFixedBytes
	for _, seq := range c.Gone {
		le.PutUint64(b[at:], uint64(seq))
		at += checkpointGoneBytes
	}
	at += copy(b[at:], c.Position)
	copy(b[at:], c.Facts)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// ParseCheckpoint reads a checkpoint. The result shares no bytes with b.
func ParseCheckpoint(b []byte) (Checkpoint, error) {
	if len(b) < checkpointFixedBytes+checkpointCRCBytes || len(b) > checkpointBytesMax {
		return Checkpoint{}, fmt.Errorf("checkpoint of %d bytes: %w", len(b), ErrLength)
	}
	le := binary.LittleEndian
	body := b[:len(b)-checkpointCRCBytes]
	gone, position := int(le.Uint32(b[checkpointAtGone:])), int(le.Uint32(b[checkpointAtPosition:]))
	facts := int(le.Uint32(b[checkpointAtFacts:]))
	switch {
	case [4]byte(b) != checkpointMagic:
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", ErrMagic)
	case le.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli):
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", ErrChecksum)
	case b[checkpointAtVersion] != formatVersion:
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", ErrVersion)
	case b[checkpointAtZero] != 0, le.Uint16(b[checkpointAtZero+1:]) != 0, le.Uint32(b[checkpointAtZero2:]) != 0:
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", ErrReserved)
	case gone > GoneMax, position > PositionBytesMax, facts > FactsBytesMax,
		len(body) != checkpointFixedBytes+checkpointGoneBytes*gone+position+facts:
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", ErrLength)
	}
	c := Checkpoint{
		Epoch:    Epoch(le.Uint32(b[checkpointAtEpoch:])),
		Pipeline: change.PipelineID(le.Uint32(b[checkpointAtPipeline:])),
		Serial:   le.Uint64(b[checkpointAtSerial:]),
		Low:      Seq(le.Uint64(b[checkpointAtLow:])),
		Group:    le.Uint64(b[checkpointAtGroup:]),
		Previous: [32]byte(b[checkpointAtPrevious:]),
	}
	if c.Pipeline == 0 || c.Serial == 0 || c.Low == 0 || c.Group == 0 {
		return Checkpoint{}, fmt.Errorf("checkpoint without identity: %w", ErrIdentity)
	}
	at, last := checkpointFixedBytes, c.Low
	for range gone {
		seq := Seq(le.Uint64(b[at:]))
		if seq <= last {
			return Checkpoint{}, fmt.Errorf("checkpoint: gone segment %s: %w", seq.ID(), ErrIdentity)
		}
		c.Gone, last = append(c.Gone, seq), seq
		at += checkpointGoneBytes
	}
	c.Position = change.Position(body[at : at+position])
	c.Facts = append(c.Facts, body[at+position:]...)
	return c, nil
}
