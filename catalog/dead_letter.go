package catalog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/wal/change"
)

// DeadLetterState is what became of a dead letter.
type DeadLetterState string

// The states of a dead letter. All but open are final.
const (
	DeadLetterOpen       DeadLetterState = "open"
	DeadLetterRetried    DeadLetterState = "retried"    // its row is in the table
	DeadLetterSuperseded DeadLetterState = "superseded" // by a later change of its key
	DeadLetterDiscarded  DeadLetterState = "discarded"  // its table was copied anew
)

// DeadLetterRef names a dead letter of a table: the order token and the ordinal of its
// change, and a number that is the same whenever the same change is refused again.
type DeadLetterRef struct {
	Token   int64  `json:"token"`
	Ordinal int32  `json:"ordinal,omitempty"`
	ID      uint64 `json:"id"` // below 1<<63, not 0
}

// Compare orders letters of a table as their changes.
func (r DeadLetterRef) Compare(o DeadLetterRef) int {
	return cmp.Or(cmp.Compare(r.Token, o.Token), cmp.Compare(r.Ordinal, o.Ordinal), cmp.Compare(r.ID, o.ID))
}

// DeadLetter is a change that was set aside because it could not be taken in.
type DeadLetter struct {
	Table change.TableID `json:"table"`
	DeadLetterRef
	// Generation is the table's when it was set aside; one of an older is discarded.
	Generation uint32 `json:"generation,omitempty"`
	// SchemaVersion is the one whose columns Row has.
	SchemaVersion uint32 `json:"schema"`
	// Position is where the source stood before the transaction, "" for a copied row.
	Position change.Position `json:"position,omitempty"`
	Op       change.Op       `json:"op"`
	// Copied says that it is a row of an initial copy.
	Copied bool `json:"copied,omitempty"`
	// Doubtful says of a copied row that the stream may have passed a change of it already.
	Doubtful bool `json:"doubtful,omitempty"`
	// Key is the row key in the source's text, as a JSON array; "" without a key.
	Key string `json:"key,omitempty"`
	// Row is a JSON object of the columns in the source's text; "" when it is too large to
	// be kept, or when the letter is closed.
	Row    string `json:"row,omitempty"`
	Column string `json:"column,omitempty"` // that was refused
	Reason string `json:"reason"`           // a clause
	Code   string `json:"code"`             // an SQLSTATE
	// FirstSeen is when it was set aside, ChangedAt when its state last changed.
	FirstSeen time.Time       `json:"first_seen"`
	State     DeadLetterState `json:"state,omitempty"`
	ChangedAt time.Time       `json:"changed_at"`
}

// deadLetterKey sorts letters of a table: open ones first, then as their changes.
func deadLetterKey(table change.TableID, open bool, ref DeadLetterRef) []byte {
	k := deadLetterPrefix(table, open)
	k = binary.BigEndian.AppendUint64(k, uint64(ref.Token)^1<<63)
	k = binary.BigEndian.AppendUint32(k, uint32(ref.Ordinal))
	return binary.BigEndian.AppendUint64(k, ref.ID)
}

func deadLetterPrefix(table change.TableID, open bool) []byte {
	var closed byte
	if !open {
		closed = 1
	}
	return append(tableKey(prefixDeadLetter, table), closed)
}

// LettersEnd is how the dead letters of a table ended, of one generation, up to one.
type LettersEnd struct {
	Generation uint32 `json:",omitempty"`
	Last       DeadLetterRef
	State      DeadLetterState
}

// AddDeadLetter records an open letter. One that is there already stays as it is: the
// change was refused again, or what closes it became durable first. That may also have closed
// all letters up to a later one.
func (t *Txn) AddDeadLetter(l *DeadLetter) error {
	for _, open := range []bool{true, false} {
		_, err := t.kv.Get(deadLetterKey(l.Table, open, l.DeadLetterRef))
		if err == nil {
			return nil
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return fmt.Errorf("look for dead letter %d: %w", l.ID, err)
		}
	}
	tbl, err := t.reader.TableByID(l.Table)
	if err != nil {
		return err
	}
	c := *l
	c.State = DeadLetterOpen
	end := tbl.LettersEnd
	ended := end != nil && end.Generation == l.Generation && l.Compare(end.Last) <= 0
	if ended {
		c.State, c.Row = end.State, ""
	}
	if c.FirstSeen.IsZero() {
		c.FirstSeen = t.now
	}
	c.ChangedAt = c.FirstSeen
	if err := t.setJSON(deadLetterKey(l.Table, !ended, l.DeadLetterRef), &c); err != nil {
		return fmt.Errorf("put dead letter %d: %w", l.ID, err)
	}
	return nil
}

// CloseDeadLetter gives an open letter its final state; its row is no longer kept. A letter
// that is not there is noted, so that it is closed when it comes; a closed one stays.
func (t *Txn) CloseDeadLetter(table change.TableID, ref DeadLetterRef, state DeadLetterState) error {
	l := DeadLetter{Table: table, DeadLetterRef: ref, FirstSeen: t.now}
	key := deadLetterKey(table, true, ref)
	row, err := t.kv.Get(key)
	switch {
	case err == nil:
		if err := decodeJSON(row, &l); err != nil {
			return fmt.Errorf("dead letter %d: %w", ref.ID, err)
		}
		if err := t.delete(key); err != nil {
			return fmt.Errorf("close dead letter %d: %w", ref.ID, err)
		}
	case !errors.Is(err, kv.ErrNotFound):
		return fmt.Errorf("look for dead letter %d: %w", ref.ID, err)
	default:
		_, err := t.kv.Get(deadLetterKey(table, false, ref))
		if err == nil {
			return nil
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return fmt.Errorf("look for dead letter %d: %w", ref.ID, err)
		}
	}
	l.State, l.Row, l.ChangedAt = state, "", t.now
	if err := t.setJSON(deadLetterKey(table, false, ref), &l); err != nil {
		return fmt.Errorf("close dead letter %d: %w", ref.ID, err)
	}
	return nil
}

// CloseDeadLettersTo gives all open letters of a table up to one their final state, and those
// that are yet to come of its generation: a copy may be about to make some durable.
func (t *Txn) CloseDeadLettersTo(table change.TableID, last DeadLetterRef, state DeadLetterState) error {
	tbl, err := t.TableByID(table)
	if err != nil {
		return err
	}
	end := tbl.LettersEnd
	if end == nil || end.Generation != tbl.Generation || end.Last.Compare(last) < 0 {
		tbl.LettersEnd = &LettersEnd{Generation: tbl.Generation, Last: last, State: state}
		if err := t.PutTable(tbl); err != nil {
			return fmt.Errorf("end dead letters: %w", err)
		}
	}
	var refs []DeadLetterRef
	err = t.deadLetters(deadLetterPrefix(table, true), func(_ []byte, l *DeadLetter) {
		if l.Compare(last) <= 0 {
			refs = append(refs, l.DeadLetterRef)
		}
	})
	for _, ref := range refs {
		err = errors.Join(err, t.CloseDeadLetter(table, ref, state))
	}
	return err
}

// TrimDeadLetters forgets a table's letters of older generations, and of the closed ones
// all but the newest keep. Not while a stream of the table runs: it may name them.
func (t *Txn) TrimDeadLetters(table change.TableID, keep int) error {
	tbl, err := t.reader.TableByID(table)
	if err != nil {
		return err
	}
	var gone [][]byte
	var closed [][]byte
	err = t.deadLetters(tableKey(prefixDeadLetter, table), func(key []byte, l *DeadLetter) {
		switch {
		case l.Generation != tbl.Generation && (l.State == DeadLetterOpen || l.SchemaVersion != 0):
			gone = append(gone, key)
		case l.State != DeadLetterOpen:
			closed = append(closed, key)
		}
	})
	if err != nil {
		return err
	}
	if n := len(closed) - keep; n > 0 {
		gone = append(gone, closed[:n]...)
	}
	for _, key := range gone {
		if err := t.delete(key); err != nil {
			return fmt.Errorf("forget dead letter: %w", err)
		}
	}
	return nil
}

// DeadLetters are a table's letters: the open ones first, each in the order of their
// changes. What was closed before it came is left out.
func (r *reader) DeadLetters(table change.TableID) ([]*DeadLetter, error) {
	tbl, err := r.TableByID(table)
	if err != nil {
		return nil, err
	}
	var out []*DeadLetter
	err = r.deadLetters(tableKey(prefixDeadLetter, table), func(_ []byte, l *DeadLetter) {
		if l.SchemaVersion == 0 {
			return
		}
		if l.State == DeadLetterOpen && l.Generation != tbl.Generation {
			l.State, l.Row = DeadLetterDiscarded, ""
		}
		out = append(out, l)
	})
	return out, err
}

// OpenDeadLetters are those of a table's letters that are open, in the order of their
// changes.
func (r *reader) OpenDeadLetters(table change.TableID) ([]*DeadLetter, error) {
	tbl, err := r.TableByID(table)
	if err != nil {
		return nil, err
	}
	var out []*DeadLetter
	err = r.deadLetters(deadLetterPrefix(table, true), func(_ []byte, l *DeadLetter) {
		if l.Generation == tbl.Generation {
			out = append(out, l)
		}
	})
	return out, err
}

// deadLetters visits letters in the order of their keys. fn may keep what it gets.
func (r *reader) deadLetters(prefix []byte, fn func(key []byte, l *DeadLetter)) error {
	err := kv.IteratePrefix(r.kv, prefix, func(k, v []byte) error {
		l := &DeadLetter{}
		if err := decodeJSON(v, l); err != nil {
			return fmt.Errorf("key %x: %w", k, err)
		}
		fn(append([]byte(nil), k...), l)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read dead letters: %w", err)
	}
	return nil
}

// deleteDeadLetters forgets all letters of a table.
func (t *Txn) deleteDeadLetters(table change.TableID) error {
	lower := tableKey(prefixDeadLetter, table)
	return t.deleteRange(lower, kv.PrefixEnd(lower))
}
