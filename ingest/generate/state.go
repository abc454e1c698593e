package generate

import (
	"sort"

	"github.com/skipprd/skipprd/wal/change"
)

// State is what the tables hold after some transactions: the oracle. It keeps what
// was touched, not rows, so it grows with the history only. Not safe for concurrent
// use while it advances.
type State struct {
	shop    Shop
	n       int64
	touched [tableCount]map[int64]int64 // id → the transaction that wrote it, or removed
	scratch []Change
}

const removed = -1

// NewState returns the tables before the first transaction.
func NewState(cfg Config) *State {
	s := &State{shop: NewShop(cfg)}
	for t := range s.touched {
		s.touched[t] = map[int64]int64{}
	}
	return s
}

// StateAt returns the tables after transaction n.
func StateAt(cfg Config, n int64) *State {
	s := NewState(cfg)
	s.Advance(n)
	return s
}

// N is the last transaction that the state contains.
func (s *State) N() int64 { return s.n }

// Advance applies transactions up to n; a state does not go back.
func (s *State) Advance(n int64) {
	for s.n < n {
		s.n++
		s.scratch = s.shop.Transaction(s.scratch[:0], s.n)
		for _, c := range s.scratch {
			if c.Op == change.Delete {
				s.touched[c.Table][c.id] = removed
			} else {
				s.touched[c.Table][c.id] = s.n
			}
		}
	}
}

// Rows returns all rows of a table, those at first in the order of their ids, then
// the later ones in theirs.
func (s *State) Rows(t Table) []Row {
	rows := make([]Row, 0, s.shop.Initial(t))
	_ = s.each(t, 1, 0, func(r Row) error {
		rows = append(rows, r)
		return nil
	})
	return rows
}

// each calls fn for the rows with from ≤ id < to; to = 0 means without end.
func (s *State) each(t Table, from, to int64, fn func(Row) error) error {
	initial := s.shop.Initial(t)
	for id := from; id <= initial && (to == 0 || id < to); id++ {
		n := s.touched[t][id]
		if n == removed {
			continue
		}
		if err := fn(s.shop.row(t, id, n)); err != nil {
			return err
		}
	}
	var later []int64
	for id, n := range s.touched[t] {
		if id > initial && id >= from && (to == 0 || id < to) && n != removed {
			later = append(later, id)
		}
	}
	sort.Slice(later, func(i, j int) bool { return later[i] < later[j] })
	for _, id := range later {
		if err := fn(s.shop.row(t, id, s.touched[t][id])); err != nil {
			return err
		}
	}
	return nil
}
