package encode

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/encode/canon"
	"github.com/skipprd/skipprd/pgwire/encode/compound"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func errBinary() *pgerr.Error {
	return pgerr.New(codes.InvalidBinaryRepresentation, "incorrect binary data format in bind parameter")
}

// errSize is the error of a value whose length is not the one that it has to have.
func errSize(got, want int) *pgerr.Error {
	if got < want {
		return pgerr.New(codes.ProtocolViolation, "insufficient data left in message")
	}
	return errBinary()
}

// decodeBinary is Decode for binary.
func decodeBinary(oid uint32, b []byte) (string, *pgerr.Error) {
	if elem := ElementOID(oid); elem != 0 || isVector(oid) {
		return decodeBinaryArray(oid, b)
	}
	if r, ok := integerRange(oid); ok {
		if len(b) != r.size {
			return "", errSize(len(b), r.size)
		}
		switch {
		case r.size == 2:
			return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b)))), nil
		case r.size == 8 && !r.unsigned:
			return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10), nil
		case r.size == 8:
			return strconv.FormatUint(binary.BigEndian.Uint64(b), 10), nil
		case oid == oidInt4:
			return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b)))), nil
		}
		return strconv.FormatUint(uint64(binary.BigEndian.Uint32(b)), 10), nil
	}
	if isTextual(oid) || isUserText(oid) {
		if err := validText(b); err != nil {
			return "", err
		}
		if oid == oidJSON && !json.Valid(b) {
			return "", errJSON()
		}
		return string(b), nil
	}
	if text, ok, err := decodeCompound(oid, b); ok {
		return text, err
	}
	switch oid {
	case oidBytea:
		return engineBlob(b), nil
	case oidJSONB:
		if len(b) < 1 || b[0] != 1 {
			return "", pgerr.New(codes.Internal, "unsupported jsonb version number")
		}
		return DecodeParam(oidJSON, 0, b[1:])
	case oidNumeric:
		return decodeBinaryNumeric(b)
	case oidBit, oidVarbit:
		return decodeBinaryBits(b)
	case oidInet, oidCIDR:
		return decodeBinaryInet(b)
	}
	return decodeBinaryFixed(oid, b)
}

// decodeBinaryFixed reads the types of a fixed length.
func decodeBinaryFixed(oid uint32, b []byte) (string, *pgerr.Error) {
	size := int(typeSize(oid))
	if size > 0 && len(b) != size {
		return "", errSize(len(b), size)
	}
	switch oid {
	case oidBool:
		return strconv.FormatBool(b[0] != 0), nil
	case oidChar:
		return string(b), nil
	case oidFloat4:
		return string(appendFloat(nil, float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 32)), nil
	case oidFloat8:
		return string(appendFloat(nil, math.Float64frombits(binary.BigEndian.Uint64(b)), 64)), nil
	case oidUUID:
		return string(appendUUID(nil, [16]byte(b))), nil
	case oidMoney:
		return canon.Money(int64(binary.BigEndian.Uint64(b))), nil
	case oidDate:
		return decodeBinaryDate(b)
	case oidTimestamp, oidTimestampTZ:
		return decodeBinaryStamp(oid, b)
	case oidTime, oidTimeTZ:
		us := int64(binary.BigEndian.Uint64(b))
		if us < 0 || us > dayMicros {
			return "", pgerr.New(codes.DatetimeFieldOverflow, "time out of range")
		}
		dst := appendClock(nil, us)
		if oid == oidTimeTZ {
			offset := -int(int32(binary.BigEndian.Uint32(b[8:])))
			if offset <= -16*3600 || offset >= 16*3600 {
				return "", pgerr.New(codes.DatetimeFieldOverflow, "time zone displacement out of range")
			}
			dst = appendLongOffset(dst, offset)
		}
		return string(dst), nil
	case oidInterval:
		return engineInterval{
			micros: int64(binary.BigEndian.Uint64(b)), days: int32(binary.BigEndian.Uint32(b[8:])),
			months: int32(binary.BigEndian.Uint32(b[12:])),
		}.engineText(), nil
	}
	return "", pgerr.New(codes.FeatureNotSupported, "no binary input function available for type %s", typeName(oid)).
		WithHint("Send the parameter in text format.")
}

// decodeCompound is decodeBinary of types that are made of others; ok is false for any other.
func decodeCompound(oid uint32, b []byte) (_ string, ok bool, _ *pgerr.Error) {
	text, ok, err := compound.Text(oid, b, func(sub uint32, b []byte) (string, error) {
		text, failed := decodeBinary(sub, b)
		if failed != nil {
			return "", failed
		}
		if sub == oidTimestampTZ {
			text = strings.TrimSuffix(text, ":00") // as ranges have zones
		}
		return text, nil
	})
	var failed *pgerr.Error
	switch {
	case !ok:
		return "", false, nil
	case errors.Is(err, compound.ErrLong):
		return "", true, errBinary()
	case errors.As(err, &failed):
		return "", true, failed
	case errors.Is(err, compound.ErrLine), errors.Is(err, compound.ErrRadius):
		return "", true, pgerr.New(codes.InvalidBinaryRepresentation, "%s", err)
	case err != nil:
		return "", true, pgerr.New(codes.ProtocolViolation, "%s", err)
	}
	text, failed = Input{}.canonical(oid, text)
	return text, true, failed
}

func decodeBinaryDate(b []byte) (string, *pgerr.Error) {
	n := int32(binary.BigEndian.Uint32(b))
	d := dateTime{hasDate: true, days: int64(n) + epochDays}
	switch n {
	case math.MaxInt32:
		d.infinity = 1
	case math.MinInt32:
		d.infinity = -1
	}
	return engineDateTime(d, oidDate), nil
}

func decodeBinaryStamp(oid uint32, b []byte) (string, *pgerr.Error) {
	n := int64(binary.BigEndian.Uint64(b))
	d := dateTime{hasDate: true, hasTime: true, hasZone: true}
	switch {
	case n == math.MaxInt64:
		d.infinity = 1
	case n == math.MinInt64:
		d.infinity = -1
	case n > math.MaxInt64-epochMicros:
		return "", pgerr.New(codes.DatetimeFieldOverflow, "timestamp out of range")
	default:
		n += epochMicros
		d.days = floorDiv(n, dayMicros)
		d.micros = n - d.days*dayMicros
	}
	return engineDateTime(d, oid), nil
}

func decodeBinaryNumeric(b []byte) (string, *pgerr.Error) {
	if len(b) < 8 {
		return "", errSize(len(b), 8)
	}
	count := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	if len(b) != 8+2*count {
		return "", errSize(len(b), 8+2*count)
	}
	switch sign {
	case numericNaN, numericPInf, numericNInf:
		return string(numeric{special: sign}.text(nil)), nil
	case 0, numericNegative:
	default:
		return "", pgerr.New(codes.InvalidBinaryRepresentation, "invalid sign in external \"numeric\" value")
	}
	if scale > 0x3fff {
		return "", pgerr.New(codes.InvalidBinaryRepresentation, "invalid scale in external \"numeric\" value")
	}
	groups := make([]uint16, count)
	for i := range groups {
		groups[i] = binary.BigEndian.Uint16(b[8+2*i:])
		if groups[i] > 9999 {
			return "", pgerr.New(codes.InvalidBinaryRepresentation, "invalid digit in external \"numeric\" value")
		}
	}
	digit := func(group int) uint64 {
		if i := weight - group; i >= 0 && i < count {
			return uint64(groups[i])
		}
		return 0
	}
	var whole []byte
	for g := weight; g >= 0; g-- {
		whole = appendPadded(whole, digit(g), 4)
	}
	var fraction []byte
	for g := -1; len(fraction) < scale; g-- {
		fraction = appendPadded(fraction, digit(g), 4)
	}
	whole = []byte(strings.TrimLeft(string(whole), "0"))
	if len(whole) == 0 {
		whole = []byte{'0'}
	}
	n := numeric{negative: sign != 0, digits: string(whole) + string(fraction[:scale]), scale: scale}
	return string(n.text(nil)), nil
}

func decodeBinaryBits(b []byte) (string, *pgerr.Error) {
	if len(b) < 4 {
		return "", errSize(len(b), 4)
	}
	n := int(binary.BigEndian.Uint32(b))
	b = b[4:]
	if len(b) != (n+7)/8 {
		return "", errBinary()
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = '0' + b[i>>3]>>(7-i&7)&1
	}
	return string(out), nil
}

func decodeBinaryInet(b []byte) (string, *pgerr.Error) {
	if len(b) < 4 || int(b[3]) != len(b)-4 {
		return "", errBinary()
	}
	addr, ok := netip.AddrFromSlice(b[4:])
	if !ok || int(b[1]) > addr.BitLen() {
		return "", errBinary()
	}
	if int(b[1]) == addr.BitLen() && b[2] == 0 {
		return addr.String(), nil
	}
	return addr.String() + "/" + strconv.Itoa(int(b[1])), nil
}

// decodeBinaryArray reads array_recv's form. Lengths are checked against what is
// there before anything is allocated.
func decodeBinaryArray(oid uint32, b []byte) (string, *pgerr.Error) {
	if len(b) < 12 {
		return "", errSize(len(b), 12)
	}
	dims := int(int32(binary.BigEndian.Uint32(b)))
	elem := binary.BigEndian.Uint32(b[8:])
	if want := ElementOID(oid); want != 0 && want != elem && !(isTextual(want) && isTextual(elem)) {
		return "", pgerr.New(codes.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			elem, typeName(elem), want, typeName(want))
	}
	b = b[12:]
	if dims < 0 || dims > maxDimensions || len(b) < dims*8 {
		return "", errBinary()
	}
	var a array
	total := 1
	for range dims {
		n := int(int32(binary.BigEndian.Uint32(b)))
		if n < 0 || n > len(b) {
			return "", errBinary()
		}
		a.dims, a.lower = append(a.dims, n), append(a.lower, int32(binary.BigEndian.Uint32(b[4:])))
		if total *= n; total > len(b) {
			return "", errBinary()
		}
		b = b[8:]
	}
	if dims == 0 || total == 0 {
		if len(b) > 0 {
			return "", errBinary()
		}
		return "[]", nil
	}
	for range total {
		if len(b) < 4 {
			return "", errSize(len(b), 4)
		}
		n := int(int32(binary.BigEndian.Uint32(b)))
		b = b[4:]
		if n == -1 {
			a.elems = append(a.elems, nil)
			continue
		}
		if n < 0 || n > len(b) {
			return "", pgerr.New(codes.InvalidBinaryRepresentation, "insufficient data left in message")
		}
		s, err := decodeBinary(elem, b[:n])
		if err != nil {
			return "", err
		}
		a.elems = append(a.elems, &s)
		b = b[n:]
	}
	if len(b) != 0 {
		return "", errBinary()
	}
	return a.engineText(func(s string) (string, *pgerr.Error) { return s, nil })
}
