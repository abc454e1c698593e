package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
)

// evolution is a table's life in steps: columns, then rows put, and what a query gives.
type evolution struct {
	cols, key string
	puts      []string
	query     string
	want      string
}

// column parses "name type attnum" or "name type attnum = initial".
func parseColumn(t testing.TB, text string) schema.NewField {
	t.Helper()
	text, initial, has := strings.Cut(text, " = ")
	f := strings.Fields(text)
	c := schema.NewField{Name: f[0], TypMod: -1}
	switch f[1] {
	case "int4":
		c.OID, c.Type = schema.OIDInt4, schema.Type{Kind: schema.Int32}
	case "int8":
		c.OID, c.Type = schema.OIDInt8, schema.Type{Kind: schema.Int64}
	case "float4":
		c.OID, c.Type = schema.OIDFloat4, schema.Type{Kind: schema.Float32}
	case "float8":
		c.OID, c.Type = schema.OIDFloat8, schema.Type{Kind: schema.Float64}
	case "text":
		c.OID, c.Type = schema.OIDText, schema.Type{Kind: schema.String}
	case "money8", "money20":
		var p int32
		if _, err := fmt.Sscanf(f[1], "money%d", &p); err != nil {
			t.Fatal(err)
		}
		c.OID, c.TypMod, c.Type = schema.OIDNumeric, p<<16+2+4, schema.Type{Kind: schema.Decimal, Precision: p, Scale: 2}
	default:
		t.Fatalf("type %s", f[1])
	}
	if _, err := fmt.Sscan(f[2], &c.AttNum); err != nil {
		t.Fatal(err)
	}
	if has {
		c.Initial = &initial
	}
	return c
}

// life goes through every kind of change that old rows survive.
var life = []evolution{
	{
		cols: "id int4 1, a float4 2, d money8 3, s text 4", key: "id",
		puts:  []string{"1 0.1 1.50 x", "2 0.2 2.50 y", "3 0.3 3.50 z", "4 null null null"},
		query: "SELECT id, a, d, s FROM orders ORDER BY id",
		want:  "1|0.1|1.50|x; 2|0.2|2.50|y; 3|0.3|3.50|z; 4|∅|∅|∅",
	},
	{ // added, one with a default that old rows have too
		cols: "id int4 1, a float4 2, d money8 3, s text 4, n int4 5 = 7, o text 6", key: "id",
		puts:  []string{"2 0.2 2.50 y null o2", "5 0.5 5.50 w 50 o5"},
		query: "SELECT id, n, o FROM orders ORDER BY id",
		want:  "1|7|∅; 2|∅|o2; 3|7|∅; 4|7|∅; 5|50|o5",
	},
	{ // names swapped, in another order
		cols: "s float4 2, a text 4, id int4 1, d money8 3, n int4 5, o text 6", key: "id",
		puts:  []string{"0.6 six 6 6.50 60 o6"},
		query: "SELECT id, a, s, n FROM orders WHERE n < 60 OR a = 'six' ORDER BY id",
		want:  "1|x|0.1|7; 3|z|0.3|7; 4|∅|∅|7; 5|w|0.5|50; 6|six|0.6|60",
	},
	{ // widened, the key too
		cols: "key int8 1, s float8 2, a text 4, d money20 3, n int8 5, o text 6", key: "key",
		puts:  []string{"7000000000 0.7 seven 123456789012345678.50 70 o7", "1 1.5 one 1.00 10 o1", "-3"},
		query: "SELECT key, s, a, d, n FROM orders ORDER BY key",
		want: "1|1.5|one|1.00|10; 2|0.20000000298023224|y|2.50|∅; 4|∅|∅|∅|7; 5|0.5|w|5.50|50; " +
			"6|0.6000000238418579|six|6.50|60; 7000000000|0.7|seven|123456789012345678.50|70",
	},
	{ // dropped, and another added under the same name
		cols: "key int8 1, s float8 2, d money20 3, n int8 5, o text 6, a text 7", key: "key",
		puts:  []string{"2 2.5 2.00 20 o2 new"},
		query: "SELECT key, a, n FROM orders WHERE a IS NULL OR key = 2 ORDER BY key",
		want:  "1|∅|10; 2|new|20; 4|∅|7; 5|∅|50; 6|∅|60; 7000000000|∅|70",
	},
	{ // all but the key gone, one back with a default
		cols: "key int8 1, a money8 8 = 9.90", key: "key",
		puts:  []string{"-4", "8 8.80"},
		query: "SELECT key, a FROM orders ORDER BY key",
		want:  "1|9.90; 2|9.90; 5|9.90; 6|9.90; 8|8.80; 7000000000|9.90",
	},
}

// Whenever rows went to the lake, each query reads them under the schema of its pin (D2).
func TestEvolution(t *testing.T) {
	for _, compacted := range []string{"", "0", "01", "0123", "012345", "13", "24", "5", "05"} {
		t.Run("compacted after "+compacted, func(t *testing.T) {
			w := newWorld(t)
			w.evolve("none", parseColumn(t, "none int4 99")) // the world's own columns go
			c := w.connect()
			if got := simple(t, c, "SET search_path = shop"); got != "SET" {
				t.Fatal(got)
			}
			for i, step := range life {
				var cols []schema.NewField
				for text := range strings.SplitSeq(step.cols, ", ") {
					cols = append(cols, parseColumn(t, text))
				}
				w.evolve(step.key, cols...)
				w.put(step.puts...)
				check := func(when string) {
					t.Helper()
					got := simple(t, c, step.query)
					want := fmt.Sprintf("%s; SELECT %d", step.want, strings.Count(step.want, "; ")+1)
					if got != want {
						t.Errorf("step %d, %s:\n got %s\nwant %s", i, when, got, want)
					}
				}
				check("in the log")
				if strings.Contains(compacted, fmt.Sprint(i)) {
					w.compactNow()
					check("in the lake")
				}
			}
		})
	}
}

// A prepared statement whose result would have other columns is refused, again and again;
// one whose columns stay goes on.
func TestEvolutionPrepared(t *testing.T) {
	w := newWorld(t)
	w.put("1 ana 10.00")
	c := w.connect()
	const prepare = "SET search_path = shop; PREPARE every AS SELECT * FROM orders; " +
		"PREPARE one(int8) AS SELECT id, name FROM orders WHERE id = $1"
	if got := simple(t, c, prepare); got != "SET; PREPARE; PREPARE" {
		t.Fatal(got)
	}
	if got := simple(t, c, "EXECUTE every; EXECUTE one(1)"); got != "1|ana|10.00; SELECT 1; 1|ana; SELECT 1" {
		t.Fatal(got)
	}
	fields := w.table.Current.Fields
	var cols []schema.NewField
	for _, f := range fields {
		cols = append(cols, schema.NewField{Name: f.Name, Type: f.Type, OID: f.OID, TypMod: f.TypMod, NotNull: f.NotNull})
	}
	w.evolve("id", append(cols, parseColumn(t, "more int4 9 = 5"))...)
	for range 2 {
		const refused = "ERROR 0A000 cached plan must not change result type"
		if got := simple(t, c, "EXECUTE every"); got != refused {
			t.Errorf("EXECUTE every: %s", got)
		}
	}
	if got := simple(t, c, "EXECUTE one(1); SELECT * FROM orders"); got != "1|ana; SELECT 1; 1|ana|10.00|5; SELECT 1" {
		t.Errorf("after the change: %s", got)
	}
}
