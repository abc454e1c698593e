package pgsql_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// analyze returns the rewritten statement.
func analyze(t *testing.T, sql string, params ...uint32) (*pgsql.Analysis, error) {
	t.Helper()
	p, err := pgsql.Parse(sql)
	if err != nil {
		return nil, err
	}
	return pgsql.Analyze(p, params, testEnv())
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"SELECT 7/2", "SELECT CAST((7 // 2) AS INTEGER) AS c1"},
		{
			"SELECT id / i2 FROM t",
			`SELECT CAST((t_1."id" // skippr_nonzero(CAST(t_1."i2" AS INTEGER))) AS INTEGER) AS c1 FROM "skippr_rel_1" AS t_1`,
		},
		{
			"SELECT s ~* 'x' FROM t",
			`SELECT CAST(regexp_matches(t_1."s", '(?is)x') AS BOOLEAN) AS c1 FROM "skippr_rel_1" AS t_1`,
		},
		{
			"SELECT 1 FROM t WHERE s LIKE 'a!%b' ESCAPE '!'",
			`SELECT CAST(1 AS INTEGER) AS c1 FROM "skippr_rel_1" AS t_1 WHERE (t_1."s" LIKE 'a\%b' ESCAPE '\')`,
		},
		{
			"SELECT id FROM t ORDER BY id DESC",
			`SELECT t_1."id" AS c1 FROM "skippr_rel_1" AS t_1 ORDER BY t_1."id" DESC NULLS FIRST`,
		},
		{"SELECT sum(id) FROM t", `SELECT CAST(CAST(sum(t_1."id") AS BIGINT) AS BIGINT) AS c1 FROM "skippr_rel_1" AS t_1`},
		{
			"SELECT s FROM t WHERE id = $1",
			`SELECT t_1."s" AS c1 FROM "skippr_rel_1" AS t_1 WHERE (t_1."id" = CAST($1 AS INTEGER))`,
		},
		{"SELECT $1::jsonb", `SELECT CAST(skippr_j_norm(CAST($1 AS VARCHAR)) AS VARCHAR) AS c1`},
		{"SELECT '{1,2}'::int[]", `SELECT CAST(CAST('[1, 2]' AS INTEGER[]) AS INTEGER[]) AS c1`},
		{
			`SELECT c = 'x' FROM t`,
			`SELECT CAST((rtrim(t_1."c", ' ') = rtrim('x', ' ')) AS BOOLEAN) AS c1 FROM "skippr_rel_1" AS t_1`,
		},
	} {
		a, err := analyze(t, c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if a.SQL != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.in, a.SQL, c.want)
		}
	}
}

// A statement needs only the columns it names, and the key.
func TestUsedColumns(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT s FROM t":                         "s id",
		"SELECT count(*) FROM t":                  "id",
		"SELECT 1 FROM t WHERE n > 5":             "n id",
		"SELECT * FROM t":                         "id i2 i8 n nn f8 s v c b d ts tz iv j a",
		"SELECT a.s FROM t a JOIN t b USING (id)": "id s",
	} {
		a, err := analyze(t, sql)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range a.Uses[0].Columns {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

func TestKeyPredicate(t *testing.T) {
	for _, c := range []struct{ where, predicate, bounds string }{
		{"id = 5", `("id" = 5)`, "5..5"},
		{"5 < id AND id <= 9 AND s = 'x'", `(5 < "id") AND ("id" <= 9)`, "5..9"},
		{"id BETWEEN 3 AND 7", `(("id" >= 3) AND ("id" <= 7))`, "3..7"},
		{"id IN (1, 2)", `("id" IN (1, 2))`, ""},
		{"id = $1", `("id" = CAST($1 AS INTEGER))`, ""},
		{"id = 5 OR s = 'x'", "", ""},
		{"id <> 5", "", ""},
		{"id = i8", "", ""},
		{"id + 1 = 5", "", ""},
		{"NOT id = 5", "", ""},
		{"s = 'x'", "", ""},
		{"t.id = 5 AND t.id = 6", `("id" = 5) AND ("id" = 6)`, "6..5"},
	} {
		a, err := analyze(t, "SELECT s FROM t WHERE "+c.where)
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
			continue
		}
		u := a.Uses[0]
		bounds := ""
		if u.Bounded {
			bounds = fmt.Sprintf("%d..%d", u.Min, u.Max)
		}
		if u.KeyPredicate != c.predicate || bounds != c.bounds {
			t.Errorf("%s: %q %q, want %q %q", c.where, u.KeyPredicate, bounds, c.predicate, c.bounds)
		}
	}
}

func TestParameterTypes(t *testing.T) {
	for _, c := range []struct {
		sql      string
		declared []uint32
		want     string
	}{
		{"SELECT $1", nil, "[25]"},
		{"SELECT $1::int8, $2", []uint32{0, 23}, "[20 23]"},
		{"SELECT 1 FROM t WHERE d >= $1 AND n < $2 AND s = $3", nil, "[1082 1700 25]"},
		{"SELECT 1 FROM t WHERE id = ANY($1)", nil, "[1007]"},
		{"SELECT 1 FROM t LIMIT $1", nil, "[20]"},
		{"SELECT id + $1, ts - $2::interval FROM t", nil, "[23 1186]"},
		{"SELECT upper($1), coalesce($2, n) FROM t", nil, "[25 1700]"},
		{"SELECT 1 FROM t WHERE id IN ($1, $2)", nil, "[23 23]"},
		{"VALUES ($1, 1), (2, $2)", nil, "[23 23]"},
		{"SELECT 1 FROM t WHERE id BETWEEN $1 AND $1 + $2", nil, "[23 23]"},
		{"SELECT 1 WHERE $1 BETWEEN 1 AND 10::int8", nil, "[23]"},
	} {
		a, err := analyze(t, c.sql, c.declared...)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if got := fmt.Sprint(a.Params); got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
}

func TestErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT nope FROM t", "42703 column \"nope\" does not exist @8"},
		{"SELECT 'é', nope FROM t", "42703 column \"nope\" does not exist @13"},
		{"SELECT t.nope FROM t", "42703 column t.nope does not exist @8"},
		{"SELECT x.id FROM t", "42P01 missing FROM-clause entry for table \"x\" @8"},
		{"SELECT 1 FROM nope", "42P01 relation \"nope\" does not exist @15"},
		{"SELECT 1 FROM a.nope", "42P01 relation \"a.nope\" does not exist @15"},
		{"SELECT foo(1)", "42883 function foo(integer) does not exist @8"},
		{"SELECT true + 1", "42883 operator does not exist: boolean + integer @13"},
		{"SELECT id FROM t WHERE s", "42804 argument of WHERE must be type boolean, not type text @24"},
		{"SELECT 'x'::int", "22P02 invalid input syntax for type integer: \"x\" @8"},
		{"SELECT 1::nosuch", "42704 type \"nosuch\" does not exist @11"},
		{"SELECT id FROM t a, t b", "42702 column reference \"id\" is ambiguous @8"},
		{
			"SELECT s FROM t GROUP BY v",
			"42803 column \"t.s\" must appear in the GROUP BY clause or be used in an aggregate function @8",
		},
		{"SELECT 1 WHERE sum(1) > 0", "42803 aggregate functions are not allowed in WHERE @16"},
		{"SELECT sum(sum(id)) FROM t", "42803 aggregate function calls cannot be nested @12"},
		{"SELECT 1 ORDER BY 2", "42P10 ORDER BY position 2 is not in select list @19"},
		{"SELECT 1, 2 UNION SELECT 3", "42601 each UNION query must have the same number of columns"},
		{"SELECT (1, 2) = (1, 2, 3)", "42601 unequal number of entries in row expressions @15"},
		{"SELECT date '2024-02-30'", "22008 date/time field value out of range: \"2024-02-30\" @13"},
		{"SELECT FROM", "42601 syntax error at end of input @12"},
		{"SELECT 1; SELECT 2", "42601 cannot insert multiple commands into a prepared statement"},
		{"SELECT rank() FROM t", "42809 window function rank requires an OVER clause @8"},
		{"SELECT id FROM t FOR UPDATE", `42809 cannot lock rows in relation "t"`},
		{"SELECT read_parquet('x')", "42883 function read_parquet(unknown) does not exist @8"},
		{"SELECT * FROM read_parquet('x')", "42883 function read_parquet(unknown) does not exist @15"},
		{"SELECT getenv('HOME')", "42883 function getenv(unknown) does not exist @8"},
		{"SELECT skippr_n_key('1')", "42883 function skippr_n_key(unknown) does not exist @8"},
	} {
		_, err := analyze(t, c.sql)
		e, ok := pgerr.As(err)
		if !ok {
			t.Errorf("%s: %v, want %s", c.sql, err, c.want)
			continue
		}
		got := fmt.Sprintf("%s %s", e.Code, e.Message)
		if e.Position > 0 {
			got += fmt.Sprintf(" @%d", e.Position)
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.sql, got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	ours := func(s string) bool { return strings.HasPrefix(s, "CREATE PIPELINE") }
	for sql, want := range map[string]string{
		"":                                    "",
		" ;; -- nothing\n":                    "",
		"SELECT 1; SELECT 'a;b' ;":            "SELECT 1@0|SELECT 'a;b'@10",
		"SELECT 'é'; SELECT 2":                "SELECT 'é'@0|SELECT 2@12",
		"CREATE PIPELINE p FROM x; SELECT 1":  "CREATE PIPELINE p FROM x@0|SELECT 1@26",
		"SELECT 1; SELEC 2":                   "error @11",
		"CREATE PIPELINE p; SELECT ; SELEC 2": "error @29",
	} {
		pieces, err := pgsql.Split(sql, ours)
		var out []string
		for _, p := range pieces {
			out = append(out, fmt.Sprintf("%s@%d", p.SQL, p.Offset))
		}
		if e, ok := pgerr.As(err); ok {
			out = append(out, fmt.Sprintf("error @%d", e.Position))
		}
		if got := strings.Join(out, "|"); got != want {
			t.Errorf("%q: %s, want %s", sql, got, want)
		}
	}
}

// Nothing that a client writes makes the analysis panic or hang.
func FuzzAnalyze(f *testing.F) {
	text, err := os.ReadFile("testdata/diff.sql")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		p, err := pgsql.Parse(sql)
		if err != nil || p.Node == nil {
			return
		}
		if _, err := pgsql.Analyze(p, nil, testEnv()); err != nil {
			if _, ok := pgerr.As(err); !ok {
				t.Fatalf("not a statement error: %v", err)
			}
		}
	})
}
