package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
)

// Records is what a group of the log says of letters. Its encoding is durable.
type Records struct {
	Added  []*catalog.DeadLetter `json:"added,omitempty"`
	Closed []Closed              `json:"closed,omitempty"`
}

// Closed is the end of a letter.
type Closed struct {
	Table change.TableID          `json:"table"`
	Ref   catalog.DeadLetterRef   `json:"ref"`
	State catalog.DeadLetterState `json:"state"`
	// Before says that all open letters of the table up to Ref end, not Ref alone.
	Before bool `json:"before,omitempty"`
}

// manyClosed is how many letters are named one by one; of more, the last is.
const manyClosed = 500

// closedBytes is what the end of one letter has in a group at most.
const closedBytes = 128

// ClosedSize is how many bytes the end of so many letters has in a group, see Close.
func ClosedSize(letters int) int64 { return closedBytes * int64(min(letters, manyClosed)) }

// Empty says that there is nothing to record.
func (r *Records) Empty() bool { return r == nil || len(r.Added) == 0 && len(r.Closed) == 0 }

// Close adds the end of letters. Of many, which only a TRUNCATE brings, all that are as
// old as the newest of them end.
func (r *Records) Close(table change.TableID, refs []catalog.DeadLetterRef, state catalog.DeadLetterState) {
	if len(refs) > manyClosed {
		last := slices.MaxFunc(refs, catalog.DeadLetterRef.Compare)
		r.Closed = append(r.Closed, Closed{Table: table, Ref: last, State: state, Before: true})
		return
	}
	for _, ref := range refs {
		r.Closed = append(r.Closed, Closed{Table: table, Ref: ref, State: state})
	}
}

// Apply records them in the transaction that publishes the group. Tables that are gone, or
// were begun anew since, are passed over. It adds before it closes, since a letter may be
// superseded in the group that it came with.
func (r *Records) Apply(txn *catalog.Txn, pipeline change.PipelineID) error {
	if r.Empty() {
		return nil
	}
	generation := func(id change.TableID) (uint32, bool, error) {
		t, err := txn.TableByID(id)
		if errors.Is(err, catalog.ErrTableNotFound) || err == nil && t.Pipeline != pipeline {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, fmt.Errorf("apply dead letters: %w", err)
		}
		return t.Generation, true, nil
	}
	for _, l := range r.Added {
		g, ok, err := generation(l.Table)
		if err != nil {
			return err
		}
		if !ok || g != l.Generation {
			continue
		}
		if err := txn.AddDeadLetter(l); err != nil {
			return err
		}
	}
	for _, c := range r.Closed {
		_, ok, err := generation(c.Table)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		closing := txn.CloseDeadLetter
		if c.Before {
			closing = txn.CloseDeadLettersTo
		}
		if err := closing(c.Table, c.Ref, c.State); err != nil {
			return err
		}
	}
	return r.event(txn, pipeline)
}

// event tells of the first letter of each group, so that a history is not flooded.
func (r *Records) event(txn *catalog.Txn, pipeline change.PipelineID) error {
	if len(r.Added) == 0 {
		return nil
	}
	l := r.Added[0]
	t, err := txn.TableByID(l.Table)
	if errors.Is(err, catalog.ErrTableNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tell of dead letters: %w", err)
	}
	e := catalog.Event{
		At: txn.Now(), Level: "warning", Kind: "dead letter", Table: t.Schema + "." + t.Name, Detail: l.Reason,
	}
	if n := len(r.Added); n > 1 {
		e.Detail = fmt.Sprintf("%s; with it %d others", l.Reason, n-1)
	}
	if p, err := txn.PipelineByID(pipeline); err == nil {
		e.Pipeline = p.Name
	}
	return txn.AddEvent(e)
}

// Size is how many bytes a letter has in a group.
func Size(l *catalog.DeadLetter) (int64, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return 0, fmt.Errorf("encode dead letter: %w", err)
	}
	return int64(len(b)), nil
}

// Fit is the Size of a letter that is to be added; left is what its group has room for. A
// long row without room there, or among the table's, is not kept: its letter cannot be
// retried, but nothing stops for it.
func (t *Table) Fit(l *catalog.DeadLetter, left int64) (int64, error) {
	size, err := Size(l)
	t.mu.Lock()
	full := t.bytes+int64(len(l.Row)) > OpenBytesMax
	t.mu.Unlock()
	if err != nil || len(l.Row) <= rowBytesSmall || size <= left && !full {
		return size, err
	}
	l.Row = ""
	return Size(l)
}

// Letter is a refused change as it is kept. version is the schema version of its columns;
// copied says that it is a row of an initial copy, nth tells apart those that are equal.
func (t *Table) Letter(r *Refused, version uint32, copied bool, nth int) *catalog.DeadLetter {
	return r.letter(t, version, copied, nth)
}
