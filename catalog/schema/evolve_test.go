package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog/schema"
)

var (
	int4    = schema.Type{Kind: schema.Int32}
	int8    = schema.Type{Kind: schema.Int64}
	text    = schema.Type{Kind: schema.String}
	allOIDs = map[schema.Kind]uint32{
		schema.Int32: schema.OIDInt4, schema.Int64: schema.OIDInt8, schema.String: schema.OIDText,
	}
)

// col parses "name type attnum".
func col(t *testing.T, s string) schema.NewField {
	t.Helper()
	f := strings.Fields(s)
	c := schema.NewField{Name: f[0], TypMod: -1}
	c.Type = map[string]schema.Type{"int4": int4, "int8": int8, "text": text}[f[1]]
	c.OID = allOIDs[c.Type.Kind]
	if len(f) > 2 {
		if _, err := fmt.Sscan(f[2], &c.AttNum); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func cols(t *testing.T, list string) []schema.NewField {
	t.Helper()
	var out []schema.NewField
	for s := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(s) != "" {
			out = append(out, col(t, s))
		}
	}
	return out
}

func newTable(t *testing.T, list, key string) *schema.Table {
	t.Helper()
	s, err := schema.New(cols(t, list), strings.Fields(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// render writes a table as "v1: 1 id int8 #1, …; key 1".
func render(s *schema.Table) string {
	var f []string
	for _, x := range s.Fields {
		f = append(f, fmt.Sprintf("%d %s %s", x.ID, x.Name, x.SQLType()))
	}
	return fmt.Sprintf("v%d: %s; key %v; last %d", s.Version, strings.Join(f, ", "), s.Key, s.LastFieldID)
}

func renderDiff(d *schema.Diff) string {
	var out []string
	for _, c := range d.Added {
		out = append(out, "+"+c.Name)
	}
	for _, f := range d.Dropped {
		out = append(out, "-"+f.Name)
	}
	for _, r := range d.Renamed {
		out = append(out, r.Field.Name+">"+r.To)
	}
	for _, r := range d.Retyped {
		out = append(out, fmt.Sprintf("%s:%s>%s(%v)", r.Field.Name, r.Field.SQLType(),
			schema.PostgresTypeName(r.To.OID, r.To.TypMod), r.Widens))
	}
	for _, f := range d.Nullable {
		out = append(out, "null:"+f.Name)
	}
	if d.Reordered {
		out = append(out, "reordered")
	}
	if d.KeyChanged {
		out = append(out, "key")
	}
	return strings.Join(out, " ")
}

func TestEvolve(t *testing.T) {
	const before, beforeKey = "id int4 1, a text 2, b int4 3", "id"
	cases := []struct {
		name, after, key string
		diff, want       string // want "" : no change; "!": incompatible
	}{
		{"nothing", before, "id", "", ""},
		{
			"added", before + ", c text 4", "id", "+c",
			"v2: 1 id integer, 2 a text, 3 b integer, 4 c text; key [1]; last 4",
		},
		{"dropped", "id int4 1, b int4 3", "id", "-a", "v2: 1 id integer, 3 b integer; key [1]; last 3"},
		{
			"renamed", "id int4 1, x text 2, b int4 3", "id", "a>x",
			"v2: 1 id integer, 2 x text, 3 b integer; key [1]; last 3",
		},
		{
			"names swapped", "id int4 1, b text 2, a int4 3", "id", "a>b b>a",
			"v2: 1 id integer, 2 b text, 3 a integer; key [1]; last 3",
		},
		{
			"dropped and added under the old name", "id int4 1, b int4 3, a text 4", "id", "+a -a",
			"v2: 1 id integer, 3 b integer, 4 a text; key [1]; last 4",
		},
		{
			"widened", "id int8 1, a text 2, b int4 3", "id", "id:integer>bigint(true)",
			"v2: 1 id bigint, 2 a text, 3 b integer; key [1]; last 3",
		},
		{"narrowed", "id int4 1, a int4 2, b int4 3", "id", "a:text>integer(false)", "!"},
		{
			"reordered", "b int4 3, id int4 1, a text 2", "id", "reordered",
			"v2: 3 b integer, 1 id integer, 2 a text; key [1]; last 3",
		},
		{
			"key grew", before, "id b", "key",
			"v2: 1 id integer, 2 a text, 3 b integer; key [1 3]; last 3",
		},
		{"key gone", before, "", "key", "v2: 1 id integer, 2 a text, 3 b integer; key []; last 3"},
		{
			"key renamed", "k int4 1, a text 2, b int4 3", "k", "id>k",
			"v2: 1 k integer, 2 a text, 3 b integer; key [1]; last 3",
		},
		{
			"key to a new column", before + ", c int4 4", "c", "+c key",
			"v2: 1 id integer, 2 a text, 3 b integer, 4 c integer; key [4]; last 4",
		},
		{
			"without numbers names count", "id int4, a text, c int4", "id", "+c -b",
			"v2: 1 id integer, 2 a text, 4 c integer; key [1]; last 4",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			old := newTable(t, before, beforeKey)
			after, key := cols(t, tc.after), strings.Fields(tc.key)
			d, err := schema.Compare(old, after, key)
			if err != nil {
				t.Fatal(err)
			}
			if got := renderDiff(d); got != tc.diff {
				t.Errorf("diff %q, want %q", got, tc.diff)
			}
			if d.Compatible() == (tc.want == "!") {
				t.Errorf("compatible: %v", d.Compatible())
			}
			checkEvolve(t, old, after, key, tc.want)
		})
	}
}

func checkEvolve(t *testing.T, old *schema.Table, after []schema.NewField, key []string, want string) {
	t.Helper()
	next, err := schema.Evolve(old, after, key)
	switch {
	case want == "!":
		var ie *schema.IncompatibleError
		if !errors.Is(err, schema.ErrIncompatible) || !errors.As(err, &ie) || ie.Column != "a" {
			t.Errorf("error %v", err)
		}
	case err != nil:
		t.Error(err)
	case want == "":
		if next != old {
			t.Errorf("changed to %s", render(next))
		}
	case render(next) != want:
		t.Errorf("got  %s\nwant %s", render(next), want)
	}
}

// Over all sequences of three of these tables, an id never means two columns (S1), and
// what Evolve made is what Compare finds nothing to change in.
func TestFieldIDsNeverReused(t *testing.T) {
	states := []string{
		"id int4 1", "id int4 1, a text 2", "a text 2", "id int4 1, b text 3", "b text 3, a text 2, id int4 1",
		"id int8 1, c text 4", "x int4 1", "a text 5, id int4 1",
	}
	for _, first := range states {
		for _, second := range states {
			for _, third := range states {
				table := newTable(t, first, "")
				meaning := map[int32]int16{}
				for _, s := range []string{first, second, third} {
					next, err := schema.Evolve(table, cols(t, s), nil)
					if errors.Is(err, schema.ErrIncompatible) {
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					checkIDs(t, meaning, next)
					if d, err := schema.Compare(next, cols(t, s), nil); err != nil || !d.Empty() {
						t.Fatalf("%s: again %q, %v", s, renderDiff(d), err)
					}
					if next.LastFieldID < table.LastFieldID || next.Version < table.Version {
						t.Fatalf("%s after %s", render(next), render(table))
					}
					table = next
				}
			}
		}
	}
}

func checkIDs(t *testing.T, meaning map[int32]int16, s *schema.Table) {
	t.Helper()
	seen := map[int32]bool{}
	for _, f := range s.Fields {
		if was, ok := meaning[f.ID]; ok && was != f.AttNum || seen[f.ID] || f.ID > s.LastFieldID {
			t.Fatalf("id %d means column %d and %d in %s", f.ID, was, f.AttNum, render(s))
		}
		meaning[f.ID], seen[f.ID] = f.AttNum, true
	}
}

func TestNewRefuses(t *testing.T) {
	many := make([]schema.NewField, schema.ColumnsMax+1)
	for i := range many {
		many[i] = schema.NewField{Name: fmt.Sprint(i), Type: int4}
	}
	cases := []struct {
		name string
		cols []schema.NewField
		key  []string
	}{
		{"too many columns", many, nil},
		{"no name", []schema.NewField{{Type: int4}}, nil},
		{"no type", []schema.NewField{{Name: "a"}}, nil},
		{"name twice", cols(t, "a int4 1, a int4 2"), nil},
		{"number twice", cols(t, "a int4 1, b int4 1"), nil},
		{"reserved name", cols(t, "_skippr_op int4 1"), nil},
		{"key of no column", cols(t, "a int4 1"), []string{"b"}},
		{"key column twice", cols(t, "a int4 1"), []string{"a", "a"}},
		{"bad decimal", []schema.NewField{{Name: "a", Type: schema.Type{Kind: schema.Decimal, Precision: 39}}}, nil},
		{"list of lists", []schema.NewField{{Name: "a", Type: schema.Type{
			Kind: schema.List, Elem: &schema.Type{Kind: schema.List, Elem: &int4},
		}}}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := schema.New(tc.cols, tc.key); !errors.Is(err, schema.ErrInvalid) {
				t.Errorf("error %v", err)
			}
			if _, err := schema.Compare(newTable(t, "a int4 1", ""), tc.cols, tc.key); !errors.Is(err, schema.ErrInvalid) {
				t.Errorf("compare: error %v", err)
			}
		})
	}
}

// allTypes has each kind, and what differs within one.
func allTypes() []schema.Type {
	var out []schema.Type
	for k := schema.Bool; k <= schema.UUID; k++ {
		if k != schema.Decimal {
			out = append(out, schema.Type{Kind: k})
		}
	}
	for _, d := range [][2]int32{{9, 2}, {18, 2}, {18, 3}, {38, 2}} {
		out = append(out, schema.Type{Kind: schema.Decimal, Precision: d[0], Scale: d[1]})
	}
	for _, e := range out[:len(out):len(out)] {
		out = append(out, schema.Type{Kind: schema.List, Elem: &e})
	}
	return out
}

// Over all pairs: exactly the listed promotions widen; widening is a partial order.
func TestWidens(t *testing.T) {
	allowed := map[string]bool{
		"INTEGER>BIGINT": true, "REAL>DOUBLE": true, "DECIMAL(9,2)>DECIMAL(18,2)": true,
		"DECIMAL(9,2)>DECIMAL(38,2)": true, "DECIMAL(18,2)>DECIMAL(38,2)": true,
	}
	name := schema.EngineType
	types := allTypes()
	for _, a := range types {
		for _, b := range types {
			want := a.Equal(b) || allowed[name(a)+">"+name(b)]
			if a.Kind == schema.List && b.Kind == schema.List {
				want = a.Equal(b) || allowed[name(*a.Elem)+">"+name(*b.Elem)]
			}
			if got := schema.Widens(a, b); got != want {
				t.Errorf("%s to %s: %v", name(a), name(b), got)
			}
			if schema.Widens(a, b) && schema.Widens(b, a) && !a.Equal(b) {
				t.Errorf("%s and %s widen both ways", name(a), name(b))
			}
			for _, c := range types {
				if schema.Widens(a, b) && schema.Widens(b, c) && !schema.Widens(a, c) {
					t.Errorf("%s to %s to %s, but not at once", name(a), name(b), name(c))
				}
			}
		}
	}
}
