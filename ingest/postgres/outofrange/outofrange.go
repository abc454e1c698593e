// Package outofrange is what becomes of values that the type of a column here does not
// hold: infinity, a moment after the last one, NaN in a numeric(p,s). By default they are
// refused, and their row is a dead letter; a pipeline can have them replaced instead, by
// null or by the nearest value, never in a key. No I/O, no clock, no logging here.
package outofrange

import (
	"bytes"
	"errors"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/postgres/value"
)

// Rule is the option out_of_range.
type Rule string

// The rules. Text is one for the type of a column, not for its values: see Widens.
const (
	DeadLetter Rule = "dead_letter"
	Null       Rule = "null"
	Clamp      Rule = "clamp"
	Text       Rule = "text"
)

// RuleOf is the rule of a pipeline's options.
func RuleOf(options map[string]string) Rule {
	switch r := Rule(options["out_of_range"]); r {
	case Null, Clamp, Text:
		return r
	}
	return DeadLetter
}

// Widens says whether rule Text keeps columns of a type as exact text, since the source's
// type has values that the lake's has not. Arrays stay arrays: their elements are what
// queries ask for.
func Widens(t schema.Type) bool {
	switch t.Kind {
	case schema.Date, schema.Timestamp, schema.TimestampTZ, schema.Decimal:
		return true
	}
	return false
}

// Decoder is d with the rule for a column that is not of the key. d is a decoder of the
// text form. A value that a rule does not help, like an array, is refused as before.
func Decoder(d value.Decoder, f schema.Field, rule Rule) value.Decoder {
	switch {
	case rule == Null && !f.NotNull && f.Type.Kind != schema.List:
		return func(dst array.Builder, src []byte) error {
			rows := dst.Len()
			err := d(dst, src)
			if err == nil || !outOfRange(err) || dst.Len() != rows {
				return err
			}
			dst.AppendNull()
			return nil
		}
	case rule == Clamp && Widens(f.Type):
		low, high := bounds(f.Type)
		return func(dst array.Builder, src []byte) error {
			rows := dst.Len()
			err := d(dst, src)
			if err == nil || !outOfRange(err) || errors.Is(err, value.ErrNaN) || dst.Len() != rows {
				return err
			}
			if below(src) {
				low(dst)
			} else {
				high(dst)
			}
			return nil
		}
	}
	return d
}

// outOfRange says whether a value is refused for being too great, or no number at all.
func outOfRange(err error) bool {
	return errors.Is(err, value.ErrInfinity) || errors.Is(err, value.ErrNaN) || errors.Is(err, value.ErrRange)
}

// below says of a value that is out of range on which side it is.
func below(src []byte) bool {
	return bytes.HasPrefix(src, []byte("-")) || bytes.HasSuffix(src, []byte(" BC"))
}

// The least and the greatest moments to which values are clamped: PostgreSQL's, but for
// the last timestamp, which is the end of the last whole year that 64 bits of microseconds
// since 1970 have.
const (
	dateLow       = -2_440_588    // 4714-11-24 BC
	dateHigh      = 2_145_042_905 // 5874897-12-31
	timestampLow  = -2_440_588 * microsPerDay
	timestampHigh = 106_751_982*microsPerDay - 1 // 294246-12-31 23:59:59.999999
	microsPerDay  = 86_400_000_000
)

func bounds(t schema.Type) (low, high func(array.Builder)) {
	switch t.Kind {
	case schema.Date:
		set := func(v arrow.Date32) func(array.Builder) {
			return func(dst array.Builder) { dst.(*array.Date32Builder).Append(v) }
		}
		return set(dateLow), set(dateHigh)
	case schema.Decimal:
		most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
		most.Sub(most, big.NewInt(1))
		v := decimal128.FromBigInt(most)
		set := func(v decimal128.Num) func(array.Builder) {
			return func(dst array.Builder) { dst.(*array.Decimal128Builder).Append(v) }
		}
		return set(v.Negate()), set(v)
	}
	set := func(v arrow.Timestamp) func(array.Builder) {
		return func(dst array.Builder) { dst.(*array.TimestampBuilder).Append(v) }
	}
	return set(timestampLow), set(timestampHigh)
}
