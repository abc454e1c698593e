package postgres

import (
	"cmp"

	"github.com/skipprd/skipprd/ingest/postgres/lsn"
	"github.com/skipprd/skipprd/wal/change"
)

// LSN is a place in PostgreSQL's write-ahead log. A position of this source is an
// LSN in its usual text form.
type LSN = lsn.LSN

// parseLSN reads an LSN; the empty position is 0.
func parseLSN(p change.Position) (LSN, error) {
	if p == "" {
		return 0, nil
	}
	return lsn.Parse(string(p))
}

// ReadPosition reads an LSN that a client got of the server, from pg_current_wal_lsn()
// or pg_current_wal_insert_lsn(): the position that a stream is at once it has all before.
func ReadPosition(text string) (change.Position, error) {
	l, err := parseLSN(change.Position(text))
	if err != nil {
		return "", err
	}
	return l.RecordEnd().Position(), nil
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
