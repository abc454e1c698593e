package charset

import (
	"bufio"
	"bytes"
	"compress/flate"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

//go:embed tables
var tables embed.FS

// forms are the encodings that a database can have and the server converts into UTF-8.
var forms = map[string]form{
	"EUC_CN": twoBytes, "EUC_JIS_2004": japanese, "EUC_JP": japanese, "EUC_KR": twoBytes, "EUC_TW": taiwan,
	"ISO_8859_5": oneByte, "ISO_8859_6": oneByte, "ISO_8859_7": oneByte, "ISO_8859_8": oneByte, "KOI8R": oneByte, "KOI8U": oneByte,
	"LATIN1": oneByte, "LATIN10": oneByte, "LATIN2": oneByte, "LATIN3": oneByte, "LATIN4": oneByte, "LATIN5": oneByte,
	"LATIN6": oneByte, "LATIN7": oneByte, "LATIN8": oneByte, "LATIN9": oneByte,
	"WIN1250": oneByte, "WIN1251": oneByte, "WIN1252": oneByte, "WIN1253": oneByte, "WIN1254": oneByte, "WIN1255": oneByte,
	"WIN1256": oneByte, "WIN1257": oneByte, "WIN1258": oneByte, "WIN866": oneByte, "WIN874": oneByte,
}

// entry is a sequence of an encoding and what it is: one or two code points.
type entry struct {
	code uint32 // the sequence as a number
	text string
}

// Known says that there is a table of an encoding.
func Known(name string) bool {
	_, known := forms[name]
	return known
}

// Of is an encoding by the server's name of it; nil where there is nothing to convert, or no
// table to do it by.
func Of(name string) (*Charset, error) {
	f, known := forms[name]
	if !known {
		return nil, nil
	}
	packed, err := tables.ReadFile("tables/" + name)
	if err != nil {
		return nil, fmt.Errorf("table of encoding %s: %w", name, err)
	}
	entries, err := parse(packed)
	if err != nil {
		return nil, fmt.Errorf("table of encoding %s: %w", name, err)
	}
	c := &Charset{name: name, form: f, places: make([]uint32, f.room())}
	for _, e := range entries {
		code := e.bytes()
		place, size := c.place(code)
		if place < 0 || size != len(code) {
			return nil, fmt.Errorf("table of encoding %s has no place for %x", name, code)
		}
		if utf8.RuneCountInString(e.text) > 1 {
			if c.pairs == nil {
				c.pairs = map[int]string{}
			}
			c.places[place], c.pairs[place] = pair, e.text
			continue
		}
		for i := len(e.text) - 1; i >= 0; i-- {
			c.places[place] = c.places[place]<<8 | uint32(e.text[i])
		}
	}
	return c, nil
}

// Sample is a text with everything that the encoding has and UTF-8 has, too; converted is
// what the server must make of it.
func (c *Charset) Sample() (text, converted []byte) {
	add := func(code ...byte) {
		if place, _ := c.place(code); c.places[place] != 0 {
			text, converted = append(text, code...), c.Append(converted, code)
		}
	}
	for first := high; first <= 0xFF; first++ {
		c.each([]byte{byte(first)}, add)
	}
	return text, converted
}

// each calls f for all sequences that begin with some bytes and have a place.
func (c *Charset) each(begin []byte, f func(code ...byte)) {
	if len(begin) == c.size(begin[0]) {
		if place, _ := c.place(begin); place >= 0 {
			f(begin...)
		}
		return
	}
	for next := row + 1; next < 0xFF; next++ {
		c.each(append(begin[:len(begin):len(begin)], byte(next)), f)
	}
}

// tableVersion is the first byte of a table. What follows is compressed: for each entry, in
// the order of their codes, the distance of its code from the one before, that of its first
// code point, and the second one or 0.
const tableVersion = 1

var errTable = errors.New("it is malformed")

func parse(packed []byte) ([]entry, error) {
	if len(packed) == 0 || packed[0] != tableVersion {
		return nil, errTable
	}
	r := bufio.NewReader(flate.NewReader(bytes.NewReader(packed[1:])))
	var out []entry
	var code uint64
	var point int64
	for {
		step, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		move, err1 := binary.ReadVarint(r)
		second, err2 := binary.ReadUvarint(r)
		if err := errors.Join(err, err1, err2); err != nil {
			return nil, fmt.Errorf("%w: %w", errTable, err)
		}
		code, point = code+step, point+move
		if code > 0xFFFF_FFFF || point <= 0 || point > utf8.MaxRune || second > utf8.MaxRune {
			return nil, errTable
		}
		text := string(rune(point))
		if second != 0 {
			text += string(rune(second))
		}
		out = append(out, entry{uint32(code), text})
	}
}

// bytes are the sequence.
func (e entry) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, e.code)
	return bytes.TrimLeft(b, "\x00")
}
