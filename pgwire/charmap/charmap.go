package charmap

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// UTF8 is PostgreSQL's name of the encoding that texts are converted from and to.
const UTF8 = "UTF8"

// Charmap is an encoding. Safe for concurrent use.
type Charmap struct {
	name string
	form form
	// places are the code points of the sequences by place, packed as UTF-8 with the first
	// byte lowest; 0: UTF-8 has none. pair is a code point that is written as two.
	places []uint32
	pairs  map[int]string
	// codes are the sequences of the code points, as numbers, in pages of pageRunes, 0 for none;
	// pages says which page is whose, the first being that of none. joined are the sequences of
	// two code points.
	pages  []uint16
	codes  []uint32
	joined map[[2]rune]uint32
}

const (
	// pair stands for a place of Charmap.pairs: no UTF-8 begins with it.
	pair = 0x80
	// pageRunes is how many code points a page has, by their lowest bits.
	pageBits  = 8
	pageRunes = 1 << pageBits
)

// Name is PostgreSQL's own name of the encoding.
func (c *Charmap) Name() string { return c.name }

// Single says that each character is one byte.
func (c *Charmap) Single() bool { return c.form == oneByte }

// Error is about the first bytes of a text that cannot be converted.
type Error struct {
	// Bytes are what is wrong; At is where in the text they are.
	Bytes    []byte
	At       int
	From, To string
	// Invalid says that they are no character of From; else To has no equivalent. Cut says that
	// they may have been one, if the text did not end in it.
	Invalid, Cut bool
}

// Error implements error, in PostgreSQL's words.
func (e *Error) Error() string {
	var hex []string
	for _, x := range e.Bytes {
		hex = append(hex, fmt.Sprintf("0x%02x", x))
	}
	if e.Invalid {
		return fmt.Sprintf("invalid byte sequence for encoding \"%s\": %s", e.From, strings.Join(hex, " "))
	}
	return fmt.Sprintf("character with byte sequence %s in encoding \"%s\" has no equivalent in encoding \"%s\"", strings.Join(hex, " "), e.From, e.To)
}

// Decode appends src as UTF-8, or what is before the error.
func (c *Charmap) Decode(dst, src []byte) ([]byte, *Error) {
	for at := 0; at < len(src); {
		if src[at] < high {
			from := at
			for ; at < len(src) && src[at] < high && src[at] != 0; at++ {
			}
			dst = append(dst, src[from:at]...)
			if at < len(src) && src[at] == 0 {
				return dst, c.invalid(src, at)
			}
			continue
		}
		size := c.form.announced(src[at:])
		if size > len(src)-at || !c.form.valid(src[at:at+size]) {
			return dst, c.invalid(src, at)
		}
		code := src[at : at+size]
		place := c.form.place(code)
		packed := uint32(0)
		if place >= 0 {
			packed = c.places[place]
		} else if n := quad(code) - quadBeyond; n >= 0 && n <= utf8.MaxRune-0x10000 { // of GB18030
			dst, at = utf8.AppendRune(dst, rune(n+0x10000)), at+size
			continue
		}
		switch packed {
		case 0:
			return dst, &Error{Bytes: code, At: at, From: c.name, To: UTF8}
		case pair:
			dst = append(dst, c.pairs[place]...)
		default:
			for ; packed != 0; packed >>= 8 {
				dst = append(dst, byte(packed))
			}
		}
		at += size
	}
	return dst, nil
}

func (c *Charmap) invalid(src []byte, at int) *Error {
	rest := src[at:]
	return &Error{
		Bytes: rest[:c.form.named(rest)], At: at, From: c.name, To: UTF8, Invalid: true,
		Cut: len(rest) < c.form.announced(rest) || c.form == gb18030 && len(rest) == 1 && rest[0] >= high,
	}
}

// Check is the error of the first bytes that are no character of the encoding, whether UTF-8 has
// an equivalent or not; nil when all are.
func (c *Charmap) Check(src []byte) *Error {
	for at := 0; at < len(src); {
		size := c.form.announced(src[at:])
		if src[at] == 0 || size > len(src)-at || !c.form.valid(src[at:at+size]) {
			return c.invalid(src, at)
		}
		at += size
	}
	return nil
}

// Size is the length of the sequence that b begins with, and the length of what it is as UTF-8,
// 0 where it is nothing: it is not of the encoding (its length is 1 then), is cut, or UTF-8 has
// no equivalent.
func (c *Charmap) Size(b []byte) (size, as int) {
	if b[0] < high {
		return 1, 1
	}
	size = c.form.announced(b)
	switch {
	case size > len(b):
		return len(b), 0
	case !c.form.valid(b[:size]):
		return 1, 0
	}
	place := c.form.place(b[:size])
	if place < 0 {
		out, _ := c.Decode(nil, b[:size])
		return size, len(out)
	}
	if packed := c.places[place]; packed != pair {
		return size, (bits.Len32(packed) + 7) / 8
	}
	return size, len(c.pairs[place])
}

// Count is the number of characters of a text that Check has nothing to say of.
func (c *Charmap) Count(b []byte) int {
	n := 0
	for ; len(b) > 0; n++ {
		b = b[min(c.form.announced(b), len(b)):]
	}
	return n
}

// Encode appends UTF-8 in the encoding, or what is before the error.
func (c *Charmap) Encode(dst, src []byte) ([]byte, *Error) {
	for at := 0; at < len(src); {
		if src[at] < high {
			if src[at] == 0 {
				return dst, &Error{Bytes: src[at : at+1], At: at, From: UTF8, To: c.name, Invalid: true}
			}
			dst, at = append(dst, src[at]), at+1
			continue
		}
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size <= 1 {
			return dst, invalidUTF8(src, at, c.name)
		}
		if c.joined != nil {
			if next, n := utf8.DecodeRune(src[at+size:]); n > 1 {
				if code := c.joined[[2]rune{r, next}]; code != 0 {
					dst, at = appendCode(dst, code), at+size+n
					continue
				}
			}
		}
		code := c.code(r)
		if code == 0 {
			return dst, &Error{Bytes: src[at : at+size], At: at, From: UTF8, To: c.name}
		}
		dst, at = appendCode(dst, code), at+size
	}
	return dst, nil
}

// CheckUTF8 is Check for UTF-8.
func CheckUTF8(src []byte) *Error {
	for at := 0; at < len(src); {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size <= 1 || r == 0 {
			return invalidUTF8(src, at, "")
		}
		at += size
	}
	return nil
}

// invalidUTF8 is the error of bytes that begin no character: it names as many as the first one
// announces, while they are there.
func invalidUTF8(src []byte, at int, to string) *Error {
	n := 1
	switch c := src[at]; {
	case c&0xe0 == 0xc0:
		n = 2
	case c&0xf0 == 0xe0:
		n = 3
	case c&0xf8 == 0xf0:
		n = 4
	}
	rest := src[at:]
	return &Error{Bytes: rest[:min(n, len(rest))], At: at, From: UTF8, To: to, Invalid: true, Cut: !utf8.FullRune(rest)}
}

// code is the sequence of a code point as a number, 0 for none.
func (c *Charmap) code(r rune) uint32 {
	if r >= 0x10000 && c.form == gb18030 {
		b := quadBytes(int(r) - 0x10000 + quadBeyond)
		return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	}
	return c.codes[int(c.pages[r>>pageBits])<<pageBits|int(r&(pageRunes-1))]
}

// appendCode appends the bytes of a sequence.
func appendCode(dst []byte, code uint32) []byte {
	for shift := (bits.Len32(code) - 1) / 8 * 8; shift >= 0; shift -= 8 {
		dst = append(dst, byte(code>>shift))
	}
	return dst
}

// Sequences calls f for every sequence of the encoding that is not ASCII, whether UTF-8 has an
// equivalent or not, in order; without those of GB18030 beyond the basic plane.
func (c *Charmap) Sequences(f func(code []byte)) { c.form.each(f) }

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
