package numeric_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

var samples = strings.Fields(`0 0.00 1 -1 2 3 7 10 1.0 1.50 -2.25 0.1 -0.001 0.0000001 9999 10000 10001 99999999 100000000
	123456789012345678 1234567890123456789 -99999999999999999999.99 0.00012345678901234567890123 1e20 1e-20 1e40
	12345678901234567890123456789012345678901234567890.123456789 0.9 1.1 0.95 2.5 -0.5 NaN Infinity -Infinity
	33.3333333333333333 4.0 16 0.25 1.41421356 3000 -7.5 5e-5 0.99999999999999999999`)

// smaller are what powers may take: they stay within a test's patience.
var smaller = strings.Fields(`0 1 -1 2 3 -2 10 0.5 -0.5 1.5 -1.50 0.1 2.25 7 NaN Infinity -Infinity 100.001 0.0001 12.5`)

// TestAgainstPostgres compares every operation on every pair of samples with a real
// PostgreSQL: texts, which show the scale, and SQLSTATEs.
func TestAgainstPostgres(t *testing.T) {
	server := pgtest.Start(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.CreateDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	// One function a row: an error of one must not hide the others.
	_, err = conn.Exec(ctx, `CREATE FUNCTION try(q text, a text, b text) RETURNS text LANGUAGE plpgsql AS
		$$ DECLARE r text; BEGIN EXECUTE 'SELECT (' || q || ')::text' USING a::numeric, b::numeric INTO r; RETURN r;
		EXCEPTION WHEN OTHERS THEN RETURN '!' || SQLSTATE; END $$`)
	if err != nil {
		t.Fatal(err)
	}
	two := map[string]func(a, b numeric.Num) (numeric.Num, error){
		"$1 + $2": numeric.Add, "$1 - $2": numeric.Sub, "$1 * $2": numeric.Mul, "$1 / $2": numeric.Div,
		"$1 % $2": numeric.Mod, "div($1, $2)": numeric.DivTrunc, "log($1, $2)": numeric.Log, "lcm($1, $2)": numeric.LCM,
		"gcd($1, $2)": func(a, b numeric.Num) (numeric.Num, error) { return numeric.GCD(a, b), nil },
	}
	for sql, f := range two {
		compare(t, conn, sql, samples, samples, f)
	}
	compare(t, conn, "$1 ^ $2", smaller, smaller, numeric.Power)
	one := map[string]func(numeric.Num) (numeric.Num, error){
		"sqrt($1)": numeric.Sqrt, "ln($1)": numeric.Ln, "-$1": pure(numeric.Num.Neg), "ceil($1)": pure(numeric.Num.Ceil),
		"floor($1)": pure(numeric.Num.Floor), "trim_scale($1)": pure(numeric.Num.TrimScale),
		"round($1, 3)":     pure(func(n numeric.Num) numeric.Num { return n.Round(3) }),
		"round($1, -3)":    pure(func(n numeric.Num) numeric.Num { return n.Round(-3) }),
		"trunc($1, 2)":     pure(func(n numeric.Num) numeric.Num { return n.Trunc(2) }),
		"trunc($1, -2)":    pure(func(n numeric.Num) numeric.Num { return n.Trunc(-2) }),
		"$1::numeric(8,3)": func(n numeric.Num) (numeric.Num, error) { return n.Constrain(8, 3) },
	}
	for sql, f := range one {
		compare(t, conn, sql, samples, []string{"0"}, func(a, _ numeric.Num) (numeric.Num, error) { return f(a) })
	}
	compare(t, conn, "exp($1)", smaller, []string{"0"}, func(a, _ numeric.Num) (numeric.Num, error) { return numeric.Exp(a) })
}

func pure(f func(numeric.Num) numeric.Num) func(numeric.Num) (numeric.Num, error) {
	return func(n numeric.Num) (numeric.Num, error) { return f(n), nil }
}

func compare(t *testing.T, conn *pgx.Conn, sql string, left, right []string, f func(a, b numeric.Num) (numeric.Num, error)) {
	t.Helper()
	rows, err := conn.Query(context.Background(), `SELECT a, b, try($1, a, b) FROM unnest($2::text[]) a, unnest($3::text[]) b`, sql,
		left, right)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	bad := 0
	for rows.Next() {
		var a, b string
		var want *string
		if err := rows.Scan(&a, &b, &want); err != nil {
			t.Fatal(err)
		}
		x, xerr := numeric.Parse(a)
		y, yerr := numeric.Parse(b)
		if xerr != nil || yerr != nil {
			t.Fatalf("parse %s, %s: %v, %v", a, b, xerr, yerr)
		}
		got := ""
		out, err := f(x, y)
		if e, ok := pgerr.As(err); ok {
			got = "!" + string(e.Code)
		} else {
			got = out.Text()
		}
		if want == nil || got != *want {
			if bad++; bad < 6 {
				t.Errorf("%s of %s, %s: %s, want %s", sql, a, b, got, *want)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if bad > 5 {
		t.Errorf("%s: %d differences", sql, bad)
	}
}

// TestKey: keys order and equal as numerics do.
func TestKey(t *testing.T) {
	for _, a := range samples {
		for _, b := range samples {
			x, _ := numeric.Parse(a)
			y, _ := numeric.Parse(b)
			if want, got := numeric.Cmp(x, y), strings.Compare(x.Key(), y.Key()); want != got && want*got <= 0 {
				t.Errorf("%s, %s: keys %s, %s compare %d, want %d", a, b, x.Key(), y.Key(), got, want)
			}
		}
	}
}

// TestParts: the parts of a number add up to it.
func TestParts(t *testing.T) {
	for _, s := range samples {
		n, _ := numeric.Parse(s)
		if !n.IsFinite() || len(s) > 40 || s == "1e40" {
			continue
		}
		sum := numeric.Zero
		for i := range 4 {
			p, err := n.Part(i, 18, 2, 4)
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			scaled, _ := numeric.Parse(fmt.Sprintf("%de%d", p, 18-18*i))
			sum, _ = numeric.Add(sum, scaled)
		}
		if numeric.Cmp(sum, n) != 0 {
			t.Errorf("%s: parts add up to %s", s, sum.Text())
		}
	}
}
