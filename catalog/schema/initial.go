package schema

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// InitialBytesMax is the longest text of an initial value: it is kept with each schema
// version and travels with each plan.
const InitialBytesMax = 64 << 10

// ErrInitial means that a text is no initial value of its type.
var ErrInitial = errors.New("no initial value of the column's type")

// The text of an initial value (Field.Initial) is durable: "true" or "false"; integers
// in decimal; floats as the shortest text that reads back the same, or NaN, +Inf, -Inf;
// decimals with all digits of their scale; dates in days, times and timestamps in
// microseconds, as integers; strings as they are; binary and UUIDs in lower-case
// hexadecimal; lists as a JSON array of the texts of their elements, or null.

// FormatInitial renders value i of a column of type t as the text of an initial value,
// nil for a null. It wraps ErrInitial when the value is too long or of another type.
func FormatInitial(t Type, a arrow.Array, i int) (*string, error) {
	if a.IsNull(i) {
		return nil, nil
	}
	text, err := formatInitial(t, a, i)
	if err != nil {
		return nil, err
	}
	if len(text) > InitialBytesMax || !utf8.ValidString(text) {
		return nil, fmt.Errorf("value of %d bytes: %w", len(text), ErrInitial)
	}
	return &text, nil
}

func formatInitial(t Type, a arrow.Array, i int) (string, error) {
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i)), nil
	case *array.Int32:
		return strconv.FormatInt(int64(a.Value(i)), 10), nil
	case *array.Int64:
		return strconv.FormatInt(a.Value(i), 10), nil
	case *array.Float32:
		return strconv.FormatFloat(float64(a.Value(i)), 'g', -1, 32), nil
	case *array.Float64:
		return strconv.FormatFloat(a.Value(i), 'g', -1, 64), nil
	case *array.Decimal128:
		return a.Value(i).ToString(t.Scale), nil
	case *array.Date32:
		return strconv.FormatInt(int64(a.Value(i)), 10), nil
	case *array.Time64:
		return strconv.FormatInt(int64(a.Value(i)), 10), nil
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10), nil
	case *array.String:
		return a.Value(i), nil
	case *array.Binary:
		return hex.EncodeToString(a.Value(i)), nil
	case *array.FixedSizeBinary:
		return hex.EncodeToString(a.Value(i)), nil
	case *array.List:
		return formatList(t, a, i)
	}
	return "", fmt.Errorf("column of %s: %w", a.DataType(), ErrInitial)
}

func formatList(t Type, a *array.List, i int) (string, error) {
	if t.Kind != List || t.Elem == nil {
		return "", ErrInitial
	}
	from, to := a.ValueOffsets(i)
	texts := make([]*string, 0, to-from)
	for at := from; at < to; at++ {
		text, err := FormatInitial(*t.Elem, a.ListValues(), int(at))
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	b, err := json.Marshal(texts)
	if err != nil {
		return "", fmt.Errorf("list: %w", err)
	}
	return string(b), nil
}

// InitialColumn is what n rows that are older than the field have in it: its initial
// value, or nulls. The caller releases it. It wraps ErrInitial.
func InitialColumn(f Field, n int) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, ArrowType(f.Type))
	defer b.Release()
	if f.Initial == nil {
		b.AppendNulls(n)
		return b.NewArray(), nil
	}
	for range n {
		if err := appendInitial(f.Type, b, *f.Initial); err != nil {
			return nil, fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
	}
	return b.NewArray(), nil
}

func appendInitial(t Type, b array.Builder, text string) error {
	switch t.Kind {
	case Bool:
		v, err := strconv.ParseBool(text)
		b.(*array.BooleanBuilder).Append(v)
		return initialError(err)
	case Float32, Float64:
		return appendFloat(b, text)
	case Decimal:
		return appendDecimal(t, b, text)
	case String:
		b.(*array.StringBuilder).Append(text)
		return nil
	case Binary:
		v, err := hex.DecodeString(text)
		b.(*array.BinaryBuilder).Append(v)
		return initialError(err)
	case UUID:
		v, err := hex.DecodeString(text)
		if err != nil || len(v) != 16 {
			return ErrInitial
		}
		b.(*array.FixedSizeBinaryBuilder).Append(v)
		return nil
	case List:
		return appendList(t, b.(*array.ListBuilder), text)
	}
	return appendInteger(b, text)
}

func initialError(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInitial, err)
	}
	return nil
}

func appendInteger(b array.Builder, text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return initialError(err)
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(v)
	case *array.Time64Builder:
		b.Append(arrow.Time64(v))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v))
	default:
		if v < math.MinInt32 || v > math.MaxInt32 {
			return ErrInitial
		}
		switch b := b.(type) {
		case *array.Int32Builder:
			b.Append(int32(v))
		case *array.Date32Builder:
			b.Append(arrow.Date32(v))
		default:
			return ErrInitial
		}
	}
	return nil
}

func appendFloat(b array.Builder, text string) error {
	if b, ok := b.(*array.Float32Builder); ok {
		v, err := strconv.ParseFloat(text, 32)
		b.Append(float32(v))
		return initialError(err)
	}
	v, err := strconv.ParseFloat(text, 64)
	b.(*array.Float64Builder).Append(v)
	return initialError(err)
}

// decimalTextMost is longer than any text that decimal128 writes.
const decimalTextMost = 64

// appendDecimal reads the text that decimal128 writes, exactly: it has no exponent, which
// could stand for a number of any length.
func appendDecimal(t Type, b array.Builder, text string) error {
	if len(text) > decimalTextMost || strings.Trim(text, "0123456789.-") != "" {
		return ErrInitial
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return ErrInitial
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
	r.Mul(r, new(big.Rat).SetInt(scale))
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
	if !r.IsInt() || r.Num().CmpAbs(limit) >= 0 {
		return ErrInitial
	}
	b.(*array.Decimal128Builder).Append(decimal128.FromBigInt(r.Num()))
	return nil
}

func appendList(t Type, b *array.ListBuilder, text string) error {
	var texts []*string
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return initialError(err)
	}
	b.Append(true)
	for _, v := range texts {
		if v == nil {
			b.ValueBuilder().AppendNull()
			continue
		}
		if err := appendInitial(*t.Elem, b.ValueBuilder(), *v); err != nil {
			return err
		}
	}
	return nil
}

// checkInitial says whether a column's initial value is one of its type.
func checkInitial(c NewField) error {
	if c.Initial == nil {
		return nil
	}
	if len(*c.Initial) > InitialBytesMax {
		return fmt.Errorf("%d bytes: %w", len(*c.Initial), ErrInitial)
	}
	a, err := InitialColumn(c.field(0), 1)
	if err != nil {
		return err
	}
	a.Release()
	return nil
}

// widenInitial is the text of an initial value of type from as one of type to, which
// widens it. Only a float's shortest text says less than its value.
func widenInitial(text *string, from, to Type) *string {
	switch {
	case text == nil || from.Equal(to):
		return text
	case from.Kind == List && to.Kind == List:
		return widenList(text, *from.Elem, *to.Elem)
	case from.Kind != Float32:
		return text
	}
	v, err := strconv.ParseFloat(*text, 32)
	if err != nil {
		return text // checked when it came in
	}
	wide := strconv.FormatFloat(v, 'g', -1, 64)
	return &wide
}

func widenList(text *string, from, to Type) *string {
	var texts []*string
	if err := json.Unmarshal([]byte(*text), &texts); err != nil {
		return text // checked when it came in
	}
	for i := range texts {
		texts[i] = widenInitial(texts[i], from, to)
	}
	b, err := json.Marshal(texts)
	if err != nil {
		return text
	}
	wide := string(b)
	return &wide
}
