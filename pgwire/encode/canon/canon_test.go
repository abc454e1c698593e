package canon_test

import (
	"errors"
	"testing"

	"github.com/skipprd/skipprd/pgwire/encode/canon"
)

func TestTexts(t *testing.T) {
	same := func(s string) (string, error) { return s, nil }
	ranges := func(k canon.Kind) func(string) (string, error) {
		return func(s string) (string, error) { return canon.Range(s, k, same) }
	}
	mac := func(s string) (string, error) { return canon.MAC(s, false) }
	inet := func(s string) (string, error) { return canon.Network(s, false) }
	cidr := func(s string) (string, error) { return canon.Network(s, true) }
	shape := func(oid uint32) func(string) (string, error) {
		return func(s string) (string, error) { return canon.Shape(oid, s, same) }
	}
	for _, c := range []struct {
		f        func(string) (string, error)
		in, want string
		err      error
	}{
		{ranges(canon.Integers), "[1,5]", "[1,6)", nil},
		{ranges(canon.Integers), "(1,5)", "[2,5)", nil},
		{ranges(canon.Integers), "[1,1)", "empty", nil},
		{ranges(canon.Integers), "(1,2)", "empty", nil},
		{ranges(canon.Integers), "(,5]", "(,6)", nil},
		{ranges(canon.Integers), "[,]", "(,)", nil},
		{ranges(canon.Integers), "[5,1)", "", canon.ErrOrder},
		{ranges(canon.Integers), " Empty ", "empty", nil},
		{ranges(canon.Integers), "x", "", canon.ErrSyntax},
		{ranges(canon.Integers), "[1,2,3)", "", canon.ErrSyntax},
		{ranges(canon.Integers), "[1\\0,2)", "", canon.ErrUnsupported},
		{ranges(canon.Numbers), "[1.0,2.50]", "[1.0,2.50]", nil},
		{ranges(canon.Numbers), "(1,1)", "empty", nil},
		{ranges(canon.Numbers), "[2,1]", "", canon.ErrOrder},
		{ranges(canon.Numbers), "[1,NaN]", "", canon.ErrUnsupported},
		{ranges(canon.Days), "[2024-01-01,2024-01-31]", "[2024-01-01,2024-02-01)", nil},
		{ranges(canon.Moments), `["2024-01-01 10:00:00",2024-01-31 00:00:00)`, `["2024-01-01 10:00:00","2024-01-31 00:00:00")`, nil},
		{mac, "08002B010203", "08:00:2b:01:02:03", nil},
		{mac, "0800.2b01.0203", "08:00:2b:01:02:03", nil},
		{mac, "08:00:2b:01:02", "", canon.ErrUnsupported},
		{canon.LSN, "00/1a", "0/1A", nil},
		{canon.LSN, "1", "", canon.ErrSyntax},
		{inet, "2001:DB8::1/64", "2001:db8::1/64", nil},
		{inet, "1.2.3.4/32", "1.2.3.4", nil},
		{inet, "1.2.3", "", canon.ErrSyntax},
		{cidr, "10.1.2.3/8", "", canon.ErrSyntax},
		{cidr, "10.1.2.3", "10.1.2.3/32", nil},
		{cidr, "10.0.0.0/8", "10.0.0.0/8", nil},
		{cidr, "10.1", "10.1.0.0/16", nil},
		{cidr, "224", "224.0.0.0/4", nil},
		{cidr, "0xc0", "", canon.ErrUnsupported},
		{inet, "192.168.001.005", "192.168.1.5", nil},
		{inet, "10/8", "10.0.0.0/8", nil},
		{inet, "::1.2.3.4", "::1.2.3.4", nil},
		{canon.Bits, "x1F", "00011111", nil},
		{canon.Bits, "B01", "01", nil},
		{shape(600), "(1,2.5)", "(1,2.5)", nil},
		{shape(600), " 1 , 2 ", "(1,2)", nil},
		{shape(600), "(1,2", "", canon.ErrSyntax},
		{shape(603), "(1,1),(0,0)", "(1,1),(0,0)", nil},
		{shape(603), "0,1,1,0", "(1,1),(0,0)", nil},
		{shape(628), "(0,0),(1,1)", "", canon.ErrUnsupported},
		{shape(628), "{0,-0,1}", "", canon.ErrLine},
		{shape(602), "[(0,0),(1,1)]", "[(0,0),(1,1)]", nil},
	} {
		got, err := c.f(c.in)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v; want %q, %v", c.in, got, err, c.want, c.err)
		}
	}
	for cents, want := range map[int64]string{0: "$0.00", -5: "-$0.05", 100050: "$1,000.50", -9223372036854775808: "-$92,233,720,368,547,758.08"} {
		if got := canon.Money(cents); got != want {
			t.Errorf("%d: %q, want %q", cents, got, want)
		}
	}
}
