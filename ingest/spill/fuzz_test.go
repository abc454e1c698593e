package spill

import (
	"bytes"
	"errors"
	"testing"
)

// Whatever a file holds, reading it ends with what was written or with ErrDamaged, and
// allocates no more than the file has.
func FuzzFrames(f *testing.F) {
	good := appendRecord(appendRecord(nil, 7, 'I', []byte("row")), 8, 'D', nil)
	head := frameHead(good)
	f.Add(append(head[:], good...), uint32(8))
	f.Add([]byte{255, 255, 255, 127, 0, 0, 0, 0, 1}, uint32(0))
	bad := []byte{9, 0, 0, 0, 1, 0, 0, 0, 'I'}
	head = frameHead(bad)
	f.Add(append(head[:], bad...), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, gone uint32) {
		size, at := int64(len(b)), int64(0)
		var frame []byte
		for at < size {
			next, err := readFrame(bytes.NewReader(b), at, size, frame)
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				return
			}
			frame = next
			if len(frame) > len(b) {
				t.Fatalf("frame of %d bytes in %d", len(frame), len(b))
			}
			at += frameHeadBytes + int64(len(frame))
			total := 0
			err = eachRecord(frame, map[uint32]struct{}{gone: {}}, func(m []byte) error {
				total += len(m)
				return nil
			})
			if err != nil && !errors.Is(err, ErrDamaged) || total > len(frame) {
				t.Fatalf("%d bytes of %d: %v", total, len(frame), err)
			}
		}
	})
}
