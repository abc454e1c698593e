package charmap

import (
	"bufio"
	"bytes"
	"compress/flate"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

//go:embed tables
var tables embed.FS

// entry is a sequence of an encoding and what it is: one or two code points.
type entry struct {
	code uint32 // the sequence as a number
	text string
}

// bytes are the sequence.
func (e entry) bytes() []byte { return appendCode(nil, e.code) }

// loaded are the encodings that were asked for, by name: each is read once in a process.
var loaded = func() map[string]func() (*Charmap, error) {
	out := map[string]func() (*Charmap, error){}
	for name, f := range forms {
		out[name] = sync.OnceValues(func() (*Charmap, error) { return load(name, f) })
	}
	return out
}()

// Of is an encoding by PostgreSQL's own name of it; nil where there is nothing to convert, or
// PostgreSQL does not convert it: UTF8, SQL_ASCII, MULE_INTERNAL.
func Of(name string) (*Charmap, error) {
	if f := loaded[name]; f != nil {
		return f()
	}
	return nil, nil
}

func load(name string, f form) (*Charmap, error) {
	packed, err := tables.ReadFile("tables/" + name)
	if err != nil {
		return nil, fmt.Errorf("table of encoding %s: %w", name, err)
	}
	entries, back, err := parse(packed)
	if err == nil {
		var c *Charmap
		if c, err = build(name, f, entries, back); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("table of encoding %s: %w", name, err)
}

// build makes an encoding of its entries; back are the code points whose sequence is not the
// first one among the entries, 0 for none.
func build(name string, f form, entries []entry, back map[rune]uint32) (*Charmap, error) {
	c := &Charmap{name: name, form: f, places: make([]uint32, f.room()), pages: make([]uint16, utf8.MaxRune>>pageBits+1), codes: make([]uint32, pageRunes)}
	for _, e := range entries {
		code := e.bytes()
		place := -1
		if f.announced(code) == len(code) && f.valid(code) {
			place = f.place(code)
		}
		if place < 0 {
			return nil, fmt.Errorf("there is no place for %x", code)
		}
		if points := []rune(e.text); len(points) > 1 {
			if c.pairs == nil {
				c.pairs, c.joined = map[int]string{}, map[[2]rune]uint32{}
			}
			c.places[place], c.pairs[place], c.joined[[2]rune(points)] = pair, e.text, e.code
			continue
		}
		for i := len(e.text) - 1; i >= 0; i-- {
			c.places[place] = c.places[place]<<8 | uint32(e.text[i])
		}
		if r, _ := utf8.DecodeRuneInString(e.text); c.code(r) == 0 {
			c.set(r, e.code)
		}
	}
	for r, code := range back {
		c.set(r, code)
	}
	return c, nil
}

// set makes code the sequence of a code point.
func (c *Charmap) set(r rune, code uint32) {
	page := &c.pages[r>>pageBits]
	if *page == 0 {
		*page = uint16(len(c.codes) >> pageBits)
		c.codes = append(c.codes, make([]uint32, pageRunes)...)
	}
	c.codes[int(*page)<<pageBits|int(r&(pageRunes-1))] = code
}

// tableVersion is the first byte of a table. What follows is compressed: for each entry, in
// the order of their codes, the distance of its code from the one before, that of its first
// code point, and the second one or 0; then 0, and for each code point, in order, that an entry
// does not say the sequence of, its distance from the one before and that sequence or 0.
const tableVersion = 2

var errTable = errors.New("it is malformed")

func parse(packed []byte) (entries []entry, back map[rune]uint32, err error) {
	if len(packed) == 0 || packed[0] != tableVersion {
		return nil, nil, errTable
	}
	r := bufio.NewReader(flate.NewReader(bytes.NewReader(packed[1:])))
	var code uint64
	var point int64
	for {
		step, err := binary.ReadUvarint(r)
		if err == nil && step == 0 {
			break
		}
		move, err1 := binary.ReadVarint(r)
		second, err2 := binary.ReadUvarint(r)
		if err := errors.Join(err, err1, err2); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errTable, err)
		}
		code, point = code+step, point+move
		if code > 0xFFFF_FFFF || point <= 0 || point > utf8.MaxRune || second > utf8.MaxRune {
			return nil, nil, errTable
		}
		text := string(rune(point))
		if second != 0 {
			text += string(rune(second))
		}
		entries = append(entries, entry{uint32(code), text})
	}
	back = map[rune]uint32{}
	for at := uint64(0); ; {
		step, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return entries, back, nil
		}
		code, err1 := binary.ReadUvarint(r)
		if err := errors.Join(err, err1); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errTable, err)
		}
		if at += step; at > utf8.MaxRune || code > 0xFFFF_FFFF {
			return nil, nil, errTable
		}
		back[rune(at)] = uint32(code)
	}
}
