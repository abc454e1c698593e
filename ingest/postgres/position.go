package postgres

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/wal/change"
)

// LSN is a place in PostgreSQL's write-ahead log. A position of this source is an
// LSN in its usual text form.
type LSN uint64

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

// recordEnd turns an insert position into the end of the last record. The two differ
// where a page is full: the insert position lies behind the next page's header, and the
// stream never says that it is there before another record is.
func (l LSN) recordEnd() LSN {
	switch {
	case l%walSegmentBytes == walLongHeader:
		return l - walLongHeader
	case l%walPageBytes == walShortHeader && l%walSegmentBytes != walShortHeader:
		return l - walShortHeader
	}
	return l
}

// parseLSN reads an LSN; the empty position is 0.
func parseLSN(p change.Position) (LSN, error) {
	if p == "" {
		return 0, nil
	}
	high, low, ok := strings.Cut(string(p), "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("position %q is not an LSN", p)
	}
	return LSN(h<<32 | l), nil
}

// ReadPosition reads an LSN that a client got of the server, from pg_current_wal_lsn()
// or pg_current_wal_insert_lsn(): the position that a stream is at once it has all before.
func ReadPosition(text string) (change.Position, error) {
	l, err := parseLSN(change.Position(text))
	if err != nil {
		return "", err
	}
	return l.recordEnd().Position(), nil
}

// ComparePositions orders two positions; one that cannot be read is lowest.
func ComparePositions(a, b change.Position) int { return comparePositions(a, b) }

// comparePositions orders two positions; one that cannot be read is lowest.
func comparePositions(a, b change.Position) int {
	x, _ := parseLSN(a)
	y, _ := parseLSN(b)
	return cmp.Compare(x, y)
}

// Distance implements ingest.Measurer.
func (*Source) Distance(from, to change.Position) int64 {
	x, _ := parseLSN(from)
	y, _ := parseLSN(to)
	if y <= x {
		return 0
	}
	return int64(y - x)
}

// PositionOf implements ingest.Measurer.
func (*Source) PositionOf(token int64) change.Position { return LSN(token).Position() }
