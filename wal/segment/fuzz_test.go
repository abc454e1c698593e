package segment_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/skipprd/skipprd/wal/segment"
)

// Whatever the bytes are, reading them ends, stays in bounds and finds groups that
// are in order.
func FuzzWalkGroups(f *testing.F) {
	f.Add(readGolden(f, filepath.Join("testdata", "body_v1.hex")))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := segment.ParseHeader(body)
		if err != nil {
			h = header // go on, or nearly all inputs end here
			head := h.Encode()
			if len(body) < len(head) {
				return
			}
			copy(body, head[:])
		}
		end := uint32(segment.HeaderBytes)
		check := func(g segment.Group) error {
			if g.Start != end || g.End <= g.Start || int(g.End) > len(body) || g.Synced > g.Start {
				t.Fatalf("group %+v after byte %d", g, end)
			}
			end = g.End
			return nil
		}
		last, err := segment.WalkGroups(h, body, check)
		var corrupt *segment.CorruptError
		if last != end || err != nil && !errors.As(err, &corrupt) {
			t.Fatalf("ended at %d, last group at %d, %v", last, end, err)
		}
		end = segment.HeaderBytes
		_, err = segment.WalkSealed(h, segment.Marker{Length: uint32(len(body)), Groups: 1}, body, check)
		if err != nil && !errors.As(err, &corrupt) {
			t.Fatal(err)
		}
	})
}

func FuzzParseMarker(f *testing.F) {
	f.Add(readGolden(f, filepath.Join("testdata", "marker_v1.hex")))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := segment.ParseMarker(b, 42)
		if err != nil {
			return
		}
		if again := m.Encode(); string(again[:]) != string(b) {
			t.Fatalf("%x reads as %+v, which is %x", b, m, again)
		}
	})
}

// The decoders of single records are reached by readers with bytes that only a
// checksum vouches for; without one they must not panic either.
func FuzzRecords(f *testing.F) {
	f.Add(readGolden(f, filepath.Join("testdata", "body_v1.hex"))[segment.HeaderBytes:])
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, _ = segment.ParseSlice(b, header.Seed(), segment.HeaderBytes)
		_, _ = segment.ParseSchema(b, header.Seed(), segment.HeaderBytes)
		_, _ = segment.ParseFooter(b, header.Seed(), segment.HeaderBytes)
		if d, err := segment.NewDecoder(b); err == nil {
			_, _ = d.Decode(b)
		}
	})
}
