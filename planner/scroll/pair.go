package scroll

import (
	"encoding/binary"
	"fmt"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Pairs cuts rows that have their values twice, as text and then in binary, down to the
// formats that a client asks for. Not safe for concurrent use.
type Pairs struct {
	// Columns is how many values a row has; the client gets Shown of them, the first ones.
	Columns, Shown int
	// Formats are those asked for: 0 for text, as where one is missing, 1 for binary.
	Formats []int16
	// Send takes the rows, and does not keep them.
	Send func(messages []byte, n int) error

	out   []byte
	cells [][]byte // with their lengths
}

const (
	rowHead = 1 + 4 + 2
	isNull  = 0xffffffff
)

// Rows passes n rows on.
func (p *Pairs) Rows(messages []byte, n int) error {
	p.out = p.out[:0]
	for range n {
		size := length(messages, 1)
		if err := p.row(messages[:size]); err != nil {
			return err
		}
		messages = messages[size:]
	}
	return p.Send(p.out, n)
}

func (p *Pairs) row(message []byte) error {
	if have := int(binary.BigEndian.Uint16(message[5:])); have != 2*p.Columns {
		return fmt.Errorf("row of a cursor: %d values for %d columns", have, p.Columns)
	}
	p.cells = p.cells[:0]
	for rest := message[rowHead:]; len(rest) > 0; {
		size := 4
		if n := binary.BigEndian.Uint32(rest); n != isNull {
			size += int(n)
		}
		p.cells, rest = append(p.cells, rest[:size]), rest[size:]
	}
	start := len(p.out)
	p.out = append(p.out, 'D', 0, 0, 0, 0, byte(p.Shown>>8), byte(p.Shown))
	for i := range p.Shown {
		cell := p.cells[i]
		if i < len(p.Formats) && p.Formats[i] == 1 {
			text := cell
			cell = p.cells[p.Columns+i]
			if binary.BigEndian.Uint32(cell) == isNull && binary.BigEndian.Uint32(text) != isNull {
				return pgerr.New(codes.FeatureNotSupported, "column %d has no binary form here", i+1)
			}
		}
		p.out = append(p.out, cell...)
	}
	binary.BigEndian.PutUint32(p.out[start+1:], uint32(len(p.out)-start-1))
	return nil
}
