package own

import (
	"context"
	"fmt"
	"sync"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Sequences gives out the values of sequences. Values are set apart in the catalog, durably
// and with its image, before any of them is given: a crash, or another host that takes over,
// begins behind them. So a value is given once, and those set apart and not given are gaps.
//
// Safe for concurrent use. No lock is held while the catalog writes.
type Sequences struct {
	catalog *catalog.Catalog
	mu      struct {
		sync.Mutex
		states map[change.TableID]*drawn
	}
}

// drawn is what this process knows of a sequence.
type drawn struct {
	// resets is the change of the sequence that the rest is of.
	resets uint64
	// left are values set apart and not given.
	left []sequence.Range
	// last is the newest given, as the sequence's Last and Called; known says that there is one.
	last   int64
	called bool
	known  bool
	// ahead is how many are set apart beyond what is asked for.
	ahead int64
	// settled counts the times when all that was set apart was given up.
	settled uint64
}

// Values are set apart beyond those asked for, twice as many each time, in these bounds.
const (
	aheadLeast = 32
	aheadMost  = 1024
)

// NewSequences gives out values of the catalog's sequences.
func NewSequences(c *catalog.Catalog) *Sequences {
	s := &Sequences{catalog: c}
	s.mu.states = map[change.TableID]*drawn{}
	return s
}

// Draw gives out n values, in their order. It wraps catalog.ErrTableNotFound, or
// sequence.ErrLimit: then none is given, though some may be lost.
func (s *Sequences) Draw(ctx context.Context, id change.TableID, n int64) ([]sequence.Range, error) {
	var out []sequence.Range
	for missing := n; missing > 0; {
		row, err := s.row(id)
		if err != nil {
			return nil, err
		}
		got, stale := s.take(row, missing)
		for _, r := range got {
			missing -= r.Count
		}
		out = append(out, got...)
		if missing == 0 || stale {
			continue
		}
		if err := s.setApart(ctx, id, missing); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Sequences) row(id change.TableID) (*sequence.Sequence, error) {
	snap := s.catalog.Snapshot()
	defer snap.Close()
	return snap.SequenceByID(id)
}

// stateLocked is what is known of a sequence as a row has it.
func (s *Sequences) stateLocked(row *sequence.Sequence) *drawn {
	d := s.mu.states[row.ID]
	if d == nil {
		d = &drawn{resets: row.Resets}
		s.mu.states[row.ID] = d
	}
	if d.resets < row.Resets {
		*d = drawn{resets: row.Resets, ahead: d.ahead, settled: d.settled}
	}
	return d
}

// take gives out values that are set apart; stale says that the row is older than a change
// that is known of.
func (s *Sequences) take(row *sequence.Sequence, n int64) (out []sequence.Range, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.stateLocked(row)
	if d.resets > row.Resets {
		return nil, true
	}
	for n > 0 && len(d.left) > 0 {
		first := d.left[0]
		part := first
		part.Count = min(n, first.Count)
		out, n = append(out, part), n-part.Count
		d.last, d.called, d.known = part.Last(), true, true
		if part.Count == first.Count {
			d.left = d.left[1:]
			continue
		}
		d.left[0] = sequence.Range{First: first.At(part.Count), Step: first.Step, Count: first.Count - part.Count}
	}
	return out, false
}

// setApart sets values apart.
func (s *Sequences) setApart(ctx context.Context, id change.TableID, n int64) error {
	s.mu.Lock()
	ahead, settled := int64(aheadLeast), uint64(0)
	if d := s.mu.states[id]; d != nil {
		ahead = min(max(d.ahead*2, aheadLeast), aheadMost)
		d.ahead, settled = ahead, d.settled
	}
	s.mu.Unlock()
	var row *sequence.Sequence
	var got sequence.Range
	err := s.catalog.Update(ctx, func(txn *catalog.Txn) error {
		found, err := txn.SequenceByID(id)
		if err != nil {
			return err
		}
		row = found.Clone()
		if got, err = row.Take(n + ahead); err != nil {
			return err
		}
		if mutant.On(mutant.ValuesNotSetApart) {
			return nil
		}
		return txn.PutSequence(row)
	})
	if err != nil {
		return fmt.Errorf("set values of sequence %d apart: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.stateLocked(row); d.resets == row.Resets && d.settled == settled { // else somebody goes on from before them
		d.left = append(d.left, got)
	}
	return nil
}

// Set makes value the newest one given, or, unless called, the next one.
func (s *Sequences) Set(ctx context.Context, id change.TableID, value int64, called bool) error {
	var row *sequence.Sequence
	err := s.catalog.Update(ctx, func(txn *catalog.Txn) error {
		found, err := txn.SequenceByID(id)
		if err != nil {
			return err
		}
		row = found.Clone()
		row.Last, row.Called, row.Resets = value, called, row.Resets+1
		if mutant.On(mutant.SetvalForgotten) {
			row.Resets--
		}
		return txn.PutSequence(row)
	})
	if err != nil {
		return fmt.Errorf("set sequence %d: %w", id, err)
	}
	return nil
}

// Settle gives up the values that are set apart, and says which was given last: the next
// change of the sequence, which the caller is about to make in the same transaction of the
// catalog, may begin there. known is false when this process has given none.
func (s *Sequences) Settle(row *sequence.Sequence) (last int64, called, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.mu.states[row.ID]
	if d == nil {
		d = &drawn{}
		s.mu.states[row.ID] = d
	}
	d.left, d.settled = nil, d.settled+1
	return d.last, d.called, d.known && d.resets == row.Resets // the row may be one that is not committed
}

// Shown is the newest value given, as a sequence's last_value and is_called.
func (s *Sequences) Shown(row *sequence.Sequence) (last int64, called bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.mu.states[row.ID]; d != nil && d.known && d.resets == row.Resets {
		return d.last, d.called
	}
	return row.Last, row.Called
}
