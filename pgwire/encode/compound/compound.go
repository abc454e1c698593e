// Package compound turns the text of types whose values are made of other values (ranges,
// multiranges, geometric types, vectors of numbers, snapshots, text search vectors, records) into
// their binary form, as PostgreSQL's send functions write it. Pure; no I/O.
package compound

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// Parse appends the binary form of a value that is given as PostgreSQL writes it in text.
// src is valid during the call only. After an error dst is of no use.
type Parse func(dst, src []byte) ([]byte, error)

// ErrSyntax means that a text is not written as its type is.
var ErrSyntax = errors.New("not written as its type is")

// ranges maps a range type to its subtype; multiranges maps a multirange to its range.
var (
	ranges      = map[uint32]uint32{3904: 23, 3906: 1700, 3908: 1114, 3910: 1184, 3912: 1082, 3926: 20}
	multiranges = map[uint32]uint32{4451: 3904, 4532: 3906, 4533: 3908, 4534: 3910, 4535: 3912, 4536: 3926}
	// vectors maps int2vector and oidvector to their elements.
	vectors = map[uint32]uint32{22: 21, 30: 26}
)

// FromText is the parser of a built-in type, nil for one that is not made of others here.
// scalar finds the parser of a type that is not.
func FromText(oid uint32, scalar func(uint32) Parse) Parse {
	if sub, ok := ranges[oid]; ok {
		return rangeOf(scalar(sub))
	}
	if of, ok := multiranges[oid]; ok {
		return multirangeOf(rangeOf(scalar(ranges[of])))
	}
	if elem, ok := vectors[oid]; ok {
		return vectorOf(elem, scalar(elem))
	}
	switch oid {
	case 27:
		return tid
	case 600, 601, 603, 628, 718:
		return fixedFloats(fixed[oid])
	case 602:
		return path
	case 604:
		return polygon
	case 2970, 5038:
		return snapshot
	case 3614:
		return searchVector
	}
	return nil
}

// sized appends a length and what put appends.
func sized(dst []byte, put func([]byte) ([]byte, error)) ([]byte, error) {
	at := len(dst)
	dst, err := put(append(dst, 0, 0, 0, 0))
	if err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst, nil
}

// vectorOf reads numbers between blanks, as an array that begins at 0.
func vectorOf(elem uint32, parse Parse) Parse {
	return func(dst, src []byte) ([]byte, error) {
		fields := strings.Fields(string(src))
		for _, n := range []uint32{1, 0, elem, uint32(len(fields)), 0} {
			dst = binary.BigEndian.AppendUint32(dst, n)
		}
		for _, f := range fields {
			var err error
			if dst, err = sized(dst, func(b []byte) ([]byte, error) { return parse(b, []byte(f)) }); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
}

// tid reads (block,offset).
func tid(dst, src []byte) ([]byte, error) {
	text := string(src)
	if len(text) < 2 || text[0] != '(' || text[len(text)-1] != ')' {
		return dst, ErrSyntax
	}
	block, offset, _ := strings.Cut(text[1:len(text)-1], ",")
	b, err1 := strconv.ParseUint(block, 10, 32)
	o, err2 := strconv.ParseUint(offset, 10, 16)
	if err1 != nil || err2 != nil {
		return dst, ErrSyntax
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(dst, uint32(b)), uint16(o)), nil
}

// snapshot reads xmin:xmax:xip,xip,….
func snapshot(dst, src []byte) ([]byte, error) {
	parts := strings.Split(string(src), ":")
	if len(parts) != 3 {
		return dst, ErrSyntax
	}
	var open []string
	if parts[2] != "" {
		open = strings.Split(parts[2], ",")
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(open)))
	for _, p := range append(parts[:2:2], open...) {
		n, err := strconv.ParseUint(p, 10, 63)
		if err != nil {
			return dst, ErrSyntax
		}
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return dst, nil
}
