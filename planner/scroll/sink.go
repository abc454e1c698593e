package scroll

import (
	"encoding/binary"
	"slices"

	"github.com/skipprd/skipprd/pgwire"
)

// Pairing is a sink of rows in both formats, of which it passes one on.
type Pairing struct {
	pgwire.Sink
	Pairs
}

// Rows implements pgwire.Sink.
func (p *Pairing) Rows(messages []byte, n int) error { return p.Pairs.Rows(messages, n) }

// Storing is a sink that keeps rows.
type Storing struct {
	pgwire.Sink
	Kept *Kept
}

// Rows implements pgwire.Sink.
func (s Storing) Rows(messages []byte, n int) error { return s.Kept.Append(messages, n) }

// Discard is a sink that drops rows, for MOVE.
type Discard struct{ pgwire.Sink }

// Rows implements pgwire.Sink.
func (Discard) Rows([]byte, int) error { return nil }

// Noting is a sink that notes the last row that passes it.
type Noting struct {
	pgwire.Sink
	Last *[]byte
}

// Rows implements pgwire.Sink.
func (l Noting) Rows(messages []byte, n int) error {
	if n > 0 {
		*l.Last = append((*l.Last)[:0], messages[length(messages, int64(n-1)):]...)
	}
	return l.Sink.Rows(messages, n)
}

// Binary are values of a row in both formats, in binary, from one of its columns on; nil for null.
func Binary(row []byte, first, n int) [][]byte {
	var cells [][]byte
	for rest := row[rowHead:]; len(rest) > 0; {
		size := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; size == isNull {
			cells = append(cells, nil)
			continue
		}
		cells, rest = append(cells, slices.Clip(rest[:size])), rest[size:]
	}
	columns := len(cells) / 2
	return cells[columns+first : columns+first+n]
}
