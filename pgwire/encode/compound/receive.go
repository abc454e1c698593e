package compound

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// What is wrong with a binary form, in PostgreSQL's words.
var (
	ErrShort  = errors.New("insufficient data left in message")
	ErrFormat = errors.New("invalid message format")
	ErrLong   = errors.New("incorrect binary data format in bind parameter")
	ErrLine   = errors.New("invalid line specification: A and B cannot both be zero")
	ErrRadius = errors.New("invalid radius in external \"circle\" value")
)

// Text is the text of a value in binary; ok is false for a type that is not read here. scalar does
// the same for the bounds of ranges.
func Text(oid uint32, b []byte, scalar func(oid uint32, b []byte) (string, error)) (text string, ok bool, err error) {
	r := &receiver{b: b}
	sub, isRange := ranges[oid]
	switch {
	case isRange:
		text, err = r.span(func(b []byte) (string, error) { return scalar(sub, b) })
	case oid == 27:
		text = fmt.Sprintf("(%d,%d)", uint32(r.int(4)), r.int(2))
	case oid == 829 || oid == 774:
		var parts []string
		for range map[uint32]int{829: 6, 774: 8}[oid] {
			parts = append(parts, fmt.Sprintf("%02x", r.int(1)))
		}
		text = strings.Join(parts, ":")
	case oid == 3220:
		text = fmt.Sprintf("%X/%X", r.int(4), r.int(4))
	case fixed[oid] > 0 || oid == 602 || oid == 604:
		text = r.shape(oid)
	default:
		return "", false, nil
	}
	switch {
	case err != nil:
	case r.short:
		err = ErrShort
	case oid == 628 && zero(b[:8]) && zero(b[8:16]):
		err = ErrLine
	case oid == 718 && math.Float64frombits(binary.BigEndian.Uint64(b[16:])) < 0:
		err = ErrRadius
	case len(r.b) > 0 && isRange:
		err = ErrFormat
	case len(r.b) > 0:
		err = ErrLong
	}
	return text, true, err
}

func zero(b []byte) bool {
	return math.Abs(math.Float64frombits(binary.BigEndian.Uint64(b))) <= epsilon
}

// epsilon is how near PostgreSQL's geometry takes numbers for equal.
const epsilon = 1e-6

// receiver takes a value apart; short says that there was less than it should have.
type receiver struct {
	b     []byte
	short bool
}

func (r *receiver) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.short = nil, true
		return make([]byte, min(max(n, 0), 8))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// int takes an unsigned number of so many bytes.
func (r *receiver) int(size int) (n uint64) {
	for _, c := range r.take(size) {
		n = n<<8 | uint64(c)
	}
	return n
}

func (r *receiver) float() string {
	v := math.Float64frombits(binary.BigEndian.Uint64(r.take(8)))
	switch {
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (r *receiver) point() string { return "(" + r.float() + "," + r.float() + ")" }

// shape takes a value of geometry.
func (r *receiver) shape(oid uint32) string {
	switch oid {
	case 600:
		return r.point()
	case 601:
		return "[" + r.point() + "," + r.point() + "]"
	case 603:
		return r.point() + "," + r.point()
	case 628:
		return "{" + r.float() + "," + r.float() + "," + r.float() + "}"
	case 718:
		return "<" + r.point() + "," + r.float() + ">"
	}
	open, closed := "(", ")"
	if oid == 602 && r.int(1) == 0 {
		open, closed = "[", "]"
	}
	n := r.int(4)
	if n > uint64(len(r.b)/16) {
		r.b, r.short = nil, true
		return ""
	}
	points := make([]string, n)
	for i := range points {
		points[i] = r.point()
	}
	return open + strings.Join(points, ",") + closed
}

// span takes a range: flags, and the bounds that are finite.
func (r *receiver) span(bound func([]byte) (string, error)) (string, error) {
	flags := r.int(1)
	if flags&rangeEmpty != 0 {
		return "empty", nil
	}
	one := func(infinite uint64) (string, error) {
		if flags&infinite != 0 {
			return "", nil
		}
		b := r.take(int(int32(r.int(4))))
		if r.short {
			return "", ErrShort
		}
		text, err := bound(b)
		if strings.ContainsAny(text, " :") { // a moment, as PostgreSQL quotes it
			text = `"` + text + `"`
		}
		return text, err
	}
	lower, err := one(lowerInfinite)
	if err != nil {
		return "", err
	}
	upper, err := one(upperInfinite)
	if err != nil {
		return "", err
	}
	open, closed := "(", ")"
	if flags&lowerIncluded != 0 && flags&lowerInfinite == 0 {
		open = "["
	}
	if flags&upperIncluded != 0 && flags&upperInfinite == 0 {
		closed = "]"
	}
	return open + lower + "," + upper + closed, nil
}
