// Package recode converts the data of COPY between UTF-8 and other encodings, with PostgreSQL's
// errors.
//
// The data of a binary COPY is of no encoding, but the texts in it are in the client's.
package recode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/charmap"
	"github.com/skipprd/skipprd/pgwire/clienttext"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const (
	// chunkBytes is how much is read at a time.
	chunkBytes = 16 << 10
	// frameBytes is what a message has before its data: 'd' and a length that counts itself.
	frameBytes = 5
)

// Charset is an encoding. Safe for concurrent use.
type Charset struct{ charmap *charmap.Charmap }

// Of is an encoding by PostgreSQL's own name of it, nil for one that needs no conversion; the
// error is about one that PostgreSQL does not convert either. reading says that its data is to be
// read.
func Of(name string, reading bool) (*Charset, error) {
	c, err := charmap.Of(name)
	switch {
	case err != nil:
		return nil, err
	case name == "MULE_INTERNAL":
		from, to := charmap.UTF8, name
		if reading {
			from, to = to, from
		}
		return nil, pgerr.New(codes.UndefinedFunction, "default conversion function for encoding \"%s\" to \"%s\" does not exist", from, to)
	case c == nil:
		return nil, nil
	}
	return &Charset{c}, nil
}

// Reader is what r has, in UTF-8. What is before bytes that cannot be converted is read before
// the error about them.
func (c *Charset) Reader(r io.Reader) io.Reader {
	return &reader{charmap: c.charmap, from: r, in: make([]byte, chunkBytes)}
}

type reader struct {
	charmap *charmap.Charmap
	from    io.Reader
	in      []byte
	kept    int    // bytes at the begin of in, of a character that was cut
	out     []byte // converted and not read yet
	done    []byte // what out is part of
	err     error  // behind out
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && r.err == nil {
		r.fill()
	}
	if len(r.out) == 0 {
		return 0, r.err
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// fill reads and converts a piece. A character that is cut at its end waits for the next one.
func (r *reader) fill() {
	n, err := r.from.Read(r.in[r.kept:])
	text := r.in[:r.kept+n]
	converted, problem := r.charmap.Decode(r.done[:0], text)
	r.done, r.out, r.kept = converted, converted, 0
	switch {
	case problem == nil:
		r.err = err
	case problem.Cut && err == nil:
		r.kept = copy(r.in, text[problem.At:])
	case problem.Cut && err != io.EOF: // the text is not at its end
		r.err = err
	default:
		r.err = pgerr.OfText(problem)
	}
}

// Sink is a sink whose data of COPY TO is in the encoding.
func (c *Charset) Sink(s pgwire.Sink) pgwire.Sink { return &sink{Sink: s, charmap: c.charmap} }

type sink struct {
	pgwire.Sink
	charmap *charmap.Charmap
	out     []byte
}

// CopyData implements pgwire.Sink.
func (s *sink) CopyData(messages []byte, n int) error {
	if charmap.IsASCII(messages) {
		return s.Sink.CopyData(messages, n)
	}
	s.out = s.out[:0]
	sent := 0
	for len(messages) > 0 {
		if len(messages) < frameBytes {
			return errFrame
		}
		size := uint64(binary.BigEndian.Uint32(messages[1:frameBytes])) + 1
		if size < frameBytes || size > uint64(len(messages)) {
			return errFrame
		}
		begin := len(s.out)
		out, problem := s.charmap.Encode(append(s.out, messages[:frameBytes]...), messages[frameBytes:size])
		if problem != nil { // what is before it is sent
			return errors.Join(s.Sink.CopyData(s.out, sent), pgerr.OfText(problem))
		}
		s.out, messages = out, messages[size:]
		sent++
		length := len(out) - begin - 1
		if length > math.MaxInt32 {
			return errFrame
		}
		binary.BigEndian.PutUint32(out[begin+1:], uint32(length))
	}
	return s.Sink.CopyData(s.out, n)
}

// BinarySink is a sink whose rows of a binary COPY TO have their texts in the encoding. Each
// message has a row; the first one is behind the header of the data, the last one its end.
func (c *Charset) BinarySink(s pgwire.Sink, types []uint32) pgwire.Sink {
	return &binarySink{sink: sink{Sink: s, charmap: c.charmap}, types: types}
}

type binarySink struct {
	sink
	types []uint32
	begun bool
}

// CopyData implements pgwire.Sink.
func (s *binarySink) CopyData(messages []byte, n int) error {
	s.out = s.out[:0]
	sent := 0
	for len(messages) > 0 {
		if len(messages) < frameBytes {
			return errFrame
		}
		size := uint64(binary.BigEndian.Uint32(messages[1:frameBytes])) + 1
		if size < frameBytes || size > uint64(len(messages)) {
			return errFrame
		}
		begin := len(s.out)
		out, err := s.rows(append(s.out, messages[:frameBytes]...), messages[frameBytes:size])
		if err != nil {
			return errors.Join(s.Sink.CopyData(s.out, sent), err)
		}
		sent++
		s.out, messages = out, messages[size:]
		binary.BigEndian.PutUint32(out[begin+1:], uint32(len(out)-begin-1))
	}
	return s.Sink.CopyData(s.out, n)
}

// headerBytes is what is before the first row: a signature, flags, and the length of nothing more.
const headerBytes = 19

// rows appends the rows of a message.
func (s *binarySink) rows(dst, b []byte) ([]byte, error) {
	if !s.begun {
		if len(b) < headerBytes {
			return nil, errFrame
		}
		s.begun = true
		dst, b = append(dst, b[:headerBytes]...), b[headerBytes:]
	}
	for len(b) > 0 {
		var err error
		if dst, b, err = s.row(dst, b); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// row appends the first row: the number of its fields, and each behind its length. The end is one
// of -1 fields.
func (s *binarySink) row(dst, b []byte) (out, rest []byte, err error) {
	const count, length = 2, 4
	if len(b) < count {
		return nil, nil, errFrame
	}
	out, fields := append(dst, b[:count]...), int16(binary.BigEndian.Uint16(b))
	b = b[count:]
	for i := 0; i < int(fields); i++ {
		if len(b) < length || i >= len(s.types) {
			return nil, nil, errFrame
		}
		n := int32(binary.BigEndian.Uint32(b))
		if n < 0 {
			out, b = append(out, b[:length]...), b[length:]
			continue
		}
		if int(n) > len(b)-length {
			return nil, nil, errFrame
		}
		v, problem := clienttext.Value(s.charmap, b[length:length+int(n)], s.types[i], 1)
		if problem != nil {
			return nil, nil, pgerr.OfText(problem)
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(v))), v...)
		b = b[length+int(n):]
	}
	return out, b, nil
}

// Value is a value in binary form with its texts in UTF-8; without a receiver they are.
func (c *Charset) Value(v []byte, oid uint32) ([]byte, *pgerr.Error) {
	if c == nil {
		return v, nil
	}
	out, problem := clienttext.Parameter(c.charmap, v, oid, 1)
	if problem != nil {
		return nil, pgerr.OfText(problem)
	}
	return out, nil
}

// errFrame means that messages were not framed as the protocol does.
var errFrame = fmt.Errorf("data of COPY: %w", io.ErrUnexpectedEOF)
