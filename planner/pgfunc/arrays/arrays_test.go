package arrays

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/encode"
)

func call(t *testing.T, name string, args ...scalar.Value) string {
	t.Helper()
	for _, f := range Functions() {
		if f.Name != name {
			continue
		}
		v, err := f.Call(args)
		switch {
		case err != nil:
			return "!" + err.Error()
		case v.Null:
			return "∅"
		case f.Result != scalar.Text:
			return strings.TrimSpace(strings.Repeat("i", int(v.Int)))
		}
		return v.Text
	}
	t.Fatalf("no function %s", name)
	return ""
}

func TestFunctions(t *testing.T) {
	text, num := scalar.OfText, scalar.OfInt
	for _, c := range []struct {
		name string
		args []scalar.Value
		want string
	}{
		{"skippr_a_dims", []scalar.Value{text("[0:1][2:3]={{1,2},{3,4}}")}, "[0:1][2:3]"},
		{"skippr_a_dims", []scalar.Value{text("{}")}, "∅"},
		{"skippr_a_ndims", []scalar.Value{text("{{{1}}}")}, "iii"},
		{"skippr_a_length", []scalar.Value{text("{{1,2}}"), num(2)}, "ii"},
		{"skippr_a_length", []scalar.Value{text("{{1,2}}"), num(3)}, "∅"},
		{"skippr_a_item", []scalar.Value{text(`{{a,"b c"},{NULL,"NULL"}}`), text("[1,2]")}, "b c"},
		{"skippr_a_item", []scalar.Value{text(`{{a,"b c"},{NULL,"NULL"}}`), text("[2,1]")}, "∅"},
		{"skippr_a_item", []scalar.Value{text(`{{a,"b c"},{NULL,"NULL"}}`), text("[2,2]")}, "NULL"},
		{"skippr_a_item", []scalar.Value{text("{{1}}"), text("[1]")}, "∅"},
		{"skippr_a_item", []scalar.Value{text("{{1}}"), text("[null,1]")}, "∅"},
		{"skippr_a_slice", []scalar.Value{text("{{1,2},{3,4}}"), text("[[1,2,null],[2,2,null]]")}, "{{2},{4}}"},
		{"skippr_a_slice", []scalar.Value{text("[5:6]={1,2}"), text("[[null,5,null]]")}, "{1}"},
		{"skippr_a_slice", []scalar.Value{text("{{1}}"), text("[[1,1,1]]")}, "∅"},
		{"skippr_a_cat", []scalar.Value{text("{1,2}"), text("{{3,4}}")}, "{{1,2},{3,4}}"},
		{"skippr_a_cat", []scalar.Value{text("{{1,2}}"), text("{3}")}, "!cannot concatenate incompatible arrays"},
		{"skippr_a_append", []scalar.Value{text("[0:0]={1}"), text(`[null]`), num(1)}, "[0:1]={NULL,1}"},
		{"skippr_a_append", []scalar.Value{text("{{1}}"), text(`["2"]`), num(0)}, "!argument must be empty"},
		{"skippr_a_nest", []scalar.Value{text(`["{1,2}","{3,4}"]`), num(0)}, "{{1,2},{3,4}}"},
		{"skippr_a_nest", []scalar.Value{text(`["{}",null]`), num(0)}, "{}"},
		{"skippr_a_nest", []scalar.Value{text(`["{1}",null]`), num(1)}, "!cannot accumulate null arrays"},
		{"skippr_a_nest", []scalar.Value{text(`["{1}","{1,2}"]`), num(1)}, "!cannot accumulate arrays of different"},
		{"skippr_a_nest", []scalar.Value{text("null"), num(1)}, "∅"},
		{"skippr_a_trim", []scalar.Value{text("{{1,2},{3,4}}"), num(1)}, "{{1,2}}"},
		{"skippr_a_trim", []scalar.Value{text("{1}"), num(2)}, "!number of elements"},
		{"skippr_a_subscripts", []scalar.Value{text("[3:4]={1,2}"), num(1), num(1)}, "[4,3]"},
		{"skippr_a_json", []scalar.Value{text("{{1,2}}"), text(`["1","null"]`), text(",")}, "[[1,null]]"},
		{"skippr_a_shape", []scalar.Value{text("[0:0]={NULL}"), text(`["x y"]`)}, `[0:0]={"x y"}`},
	} {
		got := call(t, c.name, c.args...)
		if got != c.want && !(c.want[0] == '!' && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s(%v) is %q, want %q", c.name, c.args, got, c.want)
		}
	}
}

// TestKey: keys order shapes as array comparison does.
func TestKey(t *testing.T) {
	list := []string{"{}", "[-1:0]={1,2}", "{1,2}", "[2:3]={1,2}", "{1,2,3}", "{{1,2}}", "{{1},{2}}"}
	for i := 1; i < len(list); i++ {
		a, b := call(t, "skippr_a_key", scalar.OfText(list[i-1])), call(t, "skippr_a_key", scalar.OfText(list[i]))
		if a >= b {
			t.Errorf("%s: %q, %s: %q", list[i-1], a, list[i], b)
		}
	}
}

// TestText: what is written is read again as the same.
func TestText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "", "NULL", "a b", `"`, `\`, "{", "}", ",", "é", "[", "="}
	for range 2000 {
		var a encode.Array
		n := 1
		for range 1 + r.IntN(4) {
			d := 1 + r.IntN(3)
			a.Dims, a.Lower = append(a.Dims, d), append(a.Lower, int32(r.IntN(3))-1)
			n *= d
		}
		for range n {
			if r.IntN(5) == 0 {
				a.Elements = append(a.Elements, nil)
				continue
			}
			a.Elements = append(a.Elements, &words[r.IntN(len(words))])
		}
		back, err := parse(a.String())
		if err != nil || back.String() != a.String() || back.Bounds() != a.Bounds() {
			t.Fatalf("%s: %v, %v", a.String(), back, err)
		}
	}
}
