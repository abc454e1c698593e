// Package sequence is what a sequence is, and which values it gives. It does no I/O.
package sequence

import (
	"errors"
	"time"

	"github.com/skipprd/skipprd/wal/change"
)

// ErrLimit means that a sequence that does not cycle has given its last value.
var ErrLimit = errors.New("sequence has reached its limit")

// Sequence gives numbers.
type Sequence struct {
	// ID is one that no table or view has: they share their numbers.
	ID           change.TableID
	Schema, Name string
	// Type is the object id of smallint, integer or bigint.
	Type                              uint32
	Start, Increment, Min, Max, Cache int64
	Cycle                             bool `json:",omitempty"`
	// Last is the newest value that may have been given; the next one follows it. Unless
	// Called, it is the next one itself.
	Last   int64
	Called bool `json:",omitempty"`
	// Resets counts the changes after which values that were set apart before do not count.
	Resets uint64 `json:",omitempty"`
	// Table and Column are the table, by the id under which users know it, and the field with
	// which the sequence goes; 0 for none.
	Table  change.TableID `json:",omitempty"`
	Column int32          `json:",omitempty"`
	// Identity is "a" for that of a column GENERATED ALWAYS AS IDENTITY, "d" for BY DEFAULT.
	Identity  string `json:",omitempty"`
	Comment   string `json:",omitempty"`
	CreatedAt time.Time
	// Owner is the role that makes it; kept with the rights on it.
	Owner uint32 `json:"-"`
}

// Clone is a copy that shares nothing changeable.
func (s *Sequence) Clone() *Sequence {
	c := *s
	return &c
}

// Range are Count values from First on, Step apart.
type Range struct {
	First, Step int64
	Count       int64
}

// At is the i-th value, from 0.
func (r Range) At(i int64) int64 { return r.First + i*r.Step }

// Last is the last value.
func (r Range) Last() int64 { return r.At(r.Count - 1) }

// Take takes up to n values, and at least one: fewer where the limit is near. It wraps
// ErrLimit when there is none.
func (s *Sequence) Take(n int64) (Range, error) {
	first, ok := s.Last, true
	if s.Called {
		first, ok = s.following()
	}
	if !ok {
		return Range{}, ErrLimit
	}
	count := min(n, s.room(first))
	r := Range{First: first, Step: s.Increment, Count: count}
	s.Last, s.Called = r.Last(), true
	return r, nil
}

// following is the value behind Last.
func (s *Sequence) following() (int64, bool) {
	switch {
	case s.Increment > 0 && (s.Last > s.Max || uint64(s.Max)-uint64(s.Last) < uint64(s.Increment)):
		return s.Min, s.Cycle
	case s.Increment < 0 && (s.Last < s.Min || uint64(s.Last)-uint64(s.Min) < -uint64(s.Increment)):
		return s.Max, s.Cycle
	}
	return s.Last + s.Increment, true
}

// room is how many values there are from first to the limit.
func (s *Sequence) room(first int64) int64 {
	var left uint64
	if s.Increment > 0 {
		left = (uint64(s.Max) - uint64(first)) / uint64(s.Increment)
	} else {
		left = (uint64(first) - uint64(s.Min)) / -uint64(s.Increment)
	}
	const most = 1 << 40 // more than anybody takes at once
	return int64(min(left, most)) + 1
}
