package encode

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/pgwire/encode/compound"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// parseFunc appends the binary form of a value given as text.
type parseFunc = compound.Parse

// binaryFromText returns the way from a type's text to its binary form, nil where
// there is none.
func binaryFromText(oid uint32) parseFunc {
	if isRegType(oid) {
		return regFromText(oid)
	}
	if parse := compound.FromText(oid, binaryFromText); parse != nil {
		return func(dst, src []byte) ([]byte, error) {
			dst, err := parse(dst, src)
			if errors.Is(err, compound.ErrSyntax) {
				err = errSyntax(typeName(oid), string(src))
			}
			return dst, err
		}
	}
	if _, ok := integerRange(oid); ok {
		return integerFromText(oid)
	}
	if isTextual(oid) || isUserText(oid) {
		return func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }
	}
	if elem := cmp.Or(ElementOID(oid), userElement(oid)); elem != 0 {
		return arrayFromText(elem)
	}
	switch oid {
	case oidBool, oidFloat4, oidFloat8, oidNumeric, oidMoney, oidUUID, oidBytea, oidBit, oidVarbit, oidChar,
		oidJSONB, oidJSONPath, oidInet, oidCIDR, oidMacaddr, oidMacaddr8, oidLSN,
		oidDate, oidTime, oidTimeTZ, oidTimestamp, oidTimestampTZ, oidInterval:
		return func(dst, src []byte) ([]byte, error) {
			out, err := scalarFromText(dst, string(src), oid)
			if err != nil {
				return dst, err
			}
			return out, nil
		}
	}
	return nil
}

// regFromText takes the number of an object; a name may be of another server's.
func regFromText(oid uint32) parseFunc {
	return func(dst, src []byte) ([]byte, error) {
		if string(src) == "-" {
			src = []byte("0")
		}
		n, err := strconv.ParseUint(string(src), 10, 32)
		if err != nil {
			return dst, errNoBinary(oid)
		}
		return binary.BigEndian.AppendUint32(dst, uint32(n)), nil
	}
}

func integerFromText(oid uint32) parseFunc {
	r, _ := integerRange(oid)
	return func(dst, src []byte) ([]byte, error) {
		n, err := parseInteger(string(src), oid)
		if err != nil {
			return dst, err
		}
		switch r.size {
		case 2:
			return binary.BigEndian.AppendUint16(dst, uint16(n)), nil
		case 4:
			return binary.BigEndian.AppendUint32(dst, uint32(n)), nil
		}
		return binary.BigEndian.AppendUint64(dst, uint64(n)), nil
	}
}

// appendFloat4 and appendFloat8 append a number whose NaN has the bits of PostgreSQL's: those
// of Go's differ.
func appendFloat4(dst []byte, f float32) []byte {
	bits := math.Float32bits(f)
	if f != f {
		bits = 0x7fc0_0000
	}
	return binary.BigEndian.AppendUint32(dst, bits)
}

func appendFloat8(dst []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if f != f {
		bits = 0x7ff8_0000_0000_0000
	}
	return binary.BigEndian.AppendUint64(dst, bits)
}

func scalarFromText(dst []byte, text string, oid uint32) ([]byte, *pgerr.Error) {
	switch oid {
	case oidBool:
		b, err := parseBool(text)
		return append(dst, boolByte(b)), err
	case oidFloat4:
		f, err := parseFloat(text, 32)
		return appendFloat4(dst, float32(f)), err
	case oidFloat8:
		f, err := parseFloat(text, 64)
		return appendFloat8(dst, f), err
	case oidNumeric:
		n, err := parseNumeric(text)
		if err != nil {
			return dst, err
		}
		return n.binary(dst), nil
	case oidMoney:
		n, err := moneyCents(text)
		return binary.BigEndian.AppendUint64(dst, uint64(n)), err
	case oidUUID:
		b, err := parseUUID(text)
		return append(dst, b[:]...), err
	case oidBytea:
		b, err := parseBytea(text)
		return append(dst, b...), err
	case oidBit, oidVarbit:
		return bitsFromText(dst, text)
	case oidChar:
		if n, err := strconv.ParseUint(strings.TrimPrefix(text, `\`), 8, 8); err == nil && len(text) == 4 {
			return append(dst, byte(n)), nil // \377
		}
		return append(dst, (text + "\x00")[0]), nil
	case oidJSONB, oidJSONPath:
		return append(append(dst, 1), text...), nil
	case oidInet, oidCIDR:
		return inetFromText(dst, text, oid)
	case oidMacaddr, oidMacaddr8:
		return macFromText(dst, text, oid)
	case oidLSN:
		hi, lo, _ := strings.Cut(text, "/")
		h, err1 := strconv.ParseUint(hi, 16, 32)
		l, err2 := strconv.ParseUint(lo, 16, 32)
		if err1 != nil || err2 != nil {
			return dst, errSyntax("pg_lsn", text)
		}
		return binary.BigEndian.AppendUint64(dst, h<<32|l), nil
	case oidInterval:
		iv, err := parseInterval(text)
		return appendIntervalBinary(dst, iv), err
	}
	return dateTimeFromText(dst, text, oid)
}

func dateTimeFromText(dst []byte, text string, oid uint32) ([]byte, *pgerr.Error) {
	d, err := Input{}.parseDateTime(text, inputName(oid))
	if err != nil {
		return dst, err
	}
	if needDate := oid != oidTime && oid != oidTimeTZ; needDate && !d.hasDate || !needDate && !d.hasTime {
		return dst, errDateSyntax(inputName(oid), text)
	}
	switch oid {
	case oidTime:
		return binary.BigEndian.AppendUint64(dst, uint64(d.micros)), nil
	case oidTimeTZ:
		return appendTimeTZBinary(dst, d.micros, d.offset), nil
	}
	stamp := d.stamp(oid == oidTimestampTZ)
	if oid == oidDate {
		if d.infinity == 0 { // far days have no microseconds
			return appendDateBinary(dst, int32(d.days)), nil
		}
		return appendDateBinary(dst, microsToDate(stamp)), nil
	}
	return appendStampBinary(dst, stamp), nil
}

// stamp is the engine's timestamp; utc subtracts the zone's offset.
func (d dateTime) stamp(utc bool) int64 {
	switch d.infinity {
	case 1:
		return stampInf
	case -1:
		return stampNInf
	}
	us := d.days*dayMicros + d.micros
	if utc {
		us -= int64(d.offset) * 1e6
	}
	return us
}

func bitsFromText(dst []byte, text string) ([]byte, *pgerr.Error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(text)))
	at := len(dst)
	for k := range len(text) {
		if k&7 == 0 {
			dst = append(dst, 0)
		}
		switch text[k] {
		case '1':
			dst[at+k>>3] |= 0x80 >> (k & 7)
		case '0':
		default:
			return dst, errSyntax("bit", text)
		}
	}
	return dst, nil
}

func inetFromText(dst []byte, text string, oid uint32) ([]byte, *pgerr.Error) {
	name := typeName(oid)
	host, bitsText, masked := strings.Cut(text, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return dst, errSyntax(name, text)
	}
	n := addr.BitLen()
	if masked {
		if n, err = strconv.Atoi(bitsText); err != nil || n < 0 || n > addr.BitLen() {
			return dst, errSyntax(name, text)
		}
	}
	family := byte(2)
	if addr.Is6() {
		family = 3
	}
	b := addr.AsSlice()
	dst = append(dst, family, byte(n), boolByte(oid == oidCIDR), byte(len(b)))
	return append(dst, b...), nil
}

func macFromText(dst []byte, text string, oid uint32) ([]byte, *pgerr.Error) {
	want := 6
	if oid == oidMacaddr8 {
		want = 8
	}
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(text)
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || len(digits) != want*2 {
		return dst, errSyntax(typeName(oid), text)
	}
	for i := want - 1; i >= 0; i-- {
		dst = append(dst, byte(n>>(8*i)))
	}
	return dst, nil
}

// arrayFromText parses an array literal and sends its elements in binary; nil when
// the element type has no binary form.
func arrayFromText(elem uint32) parseFunc {
	parse := binaryFromText(elem)
	if parse == nil {
		return nil
	}
	return func(dst, src []byte) ([]byte, error) {
		a, err := parseArray(string(src), elem)
		if err != nil {
			return dst, err
		}
		nulls := uint32(0)
		for _, e := range a.elems {
			if e == nil {
				nulls = 1
			}
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(a.dims)))
		dst = binary.BigEndian.AppendUint32(dst, nulls)
		dst = binary.BigEndian.AppendUint32(dst, elem)
		for i, n := range a.dims {
			dst = binary.BigEndian.AppendUint32(dst, uint32(n))
			dst = binary.BigEndian.AppendUint32(dst, uint32(a.lower[i]))
		}
		for _, e := range a.elems {
			if e == nil {
				dst = append(dst, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			at := len(dst)
			var ferr error
			if dst, ferr = parse(append(dst, 0, 0, 0, 0), []byte(*e)); ferr != nil {
				return dst, ferr
			}
			binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
		return dst, nil
	}
}
