package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/ingest/postgres/reconcile"
)

// attributes parses "1 a:int>b:text @7": number, known and present shape ("-" for none),
// and the transaction that changed it; "?" for one that may be left out.
func attributes(t *testing.T, text string) []reconcile.Attribute {
	t.Helper()
	var out []reconcile.Attribute
	for one := range strings.SplitSeq(text, ", ") {
		f := strings.Fields(one)
		n, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		known, now, _ := strings.Cut(f[1], ">")
		a := reconcile.Attribute{Number: int16(n), Known: shape(known), Now: shape(now)}
		if a.Silent = f[len(f)-1] == "?"; a.Silent {
			f = f[:len(f)-1]
		}
		if len(f) > 2 {
			if _, err := fmt.Sscanf(f[2], "@%d", &a.Changed); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, a)
	}
	return out
}

func shape(text string) *reconcile.Shape {
	if text == "-" {
		return nil
	}
	name, typ, _ := strings.Cut(text, ":")
	return &reconcile.Shape{Name: name, OID: map[string]uint32{"": 23, "int": 23, "text": 25, "big": 20}[typ], TypMod: -1}
}

func TestMatch(t *testing.T) {
	for name, tc := range map[string]struct {
		attributes, described string
		xid                   uint32
		want                  string // numbers, or the error
	}{
		"nothing changed":              {"1 a>a, 2 b>b", "a b", 50, "1 2"},
		"added, and sent":              {"1 a>a, 2 ->b @40", "a b", 50, "1 2"},
		"added, and not yet sent":      {"1 a>a, 2 ->b @60", "a", 50, "1"},
		"added, sent or not":           {"1 a>a, 2 ->b @60", "a b", 50, "1 2"},
		"dropped":                      {"1 a>a, 2 b>-", "a", 50, "1"},
		"dropped later":                {"1 a>a, 2 b>- @60", "a b", 50, "1 2"},
		"came and went unseen":         {"1 a>a, 2 ->- @60", "a", 50, "1"},
		"came and goes later":          {"1 a>a, 2 ->- @60", "a b", 50, "1 2"},
		"renamed":                      {"1 a>x, 2 b>b", "x b", 50, "1 2"},
		"renamed later":                {"1 a>x @60, 2 b>b", "a b", 50, "1 2"},
		"renamed twice, in between":    {"1 a>z @60, 2 b>b", "y b", 50, "1 2"},
		"names swapped":                {"1 a>b @40, 2 b>a @40", "b a", 50, "1 2"},
		"names swapped later":          {"1 a>b @60, 2 b>a @60", "a b", 50, "1 2"},
		"dropped, another of the name": {"1 a>a, 2 b>- @40, 3 ->b @41", "a b", 50, "1 3"},
		"the same, but when?":          {"1 a>a, 2 b>- @60, 3 ->b @61", "a b", 50, "ambiguous"},
		"the same, and no transaction": {"1 a>a, 2 b>- @40, 3 ->b @41", "a b", 0, "ambiguous"},
		"the same of another type":     {"1 a>a, 2 b>- @60, 3 ->b:text @61", "a b:text", 50, "ambiguous"},
		"the same, not yet":            {"1 a>a, 2 b>- @60, 3 ->b:text @61", "a b", 50, "ambiguous"},
		"another of another name":      {"1 a>a, 2 b>- @60, 3 ->c @61", "a c", 50, "1 3"},
		"another name, not yet":        {"1 a>a, 2 b>- @60, 3 ->c @61", "a b", 50, "1 2"},
		"both for a while":             {"1 a>a, 2 b>- @60, 3 ->c @61", "a b c", 50, "1 2 3"},
		"added twice, dropped once":    {"1 a>a, 2 ->- @60, 3 ->b @61", "a b", 50, "ambiguous"},
		"added twice, after the drop":  {"1 a>a, 2 ->- @40, 3 ->b @60", "a b", 50, "1 3"},
		"retyped":                      {"1 a:int>a:big @40, 2 b>b", "a:big b", 50, "1 2"},
		"retyped and renamed apart":    {"1 a:int>b:big @60", "a:big", 50, "1"},
		"three at once":                {"1 a>a, 2 b>-, 3 c>d @40, 4 ->e @40", "a d e", 50, "1 3 4"},
		"a lacking column":             {"1 a>a, 2 b>b", "a", 50, "older"},
		"a column too many":            {"1 a>a", "a b", 50, "unknown"},
		"after a wrap of the numbers":  {"1 a>a, 2 b>- @4294967290, 3 ->b @4294967291", "a b", 5, "1 3"},
		"silent, and not sent":         {"1 a>a, 2 g>g ?, 3 b>b", "a b", 50, "1 3"},
		"silent, and sent":             {"1 a>a, 2 g>g ?, 3 b>b", "a g b", 50, "1 2 3"},
		"silent, not known, sent":      {"1 a>a, 2 ->g ?, 3 b>b", "a g b", 50, "1 2 3"},
		"silent, and a later one":      {"1 a>a, 2 ->g ?, 3 ->b @40", "a b", 50, "1 3"},
		"a table that is gone":         {"1 a>- @60, 2 b>- @60", "a b", 50, "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			var described []reconcile.Shape
			for _, d := range strings.Fields(tc.described) {
				described = append(described, *shape(d))
			}
			got, err := reconcile.Match(attributes(t, tc.attributes), described, tc.xid)
			text := strings.Trim(fmt.Sprint(got), "[]")
			for word, e := range map[string]error{
				"older": reconcile.ErrOlder, "ambiguous": reconcile.ErrAmbiguous, "unknown": reconcile.ErrUnknown,
			} {
				if errors.Is(err, e) {
					text = word
				}
			}
			if text != tc.want {
				t.Errorf("got %s (%v), want %s", text, err, tc.want)
			}
		})
	}
}

// Over random histories of a table: whatever moment a description is of, Match gives the
// numbers of that moment, or none.
func TestMatchNeverGuesses(t *testing.T) {
	ambiguous, all := 0, 0
	for seed := range uint64(20000) {
		h := newHistory(seed)
		known := int(seed % 3)
		for at := known; at < len(h.moments); at++ {
			all++
			got, err := reconcile.Match(h.attributes(known), h.described(at), uint32(100+10*at+5))
			if errors.Is(err, reconcile.ErrAmbiguous) {
				ambiguous++
				continue
			}
			if err != nil || !slices.Equal(got, h.numbers(at)) {
				t.Fatalf("seed %d, known at %d, described at %d: %v, %v, want %v\n%s", seed, known, at, got, err, h.numbers(at), h)
			}
		}
	}
	t.Logf("%d of %d are ambiguous", ambiguous, all)
	if ambiguous*4 > all {
		t.Errorf("%d of %d were ambiguous", ambiguous, all)
	}
}
