package duckdb

import (
	"errors"
	"testing"
)

func TestRewrite(t *testing.T) {
	relations := map[string]string{"R 1": "SELECT 1", `a"b`: "SELECT 2"}
	x, quote := "5", "it's"
	params := []*string{&x, &quote, nil}
	for _, c := range []struct{ in, want string }{
		{`SELECT * FROM "R 1" AS t`, `SELECT * FROM (SELECT 1) AS t`},
		{`SELECT * FROM "a""b" t`, `SELECT * FROM (SELECT 2) t`},
		{`SELECT '"R 1"', "other" FROM "R 1" r`, `SELECT '"R 1"', "other" FROM (SELECT 1) r`},
		{`SELECT 'it''s "R 1"' x`, `SELECT 'it''s "R 1"' x`},
		{`SELECT E'\'"R 1"' FROM "R 1"`, `SELECT E'\'"R 1"' FROM (SELECT 1)`},
		{`SELECT $$ "R 1" $1 $$, $t$ $$ $1 $t$ || $1`, `SELECT $$ "R 1" $1 $$, $t$ $$ $1 $t$ || '5'`},
		{"SELECT 1 -- \"R 1\" $1\n+ $1", "SELECT 1 -- \"R 1\" $1\n+ '5'"},
		{`SELECT /* "R 1" /* $1 */ $2 */ $2`, `SELECT /* "R 1" /* $1 */ $2 */ 'it''s'`},
		{`SELECT CAST($3 AS INT), a$1, '$1', $1`, `SELECT CAST(NULL AS INT), a$1, '$1', '5'`},
		{`SELECT "unclosed`, `SELECT "unclosed`},
		{`SELECT '`, `SELECT '`},
		{`ü$1 "R 1"`, `ü$1 (SELECT 1)`},
	} {
		got, err := rewrite(c.in, relations, params)
		if err != nil || got != c.want {
			t.Errorf("rewrite(%s)\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"SELECT $4", "SELECT $0", "SELECT $99999999999999999999"} {
		if _, err := rewrite(in, nil, params); !errors.Is(err, ErrPlan) {
			t.Errorf("rewrite(%s) = %v, want ErrPlan", in, err)
		}
	}
	if got, _ := rewrite("SELECT $7", nil, nil); got != "SELECT $7" {
		t.Errorf("without parameters: %s", got)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(`SELECT $$a$$, "R 1", 'x', E'\'', $1 /* */ -- `)
	f.Fuzz(func(t *testing.T, sql string) {
		if got, err := rewrite(sql, nil, nil); err != nil || got != sql {
			t.Errorf("rewrite(%q) = %q, %v", sql, got, err)
		}
	})
}
