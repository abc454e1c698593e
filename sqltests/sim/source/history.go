package source

import (
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// Column is a column of a table at the source.
type Column struct {
	Name   string
	AttNum int16 // permanent, never reused
	Type   schema.Type
	OID    uint32 // of its Postgres type
	TypMod int32
	// From is the column that this one is computed from (see Fill), 0: it is not. The stream
	// does not send it.
	From int16
}

// Version is a table's shape from one schema change to the next. Immutable.
type Version struct {
	Number  int // from 1
	Columns []Column
	Key     []string // names, in key order; empty: no key
	// WholeRow says of a table without a key that changes of its rows are sent with whole
	// old rows.
	WholeRow bool
}

// KeyIndexes are the places of the key's columns.
func (v *Version) KeyIndexes() []int {
	out := make([]int, 0, len(v.Key))
	for _, name := range v.Key {
		out = append(out, slices.IndexFunc(v.Columns, func(c Column) bool { return c.Name == name }))
	}
	return out
}

// Table is a table at the source.
type Table struct {
	OID      uint32
	Schema   string
	Name     string
	Versions []*Version
}

// Current is the shape that the next change has.
func (t *Table) Current() *Version { return t.Versions[len(t.Versions)-1] }

// Row is the values of a row in the order of its version's columns: nil, bool, int64
// (every integer, date and time), float64, string or []byte. Immutable.
type Row []any

// Change is one change of a transaction, as it was made at the source: before it is
// split or encoded for us.
type Change struct {
	Table   *Table
	Version *Version
	// Op is Insert, Update or Delete; zero with Truncate.
	Op       change.Op
	Truncate bool
	// Old is the row before an update or a delete, New the row after an insert or an
	// update. An update whose key differs is a key update.
	Old, New Row
	// Left are the columns of an update whose values are left out of what is sent, because
	// they did not change.
	Left []int
}

// Txn is a transaction of the source, in the order of commits.
type Txn struct {
	// LSN is where it committed: its position and the order token of its changes. It grows
	// from one to the next and is never reused.
	LSN         int64
	CommittedAt time.Time
	Changes     []Change
	// Huge says that it was streamed in parts before it committed.
	Huge bool
}

// History is everything that was ever committed, also what the source has forgotten for
// us. Aborted transactions are not in it.
type History struct {
	Tables []*Table
	Txns   []*Txn
}

// Until is the transactions that committed at or before an LSN.
func (h *History) Until(lsn int64) []*Txn {
	n, _ := slices.BinarySearchFunc(h.Txns, lsn+1, func(t *Txn, at int64) int { return int(t.LSN - at) })
	return h.Txns[:n]
}
