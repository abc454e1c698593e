// Package hash holds PostgreSQL's hash functions: Jenkins' lookup3 as its hash_bytes has it,
// on machines of little endian. Pure; safe for concurrent use.
package hash

import (
	"encoding/binary"
	"math/bits"

	"github.com/skipprd/skipprd/lake/scalar"
)

// Functions are the functions of the package.
func Functions() []scalar.Function {
	text, i32, i64 := scalar.Text, scalar.Int32, scalar.Int64
	return []scalar.Function{
		{Name: "skippr_hash_text", Params: []scalar.Kind{text}, Result: i32, Call: func(v []scalar.Value) (scalar.Value, error) {
			return short(Bytes(v[0].Text, 0)), nil
		}},
		{Name: "skippr_hash_text_seed", Params: []scalar.Kind{text, i64}, Result: i64, Call: func(v []scalar.Value) (scalar.Value, error) {
			return scalar.OfInt(int64(Bytes(v[0].Text, uint64(v[1].Int)))), nil
		}},
		{Name: "skippr_hash_int4", Params: []scalar.Kind{i64}, Result: i32, Call: func(v []scalar.Value) (scalar.Value, error) {
			return short(word(uint32(v[0].Int), 0)), nil
		}},
		{Name: "skippr_hash_int4_seed", Params: []scalar.Kind{i64, i64}, Result: i64, Call: func(v []scalar.Value) (scalar.Value, error) {
			return scalar.OfInt(int64(word(uint32(v[0].Int), uint64(v[1].Int)))), nil
		}},
		{Name: "skippr_hash_int8", Params: []scalar.Kind{i64}, Result: i32, Call: func(v []scalar.Value) (scalar.Value, error) {
			return short(word(folded(v[0].Int), 0)), nil
		}},
		{Name: "skippr_hash_int8_seed", Params: []scalar.Kind{i64, i64}, Result: i64, Call: func(v []scalar.Value) (scalar.Value, error) {
			return scalar.OfInt(int64(word(folded(v[0].Int), uint64(v[1].Int)))), nil
		}},
	}
}

func short(h uint64) scalar.Value { return scalar.OfInt(int64(int32(uint32(h)))) }

// folded makes a bigint a word, such that one that fits an integer is as that.
func folded(n int64) uint32 {
	high := uint32(n >> 32)
	if n < 0 {
		high = ^high
	}
	return uint32(n) ^ high
}

// state are the three words that bytes are mixed into.
type state struct{ a, b, c uint32 }

func begin(n int, seed uint64) state {
	v := uint32(0x9e3779b9) + uint32(n) + 3923095
	s := state{v, v, v}
	if seed != 0 {
		s.a += uint32(seed >> 32)
		s.b += uint32(seed)
		s.mix()
	}
	return s
}

func (s *state) mix() {
	rot := bits.RotateLeft32
	s.a -= s.c
	s.a ^= rot(s.c, 4)
	s.c += s.b
	s.b -= s.a
	s.b ^= rot(s.a, 6)
	s.a += s.c
	s.c -= s.b
	s.c ^= rot(s.b, 8)
	s.b += s.a
	s.a -= s.c
	s.a ^= rot(s.c, 16)
	s.c += s.b
	s.b -= s.a
	s.b ^= rot(s.a, 19)
	s.a += s.c
	s.c -= s.b
	s.c ^= rot(s.b, 4)
	s.b += s.a
}

// end gives the hash: the last word is the one of 32 bits.
func (s *state) end() uint64 {
	rot := bits.RotateLeft32
	s.c ^= s.b
	s.c -= rot(s.b, 14)
	s.a ^= s.c
	s.a -= rot(s.c, 11)
	s.b ^= s.a
	s.b -= rot(s.a, 25)
	s.c ^= s.b
	s.c -= rot(s.b, 16)
	s.a ^= s.c
	s.a -= rot(s.c, 4)
	s.b ^= s.a
	s.b -= rot(s.a, 14)
	s.c ^= s.b
	s.c -= rot(s.b, 24)
	return uint64(s.b)<<32 | uint64(s.c)
}

// Bytes is hash_bytes_extended; its lower half, without a seed, is hash_bytes.
func Bytes(text string, seed uint64) uint64 {
	s := begin(len(text), seed)
	k := []byte(text)
	for ; len(k) >= 12; k = k[12:] {
		s.a += binary.LittleEndian.Uint32(k)
		s.b += binary.LittleEndian.Uint32(k[4:])
		s.c += binary.LittleEndian.Uint32(k[8:])
		s.mix()
	}
	var rest [12]byte
	copy(rest[:], k[:min(len(k), 8)])
	if len(k) > 8 { // the lowest byte of the third word is not used
		copy(rest[9:], k[8:])
	}
	s.a += binary.LittleEndian.Uint32(rest[:])
	s.b += binary.LittleEndian.Uint32(rest[4:])
	s.c += binary.LittleEndian.Uint32(rest[8:])
	return s.end()
}

// word is hash_uint32_extended.
func word(k uint32, seed uint64) uint64 {
	s := begin(4, seed)
	s.a += k
	return s.end()
}
