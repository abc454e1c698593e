package generate

import (
	"errors"
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/wal/change"
)

// naive folds whole transactions into rows by key: an oracle of the oracle.
func naive(t *testing.T, cfg Config, n int64) [tableCount]map[any]Row {
	t.Helper()
	shop := NewShop(cfg)
	var rows [tableCount]map[any]Row
	for _, table := range Tables() {
		rows[table] = map[any]Row{}
		for id := int64(1); id <= shop.Initial(table); id++ {
			r := shop.row(table, id, 0)
			rows[table][keyOf(table, r, id)] = r
		}
	}
	for i := int64(1); i <= n; i++ {
		for _, c := range shop.Transaction(nil, i) {
			key := keyOf(c.Table, c.Row, c.id)
			_, there := rows[c.Table][key]
			if there == (c.Op == change.Insert) {
				t.Fatalf("transaction %d: operation %d on %s %v, there: %t", i, c.Op, c.Table, key, there)
			}
			if c.Op == change.Delete {
				delete(rows[c.Table], key)
			} else {
				rows[c.Table][key] = c.Row
			}
		}
	}
	return rows
}

func keyOf(t Table, r Row, id int64) any {
	if t == Visits {
		return id
	}
	return r[0]
}

// TestStateAt compares the oracle with a fold of the changes, and checks that each
// change fits the rows there.
func TestStateAt(t *testing.T) {
	cfg := Config{Seed: 7, Customers: 50, Orders: 100}
	for _, n := range []int64{0, 1, 8, 9, 17, 200, 1009, 13_009, 20_500} {
		want := naive(t, cfg, n)
		state := StateAt(cfg, n)
		for _, table := range Tables() {
			got := state.Rows(table)
			if len(got) != len(want[table]) {
				t.Errorf("n=%d: %s has %d rows, want %d", n, table, len(got), len(want[table]))
			}
			if table == Visits {
				continue
			}
			for _, r := range got {
				if !reflect.DeepEqual(r, want[table][r[0]]) {
					t.Fatalf("n=%d: %s\n got %v\nwant %v", n, table, r, want[table][r[0]])
				}
			}
		}
	}
}

// TestTotal: no transfer makes or loses money.
func TestTotal(t *testing.T) {
	cfg := Config{Customers: 200}
	state := NewState(cfg)
	for n := int64(0); n < 3000; n += 37 {
		state.Advance(n)
		var total Money
		for _, table := range []Table{AccountsA, AccountsB} {
			for _, r := range state.Rows(table) {
				total += r[2].(Money)
			}
		}
		if int64(total) != cfg.TotalCents() {
			t.Fatalf("after %d: %s", n, total)
		}
	}
}

// TestTransactionsAreVaried: a thousand transactions have every operation on most
// tables, and some change several tables.
func TestTransactionsAreVaried(t *testing.T) {
	shop := NewShop(Config{})
	ops := map[change.Op]int{}
	tables := map[Table]int{}
	several := 0
	for n := int64(1); n <= 2000; n++ {
		seen := map[Table]bool{}
		for _, c := range shop.Transaction(nil, n) {
			ops[c.Op]++
			tables[c.Table]++
			seen[c.Table] = true
		}
		if len(seen) > 1 {
			several++
		}
	}
	if ops[change.Insert] < 500 || ops[change.Update] < 500 || ops[change.Delete] < 100 ||
		len(tables) != len(Tables()) || several < 500 {
		t.Errorf("operations %v, tables %v, of several tables %d", ops, tables, several)
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		v    any
		want string
	}{
		{true, "t"},
		{Int4(-3), "-3"},
		{int64(9), "9"},
		{1.5, "1.5"},
		{Money(-105), "-1.05"},
		{Money(7), "0.07"},
		{Day(0), "1970-01-01"},
		{Instant(epoch), "2026-01-01 00:00:00+00"},
		{Instant(epoch + 5000), "2026-01-01 00:00:00.005+00"},
		{[]int32{1, 2}, "{1,2}"},
		{[]string{"a", `b"c`, "d,e", "", "null"}, `{a,"b\"c","d,e","","null"}`},
		{UUID{0xab}, "ab000000-0000-0000-0000-000000000000"},
	} {
		if got, null := Text(tc.v); got != tc.want || null {
			t.Errorf("%v is %q, want %q", tc.v, got, tc.want)
		}
	}
	if _, null := Text(nil); !null {
		t.Error("nil is not NULL")
	}
}

func TestParseConfig(t *testing.T) {
	cfg, err := ParseConfig(map[string]string{"SEED": "3", "SCALE": "2", "RATE": "0"})
	if err != nil || cfg.Seed != 3 || cfg.Customers != 2000 || cfg.Orders != 10_000 || cfg.Rate != 0 {
		t.Errorf("config %+v, %v", cfg, err)
	}
	_, err = ParseConfig(map[string]string{"SEED": "x", "RATE": "-1", "COLOUR": "red"})
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 3 {
		t.Errorf("problems %v, want three", err)
	}
}
