package encode_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// huge is the engine's 128-bit layout.
type huge struct {
	lo uint64
	hi int64
}

// interval is the engine's layout.
type interval struct {
	months, days int32
	micros       int64
}

// fixed makes a vector of values of a fixed size.
func fixed[T any](typ vector.Type, values ...T) vector.Vector {
	values = append([]T{}, values...)
	return vector.Vector{Type: typ, Data: unsafe.Pointer(unsafe.SliceData(append(values, *new(T))))}
}

// engineString is duckdb_string_t.
type engineString struct {
	n      uint32
	inline [4]byte
	data   unsafe.Pointer
}

// texts makes a String, Blob or Bit vector.
func texts(kind vector.Kind, values ...string) vector.Vector {
	out := make([]engineString, len(values)+1)
	for i, s := range values {
		b := append([]byte{}, s...)
		out[i].n = uint32(len(b))
		if len(b) <= 12 {
			copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&out[i]), 4)), 12), b)
			continue
		}
		copy(out[i].inline[:], b)
		out[i].data = unsafe.Pointer(unsafe.SliceData(b))
		keep(b)
	}
	return vector.Vector{Type: vector.Type{Kind: kind}, Data: unsafe.Pointer(unsafe.SliceData(out))}
}

// kept holds what vectors point to in ways the collector cannot see.
var kept [][]byte

func keep(b []byte) { kept = append(kept, b) }

// withNulls marks rows as null.
func withNulls(v vector.Vector, rows int, null ...int) vector.Vector {
	bitmap := make([]uint64, rows/64+1)
	for i := range bitmap {
		bitmap[i] = ^uint64(0)
	}
	for _, i := range null {
		bitmap[i/64] &^= 1 << (i % 64)
	}
	v.Validity = unsafe.Pointer(unsafe.SliceData(bitmap))
	return v
}

type entry struct{ offset, length uint64 }

// list makes a list vector over a child whose rows are handed out in order.
func list(child vector.Vector, lengths ...int) vector.Vector {
	var entries []entry
	at := 0
	for _, n := range lengths {
		entries = append(entries, entry{uint64(at), uint64(n)})
		at += n
	}
	v := fixed(vector.Type{Kind: vector.List, Elem: []vector.Type{child.Type}}, entries...)
	v.Child, v.ChildRows = []vector.Vector{child}, at
	return v
}

func structOf(members ...vector.Vector) vector.Vector {
	t := vector.Type{Kind: vector.Struct}
	for _, m := range members {
		t.Elem = append(t.Elem, m.Type)
		t.Names = append(t.Names, "m")
	}
	return vector.Vector{Type: t, Child: members}
}

// encodeColumn sends rows of one vector and returns the values, nil for NULL.
func encodeColumn(t testing.TB, v vector.Vector, rows int, oid uint32, format int16, f encode.Format) ([][]byte, error) {
	t.Helper()
	spec := encode.Spec{Kind: encode.Rows, Columns: []encode.Column{{Name: "c", TypeOID: oid, TypMod: -1, Format: format}}, Format: f}
	e, err := encode.New(spec, []vector.Type{v.Type})
	if err != nil {
		return nil, err
	}
	b, err := e.Chunk(e.Header(nil), &vector.Chunk{Rows: rows, Columns: []vector.Vector{v}})
	runtime.KeepAlive(v)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for len(b) > 0 {
		n := int(be32(b[1:]))
		body := b[1+4 : 1+n]
		if length := be32(body[2:]); length == 0xffffffff {
			out = append(out, nil)
		} else {
			out = append(out, append([]byte{}, body[6:6+length]...))
		}
		b = b[1+n:]
	}
	return out, nil
}

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}
