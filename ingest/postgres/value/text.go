package value

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/digit"
)

// TextDecoder is the decoder of a type's text form, for every lake type. The
// decoder may hold scratch space: it is for one goroutine.
func TextDecoder(t schema.Type) (Decoder, error) {
	switch t.Kind {
	case schema.Bool:
		return textBool, nil
	case schema.Int32:
		return textInt32, nil
	case schema.Int64:
		return textInt64, nil
	case schema.Float32:
		return textFloat32, nil
	case schema.Float64:
		return textFloat64, nil
	case schema.Decimal:
		return textDecimal(t.Precision, t.Scale), nil
	case schema.Date:
		return textDate, nil
	case schema.Time:
		return textTime, nil
	case schema.Timestamp, schema.TimestampTZ:
		return textTimestamp, nil
	case schema.String:
		return textString, nil
	case schema.Binary:
		return textBytea(), nil
	case schema.UUID:
		return textUUID, nil
	case schema.List:
		if t.Elem == nil || t.Elem.Kind == schema.List {
			return nil, fmt.Errorf("text decoder: list without a scalar element type")
		}
		elem, err := TextDecoder(*t.Elem)
		if err != nil {
			return nil, err
		}
		return textArray(elem), nil
	}
	return nil, fmt.Errorf("text decoder: unknown kind %d", t.Kind)
}

func textBool(dst array.Builder, src []byte) error {
	if len(src) != 1 || (src[0] != 't' && src[0] != 'f') {
		return ErrMalformed
	}
	dst.(*array.BooleanBuilder).Append(src[0] == 't')
	return nil
}

func textInt32(dst array.Builder, src []byte) error {
	v, err := parseInt(src)
	if err != nil {
		return err
	}
	if v < math.MinInt32 || v > math.MaxInt32 {
		return ErrRange
	}
	dst.(*array.Int32Builder).Append(int32(v))
	return nil
}

func textInt64(dst array.Builder, src []byte) error {
	v, err := parseInt(src)
	if err != nil {
		return err
	}
	dst.(*array.Int64Builder).Append(v)
	return nil
}

// parseInt reads an optional sign and 1 to 19 digits.
func parseInt(src []byte) (int64, error) {
	digits := src
	negative := len(src) > 0 && src[0] == '-'
	if negative {
		digits = src[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, ErrMalformed
	}
	var v uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, ErrMalformed
		}
		v = v*10 + uint64(c-'0')
	}
	switch {
	case negative && v <= 1<<63:
		return -int64(v), nil
	case !negative && v < 1<<63:
		return int64(v), nil
	}
	return 0, ErrRange
}

// nan has the bits of PostgreSQL's NaN; those of Go's differ.
var nan = math.Float64frombits(0x7ff8_0000_0000_0000)

func textFloat32(dst array.Builder, src []byte) error {
	v, err := strconv.ParseFloat(view(src), 32)
	if err != nil {
		return ErrMalformed
	}
	if v != v { // one NaN, whichever way it came: it may be in a key
		v = nan
	}
	dst.(*array.Float32Builder).Append(float32(v))
	return nil
}

func textFloat64(dst array.Builder, src []byte) error {
	v, err := strconv.ParseFloat(view(src), 64)
	if err != nil {
		return ErrMalformed
	}
	if v != v {
		v = nan
	}
	dst.(*array.Float64Builder).Append(v)
	return nil
}

// view is src as a string that is valid while src is not written.
func view(src []byte) string { return unsafe.String(unsafe.SliceData(src), len(src)) }

func textDecimal(precision, scale int32) Decoder {
	return func(dst array.Builder, src []byte) error {
		v, err := parseDecimal(src, precision, scale)
		if err != nil {
			return err
		}
		dst.(*array.Decimal128Builder).Append(v)
		return nil
	}
}

func textDate(dst array.Builder, src []byte) error {
	days, err := parseDate(src)
	if err != nil {
		return err
	}
	dst.(*array.Date32Builder).Append(arrow.Date32(days))
	return nil
}

func textTime(dst array.Builder, src []byte) error {
	us, rest, err := parseClock(src)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return ErrMalformed
	}
	dst.(*array.Time64Builder).Append(arrow.Time64(us))
	return nil
}

func textTimestamp(dst array.Builder, src []byte) error {
	us, err := parseTimestamp(src)
	if err != nil {
		return err
	}
	dst.(*array.TimestampBuilder).Append(arrow.Timestamp(us))
	return nil
}

// textString serves both wire forms: text and its binary form are the same bytes.
func textString(dst array.Builder, src []byte) error {
	if !utf8.Valid(src) {
		return ErrEncoding
	}
	dst.(*array.StringBuilder).BinaryBuilder.Append(src)
	return nil
}

func textBytea() Decoder {
	var scratch []byte
	return func(dst array.Builder, src []byte) error {
		if len(src) < 2 || src[0] != '\\' || src[1] != 'x' {
			return ErrMalformed
		}
		n := hex.DecodedLen(len(src) - 2)
		if cap(scratch) < n {
			scratch = make([]byte, n)
		}
		if _, err := hex.Decode(scratch[:n], src[2:]); err != nil {
			return ErrMalformed
		}
		dst.(*array.BinaryBuilder).Append(scratch[:n])
		if cap(scratch) > scratchKept {
			scratch = nil
		}
		return nil
	}
}

// scratchKept is the largest scratch buffer that a decoder keeps between values.
const scratchKept = 1 << 20

func textUUID(dst array.Builder, src []byte) error {
	if len(src) != 36 {
		return ErrMalformed
	}
	var id [16]byte
	at := 0
	for i := 0; i < 36; {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if src[i] != '-' {
				return ErrMalformed
			}
			i++
			continue
		}
		hi, lo := digit.Hex(src[i]), digit.Hex(src[i+1])
		if hi|lo < 0 {
			return ErrMalformed
		}
		id[at] = byte(hi<<4 | lo)
		at++
		i += 2
	}
	dst.(*array.FixedSizeBinaryBuilder).Append(id[:])
	return nil
}
