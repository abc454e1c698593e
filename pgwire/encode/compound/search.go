package compound

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// searchVector reads a tsvector: quoted lexemes, each with places and weights or without.
func searchVector(dst, src []byte) ([]byte, error) {
	at, count := len(dst), uint32(0)
	dst = append(dst, 0, 0, 0, 0)
	for i := 0; i < len(src); count++ {
		if src[i] == ' ' {
			i++
		}
		var ok bool
		if dst, i, ok = lexeme(dst, src, i); !ok {
			return dst, ErrSyntax
		}
		end := i
		for end < len(src) && src[end] != ' ' {
			end++
		}
		if dst, ok = places(dst, strings.TrimPrefix(string(src[i:end]), ":")); !ok {
			return dst, ErrSyntax
		}
		i = end
	}
	binary.BigEndian.PutUint32(dst[at:], count)
	return dst, nil
}

// lexeme appends a quoted word and a zero; quotes and backslashes in it are doubled.
func lexeme(dst, src []byte, i int) (out []byte, next int, ok bool) {
	if i == len(src) || src[i] != '\'' {
		return dst, i, false
	}
	for i++; i < len(src); i++ {
		switch c := src[i]; {
		case (c == '\'' || c == '\\') && i+1 < len(src) && src[i+1] == c:
			i++
		case c == '\'':
			return append(dst, 0), i + 1, true
		}
		dst = append(dst, src[i])
	}
	return dst, i, false
}

// places appends the places of a lexeme: 1A,2,3B.
func places(dst []byte, text string) ([]byte, bool) {
	var list []string
	if text != "" {
		list = strings.Split(text, ",")
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(list)))
	for _, p := range list {
		weight := uint16(0)
		if p == "" {
			return dst, false
		}
		if i := strings.IndexByte("DCBA", p[len(p)-1]); i > 0 {
			weight, p = uint16(i), p[:len(p)-1]
		}
		n, err := strconv.ParseUint(p, 10, 14)
		if err != nil {
			return dst, false
		}
		dst = binary.BigEndian.AppendUint16(dst, weight<<14|uint16(n))
	}
	return dst, true
}
