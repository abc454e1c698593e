package compound_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/skipprd/skipprd/pgwire/encode/compound"
)

// The bytes are those of PostgreSQL 15's COPY (SELECT ROW(…)) TO STDOUT (FORMAT binary), of fields
// that are texts here.
func TestRecord(t *testing.T) {
	texts := func(oid uint32) compound.Parse {
		if oid == 1 {
			return nil
		}
		return func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }
	}
	for _, c := range []struct{ fields, text, want string }{
		{"()", "()", "00000000"},
		{"(25)", "()", "0000000100000019ffffffff"},
		{"(25)", `("")`, "000000010000001900000000"},
		{"(25,705)", "(a,b)", "0000000200000019000000016100" + "0002c10000000162"},
		{"(25,25,25)", `("a ""b""",,"c,\\)")`, "0000000300000019000000056120226222" + "00000019ffffffff" + "00000019" + "00000004632c5c29"},
		{
			"(2249(25,25),25)", `("(1,""x y"")",3)`,
			"00000002000008c90000001800000002" + "000000190000000131" + "0000001900000003782079" + "000000190000000133",
		},
	} {
		p := compound.Record(c.fields, texts)
		if p == nil {
			t.Errorf("%s is not read", c.fields)
			continue
		}
		got, err := p(nil, []byte(c.text))
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s of %s: %x, %v", c.text, c.fields, got, err)
		}
	}
	for _, c := range []struct{ fields, text string }{{"(25)", "(a,b)"}, {"(25,25)", "(a)"}, {"(25)", `("a)`}, {"(25)", "a"}, {"()", "(a)"}} {
		if _, err := compound.Record(c.fields, texts)(nil, []byte(c.text)); !errors.Is(err, compound.ErrSyntax) {
			t.Errorf("%s of %s: %v", c.text, c.fields, err)
		}
	}
	for _, fields := range []string{"", "(", "(25", "25)", "(1)", "(2249(1))", "(25))", "(x)"} {
		if compound.Record(fields, texts) != nil {
			t.Errorf("%s is read", fields)
		}
	}
}
