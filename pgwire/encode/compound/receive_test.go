package compound_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/pgwire/encode/compound"
)

// The bytes are what PostgreSQL 15 sends of these values.
func TestText(t *testing.T) {
	number := func(_ uint32, b []byte) (string, error) {
		if len(b) != 4 {
			return "", errors.New("no number")
		}
		return fmt.Sprint(b[3]), nil
	}
	for _, c := range []struct {
		oid       uint32
		hex, want string
		long      error // with a byte more
	}{
		{600, "3ff00000000000004000000000000000", "(1,2)", compound.ErrLong},
		{601, "3ff0000000000000400000000000000040080000000000007ff0000000000000", "[(1,2),(3,Infinity)]", compound.ErrLong},
		{603, "400800000000000040100000000000003ff00000000000004000000000000000", "(3,4),(1,2)", compound.ErrLong},
		{628, "3ff000000000000040000000000000007ff8000000000000", "{1,2,NaN}", compound.ErrLong},
		{718, "3ff000000000000040000000000000004008000000000000", "<(1,2),3>", compound.ErrLong},
		{602, "01000000013ff00000000000004000000000000000", "((1,2))", compound.ErrLong},
		{602, "00000000013ff00000000000004000000000000000", "[(1,2)]", compound.ErrLong},
		{604, "000000013ff00000000000004000000000000000", "((1,2))", compound.ErrLong},
		{829, "08002b010203", "08:00:2b:01:02:03", compound.ErrLong},
		{774, "08002b0102030405", "08:00:2b:01:02:03:04:05", compound.ErrLong},
		{3220, "00000016b374d848", "16/B374D848", compound.ErrLong},
		{27, "000000010002", "(1,2)", compound.ErrLong},
		{3904, "020000000400000001" + "0000000400000005", "[1,5)", compound.ErrFormat},
		{3904, "0800000004000000" + "05", "(,5)", compound.ErrFormat},
		{3904, "18", "(,)", compound.ErrFormat},
		{3904, "01", "empty", compound.ErrFormat},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok, err := compound.Text(c.oid, b, number); !ok || err != nil || text != c.want {
			t.Errorf("%d: %q, %t, %v; want %q", c.oid, text, ok, err, c.want)
		}
		if _, _, err := compound.Text(c.oid, append(b, 0), number); !errors.Is(err, c.long) {
			t.Errorf("%d, too long: %v", c.oid, err)
		}
		for n := range b[:len(b)-1] {
			if _, _, err := compound.Text(c.oid, b[:n], number); !errors.Is(err, compound.ErrShort) {
				t.Errorf("%d, %d bytes: %v", c.oid, n, err)
			}
		}
	}
	for oid, want := range map[uint32]error{628: compound.ErrLine, 718: compound.ErrRadius} {
		b := make([]byte, 24)
		b[16] = 0xc0
		if _, _, err := compound.Text(oid, b, number); !errors.Is(err, want) {
			t.Errorf("%d: %v", oid, err)
		}
	}
	if _, ok, _ := compound.Text(25, nil, number); ok {
		t.Error("a text is read")
	}
	if _, _, err := compound.Text(604, []byte{0x7f, 0xff, 0xff, 0xff}, number); !errors.Is(err, compound.ErrShort) {
		t.Errorf("points that there cannot be: %v", err)
	}
}
