package copyin

import (
	"bytes"

	"github.com/skipprd/skipprd/pgwire/digit"
)

// splitText splits a line of the text format.
func splitText(d *Decoder, line []byte) (int, error) {
	if bytes.IndexByte(line, '\\') < 0 {
		return d.splitPlain(line)
	}
	d.scratchFor(line)
	for i := 0; ; i++ {
		raw, escaped, next := textField(line, d.options.Delimiter)
		v := raw
		if escaped && string(raw) != *d.options.Null {
			var suspect bool
			start := len(d.scratch)
			d.scratch, suspect = unescape(d.scratch, raw)
			if v = d.scratch[start:len(d.scratch):len(d.scratch)]; suspect && !d.isDefault(raw) {
				if err := checkText(v); err != nil {
					return i, err
				}
			}
		}
		if err := d.add(i, raw, v, true); err != nil || next < 0 {
			return i + 1, err
		}
		line = line[next:]
	}
}

func (d *Decoder) isDefault(raw []byte) bool {
	return d.options.Default != nil && string(raw) == *d.options.Default
}

// textField is the first field of a line as it stands there, and where the next one
// begins: -1 when it is the last. A backslash at the end of the line is dropped.
func textField(line []byte, delimiter byte) (raw []byte, escaped bool, next int) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case delimiter:
			return line[:i], escaped, i + 1
		case '\\':
			if i++; i == len(line) {
				return line[:i-1], escaped, -1
			}
			escaped = true
		}
	}
	return line, escaped, -1
}

// unescape appends the value of a field. suspect says that a byte was written as a
// number, so that the value may not be text.
func unescape(dst, raw []byte) (out []byte, suspect bool) {
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), suspect
		}
		dst = append(dst, raw[:i]...)
		c, n := escape(raw[i+1:])
		suspect = suspect || n > 1 && (c == 0 || c >= 0x80) || n == 1 && c == 0
		dst, raw = append(dst, c), raw[i+1+n:]
	}
	return dst, suspect
}

// escape is the byte that an escape means, and the escape's length behind the
// backslash. It is not empty.
func escape(b []byte) (c byte, n int) {
	switch b[0] {
	case 'b':
		return '\b', 1
	case 'f':
		return '\f', 1
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'v':
		return '\v', 1
	case 'x':
		return digits(b, 1, 3, 4, digit.Hex)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return digits(b, 0, 3, 3, digit.Octal)
	}
	return b[0], 1
}

// digits reads digits of so many bits each from an index of b up to another; without
// one the first byte stands for itself.
func digits(b []byte, from, to, bits int, read func(byte) int) (byte, int) {
	v, i := 0, from
	for ; i < len(b) && i < to; i++ {
		x := read(b[i])
		if x < 0 {
			break
		}
		v = v<<bits | x
	}
	if i == from {
		return b[0], 1
	}
	return byte(v), i
}
