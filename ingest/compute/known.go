package compute

import (
	"fmt"
	"sync"

	"github.com/skipprd/skipprd/wal/change"
)

// RowID names a change of a table: by its transaction's order token, and its place in the
// transaction as the stream delivers it.
type RowID struct {
	Token   int64
	Ordinal int32
}

// GroupError names the rows of a group that cannot be taken in.
type GroupError struct {
	Refused map[change.TableID]map[RowID]Refusal
}

// Error counts them.
func (e *GroupError) Error() string {
	n := 0
	for _, rows := range e.Refused {
		n += len(rows)
	}
	return fmt.Sprintf("%d rows have a computed value that cannot be taken in", n)
}

// knownMax bounds how many rows are remembered; with more, the first are found out again.
const knownMax = 100_000

// Known remembers, from one session to the next, which changes have computed values that
// cannot be taken in. The stream of the next one refuses them when they come, in their
// place among other changes. It is a hint: what is not remembered is found out again. Safe
// for concurrent use.
type Known struct {
	mu     sync.Mutex
	stream string
	n      int
	rows   map[change.TableID]map[RowID]Refusal
}

// Begin says which tables are streamed from now on. What is remembered of others is
// forgotten: a change has another place among those of other tables, and the place would
// name another row.
func (k *Known) Begin(tables string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream != tables {
		k.stream, k.rows, k.n = tables, nil, 0
	}
}

// Add remembers the rows of an error.
func (k *Known) Add(e *GroupError) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rows == nil || k.n > knownMax {
		k.rows, k.n = map[change.TableID]map[RowID]Refusal{}, 0
	}
	for id, rows := range e.Refused {
		next := make(map[RowID]Refusal, len(k.rows[id])+len(rows)) // Of has given the other away
		for at, why := range k.rows[id] {
			next[at] = why
		}
		for at, why := range rows {
			next[at] = why
		}
		k.n += len(next) - len(k.rows[id])
		k.rows[id] = next
	}
}

// Of are the rows of a table, nil for none. Nobody changes them.
func (k *Known) Of(id change.TableID) map[RowID]Refusal {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rows[id]
}
