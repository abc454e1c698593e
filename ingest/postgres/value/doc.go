// Package value turns values as PostgreSQL sends them, in text or binary, into
// values of Arrow builders.
//
// A decoder is chosen once per column (TextDecoder, BinaryDecoder) and then called
// per value. Decoders do not allocate per value, keep nothing of their input, and
// never guess: a value that the lake type cannot hold exactly is an *Error, whose
// text names the class of the value and never the value.
//
// A decoder that fails has appended either nothing or one value; the caller evens
// out its columns (see Even) and drops the row.
//
// The texts are those of a session with DateStyle ISO, IntervalStyle postgres and
// bytea_output hex. No I/O, no clock, no logging here.
package value

import (
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Decoder appends one value that is not null to dst, which is the builder of the
// column's Arrow type. src is valid during the call only.
type Decoder func(dst array.Builder, src []byte) error

// Error says why a value cannot be taken in.
type Error struct {
	// Class is a clause about the value: "holds infinity". It never quotes the value.
	Class string
	// Code is its SQLSTATE, "" where the class and the column's type decide.
	Code string
}

// Error is the class.
func (e *Error) Error() string { return "value " + e.Class }

// The classes of values that are refused.
var (
	ErrInfinity   = &Error{Class: "holds infinity, which the column's type here cannot hold"}
	ErrNaN        = &Error{Class: "holds NaN, which the column's type here cannot hold"}
	ErrRange      = &Error{Class: "is outside the range of the column's type here"}
	ErrScale      = &Error{Class: "has more decimal places than the column's type here"}
	ErrDimensions = &Error{Class: "is an array of several dimensions, or an empty one inside another"}
	ErrLowerBound = &Error{Class: "is an array whose first subscript is not 1"}
	ErrMalformed  = &Error{Class: "is not written as its type is"}
	ErrEncoding   = &Error{Class: "is not valid UTF-8"}
)

// Even appends a null to every column of a row that a failed decoder left short, so
// that all have rows values.
func Even(columns []array.Builder, rows int) {
	for _, c := range columns {
		if c.Len() < rows {
			c.AppendNull()
		}
	}
}
