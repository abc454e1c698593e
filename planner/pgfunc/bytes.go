package pgfunc

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/charmap"
	"github.com/skipprd/skipprd/pgwire/encname"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func bytesFunctions() []scalar.Function {
	text, blob, i32, i64 := scalar.Text, scalar.Blob, scalar.Int32, scalar.Int64
	return []scalar.Function{
		{Name: "skippr_b_encode", Params: kinds(blob, text), Result: text, Call: encodeBytes},
		{Name: "skippr_b_decode", Params: kinds(text, text), Result: blob, Call: decodeBytes},
		{Name: "skippr_b_get_byte", Params: kinds(blob, i32), Result: i32, Call: func(a []value) (value, error) {
			if err := byteIndex(a[1].Int, len(a[0].Text)); err != nil {
				return value{}, err
			}
			return scalar.OfInt(int64(a[0].Text[a[1].Int])), nil
		}},
		{Name: "skippr_b_get_bit", Params: kinds(blob, i64), Result: i32, Call: func(a []value) (value, error) {
			if err := byteIndex(a[1].Int, 8*len(a[0].Text)); err != nil {
				return value{}, err
			}
			return scalar.OfInt(int64(a[0].Text[a[1].Int/8]>>(a[1].Int%8)) & 1), nil
		}},
		{Name: "skippr_b_set_byte", Params: kinds(blob, i32, i32), Result: blob, Call: func(a []value) (value, error) {
			if err := byteIndex(a[1].Int, len(a[0].Text)); err != nil {
				return value{}, err
			}
			b := []byte(a[0].Text)
			b[a[1].Int] = byte(a[2].Int)
			return scalar.OfText(string(b)), nil
		}},
		{Name: "skippr_b_set_bit", Params: kinds(blob, i64, i32), Result: blob, Call: setBit},
		{Name: "skippr_b_bits", Params: kinds(blob), Result: i64, Call: func(a []value) (value, error) {
			n := 0
			for i := range len(a[0].Text) {
				n += bits.OnesCount8(a[0].Text[i])
			}
			return scalar.OfInt(int64(n)), nil
		}},
		{Name: "skippr_b_part", Params: kinds(blob, i32, i32), Result: blob, Call: func(a []value) (value, error) {
			s, err := bytesPart(a[0].Text, a[1].Int, a[2].Int)
			return scalar.OfText(s), err
		}},
		{Name: "skippr_b_from", Params: kinds(blob, i32), Result: blob, Call: func(a []value) (value, error) {
			at := min(max(a[1].Int-1, 0), int64(len(a[0].Text)))
			return scalar.OfText(a[0].Text[at:]), nil
		}},
		{Name: "skippr_b_overlay", Params: kinds(blob, blob, i32, i32), Result: blob, Call: overlayBytes},
		{Name: "skippr_b_trim", Params: kinds(blob, blob, i32), Result: blob, Call: trimBytes},
		{Name: "skippr_b_position", Params: kinds(blob, blob), Result: i32, Call: func(a []value) (value, error) {
			return scalar.OfInt(int64(strings.Index(a[1].Text, a[0].Text)) + 1), nil
		}},
		{Name: "skippr_b_like", Params: kinds(blob, blob), Result: scalar.Bool, Call: func(a []value) (value, error) {
			ok, err := likeBytes(a[0].Text, a[1].Text)
			return scalar.OfBool(ok), err
		}},
	}
}

func hashFunctions() []scalar.Function {
	hash := func(name string, f func(string) string) scalar.Function {
		return scalar.Function{Name: name, Params: kinds(scalar.Blob), Result: scalar.Blob, Call: func(a []value) (value, error) {
			return scalar.OfText(f(a[0].Text)), nil
		}}
	}
	return []scalar.Function{
		hash("skippr_b_sha224", func(s string) string { h := sha256.Sum224([]byte(s)); return string(h[:]) }),
		hash("skippr_b_sha384", func(s string) string { h := sha512.Sum384([]byte(s)); return string(h[:]) }),
		hash("skippr_b_sha512", func(s string) string { h := sha512.Sum512([]byte(s)); return string(h[:]) }),
	}
}

func byteIndex(i int64, n int) error {
	if i < 0 || i >= int64(n) {
		return pgerr.New(codes.ArraySubscript, "index %d out of valid range, 0..%d", i, n-1)
	}
	return nil
}

func setBit(a []value) (value, error) {
	if err := byteIndex(a[1].Int, 8*len(a[0].Text)); err != nil {
		return value{}, err
	}
	if a[2].Int != 0 && a[2].Int != 1 {
		return value{}, invalid("new bit must be 0 or 1")
	}
	b := []byte(a[0].Text)
	at, mask := a[1].Int/8, byte(1)<<(a[1].Int%8)
	b[at] &^= mask
	if a[2].Int == 1 {
		b[at] |= mask
	}
	return scalar.OfText(string(b)), nil
}

// lineLength is where base64 breaks lines.
const lineLength = 76

func encodeBytes(a []value) (value, error) {
	s := a[0].Text
	switch strings.ToLower(a[1].Text) {
	case "hex":
		return scalar.OfText(hex.EncodeToString([]byte(s))), nil
	case "base64":
		code := base64.StdEncoding.EncodeToString([]byte(s))
		var b strings.Builder
		for len(code) > lineLength {
			b.WriteString(code[:lineLength] + "\n")
			code = code[lineLength:]
		}
		b.WriteString(code)
		return scalar.OfText(b.String()), nil
	case "escape":
		var b strings.Builder
		for i := range len(s) {
			switch c := s[i]; {
			case c == 0 || c >= 0x80:
				b.WriteString(`\` + string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7}))
			case c == '\\':
				b.WriteString(`\\`)
			default:
				b.WriteByte(c)
			}
		}
		return scalar.OfText(b.String()), nil
	}
	return value{}, invalid("unrecognized encoding: \"%s\"", strings.Clone(a[1].Text))
}

func decodeBytes(a []value) (value, error) {
	s := a[0].Text
	switch strings.ToLower(a[1].Text) {
	case "hex":
		s = strings.NewReplacer(" ", "", "\n", "", "\t", "", "\r", "").Replace(s)
		for i := range len(s) {
			if strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
				r, _ := utf8.DecodeRuneInString(s[i:])
				return value{}, invalid("invalid hexadecimal digit: \"%c\"", r)
			}
		}
		out, err := hex.DecodeString(s)
		if err != nil {
			return value{}, invalid("invalid hexadecimal data: odd number of digits")
		}
		return scalar.OfText(string(out)), nil
	case "base64":
		s = strings.NewReplacer(" ", "", "\n", "", "\t", "", "\r", "").Replace(s)
		out, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return value{}, invalid("invalid base64 end sequence")
		}
		return scalar.OfText(string(out)), nil
	case "escape":
		return decodeEscape(s)
	}
	return value{}, invalid("unrecognized encoding: \"%s\"", strings.Clone(a[1].Text))
}

func decodeEscape(s string) (value, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\':
			b.WriteByte(s[i])
		case i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && s[i+2] >= '0' && s[i+2] <= '7' && s[i+3] >= '0' && s[i+3] <= '7':
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
		case i+1 < len(s) && s[i+1] == '\\':
			b.WriteByte('\\')
			i++
		default:
			return value{}, pgerr.New(codes.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return scalar.OfText(b.String()), nil
}

var errNegativeLength = pgerr.New(codes.Substring, "negative substring length not allowed")

// bytesPart is substring(s from start for n).
func bytesPart(s string, start, n int64) (string, error) {
	end := start + n
	if n < 0 {
		return "", errNegativeLength
	}
	from, to := max(start, 1)-1, min(max(end, 1)-1, int64(len(s)))
	if from >= to {
		return "", nil
	}
	return s[from:to], nil
}

func overlayBytes(a []value) (value, error) {
	start, n := a[2].Int, a[3].Int
	if start <= 0 {
		return value{}, errNegativeLength
	}
	head, err := bytesPart(a[0].Text, 1, start-1)
	if err != nil {
		return value{}, err
	}
	at := min(max(start+n-1, 0), int64(len(a[0].Text)))
	return scalar.OfText(head + a[1].Text + a[0].Text[at:]), nil
}

// Ends that trimBytes trims.
const (
	trimStart = 1
	trimEnd   = 2
)

func trimBytes(a []value) (value, error) {
	s, set := a[0].Text, a[1].Text
	if a[2].Int&trimStart != 0 {
		for s != "" && strings.IndexByte(set, s[0]) >= 0 {
			s = s[1:]
		}
	}
	if a[2].Int&trimEnd != 0 {
		for s != "" && strings.IndexByte(set, s[len(s)-1]) >= 0 {
			s = s[:len(s)-1]
		}
	}
	return scalar.OfText(s), nil
}

// likeBytes is LIKE of bytes, without folding.
func likeBytes(s, p string) (bool, error) {
	// Where the last % was, and what it has taken so far.
	star, taken := -1, 0
	i, j := 0, 0
	for i < len(s) {
		switch {
		case j < len(p) && p[j] == '%':
			star, taken = j, i
			j++
			continue
		case j < len(p) && p[j] == '_':
			i, j = i+1, j+1
			continue
		case j < len(p) && p[j] == '\\':
			if j+1 == len(p) {
				return false, pgerr.New(codes.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
			}
			if p[j+1] == s[i] {
				i, j = i+1, j+2
				continue
			}
		case j < len(p) && p[j] == s[i]:
			i, j = i+1, j+1
			continue
		}
		if star < 0 {
			return false, nil
		}
		taken++
		i, j = taken, star+1
	}
	for j < len(p) && p[j] == '%' {
		j++
	}
	return j == len(p), nil
}

// convertFunctions are those on texts in other encodings, as bytes.
func convertFunctions() []scalar.Function {
	text, blob, i32 := scalar.Text, scalar.Blob, scalar.Int32
	return []scalar.Function{
		{Name: "skippr_b_text", Params: kinds(blob, text), Result: text, Call: func(a []value) (value, error) {
			from, err := encodingNamed("source ", a[1].Text)
			if err != nil {
				return value{}, err
			}
			s, err := convertText(a[0].Text, from, encname.UTF8)
			return scalar.OfText(s), err
		}},
		{Name: "skippr_b_of", Params: kinds(text, text), Result: blob, Call: func(a []value) (value, error) {
			to, err := encodingNamed("destination ", a[1].Text)
			if err != nil {
				return value{}, err
			}
			s, err := convertText(a[0].Text, encname.UTF8, to)
			return scalar.OfText(s), err
		}},
		{Name: "skippr_b_convert", Params: kinds(blob, text, text), Result: blob, Call: func(a []value) (value, error) {
			from, err := encodingNamed("source ", a[1].Text)
			if err != nil {
				return value{}, err
			}
			to, err := encodingNamed("destination ", a[2].Text)
			if err != nil {
				return value{}, err
			}
			s, err := convertText(a[0].Text, from, to)
			return scalar.OfText(s), err
		}},
		{Name: "skippr_b_length", Params: kinds(blob, text), Result: i32, Call: func(a []value) (value, error) {
			name, err := encodingNamed("", a[1].Text)
			if err != nil {
				return value{}, err
			}
			n, err := lengthIn(a[0].Text, name)
			return scalar.OfInt(int64(n)), err
		}},
		{Name: "skippr_enc_name", Params: kinds(i32), Result: text, Call: func(a []value) (value, error) {
			return scalar.OfText(encname.Named(int(a[0].Int))), nil
		}},
		{Name: "skippr_enc_number", Params: kinds(text), Result: i32, Call: func(a []value) (value, error) {
			name, _ := encname.Own(strings.Clone(a[0].Text))
			return scalar.OfInt(int64(encname.Number(name))), nil
		}},
	}
}

// encodingNamed is PostgreSQL's own name of an encoding.
func encodingNamed(which, name string) (string, error) {
	if own, ok := encname.Own(name); ok {
		return own, nil
	}
	return "", invalid("invalid %sencoding name \"%s\"", which, strings.Clone(name))
}

const (
	sqlASCII = "SQL_ASCII"
	mule     = "MULE_INTERNAL"
)

// direct are encodings between which PostgreSQL converts without UTF-8, by what they have in
// common.
var direct = map[string]string{
	"KOI8R": "cyrillic", "WIN1251": "cyrillic", "WIN866": "cyrillic", "ISO_8859_5": "cyrillic", "EUC_JP": "japanese", "SJIS": "japanese",
	"EUC_TW": "taiwan", "BIG5": "taiwan", "LATIN2": "central", "WIN1250": "central", "EUC_JIS_2004": "2004", "SHIFT_JIS_2004": "2004",
}

// convertText converts a text between encodings, which may be the same.
func convertText(s, from, to string) (string, error) {
	if s == "" {
		return s, nil
	}
	if from == mule && to != encname.UTF8 || to == mule && from != encname.UTF8 {
		return "", unsupported("conversion from \"%s\" to \"%s\" is not supported", from, to)
	}
	if from != encname.UTF8 || to != encname.UTF8 {
		if err := checkIn(s, from); err != nil {
			return "", err
		}
	}
	switch {
	case from == sqlASCII || from == to:
		return s, checkIn(s, to)
	case to == sqlASCII:
		return s, nil
	case from == encname.UTF8:
		return converted(s, to, (*charmap.Charmap).Encode, from, to)
	case to == encname.UTF8:
		return converted(s, from, (*charmap.Charmap).Decode, from, to)
	case direct[from] != "" && direct[from] == direct[to]:
		return "", unsupported("conversion from \"%s\" to \"%s\" is not supported", from, to)
	}
	return "", noConversion(from, to)
}

func noConversion(from, to string) error {
	return pgerr.New(codes.UndefinedFunction, "default conversion function for encoding \"%s\" to \"%s\" does not exist", from, to)
}

// converted converts a text by the table of an encoding.
func converted(s, name string, convert func(*charmap.Charmap, []byte, []byte) ([]byte, *charmap.Error), from, to string) (string, error) {
	c, err := charmap.Of(name)
	if err != nil {
		return "", err
	}
	if c == nil {
		return "", noConversion(from, to)
	}
	out, problem := convert(c, nil, []byte(s))
	if problem != nil {
		return "", pgerr.OfText(problem)
	}
	return string(out), nil
}

// checkIn says that a text is not of an encoding. Those of no table are taken as they are.
func checkIn(s, name string) error {
	c, err := charmap.Of(name)
	if err != nil {
		return err
	}
	var problem *charmap.Error
	switch {
	case c != nil:
		problem = c.Check([]byte(s))
	case name == encname.UTF8:
		problem = charmap.CheckUTF8([]byte(s))
	case name == sqlASCII && strings.IndexByte(s, 0) >= 0:
		problem = &charmap.Error{Bytes: []byte{0}, From: sqlASCII, Invalid: true}
	}
	if problem != nil {
		return pgerr.OfText(problem)
	}
	return nil
}

// lengthIn is the number of characters of a text in an encoding.
func lengthIn(s, name string) (int, error) {
	if name == mule && s != "" {
		return 0, unsupported("encoding \"%s\" is not supported", name)
	}
	if err := checkIn(s, name); err != nil {
		return 0, err
	}
	c, err := charmap.Of(name)
	if err != nil || name == sqlASCII {
		return len(s), err
	}
	if c == nil {
		return len([]rune(s)), nil
	}
	return c.Count([]byte(s)), nil
}
