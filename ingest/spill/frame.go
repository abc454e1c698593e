package spill

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	frameHeadBytes  = 4 + 4
	recordHeadBytes = 4 + 4
	// frameBytesMax bounds a frame that is read: a frame that is being filled and one of
	// PostgreSQL's largest messages.
	frameBytesMax = 1<<31 - 1
)

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func appendRecord(b []byte, sub uint32, head byte, tail []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(1+len(tail)))
	b = binary.LittleEndian.AppendUint32(b, sub)
	return append(append(b, head), tail...)
}

func frameHead(payload []byte) (head [frameHeadBytes]byte) {
	binary.LittleEndian.PutUint32(head[:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[4:], castagnoli(payload))
	return head
}

// readFrame reads the payload of the frame at a place of a file of size bytes into buf,
// or into a new one where that is too small.
func readFrame(file io.ReaderAt, at, size int64, buf []byte) ([]byte, error) {
	var head [frameHeadBytes]byte
	if size-at < frameHeadBytes {
		return nil, fmt.Errorf("%w: it ends inside of a frame", ErrDamaged)
	}
	if _, err := file.ReadAt(head[:], at); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n == 0 || n > frameBytesMax || n > size-at-frameHeadBytes {
		return nil, fmt.Errorf("%w: frame of %d bytes", ErrDamaged, n)
	}
	if int64(cap(buf)) < n || int64(cap(buf)) > 4*n+1<<20 {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := file.ReadAt(buf, at+frameHeadBytes); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if castagnoli(buf) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, fmt.Errorf("%w: checksum differs", ErrDamaged)
	}
	return buf, nil
}

// eachRecord hands the messages of a frame to apply, but for those of subtransactions
// in without.
func eachRecord(frame []byte, without map[uint32]struct{}, apply func([]byte) error) error {
	for len(frame) > 0 {
		if len(frame) < recordHeadBytes {
			return fmt.Errorf("%w: a record is too short", ErrDamaged)
		}
		n, sub := binary.LittleEndian.Uint32(frame), binary.LittleEndian.Uint32(frame[4:])
		frame = frame[recordHeadBytes:]
		if n == 0 || int64(n) > int64(len(frame)) {
			return fmt.Errorf("%w: record of %d bytes", ErrDamaged, n)
		}
		message := frame[:n]
		frame = frame[n:]
		if _, gone := without[sub]; gone {
			continue
		}
		if err := apply(message); err != nil {
			return err
		}
	}
	return nil
}
