package charset

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/value"
)

// Mark is how a text begins that Append could not convert: no UTF-8 has this byte. The text
// follows as it was.
const Mark = 0xFF

// The bytes that begin, and continue, sequences of several bytes.
const (
	high      = 0x80 // and above: not ASCII
	single2   = 0x8E // SS2
	single3   = 0x8F // SS3
	row       = 0xA0 // where the places of a row begin
	rowPlaces = 0x60
	planes    = 7 // that SS2 reaches in EUC_TW: 0xA1 to 0xA7
)

// form is how long the sequences of an encoding are.
type form uint8

const (
	oneByte form = iota
	twoBytes
	japanese // three behind SS3, else two
	taiwan   // four behind SS2, else two
)

// longest is the longest sequence.
const longest = 4

// Charset is an encoding. Safe for concurrent use.
type Charset struct {
	name string
	form form
	// places are the code points of the sequences by place, packed as UTF-8 with the first
	// byte lowest; 0: UTF-8 has none. pair is a code point that is written as two.
	places []uint32
	pairs  map[int]string
}

// pair stands for a place of Charset.pairs: no UTF-8 begins with it.
const pair = 0x80

// Name is the server's name of the encoding.
func (c *Charset) Name() string { return c.name }

// Append appends src as UTF-8 to dst. A text that is not of the encoding, or has what UTF-8
// has no equivalent of, is appended as it is behind Mark.
func (c *Charset) Append(dst, src []byte) []byte {
	begin := len(dst)
	for at := 0; at < len(src); {
		if src[at] < high {
			from := at
			for at++; at < len(src) && src[at] < high; {
				at++
			}
			dst = append(dst, src[from:at]...)
			continue
		}
		place, size := c.place(src[at:])
		packed := uint32(0)
		if place >= 0 {
			packed = c.places[place]
		}
		switch {
		case packed == 0:
			return append(append(dst[:begin], Mark), src...)
		case packed == pair:
			dst = append(dst, c.pairs[place]...)
		default:
			for ; packed != 0; packed >>= 8 {
				dst = append(dst, byte(packed))
			}
		}
		at += size
	}
	return dst
}

// String is src as UTF-8, with what has no equivalent replaced: for names in messages.
func (c *Charset) String(src string) string {
	var out []byte
	for b := []byte(src); len(b) > 0; {
		n := 1
		if b[0] >= high {
			_, n = c.place(b)
		}
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
		if IsASCII(src) {
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
		if len(v) > most || IsASCII(v) {
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
		place, size := c.place(b)
		if place >= 0 {
			n += c.grows(place, size)
		}
		b = b[size:]
	}
	return n > most
}

// grows is by how many bytes a sequence is longer as UTF-8.
func (c *Charset) grows(place, size int) int {
	packed := c.places[place]
	if packed == pair {
		return len(c.pairs[place]) - size
	}
	return (bits.Len32(packed)+7)/8 - size
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
		n := 1
		if b[0] >= high {
			_, n = c.place(b)
		}
		if one := c.Append(nil, b[:n]); one[0] == Mark {
			return &value.Error{
				Class: fmt.Sprintf("has the bytes 0x%s of encoding %s, which UTF-8 has no equivalent of", hex.EncodeToString(b[:n]), c.name),
				Code:  deadletter.CodeNoUTF8,
			}
		}
		b = b[n:]
	}
	return value.ErrEncoding
}

// IsASCII says that a text is the same in all encodings.
func IsASCII(b []byte) bool {
	for len(b) >= 8 {
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&high != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= high {
			return false
		}
	}
	return true
}

// place is where the sequence that b begins with is among places, and its length; negative
// where the encoding has no such sequence. b[0] is not ASCII.
func (c *Charset) place(b []byte) (place, size int) {
	size = c.size(b[0])
	if size > len(b) {
		return -1, len(b)
	}
	if size == 1 {
		return int(b[0]) - high, 1
	}
	for _, x := range b[1:size] {
		if x < row {
			return -1, 1
		}
	}
	lead, second := int(b[0])-high, int(b[1])-row
	switch size {
	case 2:
		return lead*rowPlaces + second, 2
	case 3:
		return high*rowPlaces + second*rowPlaces + int(b[2]) - row, 3
	}
	if second < 1 || second > planes {
		return -1, 1
	}
	return high*rowPlaces + ((second-1)*rowPlaces+int(b[2])-row)*rowPlaces + int(b[3]) - row, size
}

// size is how many bytes a sequence has by its first.
func (c *Charset) size(first byte) int {
	switch {
	case c.form == oneByte:
		return 1
	case c.form == japanese && first == single3:
		return 3
	case c.form == taiwan && first == single2:
		return longest
	}
	return 2
}

// room is how many places an encoding has.
func (f form) room() int {
	switch f {
	case oneByte:
		return high
	case twoBytes:
		return high * rowPlaces
	case japanese:
		return high*rowPlaces + rowPlaces*rowPlaces
	}
	return high*rowPlaces + planes*rowPlaces*rowPlaces
}
