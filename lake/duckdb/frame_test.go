package duckdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// TestRowsFrameIsAllocatedAsItComes: a length that the other end only claims costs no
// memory.
func TestRowsFrameIsAllocatedAsItComes(t *testing.T) {
	frame := binary.LittleEndian.AppendUint32(nil, frameBytesMax)
	frame = append(append(frame, frameRows), make([]byte, 100)...)
	m := newMessages(bytes.NewReader(frame), io.Discard)
	if _, _, err := m.receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut frame: %v", err)
	}
	if cap(m.rows) > 2*rowsKept {
		t.Errorf("%d bytes allocated for 100", cap(m.rows))
	}
}

// TestRowsFrames sends frames of many sizes through one buffer.
func TestRowsFrames(t *testing.T) {
	var wire bytes.Buffer
	m := newMessages(&wire, &wire)
	for _, n := range []int{0, 1, rowsKept, 5*rowsKept + 3, 7, rowsKept + 1, 2} {
		frame := make([]byte, rowsHeader+n)
		for i := range n {
			frame[rowsHeader+i] = byte(i * 7)
		}
		if err := m.sendRows(frame, n); err != nil {
			t.Fatal(err)
		}
		kind, rows, err := m.receive()
		if err != nil || kind != frameRows || !bytes.Equal(rows[4:], frame[rowsHeader:]) {
			t.Fatalf("%d bytes: kind %d, %d bytes, %v", n, kind, len(rows), err)
		}
	}
	if cap(m.rows) > 2*rowsKept {
		t.Errorf("%d bytes are kept", cap(m.rows))
	}
}
