package quote_test

import (
	"testing"

	"github.com/skipprd/skipprd/pgwire/quote"
)

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"orders": "orders", "_a1": "_a1", "Orders": `"Orders"`, "1a": `"1a"`, "a b": `"a b"`, `a"b`: `"a""b"`, "ä": `"ä"`,
		"": `""`, "order": `"order"`, "user": `"user"`, "name": "name", "select": `"select"`, "int": `"int"`, "text": "text",
		"a_1": "a_1", "_x": "_x", "A": `"A"`, "a$": `"a$"`,
	} {
		if got := quote.NameIfNeeded(in); got != want {
			t.Errorf("NameIfNeeded(%q) = %s, want %s", in, got, want)
		}
	}
	if got, want := quote.Name("crm", `a"b`), `"crm"."a""b"`; got != want {
		t.Errorf("Name is %s, want %s", got, want)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string][2]string{
		"":    {"''", "''"},
		"a'b": {"'a''b'", "'a''b'"},
		`a\b`: {`'a\b'`, `E'a\\b'`},
		`\'`:  {`'\'''`, `E'\\'''`},
	} {
		if got := [2]string{quote.Text(in), quote.Literal(in)}; got != want {
			t.Errorf("%q is %v, want %v", in, got, want)
		}
	}
}
