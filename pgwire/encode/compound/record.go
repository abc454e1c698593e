package compound

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// record is the OID of record.
const record = 2249

// Record is the parser of a record whose fields have types: their OIDs in parentheses, behind that
// of a record those of its own, as in (23,2249(25,25)). Nil: they are not written so, or one of
// them has no binary form. scalar finds the parser of a type.
func Record(fields string, scalar func(uint32) Parse) Parse {
	p, rest := recordOf(fields, scalar)
	if rest != "" {
		return nil
	}
	return p
}

type field struct {
	oid   uint32
	parse Parse
}

func recordOf(shape string, scalar func(uint32) Parse) (_ Parse, rest string) {
	var fields []field
	shape, open := strings.CutPrefix(shape, "(")
	for open && !strings.HasPrefix(shape, ")") {
		end := strings.IndexAny(shape, "(,)")
		if end < 0 {
			return nil, shape
		}
		oid, err := strconv.ParseUint(shape[:end], 10, 32)
		if err != nil {
			return nil, shape
		}
		f := field{oid: uint32(oid)}
		if shape = shape[end:]; f.oid == record {
			f.parse, shape = recordOf(shape, scalar)
		} else {
			f.parse = scalar(f.oid)
		}
		if f.parse == nil {
			return nil, shape
		}
		fields = append(fields, f)
		shape = strings.TrimPrefix(shape, ",")
	}
	if !strings.HasPrefix(shape, ")") {
		return nil, shape
	}
	return func(dst, src []byte) ([]byte, error) { return recordText(dst, string(src), fields) }, shape[1:]
}

// recordText reads what record_out writes: (1,"a ""b""",,""), where nothing at all is null.
func recordText(dst []byte, text string, fields []field) ([]byte, error) {
	text, open := strings.CutPrefix(text, "(")
	text, closed := strings.CutSuffix(text, ")")
	if !open || !closed || len(fields) == 0 && text != "" {
		return dst, ErrSyntax
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(fields)))
	for i, f := range fields {
		value, null, rest, ok := recordField(text)
		if last := i == len(fields)-1; !ok || last != (rest == "") {
			return dst, ErrSyntax
		}
		text = strings.TrimPrefix(rest, ",")
		dst = binary.BigEndian.AppendUint32(dst, f.oid)
		if null {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		var err error
		if dst, err = sized(dst, func(dst []byte) ([]byte, error) { return f.parse(dst, []byte(value)) }); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// recordField takes the first field off; rest begins with the comma behind it.
func recordField(text string) (value string, null bool, rest string, ok bool) {
	var b strings.Builder
	quoted, null := false, true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ',' && !quoted:
			return b.String(), null, text[i:], true
		case c == '\\':
			if i++; i == len(text) {
				return "", false, "", false
			}
			b.WriteByte(text[i])
		case c == '"' && quoted && i+1 < len(text) && text[i+1] == '"':
			b.WriteByte('"')
			i++
		case c == '"':
			quoted = !quoted
		default:
			b.WriteByte(c)
		}
		null = false
	}
	return b.String(), null, "", !quoted
}
