package jsonpath

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// What is no path is an error with a SQLSTATE, wherever it is cut off and however deep it is.
func TestParseOfAnything(t *testing.T) {
	sample := `strict $.a["b"]."c d"[*] ? (@.x > 1.5e3 && !(exists($v) || @ starts with "q")) .size() + -$[last, 1 to 2] /* c */`
	for i := range sample {
		for _, text := range []string{sample[:i], sample[i:], sample[:i] + "\x00" + sample[i:], sample[:i] + `"` + sample[i:]} {
			if _, ok := pgerr.As(Check(text)); !ok && Check(text) != nil {
				t.Errorf("%q: %v", text, Check(text))
			}
		}
	}
	for _, deep := range []string{"(", "-", "$[", "exists(", "$?(", "$.a+", "!"} {
		if err := Check(strings.Repeat(deep, 100000)); err == nil {
			t.Errorf("%s, deep: no error", deep)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"$.a":                      "",
		"lax $":                    "",
		"":                         "22P02",
		"$.":                       "42601",
		"@":                        "42601",
		"last":                     "42601",
		"$[last]":                  "",
		"1 + (2 > 1)":              "42601",
		"$ like_regex \"a\"":       "",
		"$ like_regex \"a(\"":      "2201B",
		"$.**{2 to last}":          "",
		"$.**{x}":                  "42601",
		"$.datetime()":             "0A000",
		"$.nope()":                 "42601",
		`$.a ? (@ is unknown)`:     "42601",
		`$ ? ((@ > 1) is unknown)`: "",
		`"open`:                    "42601",
		"01":                       "42601",
	} {
		got := ""
		if e, ok := pgerr.As(Check(text)); ok {
			got = string(e.Code)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
