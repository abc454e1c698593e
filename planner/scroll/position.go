package scroll

import (
	"context"
	"math"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// All is the count of FETCH ALL.
const All = math.MaxInt64

// Direction is what FETCH and MOVE say of the way.
type Direction uint8

// The directions; FIRST is Absolute 1 and LAST Absolute -1.
const (
	Forward Direction = iota
	Backward
	Absolute
	Relative
)

// Rows are the rows of a cursor, passed one after another.
type Rows interface {
	// Next passes at most n rows behind the current one, All for the rest, and sends them
	// unless they are only passed. It returns how many there were: fewer than n only at the
	// end.
	Next(ctx context.Context, n int64, send bool) (int64, error)
	// Prior is Next for the rows before the current one, the nearest first.
	Prior(ctx context.Context, n int64, send bool) (int64, error)
}

// Position is where a cursor stands: before the first row, on a row, or behind the last.
type Position struct {
	// scroll says that it may go back.
	scroll bool
	// atStart and atEnd say that it is before the first row and behind the last one.
	atStart, atEnd bool
	// row is the number of the current row, from 1, or of the last one if it is atEnd.
	row int64
}

// New is the position of a cursor that was declared just now.
func New(scroll bool) *Position { return &Position{scroll: scroll, atStart: true} }

// OnRow says that it is on a row.
func (p *Position) OnRow() bool { return !p.atStart && !p.atEnd }

func errForward() error {
	return pgerr.New(codes.ObjectNotInPrerequisiteState, "cursor can only scan forward").
		WithHint("Declare it with SCROLL option to enable backward scan.")
}

// Step is what is left of a FETCH or MOVE: so many rows in one direction.
type Step struct {
	Backward bool
	Count    int64
}

// Aim does what a FETCH or MOVE begins with, passing rows that it does not return, and
// returns the step that it ends with. For a MOVE of no row, done is how many it counts.
func (p *Position) Aim(ctx context.Context, rows Rows, d Direction, count int64, move bool) (s Step, done int64, err error) {
	switch d {
	case Absolute:
		return p.absolute(ctx, rows, count)
	case Relative:
		if count != 0 {
			s = Step{Backward: count < 0, Count: magnitude(count)}
			if s.Count > 1 {
				_, err = p.Run(ctx, rows, Step{s.Backward, s.Count - 1}, false)
			}
			return Step{s.Backward, 1}, 0, err
		}
	case Backward:
		s.Backward = true
	}
	if count < 0 {
		s.Backward = !s.Backward
	}
	if s.Count = magnitude(count); s.Count > 0 {
		return s, 0, nil
	}
	if !p.OnRow() {
		return Step{}, 0, nil
	}
	if move {
		return Step{}, 1, nil
	}
	_, err = p.Run(ctx, rows, Step{Backward: true, Count: 1}, false)
	return Step{Count: 1}, 0, err
}

func magnitude(n int64) int64 {
	switch {
	case n == math.MinInt64:
		return All
	case n < 0:
		return -n
	}
	return n
}

func (p *Position) absolute(ctx context.Context, rows Rows, n int64) (s Step, done int64, err error) {
	switch {
	case n > 0:
		at := p.row
		if p.atEnd {
			at++
		}
		switch {
		case n-1 <= p.row/2:
			if err = p.rewind(ctx, rows); err == nil && n > 1 {
				_, err = p.Run(ctx, rows, Step{Count: n - 1}, false)
			}
		case n <= at:
			_, err = p.Run(ctx, rows, Step{Backward: true, Count: at - n + 1}, false)
		case n > at+1:
			_, err = p.Run(ctx, rows, Step{Count: n - at - 1}, false)
		}
		return Step{Count: 1}, 0, err
	case n < 0:
		if _, err = p.Run(ctx, rows, Step{Count: All}, false); err == nil && n < -1 {
			_, err = p.Run(ctx, rows, Step{Backward: true, Count: magnitude(n) - 1}, false)
		}
		return Step{Backward: true, Count: 1}, 0, err
	}
	return Step{}, 0, p.rewind(ctx, rows)
}

func (p *Position) rewind(ctx context.Context, rows Rows) error {
	if p.atStart && !p.atEnd {
		return nil
	}
	_, err := p.Run(ctx, rows, Step{Backward: true, Count: All}, false)
	return err
}

// Run takes a step, and returns how many rows there were.
func (p *Position) Run(ctx context.Context, rows Rows, s Step, send bool) (n int64, err error) {
	if s.Backward {
		return p.back(ctx, rows, s.Count, send)
	}
	if p.atEnd || s.Count <= 0 {
		return 0, nil
	}
	if n, err = rows.Next(ctx, s.Count, send); err != nil {
		return n, err
	}
	if n > 0 {
		p.atStart = false
	}
	p.atEnd = n < s.Count
	p.row += n
	return n, nil
}

func (p *Position) back(ctx context.Context, rows Rows, count int64, send bool) (n int64, err error) {
	if !p.scroll {
		return 0, errForward()
	}
	if p.atStart || count <= 0 {
		// Nothing is before it; a cursor without rows stays behind its end, too.
		return 0, nil
	}
	if n, err = rows.Prior(ctx, count, send); err != nil {
		return n, err
	}
	if n > 0 && p.atEnd {
		p.atEnd = false
		p.row++
	}
	if n < count {
		p.atStart, p.row = true, 0
		return n, nil
	}
	p.row -= n
	return n, nil
}
