package postgres

import (
	"bytes"
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// copyTable has a column of each kind that a copy decodes.
func copyTable(f *testing.F) *schema.Table {
	f.Helper()
	s := &schema.Table{Version: 1}
	for i, c := range []struct {
		kind schema.Kind
		oid  uint32
	}{{schema.Int64, 20}, {schema.String, 25}, {schema.Bool, 16}, {schema.Float64, 701}, {schema.Binary, 17}} {
		s.Fields = append(s.Fields, schema.Field{
			ID: int32(i + 1), Name: string(rune('a' + i)), Type: schema.Type{Kind: c.kind}, OID: c.oid, TypMod: -1,
		})
	}
	return s
}

// Whatever the source's COPY sends, and however it is cut, reading it ends: with an error, or
// with as many rows as it has in one piece.
func FuzzCopy(f *testing.F) {
	s := copyTable(f)
	head := append([]byte(copySignature), make([]byte, 8)...)
	row := []byte("\x00\x05\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x01x\x00\x00\x00\x01\x01\xff\xff\xff\xff\x00\x00\x00\x02yz")
	end := []byte{0xff, 0xff}
	f.Add(bytes.Join([][]byte{head, row, row, end}, nil), byte(3))
	f.Add(bytes.Join([][]byte{head, end}, nil), byte(0))
	f.Add(row, byte(200))
	read := func(b []byte, step int) (rows int, err error) {
		w, err := newRowWriter(s, nil, 1, func(b *change.Batch) error {
			rows += int(b.Record.NumRows())
			b.Record.Release()
			return nil
		})
		if err != nil {
			return 0, err
		}
		defer w.release()
		w.limit = func(int) error { return nil }
		for len(b) > 0 {
			n := min(step, len(b))
			if _, err := w.Write(b[:n]); err != nil {
				return rows, err
			}
			b = b[n:]
		}
		return rows, w.finish()
	}
	f.Fuzz(func(t *testing.T, b []byte, step byte) {
		whole, err := read(b, max(1, len(b)))
		cut, cutErr := read(b, 1+int(step))
		if (err == nil) != (cutErr == nil) || err == nil && whole != cut {
			t.Errorf("%d rows, %v in one piece; %d rows, %v in pieces of %d", whole, err, cut, cutErr, 1+int(step))
		}
	})
}

// What the catalog kept for us is read or refused; a chunk's and a position's text is that which
// we write.
func FuzzKept(f *testing.F) {
	f.Add(`{"version":1}`)
	f.Add("16/B374D848")
	f.Add(chunkVersion + ":16384:16385:0:100:0/1")
	f.Add(chunkVersion + ":16384:16385:5::")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = decodeState([]byte(text))
		if l, err := parseLSN(change.Position(text)); err == nil {
			if back, err := parseLSN(change.Position(l.String())); err != nil || back != l {
				t.Errorf("position %q reads as %v, which reads as %v, %v", text, l, back, err)
			}
		}
		if c, err := parseChunk(text); err == nil {
			if back, err := parseChunk(c.String()); err != nil || back != c {
				t.Errorf("chunk %q reads as %+v, which reads as %+v, %v", text, c, back, err)
			}
		}
	})
}
