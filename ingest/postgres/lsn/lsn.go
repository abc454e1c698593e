// Package lsn has places in PostgreSQL's write-ahead log and their usual text form. A
// position of a PostgreSQL source is such a text. No I/O here.
package lsn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/wal/change"
)

// LSN is a place in PostgreSQL's write-ahead log.
type LSN uint64

// Parse reads the usual form, with leading zeros or without, in either case. An empty text
// is an error.
func Parse(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("position %q is not an LSN", text)
	}
	return LSN(h<<32 | l), nil
}

// String is the usual form: 16/B374D848.
func (l LSN) String() string {
	var b [17]byte
	out := appendHex(b[:0], uint32(l>>32))
	out = append(out, '/')
	return string(appendHex(out, uint32(l)))
}

// appendHex writes v in hexadecimal without leading zeros.
func appendHex(b []byte, v uint32) []byte {
	shift := 28
	for shift > 0 && v>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		b = append(b, "0123456789ABCDEF"[v>>shift&15])
	}
	return b
}

// Position is the position at l.
func (l LSN) Position() change.Position { return change.Position(l.String()) }

// The layout of PostgreSQL's log at its default sizes: a page begins with a short header,
// the first of a segment with a long one.
const (
	walPageBytes    = 8192
	walSegmentBytes = 16 << 20
	walShortHeader  = 24
	walLongHeader   = 40
)

// RecordEnd turns an insert position into the end of the last record. The two differ
// where a page is full: the insert position lies behind the next page's header, and the
// stream never says that it is there before another record is.
func (l LSN) RecordEnd() LSN {
	switch {
	case l%walSegmentBytes == walLongHeader:
		return l - walLongHeader
	case l%walPageBytes == walShortHeader && l%walSegmentBytes != walShortHeader:
		return l - walShortHeader
	}
	return l
}
