package compound_test

import (
	"encoding/binary"
	"errors"
	"strconv"
	"testing"

	"github.com/skipprd/skipprd/pgwire/encode/compound"
)

// made are the types that are read here.
var made = []uint32{22, 27, 30, 600, 601, 602, 603, 604, 628, 718, 2970, 3614, 3904, 3906, 4451, 4532, 5038}

// number stands for every scalar type.
func number(uint32) compound.Parse {
	return func(dst, src []byte) ([]byte, error) {
		n, err := strconv.ParseInt(string(src), 10, 32)
		if err != nil {
			return dst, compound.ErrSyntax
		}
		return binary.BigEndian.AppendUint32(dst, uint32(n)), nil
	}
}

// What is right is compared with PostgreSQL in package encode; this is what is wrong.
func TestMalformed(t *testing.T) {
	for oid, texts := range map[uint32][]string{
		3904: {"", "[", "[1", "[1,", "[1,2", "[1,2]]", "[a,2]", "1,2", `["1,2]`, `[1\`, "empties"},
		4451: {"", "{", "{[1,2)", "{[1,2),}", "{[1,2)[3,4)}", "{empty", "{x}", "{}}"},
		27:   {"", "(1)", "(1,2", "(1,65536)", "(-1,0)"},
		600:  {"", "(1)", "(1,2,3)", "(a,b)"},
		604:  {"(1)", "(1,2,x)"},
		5038: {"", "1:2", "1:2:x", "1:2:3:4", "-1:2:"},
		22:   {"a", "1 b"},
		3614: {"a", "'a", "'a':x", "'a':1Z", "'a':16384", "'a':1,"},
	} {
		parse := compound.FromText(oid, number)
		for _, text := range texts {
			if out, err := parse(nil, []byte(text)); !errors.Is(err, compound.ErrSyntax) {
				t.Errorf("%d: %q gave %x, %v", oid, text, out, err)
			}
		}
	}
	if compound.FromText(23, number) != nil {
		t.Error("an integer is made of others")
	}
}

func FuzzFromText(f *testing.F) {
	for _, text := range []string{"[1,2)", "{[1,2),(3,]}", `["a""b",\c]`, "(1,2)", "'a':1A,2 'b'", "1:2:3,4", "1 2 3", "empty", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, oid := range made {
			src := []byte(text)
			out, err := compound.FromText(oid, number)([]byte("head"), src)
			if string(src) != text {
				t.Fatalf("%d: changed its input", oid)
			}
			if err == nil && (string(out[:4]) != "head" || len(out) > 4+64+64*len(text)) {
				t.Fatalf("%d: %q gave %d bytes", oid, text, len(out))
			}
		}
	})
}
