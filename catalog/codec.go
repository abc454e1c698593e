package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// rowVersion is the first byte of every row.
const rowVersion = 1

// Rows of low rate: the version byte, then JSON.

func encodeJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return append([]byte{rowVersion}, b...), nil
}

// rowEncoder encodes rows as encodeJSON does, one after the other in the same memory. Not
// safe for concurrent use.
type rowEncoder struct {
	buffer bytes.Buffer
	json   *json.Encoder
}

// rowBufferMost is the size of a row whose memory is kept for the next.
const rowBufferMost = 1 << 20

// encode returns a row, which is valid until the next call.
func (e *rowEncoder) encode(v any) ([]byte, error) {
	if e.json == nil {
		e.json = json.NewEncoder(&e.buffer)
	}
	if e.buffer.Reset(); e.buffer.Cap() > rowBufferMost {
		e.buffer = bytes.Buffer{}
	}
	e.buffer.WriteByte(rowVersion)
	if err := e.json.Encode(v); err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return bytes.TrimSuffix(e.buffer.Bytes(), []byte{'\n'}), nil // which the encoder adds
}

func decodeJSON(row []byte, v any) error {
	if len(row) < 1 || row[0] != rowVersion {
		return fmt.Errorf("row version: %w", ErrCorrupt)
	}
	if err := json.Unmarshal(row[1:], v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// Rows of high rate: fixed width, little-endian.
//
//	slice row                          offset row
//	 0  version 1                       0  version 1
//	 1  flags 1                         1  reserved 3
//	 2  compaction id length 2          4  pipeline 4
//	 4  pipeline 4                      8  seq 8
//	 8  length 4                       16  end 4
//	12  schema version 4               20  position length 4
//	16  rows 4                         24  committed at 8
//	20  inserts, updates, deletes 12   32  published at 8
//	32  min, max token 16              40  position
//	48  generation 4
//	52  table 4                        segment row
//	56  published at 8                  0  version 1
//	64  committed at 8                  1  reserved 3
//	72  compaction id                   4  end 4
//	                                    8  slices 4
//	                                   12  live 4
const (
	sliceRowBytes   = 72
	offsetRowBytes  = 40
	segmentRowBytes = 16

	flagTruncate = 1 << 0
	flagBackfill = 1 << 1

	compactionIDBytesMax = 256
	positionBytesMax     = 64 << 10
)

func appendTime(dst []byte, t time.Time) []byte {
	var n int64 // zero: unknown
	if !t.IsZero() {
		n = t.UnixNano()
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

func decodeTime(b []byte) time.Time {
	n := int64(binary.LittleEndian.Uint64(b))
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// decodePlace is decodeOffsetRow for who wants to know nothing but where the log ends.
func decodePlace(row []byte) (segment.SliceRef, error) {
	le := binary.LittleEndian
	if len(row) < offsetRowBytes || row[0] != rowVersion || row[1]|row[2]|row[3] != 0 {
		return segment.SliceRef{}, fmt.Errorf("offset row: %w", ErrCorrupt)
	}
	return segment.SliceRef{Seq: segment.Seq(le.Uint64(row[8:])), Start: le.Uint32(row[16:])}, nil
}

// appendSliceRow encodes a slice but for its ref, which is in the key.
func appendSliceRow(dst []byte, s *Slice) []byte {
	le := binary.LittleEndian
	var flags byte
	if s.Truncate {
		flags |= flagTruncate
	}
	if s.Backfill {
		flags |= flagBackfill
	}
	dst = append(dst, rowVersion, flags)
	dst = le.AppendUint16(dst, uint16(len(s.Compacted)))
	dst = le.AppendUint32(dst, uint32(s.Pipeline))
	dst = le.AppendUint32(dst, s.Length)
	dst = le.AppendUint32(dst, s.SchemaVersion)
	dst = le.AppendUint32(dst, s.Rows)
	dst = le.AppendUint32(dst, s.Counts.Inserts)
	dst = le.AppendUint32(dst, s.Counts.Updates)
	dst = le.AppendUint32(dst, s.Counts.Deletes)
	dst = le.AppendUint64(dst, uint64(s.Counts.MinToken))
	dst = le.AppendUint64(dst, uint64(s.Counts.MaxToken))
	dst = le.AppendUint32(dst, s.Generation)
	dst = le.AppendUint32(dst, uint32(s.Table))
	dst = appendTime(dst, s.PublishedAt)
	dst = appendTime(dst, s.CommittedAt)
	return append(dst, s.Compacted...)
}

func decodeSliceRow(row []byte, s *Slice) error {
	le := binary.LittleEndian
	if len(row) < sliceRowBytes || row[0] != rowVersion || row[1]&^(flagTruncate|flagBackfill) != 0 {
		return fmt.Errorf("slice row: %w", ErrCorrupt)
	}
	if n := int(le.Uint16(row[2:])); n > compactionIDBytesMax || len(row) != sliceRowBytes+n {
		return fmt.Errorf("slice row length: %w", ErrCorrupt)
	}
	s.Truncate, s.Backfill = row[1]&flagTruncate != 0, row[1]&flagBackfill != 0
	s.Pipeline = change.PipelineID(le.Uint32(row[4:]))
	s.Length = le.Uint32(row[8:])
	s.SchemaVersion = le.Uint32(row[12:])
	s.Rows = le.Uint32(row[16:])
	s.Counts = change.Counts{
		Inserts: le.Uint32(row[20:]), Updates: le.Uint32(row[24:]), Deletes: le.Uint32(row[28:]),
		MinToken: int64(le.Uint64(row[32:])), MaxToken: int64(le.Uint64(row[40:])),
	}
	s.Generation = le.Uint32(row[48:])
	s.Table = change.TableID(le.Uint32(row[52:]))
	s.PublishedAt = decodeTime(row[56:])
	s.CommittedAt = decodeTime(row[64:])
	s.Compacted = string(row[sliceRowBytes:])
	return nil
}

func appendOffsetRow(dst []byte, o *Offset) []byte {
	le := binary.LittleEndian
	dst = append(dst, rowVersion, 0, 0, 0)
	dst = le.AppendUint32(dst, uint32(o.Pipeline))
	dst = le.AppendUint64(dst, uint64(o.Seq))
	dst = le.AppendUint32(dst, o.End)
	dst = le.AppendUint32(dst, uint32(len(o.Position)))
	dst = appendTime(dst, o.CommittedAt)
	dst = appendTime(dst, o.PublishedAt)
	return append(dst, o.Position...)
}

func decodeOffsetRow(row []byte) (o Offset, err error) {
	le := binary.LittleEndian
	if len(row) < offsetRowBytes || row[0] != rowVersion || row[1]|row[2]|row[3] != 0 {
		return o, fmt.Errorf("offset row: %w", ErrCorrupt)
	}
	if n := le.Uint32(row[20:]); n > positionBytesMax || len(row) != offsetRowBytes+int(n) {
		return o, fmt.Errorf("offset row length: %w", ErrCorrupt)
	}
	return Offset{
		Pipeline: change.PipelineID(le.Uint32(row[4:])),
		Position: change.Position(row[offsetRowBytes:]),
		Seq:      segment.Seq(le.Uint64(row[8:])), End: le.Uint32(row[16:]),
		CommittedAt: decodeTime(row[24:]), PublishedAt: decodeTime(row[32:]),
	}, nil
}

func appendSegmentRow(dst []byte, s *Segment) []byte {
	le := binary.LittleEndian
	dst = append(dst, rowVersion, 0, 0, 0)
	dst = le.AppendUint32(dst, s.End)
	dst = le.AppendUint32(dst, uint32(s.Slices))
	return le.AppendUint32(dst, uint32(s.Live))
}

func decodeSegmentRow(row []byte, s *Segment) error {
	le := binary.LittleEndian
	if len(row) != segmentRowBytes || row[0] != rowVersion || row[1]|row[2]|row[3] != 0 {
		return fmt.Errorf("segment row: %w", ErrCorrupt)
	}
	s.End = le.Uint32(row[4:])
	s.Slices = int(le.Uint32(row[8:]))
	s.Live = int(le.Uint32(row[12:]))
	return nil
}

// packRefs encodes slice refs as differences of their numbers.
func packRefs(refs []segment.SliceRef) []byte {
	var out []byte
	var seq segment.Seq
	for _, r := range refs {
		out = binary.AppendUvarint(out, uint64(r.Seq-seq))
		out = binary.AppendUvarint(out, uint64(r.Start))
		seq = r.Seq
	}
	return out
}

func unpackRefs(b []byte) ([]segment.SliceRef, error) {
	var out []segment.SliceRef
	var seq segment.Seq
	for len(b) > 0 {
		step, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("slice refs: %w", ErrCorrupt)
		}
		start, m := binary.Uvarint(b[n:])
		if m <= 0 || start > 1<<32-1 {
			return nil, fmt.Errorf("slice refs: %w", ErrCorrupt)
		}
		seq += segment.Seq(step)
		out = append(out, segment.SliceRef{Seq: seq, Start: uint32(start)})
		b = b[n+m:]
	}
	return out, nil
}
