package compound

import (
	"encoding/binary"
	"strings"
)

// The flags of a range on the wire.
const (
	rangeEmpty    = 0x01
	lowerIncluded = 0x02
	upperIncluded = 0x04
	lowerInfinite = 0x08
	upperInfinite = 0x10
)

// rangeOf reads "empty", or a bracket, two bounds and a bracket.
func rangeOf(bound Parse) Parse {
	return func(dst, src []byte) ([]byte, error) {
		s := scanner{text: string(src)}
		dst, err := s.span(dst, bound)
		if err == nil && s.at != len(s.text) {
			err = ErrSyntax
		}
		return dst, err
	}
}

// multirangeOf reads ranges in braces; one is its parser.
func multirangeOf(one Parse) Parse {
	return func(dst, src []byte) ([]byte, error) {
		s := scanner{text: string(src)}
		if !s.take('{') {
			return dst, ErrSyntax
		}
		at, count := len(dst), uint32(0)
		dst = append(dst, 0, 0, 0, 0)
		for !s.take('}') {
			if count > 0 && !s.take(',') {
				return dst, ErrSyntax
			}
			begin := s.at
			if !s.skipSpan() {
				return dst, ErrSyntax
			}
			var err error
			if dst, err = sized(dst, func(b []byte) ([]byte, error) { return one(b, src[begin:s.at]) }); err != nil {
				return dst, err
			}
			count++
		}
		if s.at != len(s.text) {
			return dst, ErrSyntax
		}
		binary.BigEndian.PutUint32(dst[at:], count)
		return dst, nil
	}
}

// scanner reads the text of a range.
type scanner struct {
	text string
	at   int
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) span(dst []byte, bound Parse) ([]byte, error) {
	if strings.HasPrefix(s.text[s.at:], "empty") {
		s.at += len("empty")
		return append(dst, rangeEmpty), nil
	}
	at := len(dst)
	var flags byte
	if s.take('[') {
		flags |= lowerIncluded
	} else if !s.take('(') {
		return dst, ErrSyntax
	}
	dst, infinite, err := s.bound(append(dst, 0), bound)
	if err != nil {
		return dst, err
	}
	if infinite {
		flags |= lowerInfinite
	}
	if !s.take(',') {
		return dst, ErrSyntax
	}
	if dst, infinite, err = s.bound(dst, bound); err != nil {
		return dst, err
	}
	if infinite {
		flags |= upperInfinite
	}
	if s.take(']') {
		flags |= upperIncluded
	} else if !s.take(')') {
		return dst, ErrSyntax
	}
	dst[at] = flags
	return dst, nil
}

// bound appends a bound with its length, or nothing for one that is infinite.
func (s *scanner) bound(dst []byte, parse Parse) (out []byte, infinite bool, err error) {
	text, given, ok := s.boundText()
	if !ok {
		return dst, false, ErrSyntax
	}
	if !given {
		return dst, true, nil
	}
	out, err = sized(dst, func(b []byte) ([]byte, error) { return parse(b, []byte(text)) })
	return out, false, err
}

// boundText reads a bound: given is false when there is nothing, not even quotes.
func (s *scanner) boundText() (text string, given, ok bool) {
	var b strings.Builder
	quoted := false
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case c == '\\':
			if s.at+1 == len(s.text) {
				return "", false, false
			}
			s.at++
			b.WriteByte(s.text[s.at])
			given = true
		case c == '"' && quoted && s.at+1 < len(s.text) && s.text[s.at+1] == '"':
			s.at++
			b.WriteByte('"')
		case c == '"':
			quoted, given = !quoted, true
		case !quoted && strings.IndexByte("()[],", c) >= 0:
			return b.String(), given, true
		default:
			b.WriteByte(c)
			given = true
		}
		s.at++
	}
	return "", false, false
}

// skipSpan goes past one range.
func (s *scanner) skipSpan() bool {
	if strings.HasPrefix(s.text[s.at:], "empty") {
		s.at += len("empty")
		return true
	}
	if !s.take('[') && !s.take('(') {
		return false
	}
	if _, _, ok := s.boundText(); !ok || !s.take(',') {
		return false
	}
	if _, _, ok := s.boundText(); !ok {
		return false
	}
	return s.take(']') || s.take(')')
}
