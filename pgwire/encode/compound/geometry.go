package compound

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// fixed is the number of coordinates of the geometric types that always have as many: point,
// lseg, box, line, circle.
var fixed = map[uint32]int{600: 2, 601: 4, 603: 4, 628: 3, 718: 3}

// nan has the bits of PostgreSQL's NaN; those of Go's differ.
var nan = math.Float64frombits(0x7ff8_0000_0000_0000)

func fixedFloats(n int) Parse {
	return func(dst, src []byte) ([]byte, error) {
		dst, count, err := floats(dst, string(src))
		if err == nil && count != n {
			err = ErrSyntax
		}
		return dst, err
	}
}

// floats appends all numbers of a text, between whichever brackets and commas.
func floats(dst []byte, text string) (out []byte, count int, err error) {
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("()[]{}<>,", r) }) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return dst, count, ErrSyntax
		}
		if math.IsNaN(v) {
			v = nan
		}
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
		count++
	}
	return dst, count, nil
}

// path reads points in brackets, when it is open, or in parentheses.
func path(dst, src []byte) ([]byte, error) {
	closed := byte(1)
	if len(src) > 0 && src[0] == '[' {
		closed = 0
	}
	return polygon(append(dst, closed), src)
}

// polygon reads points: how many there are, and each.
func polygon(dst, src []byte) ([]byte, error) {
	at := len(dst)
	dst, count, err := floats(append(dst, 0, 0, 0, 0), string(src))
	if err != nil || count%2 != 0 {
		return dst, ErrSyntax
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(count/2))
	return dst, nil
}
