package verify

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Hash is the MD5 of a row's text: what PostgreSQL has without an extension. It finds
// faults, not forgeries.
type Hash [md5.Size]byte

// AppendRecord appends the text of a row as PostgreSQL's record type writes it.
func AppendRecord(dst []byte, cells Cells) []byte {
	dst = append(dst, '(')
	for i, c := range cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		if c != nil {
			dst = appendField(dst, c)
		}
	}
	return append(dst, ')')
}

func appendField(dst, c []byte) []byte {
	if !quoted(c) {
		return append(dst, c...)
	}
	dst = append(dst, '"')
	for _, b := range c {
		if b == '"' || b == '\\' {
			dst = append(dst, b)
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}

// Unrecord is the field of a record of one, as AppendRecord wrote it.
func Unrecord(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	return strings.NewReplacer(`""`, `"`, `\\`, `\`).Replace(text[1 : len(text)-1])
}

// quoted says whether a field of a record is written in quotes.
func quoted(c []byte) bool {
	for _, b := range c {
		switch b {
		case '"', '\\', '(', ')', ',', ' ', '\t', '\n', '\v', '\f', '\r':
			return true
		}
	}
	return len(c) == 0
}

// HashText hashes a text.
func HashText(text []byte) Hash { return md5.Sum(text) }

// ParseHash reads a hash in hexadecimal, as PostgreSQL's md5 writes it.
func ParseHash(text []byte) (h Hash, ok bool) {
	if len(text) != hex.EncodedLen(len(h)) {
		return h, false
	}
	_, err := hex.Decode(h[:], text)
	return h, err == nil
}

// halves are the two numbers that are added up.
func (h Hash) halves() (a, b uint64) {
	return binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:])
}

// part is the place of a key's hash among n.
func (h Hash) part(n int) int64 {
	return int64(binary.BigEndian.Uint32(h[:4])) % int64(max(n, 1))
}

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }
