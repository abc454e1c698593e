package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Slice is one table's changes inside a group, without their rows.
type Slice struct {
	// Start and Length place the slice's record in the body.
	Start, Length uint32
	// Schema is where the record with the Arrow schema of the rows starts, in the
	// same body; zero for a slice without a batch (a bare truncate).
	Schema        uint32
	Table         change.TableID
	SchemaVersion uint32
	Rows          uint32
	Counts        change.Counts
	Truncate      bool
	Backfill      bool
}

// Offsets in a slice header.
const (
	sliceAtVersion  = 0
	sliceAtFlags    = 1
	sliceAtZero     = 2
	sliceAtSchema   = 4
	sliceAtInserts  = 8
	sliceAtUpdates  = 12
	sliceAtDeletes  = 16
	sliceAtZero2    = 20
	sliceAtMinToken = 24
	sliceAtMaxToken = 32
	sliceAtReserved = 40

	sliceTruncate = 1
	sliceBackfill = 2
)

func putSliceHeader(b []byte, s *Slice) {
	clear(b[:sliceHeaderBytes])
	le := binary.LittleEndian
	b[sliceAtVersion] = formatVersion
	if s.Truncate {
		b[sliceAtFlags] |= sliceTruncate
	}
	if s.Backfill {
		b[sliceAtFlags] |= sliceBackfill
	}
	le.PutUint32(b[sliceAtSchema:], s.Schema)
	le.PutUint32(b[sliceAtInserts:], s.Counts.Inserts)
	le.PutUint32(b[sliceAtUpdates:], s.Counts.Updates)
	le.PutUint32(b[sliceAtDeletes:], s.Counts.Deletes)
	le.PutUint64(b[sliceAtMinToken:], uint64(s.Counts.MinToken))
	le.PutUint64(b[sliceAtMaxToken:], uint64(s.Counts.MaxToken))
}

// sliceOf reads the slice header of a slice record at start.
func sliceOf(r record, start uint32) (Slice, error) {
	b := r.payload
	if len(b) < sliceHeaderBytes {
		return Slice{}, fmt.Errorf("slice header of %d bytes: %w", len(b), ErrLength)
	}
	le := binary.LittleEndian
	switch {
	case b[sliceAtVersion] != formatVersion:
		return Slice{}, fmt.Errorf("slice: %w", ErrVersion)
	case b[sliceAtFlags]&^(sliceTruncate|sliceBackfill) != 0, le.Uint16(b[sliceAtZero:]) != 0,
		le.Uint32(b[sliceAtZero2:]) != 0, le.Uint64(b[sliceAtReserved:]) != 0:
		return Slice{}, fmt.Errorf("slice: %w", ErrReserved)
	}
	s := Slice{
		Start: start, Length: uint32(r.length), Schema: le.Uint32(b[sliceAtSchema:]),
		Table: r.table, SchemaVersion: r.version, Rows: r.rows,
		Counts: change.Counts{
			Inserts:  le.Uint32(b[sliceAtInserts:]),
			Updates:  le.Uint32(b[sliceAtUpdates:]),
			Deletes:  le.Uint32(b[sliceAtDeletes:]),
			MinToken: int64(le.Uint64(b[sliceAtMinToken:])),
			MaxToken: int64(le.Uint64(b[sliceAtMaxToken:])),
		},
		Truncate: b[sliceAtFlags]&sliceTruncate != 0,
		Backfill: b[sliceAtFlags]&sliceBackfill != 0,
	}
	batch := len(b) > sliceHeaderBytes
	if batch != (s.Schema != 0) || s.Schema >= start && batch || !batch && s.Rows != 0 {
		return Slice{}, fmt.Errorf("slice with schema at %d: %w", s.Schema, ErrLength)
	}
	return s, nil
}

// ParseSlice reads the slice record in b, which starts at byte start of a body
// whose header has the given seed. message is the Arrow message in it, a part of
// b; empty when the slice has no batch.
func ParseSlice(b []byte, seed, start uint32) (s Slice, message []byte, err error) {
	r, err := parseRecord(b, seed, start)
	if mutant.On(mutant.ReaderNoChecksum) {
		r, err = frameOf(b)
	}
	if err != nil {
		return Slice{}, nil, err
	}
	if r.kind != recordSlice {
		return Slice{}, nil, fmt.Errorf("record type %d: %w", r.kind, ErrKind)
	}
	if s, err = sliceOf(r, start); err != nil {
		return Slice{}, nil, err
	}
	return s, r.payload[sliceHeaderBytes:], nil
}

// ParseSchema reads the schema record in b and returns the Arrow message in it.
func ParseSchema(b []byte, seed, start uint32) (message []byte, err error) {
	r, err := parseRecord(b, seed, start)
	if err != nil {
		return nil, err
	}
	if r.kind != recordSchema {
		return nil, fmt.Errorf("record type %d: %w", r.kind, ErrKind)
	}
	return r.payload, nil
}

// RecordBytes says how long the record is whose first 32 bytes are b, so that a
// reader which knows only its start can fetch it. The answer is unchecked until
// the record is parsed, but never above BodyBytesMax.
func RecordBytes(b []byte) (int, error) {
	if len(b) < recordHeaderBytes {
		return 0, fmt.Errorf("record header of %d bytes: %w", len(b), ErrLength)
	}
	n := int64(binary.LittleEndian.Uint32(b[recordAtLength:]))
	if n > BodyBytesMax {
		return 0, fmt.Errorf("record of %d bytes: %w", n, ErrLength)
	}
	return recordBytes(int(n)), nil
}
