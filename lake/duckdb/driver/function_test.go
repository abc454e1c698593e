package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/lake/scalar"
)

var testFunctions = []scalar.Function{
	{
		Name: "go_join", Params: []scalar.Kind{scalar.Text, scalar.Int32}, Result: scalar.Text,
		Call: func(a []scalar.Value) (scalar.Value, error) {
			return scalar.OfText(strings.Repeat(a[0].Text, int(a[1].Int))), nil
		},
	},
	{
		Name: "go_known", Params: []scalar.Kind{scalar.Int64}, Result: scalar.Bool, Nulls: true,
		Call: func(a []scalar.Value) (scalar.Value, error) { return scalar.OfBool(!a[0].Null), nil },
	},
	{
		Name: "go_odd", Params: []scalar.Kind{scalar.Int64}, Result: scalar.Int64,
		Call: func(a []scalar.Value) (scalar.Value, error) {
			switch {
			case a[0].Int == 13:
				return scalar.Value{}, errors.New("22023: thirteen")
			case a[0].Int == 99:
				panic("a fault")
			case a[0].Int%2 == 0:
				return scalar.Null, nil
			}
			return a[0], nil
		},
	},
	{
		Name: "go_twice", Params: []scalar.Kind{scalar.Interval}, Result: scalar.Interval,
		Call: func(a []scalar.Value) (scalar.Value, error) {
			v := a[0]
			v.Months, v.Days, v.Int = 2*v.Months, 2*v.Days, 2*v.Int
			return v, nil
		},
	},
	{
		Name: "go_moment", Params: []scalar.Kind{scalar.Date, scalar.Time, scalar.Float64}, Result: scalar.Timestamp,
		Call: func(a []scalar.Value) (scalar.Value, error) {
			return scalar.OfInt(a[0].Int*86_400_000_000 + a[1].Int + int64(a[2].Float)), nil
		},
	},
	{
		Name: "go_bytes", Params: []scalar.Kind{scalar.Blob}, Result: scalar.Blob,
		Call: func(a []scalar.Value) (scalar.Value, error) { return scalar.OfText(a[0].Text + "\x00\xff"), nil },
	},
}

// TestFunctions: functions in Go see every kind of value and null, of constants and of
// columns, over many chunks; their errors and panics end the statement only.
func TestFunctions(t *testing.T) {
	db, conn := open(t)
	for range 2 { // a second database of the process has them too
		if err := db.RegisterFunctions(testFunctions); err != nil {
			t.Fatal(err)
		}
	}
	for sql, want := range map[string]string{
		"SELECT go_join('ab', 2)":                                                                                      "abab",
		"SELECT go_join('a long text of sorts ', 2)":                                                                   "a long text of sorts a long text of sorts ",
		"SELECT CAST(go_join(NULL, 2) IS NULL AS VARCHAR)":                                                             "true",
		"SELECT CAST(go_known(NULL) OR NOT go_known(1) AS VARCHAR)":                                                    "false",
		"SELECT CAST(go_twice(INTERVAL '1 month 2 days 3 hours') AS VARCHAR)":                                          "2 months 4 days 06:00:00",
		"SELECT CAST(go_moment(DATE '2024-02-29', TIME '01:02:03', 4.0) AS VARCHAR)":                                   "2024-02-29 01:02:03.000004",
		"SELECT hex(go_bytes('\\x01'::BLOB))":                                                                          "0100FF",
		"SELECT CAST(count(*) AS VARCHAR) || '/' || CAST(count(go_odd(i)) AS VARCHAR) FROM range(100, 10100) r(i)":     "10000/5000",
		"SELECT CAST(sum(length(go_join(chr(97), CAST(i % 50 AS INTEGER)))) AS VARCHAR) FROM range(0, 10000) r(i)":     "245000",
		"SELECT CASE WHEN i = 13 THEN 'no' ELSE CAST(go_odd(i) AS VARCHAR) END FROM range(13, 14) r(i)":                "no",
		"SELECT string_agg(go_join(x, 1), ',' ORDER BY x) FROM (VALUES ('b'), (NULL), ('a longer text than 12')) v(x)": "a longer text than 12,b",
	} {
		if got := texts(t, conn, sql)[0][0]; got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	for sql, want := range map[string]string{
		"SELECT go_odd(i) FROM range(0, 20) r(i)":   "22023: thirteen",
		"SELECT go_odd(i) FROM range(90, 200) r(i)": "function go_odd failed: a fault",
	} {
		err := conn.Exec(sql)
		var e *Error
		if !errors.As(err, &e) || e.Message != want || e.Fatal {
			t.Errorf("%s: %v, want %q", sql, err, want)
		}
	}
}

func BenchmarkFunction(b *testing.B) {
	db, conn := open(b)
	if err := db.RegisterFunctions(testFunctions); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := conn.Exec(fmt.Sprintf("SELECT sum(length(go_join('abc', CAST(i %% 3 AS INTEGER)))) FROM range(0, %d) r(i)", 1_000_000)); err != nil {
			b.Fatal(err)
		}
	}
}
