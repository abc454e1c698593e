package verify

import (
	"context"

	"github.com/skipprd/skipprd/wal/change"
)

// Table is what both sides are asked of. Immutable.
type Table struct {
	Name string // here, for people: schema.table
	ID   change.TableID
	// Schema, SourceName and OID name it at the source.
	Schema, SourceName string
	OID                uint32
	// Columns are compared; they have these names on both sides.
	Columns []string
	// Key are places in Columns, in key order; empty: rows are told apart by all columns,
	// and equal ones are counted.
	Key []int
	// IntegerKey says that the first key column is an integer; others are cut into ranges
	// by the bytes of their text.
	IntegerKey bool
	// Replaced says what values of columns are replaced by here because the lake cannot
	// hold them, by the column's name: both sides are compared with them replaced.
	Replaced map[string]Replacement
	// SetAside are rows that wait as dead letters, by the text of their key as a record:
	// they are listed, and compared on neither side. The values are clauses.
	SetAside map[string]string
	// Skip is why the table cannot be compared, "" when it can.
	Skip string
}

// Replacement is what becomes of values that the lake's type of a column does not hold.
type Replacement struct {
	Kind  RangeKind
	Clamp bool // to the nearest value, else null
}

// RangeKind is a type with values that the lake does not hold.
type RangeKind uint8

// The kinds.
const (
	RangeDate RangeKind = iota + 1
	RangeTimestamp
	RangeTimestampTZ
	RangeDecimal // NaN only
)

// Cells are the texts of a row's columns, nil for null. They are good until the next row.
type Cells = [][]byte

// Source is the source's side: a session that reads one moment. Used by one goroutine.
type Source interface {
	// Before is the moment as an order token: it has the changes with a lower one.
	Before() int64
	// Position is the moment as a position: it is reached when everything before is here.
	Position() change.Position
	// Open begins to read a table; one at a time. A table that cannot be read at the moment
	// is an error that wraps *SkipError; then others still can.
	Open(ctx context.Context, t *Table) (Reader, error)
	// Close ends the session.
	Close()
}

// Reader reads a table of the source. Used by one goroutine.
type Reader interface {
	// Bounds are at most n-1 texts of the first key column that cut the table into parts of
	// about equal size, in any order.
	Bounds(ctx context.Context, n int) ([]string, error)
	// Sums adds up the table. tick is told the share that is done.
	Sums(ctx context.Context, q *Query, tick func(share float64)) (map[Unit]Sum, error)
	// Rows yields the rows of the query's units: the texts of the key's columns, and the
	// hash of the row.
	Rows(ctx context.Context, q *Query, emit func(key Cells, hash Hash) error) error
	// Columns yields the hashes of all columns, "" for null, of the rows with these keys.
	Columns(ctx context.Context, keys [][]string, emit func(key Cells, hashes []string) error) error
	// Done ends the reading, also after an error.
	Done(ctx context.Context) error
}

// Here is our side: the tables at the same moment. Used by one goroutine.
type Here interface {
	// Rows yields all rows of a table, in any order.
	Rows(ctx context.Context, t *Table, emit func(row Cells) error) error
}
