package value

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
)

// The type OIDs whose binary form is decoded.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidOID         = 26
	oidFloat4      = 700
	oidFloat8      = 701
	oidBPChar      = 1042
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidNumeric     = 1700
	oidUUID        = 2950
)

// element maps an array type to its element type.
var element = map[uint32]uint32{
	1000: oidBool, 1001: oidBytea, 1016: oidInt8, 1005: oidInt2, 1007: oidInt4, 1009: oidText,
	1028: oidOID, 1021: oidFloat4, 1022: oidFloat8, 1014: oidBPChar, 1015: oidVarchar,
	1182: oidDate, 1183: oidTime, 1115: oidTimestamp, 1185: oidTimestampTZ,
	1231: oidNumeric, 2951: oidUUID,
}

// BinaryDecoder is the decoder of the binary form of a source type into a lake type,
// or ok = false when the pair has none and text is the form to ask for. The decoder
// is for one goroutine.
func BinaryDecoder(oid uint32, t schema.Type) (d Decoder, ok bool) {
	return BinaryDecoderOf(oid, t, textString)
}

// BinaryDecoderOf is BinaryDecoder with another decoder of texts, also of those in arrays.
func BinaryDecoderOf(oid uint32, t schema.Type, text Decoder) (d Decoder, ok bool) {
	if t.Kind == schema.List {
		elemOID, known := element[oid]
		if !known || t.Elem == nil {
			return nil, false
		}
		elem, ok := BinaryDecoderOf(elemOID, *t.Elem, text)
		if !ok {
			return nil, false
		}
		return binaryArray(elem), true
	}
	if oid == oidNumeric {
		return binaryDecimal(t.Precision, t.Scale), t.Kind == schema.Decimal
	}
	s, ok := scalars[oid]
	if !ok || s.kind != t.Kind {
		return nil, false
	}
	if s.kind == schema.String {
		return text, true
	}
	return s.decode, true
}

var scalars = map[uint32]struct {
	kind   schema.Kind
	decode Decoder
}{
	oidBool: {schema.Bool, binaryBool}, oidInt2: {schema.Int32, binaryInt2}, oidInt4: {schema.Int32, binaryInt4},
	oidInt8: {schema.Int64, binaryInt8}, oidOID: {schema.Int64, binaryOID},
	oidFloat4: {schema.Float32, binaryFloat4}, oidFloat8: {schema.Float64, binaryFloat8},
	oidText: {schema.String, textString}, oidVarchar: {schema.String, textString}, oidBPChar: {schema.String, textString},
	oidBytea: {schema.Binary, binaryBytea}, oidDate: {schema.Date, binaryDate}, oidTime: {schema.Time, binaryTime},
	oidTimestamp: {schema.Timestamp, binaryTimestamp}, oidTimestampTZ: {schema.TimestampTZ, binaryTimestamp},
	oidUUID: {schema.UUID, binaryUUID},
}

func binaryBool(dst array.Builder, src []byte) error {
	if len(src) != 1 {
		return ErrMalformed
	}
	dst.(*array.BooleanBuilder).Append(src[0] != 0)
	return nil
}

func binaryInt2(dst array.Builder, src []byte) error {
	if len(src) != 2 {
		return ErrMalformed
	}
	dst.(*array.Int32Builder).Append(int32(int16(binary.BigEndian.Uint16(src))))
	return nil
}

func binaryInt4(dst array.Builder, src []byte) error {
	if len(src) != 4 {
		return ErrMalformed
	}
	dst.(*array.Int32Builder).Append(int32(binary.BigEndian.Uint32(src)))
	return nil
}

func binaryInt8(dst array.Builder, src []byte) error {
	if len(src) != 8 {
		return ErrMalformed
	}
	dst.(*array.Int64Builder).Append(int64(binary.BigEndian.Uint64(src)))
	return nil
}

func binaryOID(dst array.Builder, src []byte) error {
	if len(src) != 4 {
		return ErrMalformed
	}
	dst.(*array.Int64Builder).Append(int64(binary.BigEndian.Uint32(src)))
	return nil
}

func binaryFloat4(dst array.Builder, src []byte) error {
	if len(src) != 4 {
		return ErrMalformed
	}
	dst.(*array.Float32Builder).Append(math.Float32frombits(binary.BigEndian.Uint32(src)))
	return nil
}

func binaryFloat8(dst array.Builder, src []byte) error {
	if len(src) != 8 {
		return ErrMalformed
	}
	dst.(*array.Float64Builder).Append(math.Float64frombits(binary.BigEndian.Uint64(src)))
	return nil
}

func binaryBytea(dst array.Builder, src []byte) error {
	dst.(*array.BinaryBuilder).Append(src)
	return nil
}

func binaryUUID(dst array.Builder, src []byte) error {
	if len(src) != 16 {
		return ErrMalformed
	}
	dst.(*array.FixedSizeBinaryBuilder).Append(src)
	return nil
}

func binaryDate(dst array.Builder, src []byte) error {
	if len(src) != 4 {
		return ErrMalformed
	}
	v := int32(binary.BigEndian.Uint32(src))
	switch {
	case v == math.MaxInt32 || v == math.MinInt32:
		return ErrInfinity
	case v > math.MaxInt32-epochDays:
		return ErrRange
	}
	dst.(*array.Date32Builder).Append(arrow.Date32(v + epochDays))
	return nil
}

func binaryTime(dst array.Builder, src []byte) error {
	if len(src) != 8 {
		return ErrMalformed
	}
	v := int64(binary.BigEndian.Uint64(src))
	if v < 0 || v > microsPerDay {
		return ErrRange
	}
	dst.(*array.Time64Builder).Append(arrow.Time64(v))
	return nil
}

func binaryTimestamp(dst array.Builder, src []byte) error {
	if len(src) != 8 {
		return ErrMalformed
	}
	v := int64(binary.BigEndian.Uint64(src))
	if v == math.MaxInt64 || v == math.MinInt64 {
		return ErrInfinity
	}
	us, err := micros(v/microsPerDay+epochDays, v%microsPerDay)
	if err != nil {
		return err
	}
	dst.(*array.TimestampBuilder).Append(arrow.Timestamp(us))
	return nil
}

func binaryDecimal(precision, scale int32) Decoder {
	return func(dst array.Builder, src []byte) error {
		v, err := binaryNumeric(src, precision, scale)
		if err != nil {
			return err
		}
		dst.(*array.Decimal128Builder).Append(v)
		return nil
	}
}

// binaryArray decodes an array of at most one dimension that begins at 1.
func binaryArray(elem Decoder) Decoder {
	return func(dst array.Builder, src []byte) error {
		if len(src) < 12 {
			return ErrMalformed
		}
		list := dst.(*array.ListBuilder)
		switch dimensions := binary.BigEndian.Uint32(src); dimensions {
		case 0:
			list.Append(true)
			return nil
		case 1:
		default:
			return ErrDimensions
		}
		if len(src) < 20 {
			return ErrMalformed
		}
		count, lower := binary.BigEndian.Uint32(src[12:]), binary.BigEndian.Uint32(src[16:])
		if lower != 1 {
			return ErrLowerBound
		}
		src = src[20:]
		list.Append(true)
		elements := list.ValueBuilder()
		for ; count > 0; count-- {
			if len(src) < 4 {
				return ErrMalformed
			}
			n := int32(binary.BigEndian.Uint32(src))
			src = src[4:]
			if n < 0 {
				elements.AppendNull()
				continue
			}
			if int(n) > len(src) {
				return ErrMalformed
			}
			if err := elem(elements, src[:n]); err != nil {
				return err
			}
			src = src[n:]
		}
		if len(src) != 0 {
			return ErrMalformed
		}
		return nil
	}
}
