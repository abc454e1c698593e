package encode

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"github.com/skipprd/skipprd/lake/vector"
)

func stringText(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return append(dst, v.Bytes(i)...)
}

// intervalOfText is an interval that is kept as PostgreSQL's text, in the session's style.
func intervalOfText(s *state, dst []byte, v *vector.Vector, i int) []byte {
	if s.intervals == intervalPostgres {
		return append(dst, v.Bytes(i)...)
	}
	iv, err := parseInterval(string(v.Bytes(i)))
	if err != nil {
		s.fail(err)
		return dst
	}
	return s.appendInterval(dst, iv)
}

func jsonbBinary(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return append(append(dst, 1), v.Bytes(i)...)
}

// blobText is a blob as bytea; announced as a text type its bytes are the text.
func blobText(oid uint32) appendFunc {
	if oid != oidBytea && isTextual(oid) && oid != 0 {
		return stringText
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		return s.appendBytea(dst, v.Bytes(i))
	}
}

func (s *state) appendBytea(dst, b []byte) []byte {
	if !s.byteaEscape {
		return hex.AppendEncode(append(dst, '\\', 'x'), b)
	}
	for _, c := range b {
		switch {
		case c == '\\':
			dst = append(dst, '\\', '\\')
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func enumText(t vector.Type) appendFunc {
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		var n uint32
		switch t.Width {
		case 1:
			n = uint32(load[uint8](v, i))
		case 2:
			n = uint32(load[uint16](v, i))
		default:
			n = load[uint32](v, i)
		}
		if int(n) >= len(t.Dict) {
			s.fail(errCannotSend(t, 0))
			return dst
		}
		return append(dst, t.Dict[n]...)
	}
}

// uuidBytes undoes the engine's flipped top bit.
func uuidBytes(v *vector.Vector, i int) (b [16]byte) {
	h := load[hugeInt](v, i)
	binary.BigEndian.PutUint64(b[:8], uint64(h.hi)^1<<63)
	binary.BigEndian.PutUint64(b[8:], h.lo)
	return b
}

func uuidBinary(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	b := uuidBytes(v, i)
	return append(dst, b[:]...)
}

func uuidText(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	return appendUUID(dst, uuidBytes(v, i))
}

func appendUUID(dst []byte, b [16]byte) []byte {
	const digits = "0123456789abcdef"
	for i, c := range b {
		switch i {
		case 4, 6, 8, 10:
			dst = append(dst, '-')
		}
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// bitString returns the engine's bits: the number of padding bits in front, then
// the bytes.
func bitString(v *vector.Vector, i int) (padding int, b []byte) {
	b = v.Bytes(i)
	if len(b) == 0 {
		return 0, nil
	}
	return int(b[0]), b[1:]
}

func bitText(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	skip, b := bitString(v, i)
	for n := skip; n < len(b)*8; n++ {
		dst = append(dst, '0'+b[n>>3]>>(7-n&7)&1)
	}
	return dst
}

func bitBinary(_ *state, dst []byte, v *vector.Vector, i int) []byte {
	skip, b := bitString(v, i)
	n := max(len(b)*8-skip, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	at := len(dst)
	for k := range n {
		if k&7 == 0 {
			dst = append(dst, 0)
		}
		m := skip + k
		dst[at+k>>3] |= bits.Reverse8(1<<(k&7)) * (b[m>>3] >> (7 - m&7) & 1)
	}
	return dst
}
