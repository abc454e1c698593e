package pgerr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/charmap"
)

// BadUTF8 is PostgreSQL's error of the first bytes of text that are no UTF-8 character,
// nil when all are.
func BadUTF8(text string) *Error {
	if utf8.ValidString(text) {
		return nil
	}
	at := 0
	for {
		r, n := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && n <= 1 {
			return BadUTF8At(text[at:])
		}
		at += n
	}
}

// BadUTF8At is the error of bytes that begin no character: it names as many as the first
// one announces, while they are there.
func BadUTF8At(bytes string) *Error {
	n := 1
	switch c := bytes[0]; {
	case c&0xe0 == 0xc0:
		n = 2
	case c&0xf0 == 0xe0:
		n = 3
	case c&0xf8 == 0xf0:
		n = 4
	}
	var hex []string
	for _, c := range []byte(bytes[:min(n, len(bytes))]) {
		hex = append(hex, fmt.Sprintf("0x%02x", c))
	}
	return New(codes.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", strings.Join(hex, " "))
}

// OfText is the error of a text that cannot be converted.
func OfText(e *charmap.Error) *Error {
	code := codes.UntranslatableCharacter
	if e.Invalid {
		code = codes.CharacterNotInRepertoire
	}
	return New(code, "%s", e.Error())
}
