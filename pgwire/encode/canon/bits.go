package canon

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/digit"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Bits is a bit string as 0s and 1s; it may be written in hexadecimal digits too.
func Bits(text string) (string, error) {
	digits := text
	switch {
	case strings.HasPrefix(text, "x") || strings.HasPrefix(text, "X"):
		var b strings.Builder
		for _, r := range text[1:] {
			d := -1
			if r < utf8.RuneSelf {
				d = digit.Hex(byte(r))
			}
			if d < 0 {
				return "", pgerr.New(codes.InvalidTextRepresentation, "\"%c\" is not a valid hexadecimal digit", r)
			}
			fmt.Fprintf(&b, "%04b", d)
		}
		return b.String(), nil
	case strings.HasPrefix(text, "b") || strings.HasPrefix(text, "B"):
		digits = text[1:]
	}
	for _, r := range digits {
		if r != '0' && r != '1' {
			return "", pgerr.New(codes.InvalidTextRepresentation, "\"%c\" is not a valid binary digit", r)
		}
	}
	return digits, nil
}
