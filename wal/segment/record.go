package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/skipprd/skipprd/wal/change"
)

// record is the frame around everything in a body after the header.
type record struct {
	kind    uint8
	rows    uint32
	group   uint64
	table   change.TableID
	version uint32
	payload []byte
	crc     uint32
	length  int // of the whole record, header and padding included
}

// Offsets in a record's header.
const (
	recordAtLength  = 0
	recordAtCRC     = 4
	recordAtKind    = 8
	recordAtFlags   = 9
	recordAtStream  = 10
	recordAtRows    = 12
	recordAtGroup   = 16
	recordAtTable   = 24
	recordAtVersion = 28
)

// recordBytes is the length of a record whose payload has n bytes.
func recordBytes(n int) int { return padded(recordHeaderBytes + n) }

// sealRecord writes the header of the record in b, whose payload of n bytes is in
// its place, checksum included, and zeroes the padding. start is the record's
// place in the body: a record found elsewhere does not validate.
func sealRecord(b []byte, seed, start uint32, r record, n int) {
	le := binary.LittleEndian
	b[recordAtKind], b[recordAtFlags] = r.kind, 0
	le.PutUint16(b[recordAtStream:], 0)
	le.PutUint32(b[recordAtRows:], r.rows)
	le.PutUint64(b[recordAtGroup:], r.group)
	le.PutUint32(b[recordAtTable:], uint32(r.table))
	le.PutUint32(b[recordAtVersion:], r.version)
	clear(b[recordHeaderBytes+n:])
	// What recordCRC covers, put together in place for a single pass.
	le.PutUint32(b[0:], start)
	le.PutUint32(b[4:], uint32(n))
	crc := crc32.Update(seed, castagnoli, b[:recordHeaderBytes+n])
	le.PutUint32(b[recordAtLength:], uint32(n))
	le.PutUint32(b[recordAtCRC:], crc)
}

func recordCRC(b []byte, seed, start uint32, n int) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint32(place[:], start)
	copy(place[4:], b[recordAtLength:recordAtLength+4])
	crc := crc32.Update(seed, castagnoli, place[:])
	return crc32.Update(crc, castagnoli, b[recordAtKind:recordHeaderBytes+n])
}

// parseRecord reads the record that begins at b and at byte start of the body. The
// payload is a part of b.
func parseRecord(b []byte, seed, start uint32) (record, error) {
	r, err := frameOf(b)
	if err == nil && r.crc != recordCRC(b, seed, start, len(r.payload)) {
		return record{}, fmt.Errorf("record: %w", ErrChecksum)
	}
	if err == nil && (b[recordAtFlags] != 0 || binary.LittleEndian.Uint16(b[recordAtStream:]) != 0) {
		return record{}, fmt.Errorf("record: %w", ErrReserved)
	}
	return r, err
}

// frameOf is parseRecord without the checksum.
func frameOf(b []byte) (record, error) {
	if len(b) < recordHeaderBytes {
		return record{}, fmt.Errorf("record header of %d bytes: %w", len(b), ErrLength)
	}
	le := binary.LittleEndian
	n := int64(le.Uint32(b[recordAtLength:]))
	if n > int64(len(b)-recordHeaderBytes) {
		return record{}, fmt.Errorf("record of %d bytes: %w", n, ErrLength)
	}
	length := recordBytes(int(n))
	if length > len(b) {
		return record{}, fmt.Errorf("record of %d bytes: %w", n, ErrLength)
	}
	return record{
		kind:    b[recordAtKind],
		rows:    le.Uint32(b[recordAtRows:]),
		group:   le.Uint64(b[recordAtGroup:]),
		table:   change.TableID(le.Uint32(b[recordAtTable:])),
		version: le.Uint32(b[recordAtVersion:]),
		payload: b[recordHeaderBytes : recordHeaderBytes+int(n)],
		crc:     le.Uint32(b[recordAtCRC:]),
		length:  length,
	}, nil
}
