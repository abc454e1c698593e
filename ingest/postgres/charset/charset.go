package charset

import (
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/charmap"
)

// Mark is how a text begins that Append could not convert: no UTF-8 has this byte. The text
// follows as it was.
const Mark = 0xFF

// high is the least byte that is not ASCII.
const high = 0x80

// Charset is an encoding. Safe for concurrent use.
type Charset struct{ *charmap.Charmap }

// Append appends src as UTF-8 to dst. A text that is not of the encoding, or has what UTF-8
// has no equivalent of, is appended as it is behind Mark.
func (c *Charset) Append(dst, src []byte) []byte {
	begin := len(dst)
	dst, err := c.Decode(dst, src)
	if err != nil {
		return append(append(dst[:begin], Mark), src...)
	}
	return dst
}

// String is src as UTF-8, with what has no equivalent replaced: for names in messages.
func (c *Charset) String(src string) string {
	var out []byte
	for b := []byte(src); len(b) > 0; {
		n, _ := c.Size(b)
		if one := c.Append(nil, b[:n]); one[0] != Mark {
			out = append(out, one...)
		} else {
			out = utf8.AppendRune(out, utf8.RuneError)
		}
		b = b[n:]
	}
	return string(out)
}

// Decoder is d for texts of the encoding. It is for one goroutine.
func (c *Charset) Decoder(d value.Decoder) value.Decoder {
	var scratch []byte
	return func(dst array.Builder, src []byte) error {
		if charmap.IsASCII(src) {
			return d(dst, src)
		}
		scratch = c.Append(Scratch(scratch), src)
		if scratch[0] == Mark {
			return c.Explain(scratch)
		}
		return d(dst, scratch)
	}
}

// Convert converts the values of a row in place, see Append. What it makes of those that are
// not ASCII is appended to scratch, which is returned: it is free when the row is done with.
// Values with more than most bytes stay as they are. Without a receiver all do.
func (c *Charset) Convert(values [][]byte, most int, scratch []byte) []byte {
	if c == nil {
		return nil
	}
	for i, v := range values {
		if len(v) > most || charmap.IsASCII(v) {
			continue
		}
		begin := len(scratch)
		scratch = c.Append(scratch, v)
		values[i] = scratch[begin:len(scratch):len(scratch)]
	}
	return scratch
}

// Scratch is a buffer of Convert for the next row: not a very large one.
func Scratch(b []byte) []byte {
	if cap(b) > scratchKept {
		return nil
	}
	return b[:0]
}

// Longer says that a text, or a row of texts, has more than most bytes as UTF-8. Without a
// receiver it is in UTF-8.
func (c *Charset) Longer(b []byte, most int) bool {
	n := len(b)
	if c == nil || n <= most/(utf8.UTFMax-1) { // one byte becomes three at most
		return n > most
	}
	for len(b) > 0 {
		if b[0] < high {
			b = b[1:]
			continue
		}
		size, as := c.Size(b)
		if as > 0 {
			n += as - size
		}
		b = b[size:]
	}
	return n > most
}

// Explained is err, or what is known of a converted value that was refused with err: see
// Explain.
func (c *Charset) Explained(v []byte, err error) error {
	if c == nil || len(v) == 0 || v[0] != Mark {
		return err
	}
	return c.Explain(v)
}

// Letter is a converted value as a dead letter has it. The bytes of one that is not UTF-8 are
// written as digits, and code is the letter's then.
func (c *Charset) Letter(v []byte) (text, code string) {
	switch {
	case c != nil && len(v) > 0 && v[0] == Mark:
		return `\x` + hex.EncodeToString(v[1:]), deadletter.CodeNoUTF8
	case !utf8.Valid(v):
		return string(v), deadletter.CodeEncoding
	}
	return string(v), ""
}

// scratchKept is the largest scratch buffer that a decoder keeps between values.
const scratchKept = 1 << 20

// Explain says what about a text cannot be converted: the first sequence, never more of it.
// marked is what Append made of it.
func (c *Charset) Explain(marked []byte) *value.Error {
	for b := marked[1:]; len(b) > 0; {
		n, as := c.Size(b)
		if as == 0 {
			return &value.Error{
				Class: fmt.Sprintf("has the bytes 0x%s of encoding %s, which UTF-8 has no equivalent of", hex.EncodeToString(b[:n]), c.Name()),
				Code:  deadletter.CodeNoUTF8,
			}
		}
		b = b[n:]
	}
	return value.ErrEncoding
}
