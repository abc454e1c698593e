// Package recode converts the data of COPY between UTF-8 and encodings of one byte for each
// character, with PostgreSQL's errors.
//
// It is for text only: the data of a binary COPY is of no encoding.
package recode

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const (
	// chunkBytes is how much is read at a time.
	chunkBytes = 16 << 10
	// frameBytes is what a message has before its data: 'd' and a length that counts itself.
	frameBytes = 5
)

// Charset is an encoding. Safe for concurrent use.
type Charset struct {
	name  string
	runes [utf8.RuneSelf]rune // of the bytes from RuneSelf on, 0 for none
	bytes map[rune]byte
}

// Of is an encoding by PostgreSQL's own name of it; the error is about one that has characters of
// several bytes.
func Of(name string) (*Charset, error) {
	runes, ok, err := charset.Single(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, pgerr.New(codes.FeatureNotSupported, "COPY encoding \"%s\" is not supported", name).WithHint("Convert the data to UTF8.")
	}
	c := &Charset{name: name, runes: runes, bytes: map[rune]byte{}}
	for i, r := range runes {
		if r != 0 {
			c.bytes[r] = byte(utf8.RuneSelf + i)
		}
	}
	return c, nil
}

// Reader is what r has, in UTF-8. What is before a byte that cannot be converted is read before
// the error about it.
func (c *Charset) Reader(r io.Reader) io.Reader {
	return &reader{charset: c, from: r, in: make([]byte, chunkBytes)}
}

type reader struct {
	charset *Charset
	from    io.Reader
	in      []byte
	out     []byte // converted and not read yet
	done    []byte // what out is part of
	err     error  // behind out
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(r.out) == 0 && r.err == nil {
		n, err := r.from.Read(r.in)
		converted, convertErr := r.charset.decode(r.done[:0], r.in[:n])
		if r.err = convertErr; convertErr == nil {
			r.err = err
		}
		r.done, r.out = converted, converted
	}
	if len(r.out) == 0 {
		return 0, r.err
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// decode appends b as UTF-8, up to the byte that the error is about.
func (c *Charset) decode(dst, b []byte) ([]byte, error) {
	for _, x := range b {
		switch {
		case x == 0:
			return dst, pgerr.New(codes.CharacterNotInRepertoire, "invalid byte sequence for encoding \"%s\": 0x00", c.name)
		case x < utf8.RuneSelf:
			dst = append(dst, x)
		case c.runes[x-utf8.RuneSelf] == 0:
			return dst, errUntranslatable([]byte{x}, c.name, "UTF8")
		default:
			dst = utf8.AppendRune(dst, c.runes[x-utf8.RuneSelf])
		}
	}
	return dst, nil
}

// encode appends UTF-8 in the encoding.
func (c *Charset) encode(dst, b []byte) ([]byte, error) {
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			dst, b = append(dst, b[0]), b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		x, ok := c.bytes[r]
		if !ok {
			return dst, errUntranslatable(b[:n], "UTF8", c.name)
		}
		dst, b = append(dst, x), b[n:]
	}
	return dst, nil
}

func errUntranslatable(b []byte, from, to string) error {
	var hex []string
	for _, x := range b {
		hex = append(hex, fmt.Sprintf("0x%02x", x))
	}
	return pgerr.New(codes.UntranslatableCharacter, "character with byte sequence %s in encoding \"%s\" has no equivalent in encoding \"%s\"",
		strings.Join(hex, " "), from, to)
}

// Sink is a sink whose data of COPY TO is in the encoding.
func (c *Charset) Sink(s pgwire.Sink) pgwire.Sink { return &sink{Sink: s, charset: c} }

type sink struct {
	pgwire.Sink
	charset *Charset
	out     []byte
}

// CopyData implements pgwire.Sink.
func (s *sink) CopyData(messages []byte, n int) error {
	if charset.IsASCII(messages) {
		return s.Sink.CopyData(messages, n)
	}
	s.out = s.out[:0]
	for len(messages) > 0 {
		if len(messages) < frameBytes {
			return errFrame
		}
		size := uint64(binary.BigEndian.Uint32(messages[1:frameBytes])) + 1
		if size < frameBytes || size > uint64(len(messages)) {
			return errFrame
		}
		begin := len(s.out)
		out, err := s.charset.encode(append(s.out, messages[:frameBytes]...), messages[frameBytes:size])
		if err != nil {
			return err
		}
		s.out, messages = out, messages[size:]
		length := len(out) - begin - 1
		if length > math.MaxInt32 {
			return errFrame
		}
		binary.BigEndian.PutUint32(out[begin+1:], uint32(length))
	}
	return s.Sink.CopyData(s.out, n)
}

// errFrame means that messages were not framed as the protocol does.
var errFrame = fmt.Errorf("data of COPY: %w", io.ErrUnexpectedEOF)
