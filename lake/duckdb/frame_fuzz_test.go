package duckdb

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Whatever comes over the socket of a worker, reading it ends, and allocates no more than has
// come and what a gob may ask for.
func FuzzFrames(f *testing.F) {
	var out bytes.Buffer
	m := newMessages(nil, &out)
	param := "1"
	if err := m.send(frameQuery, messageOf(&Plan{SQL: "SELECT 1", Params: []*string{&param, nil}})); err != nil {
		f.Fatal(err)
	}
	if err := m.send(frameCancel, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte{0xff, 0xff, 0xff, 0x3f, frameRows, 1, 2, 3, 4})
	f.Add(binary.LittleEndian.AppendUint32(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		requests, done := make(chan request, 1), make(chan struct{})
		close(done)
		readRequests(newMessages(bytes.NewReader(b), nil), &canceler{}, requests, done)
		client := newMessages(bytes.NewReader(b), nil)
		for {
			kind, rows, err := client.receive()
			if err != nil {
				return
			}
			switch {
			case kind == frameRows && len(rows) < 4:
				t.Fatalf("rows frame of %d bytes", len(rows))
			case kind == frameFailed:
				var v failure
				if client.decode(&v) == nil {
					_ = v.err()
				}
			case kind == frameTold:
				var v Description
				_ = client.decode(&v)
			}
		}
	})
}

// A worker's configuration is read or refused.
func FuzzWorkerConfig(f *testing.F) {
	var out bytes.Buffer
	if err := writeWorkerConfig(&out, WorkerConfig{}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = ReadWorkerConfig(bytes.NewReader(b)) // an error is an answer
	})
}
