// Package digit reads single digits of numbers in texts.
package digit

// Hex is the value of a hexadecimal digit, in either case; -1 when it is none.
func Hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// Octal is the value of an octal digit, -1 when it is none.
func Octal(c byte) int {
	if c < '0' || c > '7' {
		return -1
	}
	return int(c - '0')
}
