package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/skipprd/skipprd/wal/change"
)

var headerMagic = [8]byte{'S', 'K', 'W', 'S', 'E', 'G', '1', 0}

// Header opens a body and says whose it is.
type Header struct {
	Epoch    Epoch
	Pipeline change.PipelineID
	Seq      Seq
	// Writer is random, one per opening of a log.
	Writer [16]byte
	// FirstGroup is the number of the segment's first group. Groups of a pipeline
	// are numbered without gaps, from 1.
	FirstGroup uint64
	// CreatedNanos is when the header was made, information only.
	CreatedNanos int64
	// Previous is the digest of the previous body up to its last group end; zeros
	// when there is none.
	Previous [32]byte
	// Salt is random: two uses of one file never share a header, hence no seed.
	Salt uint64
}

// Offsets in a header.
const (
	headerAtVersion  = 8
	headerAtLength   = headerAtVersion + 2
	headerAtFlags    = headerAtLength + 2
	headerAtEpoch    = headerAtFlags + 4
	headerAtPipeline = headerAtEpoch + 4
	headerAtSeq      = headerAtPipeline + 4
	headerAtWriter   = headerAtSeq + 8
	headerAtGroup    = headerAtWriter + 16
	headerAtCreated  = headerAtGroup + 8
	headerAtPrevious = headerAtCreated + 8
	headerAtKey      = headerAtPrevious + 32
	headerAtSalt     = headerAtKey + 4
	headerAtFeatures = headerAtSalt + 8
	headerAtReserved = headerAtFeatures + 8
	headerAtCRC      = headerAtReserved + 8
)

// Encode renders the header.
func (h Header) Encode() [HeaderBytes]byte {
	var b [HeaderBytes]byte
	le := binary.LittleEndian
	copy(b[:], headerMagic[:])
	le.PutUint16(b[headerAtVersion:], formatVersion)
	le.PutUint16(b[headerAtLength:], HeaderBytes)
	le.PutUint32(b[headerAtEpoch:], uint32(h.Epoch))
	le.PutUint32(b[headerAtPipeline:], uint32(h.Pipeline))
	le.PutUint64(b[headerAtSeq:], uint64(h.Seq))
	copy(b[headerAtWriter:], h.Writer[:])
	le.PutUint64(b[headerAtGroup:], h.FirstGroup)
	le.PutUint64(b[headerAtCreated:], uint64(h.CreatedNanos))
	copy(b[headerAtPrevious:], h.Previous[:])
	le.PutUint64(b[headerAtSalt:], h.Salt)
	le.PutUint32(b[headerAtCRC:], crc32.Checksum(b[:headerAtCRC], castagnoli))
	return b
}

// Seed is what the checksums of the body's records start from: the header's own
// checksum. (Not one over the header with its checksum: that is the same for every
// header, as it is for any message that ends in its CRC, and bytes of an earlier use
// of the file would validate.)
func (h Header) Seed() uint32 {
	b := h.Encode()
	return binary.LittleEndian.Uint32(b[headerAtCRC:])
}

// ParseHeader reads the first HeaderBytes of a body.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, fmt.Errorf("header of %d bytes: %w", len(b), ErrLength)
	}
	b = b[:HeaderBytes]
	le := binary.LittleEndian
	switch {
	case [8]byte(b) != headerMagic:
		return Header{}, fmt.Errorf("header: %w", ErrMagic)
	case le.Uint32(b[headerAtCRC:]) != crc32.Checksum(b[:headerAtCRC], castagnoli):
		return Header{}, fmt.Errorf("header: %w", ErrChecksum)
	case le.Uint16(b[headerAtVersion:]) != formatVersion, le.Uint64(b[headerAtFeatures:]) != 0:
		return Header{}, fmt.Errorf("header: %w", ErrVersion)
	case le.Uint16(b[headerAtLength:]) != HeaderBytes:
		return Header{}, fmt.Errorf("header: %w", ErrLength)
	case le.Uint32(b[headerAtFlags:]) != 0, le.Uint32(b[headerAtKey:]) != 0,
		le.Uint64(b[headerAtReserved:]) != 0:
		return Header{}, fmt.Errorf("header: %w", ErrReserved)
	}
	h := Header{
		Epoch:        Epoch(le.Uint32(b[headerAtEpoch:])),
		Pipeline:     change.PipelineID(le.Uint32(b[headerAtPipeline:])),
		Seq:          Seq(le.Uint64(b[headerAtSeq:])),
		Writer:       [16]byte(b[headerAtWriter:]),
		FirstGroup:   le.Uint64(b[headerAtGroup:]),
		CreatedNanos: int64(le.Uint64(b[headerAtCreated:])),
		Previous:     [32]byte(b[headerAtPrevious:]),
		Salt:         le.Uint64(b[headerAtSalt:]),
	}
	if h.Seq == 0 || h.Pipeline == 0 || h.FirstGroup == 0 {
		return Header{}, fmt.Errorf("header without identity: %w", ErrIdentity)
	}
	return h, nil
}
