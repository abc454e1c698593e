package are_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/planner/pgfunc/are"
	"github.com/skipprd/skipprd/planner/pgfunc/are/aretest"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestAgainstPostgres draws expressions and texts, and compares where the match and each group
// begin and end, and what is said of expressions that are none.
func TestAgainstPostgres(t *testing.T) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, pgtest.Start(t).CreateDatabase(t, "TEMPLATE template0", "LC_CTYPE 'C.UTF-8'"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `CREATE FUNCTION places(s text, p text, f text, n int) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE r text := '';
		BEGIN FOR k IN 0..n LOOP r := r || regexp_instr(s, p, 1, 1, 0, f, k) || ',' || regexp_instr(s, p, 1, 1, 1, f, k) || ' '; END LOOP; RETURN r;
		EXCEPTION WHEN invalid_regular_expression THEN RETURN sqlerrm; END $$`); err != nil {
		t.Fatal(err)
	}
	d := aretest.Draw{Rand: rand.New(rand.NewPCG(1, 2))}
	const batch = 500
	for range 10 {
		var exprs, texts, flags, want []string
		var groups []int
		var ours []string
		for range batch {
			e, s, f := d.Expression(2), d.Text(), d.Flags()
			found, n := places(e, s, f)
			exprs, texts, flags, groups, ours = append(exprs, e), append(texts, s), append(flags, f), append(groups, n), append(ours, found)
		}
		rows, err := conn.Query(ctx, `SELECT places(s, p, f, n) FROM unnest($1::text[], $2::text[], $3::text[], $4::int[]) WITH ORDINALITY AS v(s, p, f, n, o) ORDER BY o`,
			texts, exprs, flags, groups)
		if err == nil {
			want, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if ours[i] != want[i] {
				t.Errorf("%q in %q with %q: %s, want %s", exprs[i], texts[i], flags[i], ours[i], want[i])
			}
		}
	}
}

// places are where a match and its groups begin and end, as regexp_instr counts.
func places(expr, text, flags string) (string, int) {
	re, err := are.Compile(expr, flags)
	if err != nil {
		return "invalid regular expression: " + err.Error(), 0
	}
	loc, err := re.Find([]rune(text), 0)
	if err != nil {
		return err.Error(), re.Groups()
	}
	var b strings.Builder
	for g := range re.Groups() + 1 {
		if loc == nil || loc[2*g] < 0 {
			b.WriteString("0,0 ")
			continue
		}
		fmt.Fprintf(&b, "%d,%d ", loc[2*g]+1, loc[2*g+1]+1)
	}
	return b.String(), re.Groups()
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		expr, text string
		from       int
		want       []int
	}{
		{`(a|ab)(c|bcd)(d*)`, "abcd", 0, []int{0, 4, 0, 2, 2, 3, 3, 4}},
		{`^a`, "aa", 1, nil}, // what is before the start is there all the same
		{`\ma`, "aa a", 1, []int{3, 4}},
		{`(\w+) \1`, "to be be", 0, []int{3, 8, 3, 5}},
		{`x*`, "", 0, []int{0, 0}},
		{`***=a.b`, "aab a.b", 0, []int{4, 7}},
		{`(?i)É`, "é", 0, []int{0, 1}},
		{`a # b`, "a # b", 0, []int{0, 5}},
		{`(?x)a # b`, "a", 0, []int{0, 1}},
		{`a(?#b)c`, "ac", 0, []int{0, 2}},
		{`[[.hyphen.]]`, "-", 0, []int{0, 1}},
		{`\x41\u0042\103`, "ABC", 0, []int{0, 3}},
	} {
		re, err := are.Compile(c.expr, "")
		if err != nil {
			t.Errorf("%q: %v", c.expr, err)
			continue
		}
		if got, err := re.Find([]rune(c.text), c.from); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q in %q from %d is %v, %v, want %v", c.expr, c.text, c.from, got, err, c.want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for expr, want := range map[string]error{
		"(": are.ErrParentheses, ")": are.ErrParentheses, "[": are.ErrBrackets, "a**": are.ErrOperand, "*a": are.ErrOperand, "a{2": are.ErrBraces,
		"a{2,1}": are.ErrCount, "a{256}": are.ErrCount, "a{1x}": are.ErrCount, `\`: are.ErrEscape, `\q`: are.ErrEscape, `(a\1)`: are.ErrBackReference,
		`(a)(?=\1)`: are.ErrBackReference, "[b-a]": are.ErrRange, "[a-b-c]": are.ErrRange, "[[:x:]]": are.ErrClass, "[[.xx.]]": are.ErrCollating, "(?z)a": are.ErrOption,
		"***a": are.ErrOperand, "(?b)a": are.ErrBasic, "((a{255}){255}){255}": are.ErrSize,
		strings.Repeat("(", 5000) + strings.Repeat(")", 5000): are.ErrSize,
	} {
		if _, err := are.Compile(expr, ""); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, want %v", expr, err, want)
		}
	}
}

// TestSteps: a search that tries too many ways is given up.
func TestSteps(t *testing.T) {
	re, err := are.Compile(`^(a*)(a*)(a*)(a*)(a*)\1\2\3\4\5b$`, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.Find([]rune(strings.Repeat("a", 301)+"b"), 0); !errors.Is(err, are.ErrSteps) {
		t.Errorf("%v, want %v", err, are.ErrSteps)
	}
}

func FuzzFind(f *testing.F) {
	d := aretest.Draw{Rand: rand.New(rand.NewPCG(3, 4))}
	for range 50 {
		f.Add(d.Expression(2), d.Text(), d.Flags())
	}
	f.Fuzz(func(t *testing.T, expr, text, flags string) {
		re, err := are.Compile(expr, flags)
		if err != nil || len(text) > 50 {
			return
		}
		loc, err := re.Find([]rune(text), 0)
		if err != nil || loc == nil {
			return
		}
		for i := 0; i < len(loc); i += 2 {
			if (loc[i] < 0) != (loc[i+1] < 0) || loc[i] > loc[i+1] || loc[i+1] > len([]rune(text)) {
				t.Errorf("%q in %q: %v", expr, text, loc)
			}
		}
	})
}
