package pgfunc_test

import (
	"math"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/planner/pgfunc"
)

// call calls a function by its name.
func call(t *testing.T, name string, args ...scalar.Value) (scalar.Value, error) {
	t.Helper()
	for _, f := range pgfunc.Functions() {
		if f.Name == name {
			if len(args) != len(f.Params) {
				t.Fatalf("%s takes %d arguments", name, len(f.Params))
			}
			return f.Call(args)
		}
	}
	t.Fatalf("no function %s", name)
	return scalar.Value{}, nil
}

func texts(list ...string) []scalar.Value {
	out := make([]scalar.Value, len(list))
	for i, s := range list {
		out[i] = scalar.OfText(s)
	}
	return out
}

// TestTextFunctions: what goes in as text and comes out as text. A want that begins with !
// is an error's beginning, ∅ is null.
func TestTextFunctions(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"skippr_n_div", []string{"1", "3"}, "0.33333333333333333333"},
		{"skippr_n_div", []string{"1", "0"}, "!22012"},
		{"skippr_n_add", []string{"x", "1"}, "!22P02"},
		{"skippr_j_norm", []string{`{"bb":1, "a" : [1,2,{}], "bb": 2.50}`}, `{"a": [1, 2, {}], "bb": 2.50}`},
		{"skippr_j_norm", []string{`{"a"`}, "!22P02"},
		{"skippr_j_norm", []string{strings.Repeat("[", 5000)}, "!54001"},
		{"skippr_j_norm", []string{`"\u0000"`}, "!22P05"},
		{"skippr_j_norm", []string{`"\ud83d\ude00\u00e9\n"`}, `"😀é\n"`},
		{"skippr_j_norm", []string{"01"}, "!22P02"},
		{"skippr_j_member_text", []string{`{"a": {"b": "c,}\""}, "d\"e": 7}`, `d"e`}, "7"},
		{"skippr_j_member", []string{`{"a": {"b": "c,}\""}, "d": 7}`, "a"}, `{"b": "c,}\""}`},
		{"skippr_j_member", []string{`[1]`, "a"}, "∅"},
		{"skippr_j_path_text", []string{`{"a": [1, {"b": null}]}`, `["a","1","b"]`}, "∅"},
		{"skippr_j_path", []string{`{"a": [1, {"b": [true]}]}`, `["a","-1","b","0"]`}, "true"},
		{"skippr_j_set", []string{`{"a": [1, 2]}`, `["a","5"]`, "9"}, `{"a": [1, 2, 9]}`},
		{"skippr_j_insert", []string{`{"a": 1}`, `["a"]`, "9"}, "!22023"},
		{"skippr_j_delete_path", []string{`{"a": {"b": 1, "c": 2}}`, `["a","b"]`}, `{"a": {"c": 2}}`},
		{"skippr_re_replace", []string{"aaa", "a*", "X", "g"}, "XX"},
		{"skippr_re_replace", []string{"abcabc", "(b)(c)", `<\2\1\&>`, ""}, "a<cbbc>abc"},
		{"skippr_re_replace", []string{"a", "a{2", "", ""}, "!2201B"},
		{"skippr_re_part", []string{"ab", "a|ab"}, "ab"},
		{"skippr_re_part", []string{"xaaa", "a+?"}, "a"},
		{"skippr_re_part", []string{"ax", "a(?=x)"}, "a"},
		{"skippr_re_part", []string{"x", "(?b)x"}, "!0A000"},
		{"skippr_re_similar", []string{"abcdefg", `a#"(b_d)#"%`, "#"}, "bcd"},
		{"skippr_re_similar", []string{"abc", `a#"b#"#"c`, "#"}, "!2200C"},
		{"skippr_re_part", []string{"abcd", "(a|ab)(c|bcd)"}, "a"},
		{"skippr_re_part", []string{"aabb", "a+b??"}, "aab"},
		{"skippr_re_split", []string{"abc", "", ""}, `["a","b","c"]`},
		{"skippr_re_match", []string{"foobar", "(o+)(z)?", ""}, `["oo",null]`},
		{"skippr_n_char", []string{"-1234.5", "n", "FM9,999.00"}, "-1,234.50"},
		{"skippr_n_char", []string{"0.5", "n", "9.9"}, "  .5"},
		{"skippr_n_char", []string{"1e9", "n", "99"}, " ##"},
		{"skippr_n_char", []string{"485", "i", "RN"}, "        CDLXXXV"},
		{"skippr_n_char", []string{"2.5", "f", "9"}, " 2"},
		{"skippr_n_char", []string{"1", "n", "9V9.9"}, "!42601"},
		{"skippr_n_read", []string{"-1,234.5", "9,999.99"}, "-1234.5"},
		{"skippr_n_read", []string{"12a", "999"}, "!0A000"},
		{"skippr_format", []string{"%2$s-%1$5s|%-3s|%%", `["a","b"]`}, "b-    a|b  |%"},
		{"skippr_format", []string{"%s", `[]`}, "!22023"},
		{"skippr_record", []string{`["a","b c",null,"","q\"\\"]`}, `(a,"b c",,"","q""\\")`},
		{"skippr_b_encode", []string{"\x00a\\\xff", "escape"}, `\000a\\\377`},
		{"skippr_b_decode", []string{"0g", "hex"}, "!22023"},
		{"skippr_b_text", []string{"\xff", "UTF8"}, "!22021"},
		{"skippr_unistr", []string{`d\0061t\+000061`}, "data"},
	} {
		got, err := call(t, c.name, texts(c.args...)...)
		shown := got.Text
		switch {
		case err != nil:
			shown = "!" + err.Error()
		case got.Null:
			shown = "∅"
		}
		if shown != c.want && !(c.want[0] == '!' && strings.HasPrefix(shown, c.want)) {
			t.Errorf("%s(%q) is %q, want %q", c.name, c.args, shown, c.want)
		}
	}
}

// TestOrderOfJSONB: keys order values as jsonb does.
func TestOrderOfJSONB(t *testing.T) {
	ordered := []string{
		`[]`, `null`, `"a"`, `"ab"`, `"b"`, `-5`, `1`, `1.5`, `10`, `false`, `true`, `["a"]`, `[1]`, `[0, 0]`, `[0, 1]`, `{}`, `{"a": 1}`, `{"a": 2}`,
		`{"b": 0}`, `{"a": 0, "b": 0}`,
	}
	before := ""
	for i, s := range ordered {
		v, err := call(t, "skippr_j_key", scalar.OfText(s))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && before >= v.Text {
			t.Errorf("%s is not after %s", s, ordered[i-1])
		}
		before = v.Text
	}
	one, _ := call(t, "skippr_j_key", scalar.OfText("1.0"))
	two, _ := call(t, "skippr_j_key", scalar.OfText("1"))
	if one.Text != two.Text {
		t.Error("1.0 and 1 differ")
	}
}

// TestIntervals: arithmetic that cascades, and its range.
func TestIntervals(t *testing.T) {
	show := func(v scalar.Value) string {
		s, err := call(t, "skippr_iv_text", v)
		if err != nil {
			t.Fatal(err)
		}
		return s.Text
	}
	month := scalar.Value{Months: 1, Days: 2, Int: 3_000_000}
	for by, want := range map[float64]string{1.5: "1 mon 18 days 00:00:04.5", -1: "-1 mons -2 days -00:00:03", 0: "00:00:00"} {
		v, err := call(t, "skippr_iv_mul", month, scalar.OfFloat(by))
		if err != nil || show(v) != want {
			t.Errorf("times %v is %s, %v, want %s", by, show(v), err, want)
		}
	}
	for _, by := range []float64{math.NaN(), math.Inf(1), 1e300} {
		if _, err := call(t, "skippr_iv_mul", month, scalar.OfFloat(by)); err == nil || !strings.HasPrefix(err.Error(), "22008") {
			t.Errorf("times %v: %v", by, err)
		}
	}
	if _, err := call(t, "skippr_iv_add", scalar.Value{Months: math.MaxInt32}, scalar.Value{Months: 1}); err == nil {
		t.Error("months overflow unnoticed")
	}
}

// TestFunctionsAreNamedOnce: the engine refuses a name twice, and other names than ours.
func TestFunctionsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range pgfunc.Functions() {
		if seen[f.Name] || !strings.HasPrefix(f.Name, "skippr_") {
			t.Errorf("function %s", f.Name)
		}
		seen[f.Name] = true
	}
}

// TestPartsOfText: what is read out of a text is what the number's parts are.
func TestPartsOfText(t *testing.T) {
	for _, c := range []struct {
		text string
		want [4]int64
	}{
		{"0", [4]int64{}},
		{"-1.5", [4]int64{0, -1, -500_000_000_000_000_000, 0}},
		{"1234567890123456789.1234567890123456789", [4]int64{1, 234567890123456789, 123456789012345678, 900_000_000_000_000_000}},
		{"1e20", [4]int64{100, 0, 0, 0}},
		{"0.0000000000000000000000000000000000010", [4]int64{0, 0, 0, 1}},
		{"NaN", [4]int64{}},
		{"-Infinity", [4]int64{}},
	} {
		for i, want := range c.want {
			got, err := call(t, "skippr_n_part", scalar.OfText(c.text), scalar.OfInt(int64(i)))
			if err != nil || got.Int != want {
				t.Errorf("part %d of %s is %d, %v, want %d", i, c.text, got.Int, err, want)
			}
		}
	}
	if _, err := call(t, "skippr_n_part", scalar.OfText("1e40"), scalar.OfInt(0)); err == nil || !strings.HasPrefix(err.Error(), "0A000") {
		t.Errorf("a number of 41 digits: %v", err)
	}
}
