package pgsql_test

import (
	"testing"

	"github.com/skipprd/skipprd/planner/pgsql"
)

func TestQuoteIdent(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "a_1": "a_1", "_x": "_x", "1a": `"1a"`, "A": `"A"`, "a b": `"a b"`, `a"b`: `"a""b"`, "": `""`, "é": `"é"`,
		"select": `"select"`, "user": `"user"`, "int": `"int"`, "name": "name", "text": "text", "a$": `"a$"`,
	} {
		if got := pgsql.QuoteIdent(in); got != want {
			t.Errorf("QuoteIdent(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestCallable(t *testing.T) {
	for name, want := range map[string]bool{"lower": true, "count": true, "to_char": true, "json_agg": true, "pg_notify": false} {
		if got := pgsql.Callable(name); got != want {
			t.Errorf("Callable(%q) = %v, want %v", name, got, want)
		}
	}
}
