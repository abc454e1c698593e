package encode

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// errSyntax is the error of an input function for text it cannot read.
func errSyntax(typeName, text string) *pgerr.Error {
	return pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", typeName, text)
}

func errValueRange(text, typeName string) *pgerr.Error {
	return pgerr.New(codes.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", text, typeName)
}

const spaces = " \t\n\v\f\r"

func trimSpace(s string) string { return strings.Trim(s, spaces) }

// parseBool reads what boolin reads.
func parseBool(text string) (bool, *pgerr.Error) {
	s := strings.ToLower(trimSpace(text))
	if s != "" {
		switch {
		case strings.HasPrefix("true", s), strings.HasPrefix("yes", s), s == "on", s == "1":
			return true, nil
		case strings.HasPrefix("false", s), strings.HasPrefix("no", s), s == "of", s == "off", s == "0":
			return false, nil
		}
	}
	return false, errSyntax("boolean", text)
}

// parseInteger reads what the input function of an integer-like type reads.
func parseInteger(text string, oid uint32) (int64, *pgerr.Error) {
	r, _ := integerRange(oid)
	name := r.name
	if name == "OID" {
		name = "oid"
	}
	s := trimSpace(text)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errSyntax(name, text)
	}
	if r.unsigned {
		n, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
		if err != nil {
			return 0, errValueRange(text, name)
		}
		return int64(n), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if name == "oid" && n < 0 && n >= math.MinInt32 {
		n += 1 << 32 // as strtoul wraps
	}
	if err != nil || n < r.min || n > r.max {
		return 0, errValueRange(text, name)
	}
	return n, nil
}

// parseFloat reads what float8in (bitSize 64) or float4in (32) reads.
func parseFloat(text string, bitSize int) (float64, *pgerr.Error) {
	name := "double precision"
	if bitSize == 32 {
		name = "real"
	}
	s := trimSpace(text)
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "infinity", "inf", "nan":
	default:
		if s == "" || strings.ContainsAny(s, "_nN") || strings.ContainsAny(s, "iI") {
			return 0, errSyntax(name, text)
		}
	}
	f, err := strconv.ParseFloat(s, bitSize)
	if errors.Is(err, strconv.ErrRange) || err == nil && f == 0 && strings.Trim(mantissaOf(s), "+-0.") != "" {
		return 0, pgerr.New(codes.NumericValueOutOfRange, "\"%s\" is out of range for type %s", text, name)
	}
	if err != nil {
		return 0, errSyntax(name, text)
	}
	return f, nil
}

func mantissaOf(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}

// numeric is a parsed decimal: ±0.d₁d₂… · 10^point, or a special value.
type numeric struct {
	special  uint16 // numericNaN, numericPInf, numericNInf or 0
	negative bool
	digits   string // without leading zeros of the integer part
	scale    int    // digits after the point, ≥ 0
}

// numericDigitsMax bounds what an exponent may expand to.
const numericDigitsMax = 131072 + 16383

// parseNumeric reads what numeric_in reads.
func parseNumeric(text string) (numeric, *pgerr.Error) {
	var n numeric
	s := trimSpace(text)
	switch strings.ToLower(s) {
	case "nan":
		return numeric{special: numericNaN}, nil
	case "infinity", "inf", "+infinity", "+inf":
		return numeric{special: numericPInf}, nil
	case "-infinity", "-inf":
		return numeric{special: numericNInf}, nil
	}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		n.negative = s[0] == '-'
		s = s[1:]
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		e := s[i+1:]
		if strings.Trim(strings.TrimLeft(e, "+-"), "0123456789") != "" {
			return n, errSyntax("numeric", text)
		}
		var err error
		if exponent, err = strconv.Atoi(e); err != nil && !errors.Is(err, strconv.ErrRange) {
			return n, errSyntax("numeric", text)
		}
		if exponent > numericDigitsMax || exponent < -numericDigitsMax {
			return n, pgerr.New(codes.NumericValueOutOfRange, "value overflows numeric format")
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return n, errSyntax("numeric", text)
	}
	n.digits, n.scale = whole+fraction, len(fraction)-exponent
	if n.scale < 0 {
		n.digits += strings.Repeat("0", -n.scale)
		n.scale = 0
	}
	if short := n.scale + 1 - len(n.digits); short > 0 {
		n.digits = strings.Repeat("0", short) + n.digits
	}
	keep := len(n.digits) - n.scale - 1 // one digit before the point stays
	zeros := len(n.digits) - len(strings.TrimLeft(n.digits, "0"))
	n.digits = n.digits[min(keep, zeros):]
	if len(n.digits)-n.scale > 131072 || n.scale > 16383 {
		return n, pgerr.New(codes.NumericValueOutOfRange, "value overflows numeric format")
	}
	n.negative = n.negative && strings.Trim(n.digits, "0") != ""
	return n, nil
}

// text is numeric_out of n.
func (n numeric) text(dst []byte) []byte {
	switch n.special {
	case numericNaN:
		return append(dst, "NaN"...)
	case numericPInf:
		return append(dst, "Infinity"...)
	case numericNInf:
		return append(dst, "-Infinity"...)
	}
	if n.negative {
		dst = append(dst, '-')
	}
	point := len(n.digits) - n.scale
	dst = append(dst, n.digits[:point]...)
	if n.scale > 0 {
		dst = append(append(dst, '.'), n.digits[point:]...)
	}
	return dst
}

// binary is numeric_send of n.
func (n numeric) binary(dst []byte) []byte {
	if n.special != 0 {
		scale := 0
		if n.special != numericNaN {
			scale = 32 // numeric_send reads it out of the same header bits
		}
		return appendNumericHeader(dst, 0, 0, n.special, scale)
	}
	point := len(n.digits) - n.scale
	padded := strings.Repeat("0", (4-point%4)%4) + n.digits
	padded += strings.Repeat("0", (4-len(padded)%4)%4)
	weight := (point+3)/4 - 1
	groups := make([]uint16, 0, len(padded)/4)
	for i := 0; i < len(padded); i += 4 {
		g, _ := strconv.ParseUint(padded[i:i+4], 10, 16) // digits only
		groups = append(groups, uint16(g))
	}
	for len(groups) > 0 && groups[0] == 0 {
		groups = groups[1:]
		weight--
	}
	for len(groups) > 0 && groups[len(groups)-1] == 0 {
		groups = groups[:len(groups)-1]
	}
	sign := uint16(0)
	if n.negative {
		sign = numericNegative
	}
	if len(groups) == 0 {
		weight = 0
	}
	dst = appendNumericHeader(dst, len(groups), weight, sign, n.scale)
	for _, g := range groups {
		dst = append(dst, byte(g>>8), byte(g))
	}
	return dst
}

// moneyCents reads money's output form under the C locale: -$1,234.56.
func moneyCents(text string) (int64, *pgerr.Error) {
	s := strings.NewReplacer("$", "", ",", "", "(", "-", ")", "", " ", "").Replace(trimSpace(text))
	n, err := parseNumeric(s)
	if err != nil || n.special != 0 {
		return 0, errSyntax("money", text)
	}
	digits := n.digits
	for range max(0, 2-n.scale) {
		digits += "0"
	}
	round := false
	if n.scale > 2 {
		round = digits[len(digits)-n.scale+2] >= '5'
		digits = digits[:len(digits)-n.scale+2]
	}
	cents, perr := strconv.ParseUint(digits, 10, 64)
	if round {
		cents++
	}
	most := uint64(math.MaxInt64)
	if n.negative {
		most++
	}
	if perr != nil || cents > most {
		return 0, errValueRange(text, "money")
	}
	if n.negative {
		return -int64(cents), nil
	}
	return int64(cents), nil
}
