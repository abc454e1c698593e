package charset

import (
	"fmt"
	"unicode/utf8"
)

// Single are the characters of the bytes from 0x80 on, 0 where there is none, of an encoding each
// of whose characters is one byte; false for any other encoding, by the server's name of it.
func Single(name string) (runes [high]rune, ok bool, err error) {
	c, err := Of(name)
	if err != nil || c == nil || c.form != oneByte {
		return runes, false, err
	}
	for i := range runes {
		b := c.Append(nil, []byte{byte(high + i)})
		if b[0] == Mark {
			continue
		}
		r, n := utf8.DecodeRune(b)
		if n != len(b) {
			return runes, false, fmt.Errorf("table of encoding %s has more than a character for %#x", name, high+i)
		}
		runes[i] = r
	}
	return runes, true, nil
}
